"""Placing a batch of environments on several devices: the batch is split, the rest is copied."""

from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from brax import _xla
from brax.errors import ConfigError

AXIS = "envs"
"""Name of the mesh axis over which environments are split."""


def env_mesh(num_envs: int, max_devices: int | None = None) -> Mesh:
    """Makes the mesh of devices that share the environments.

    Args:
        num_envs: number of environments.
        max_devices: how many devices of each process to use; all of them by default, or, in a
            single one, as many as divide the environments where the command `brax` made the cores
            of a CPU devices.

    Raises:
        ConfigError: if there are fewer devices, or the environments cannot be split evenly.
    """
    devices = jax.devices()
    here = sum(device.process_index == jax.process_index() for device in devices)
    if max_devices is not None and not 1 <= max_devices <= here:
        raise ConfigError(
            f"max_devices_per_host: asked for {max_devices} devices, have {here}. "
            f"Use 1 to {here}, or leave it out for all."
        )
    each = max_devices or here
    alone = jax.process_count() == 1
    if alone and not max_devices and _xla.cores_are_devices and devices[0].platform == "cpu":
        each = next(n for n in range(here, 0, -1) if num_envs % n == 0)
    used: list[jax.Device] = []
    for host in range(jax.process_count()):
        used += [device for device in devices if device.process_index == host][:each]
    count = len(used)
    if num_envs % count:
        below = num_envs // count * count
        legal = " or ".join(str(n) for n in (below, below + count) if n)
        raise ConfigError(
            f"num_envs={num_envs} cannot be split over {count} devices. "
            f"Use {legal}, or set max_devices_per_host."
        )
    return Mesh(np.array(used), (AXIS,), axis_types=(AxisType.Auto,))


def shardings(tree: Any, mesh: Mesh, num_envs: int) -> Any:
    """Returns where each leaf goes: split where its first axis is the environments'."""

    def place(leaf: Any) -> NamedSharding:
        split = leaf.ndim > 0 and leaf.shape[0] == num_envs
        return NamedSharding(mesh, PartitionSpec(AXIS) if split else PartitionSpec())

    return jax.tree.map(place, tree)


def replicated(mesh: Mesh) -> NamedSharding:
    """A copy on every device."""
    return NamedSharding(mesh, PartitionSpec())
