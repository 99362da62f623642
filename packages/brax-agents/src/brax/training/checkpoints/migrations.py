"""Migrations: the records of older checkpoints in the form of this version."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from brax.errors import CheckpointError

Record = dict[str, Any]


def _from_format_1(record: Record, folder: Path) -> Record:
    """Add newer settings of PPO's networks, with the values that were fixed before."""
    network = record.get("network", {})
    if network.get("factory") != "make_ppo_networks":
        return record
    if network["distribution_type"] == "normal":
        raise CheckpointError(
            f"checkpoint '{folder}' has format 1, in which the deviation of a policy with "
            "distribution_type=normal was another part of the network: train it again, or use "
            "brax-agents of its time."
        )
    new = {
        "noise_std_type": "scalar",
        "init_noise_std": 1.0,
        "state_dependent_std": False,
        "policy_network_kernel_init_fn": "lecun_uniform",
        "policy_network_kernel_init_kwargs": None,
        "value_network_kernel_init_fn": "lecun_uniform",
        "value_network_kernel_init_kwargs": None,
        "mean_kernel_init_fn": None,
        "mean_kernel_init_kwargs": None,
        "use_distributional_critic": False,
        "num_quantiles": 32,
    }
    return {**record, "network": {**network, **new}}


def _from_format_2(record: Record, folder: Path) -> Record:
    """Add the rounding errors of observation statistics, which were not kept before.

    They are zero, like all arrays that are recorded but not stored.
    """
    place, rests = "params/normalizer", []
    for name, dtype, shape in record.get("leaves", []):
        for part in ("mean", "variance"):
            if name == f"{place}/{part}" or name.startswith(f"{place}/{part}/"):
                rests.append([name.replace(place, f"{place}/rest", 1), dtype, shape])
    return {**record, "leaves": record.get("leaves", []) + rests} if rests else record


def _from_format_3(record: Record, folder: Path) -> Record:
    """Add newer settings of networks, with the values that were fixed before."""
    network = record.get("network", {})
    images: Record = {"cnn_padding": "zeros", "cnn_max_pool": False, "cnn_global_pool": "avg"}
    new: dict[str, Record] = {
        "make_bc_networks": {"vision": False},
        "make_bc_networks_vision": images,
        "make_ppo_networks_vision": images,
        "make_sac_networks": {
            "distribution_type": "tanh_normal",
            "noise_std_type": "scalar",
            "init_noise_std": 1.0,
            "state_dependent_std": False,
            "policy_network_kernel_init_fn": "lecun_uniform",
            "q_network_kernel_init_fn": "lecun_uniform",
        },
    }
    more = new.get(network.get("factory"), {})
    # Settings whose default is None need no entry.
    return {**record, "network": {**more, **network}} if more else record


_MIGRATIONS: dict[int, Callable[[Record, Path], Record]] = {
    1: _from_format_1,
    2: _from_format_2,
    3: _from_format_3,
}
"""Function from the record of each format to that of the next."""


def migrate(record: Record, written: int, folder: Path) -> Record:
    """Return a record in the form of the newest format.

    Args:
        record: record of a checkpoint.
        written: format that it was written in.
        folder: the checkpoint's folder.

    Raises:
        CheckpointError: if it has no equivalent today.
    """
    # One format at a time, so that a new format needs one function.
    for step in range(written, max(_MIGRATIONS) + 1):
        record = _MIGRATIONS[step](record, folder)
    return record
