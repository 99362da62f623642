"""Placing a batch of environments on several devices: the batch is split, the rest is copied."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from brax import _cores
from brax.errors import ConfigError

T = TypeVar("T")

Apply = Callable[..., Any]
"""`apply(normalizer, weights, *inputs)` of a network; inputs and outputs have their rows first."""

ENVS_AXIS = "envs"
"""Name of the mesh axis over which environments are split."""


def env_mesh(num_envs: int, max_devices: int | None = None) -> Mesh:
    """Makes the mesh of devices that share the environments.

    Args:
        num_envs: number of environments.
        max_devices: how many devices of each process to use; all of them by default, but one where
            the command `brax` made the cores of a CPU devices.

    Raises:
        ConfigError: if there are fewer devices, or the environments cannot be split evenly, or
            processes have different numbers of devices.
    """
    devices = jax.devices()
    counts = _counts(devices)
    fewest = min(counts)
    if max_devices is not None and not 1 <= max_devices <= fewest:
        raise ConfigError(
            f"max_devices_per_host: asked for {max_devices} devices, have {fewest}. "
            f"Use 1 to {fewest}, or leave it out for all."
        )
    if max_devices is None and fewest < max(counts):
        raise ConfigError(
            f"the processes have different numbers of devices: {', '.join(map(str, counts))}. Give "
            f"each as many, or set max_devices_per_host, at most {fewest}."
        )
    # Cores share the work on one device too, and need not wait for each other after every step.
    on_cores = _cores.cores_are_devices and devices[0].platform == "cpu"
    each = max_devices or (1 if on_cores else fewest)
    used: list[jax.Device] = []
    for host in range(len(counts)):
        used += [device for device in devices if device.process_index == host][:each]
    count = len(used)
    if num_envs % count:
        below = num_envs // count * count
        legal = " or ".join(str(n) for n in (below, below + count) if n)
        raise ConfigError(
            f"num_envs={num_envs} cannot be split over {count} devices. "
            f"Use {legal}, or set max_devices_per_host."
        )
    return Mesh(np.array(used), (ENVS_AXIS,), axis_types=(AxisType.Auto,))


def _counts(devices: Sequence[jax.Device]) -> list[int]:
    """How many devices each process has."""
    owners = [device.process_index for device in devices]
    return [owners.count(host) for host in range(max(owners) + 1)]


def shardings(tree: Any, mesh: Mesh, num_envs: int) -> Any:
    """Returns where each leaf goes: split where its first axis is the environments'."""

    def place(leaf: Any) -> NamedSharding:
        split = leaf.ndim > 0 and leaf.shape[0] == num_envs
        return NamedSharding(mesh, PartitionSpec(ENVS_AXIS) if split else PartitionSpec())

    return jax.tree.map(place, tree)


def shard(tree: T, mesh: Mesh, axis: int = 0) -> T:
    """Splits an axis of traced arrays over the devices, if it can be split evenly.

    What is gathered from rows of all devices would be worked on by each of them otherwise.
    """
    count = mesh.size

    def place(x: jax.Array) -> jax.Array:
        if x.shape[axis] % count:
            return x
        spec = PartitionSpec(*[None] * axis, ENVS_AXIS)
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, spec))

    return jax.tree.map(place, tree) if count > 1 else tree


def grad(
    loss: Callable[[Any, Callable[[Apply], Apply]], tuple[jax.Array, T]],
    weights: Any,
    mesh: Mesh,
    rows: int,
) -> tuple[Any, T]:
    """The gradient of a loss over rows that the devices share, and what else it returns.

    Each device has a copy of the weights, so that their gradients are summed once, as one vector;
    else they are layer by layer, and the devices wait for each other every time.

    Args:
        loss: `loss(weights, over)`, which calls networks as `over(apply)`.
        weights: what the gradient is by.
        mesh: the devices.
        rows: first axis of what the networks are given.
    """
    count = mesh.size
    if count == 1 or rows % count:
        return jax.grad(loss, has_aux=True)(weights, lambda apply: apply)
    vector, restore = ravel_pytree(weights)
    copies = shard(jnp.broadcast_to(vector, (count, *vector.shape)), mesh)

    def by_copies(copies: jax.Array) -> tuple[jax.Array, T]:
        return loss(jax.vmap(restore)(copies), lambda apply: _on_shards(apply, mesh))

    grads, rest = jax.grad(by_copies, has_aux=True)(copies)
    return restore(jnp.sum(grads, axis=0)), rest


def _on_shards(apply: Apply, mesh: Mesh) -> Apply:
    """A network that every device has its own copy of, for its share of the rows."""

    def own(normalizer: Any, copies: Any, *inputs: Any) -> Any:
        return apply(normalizer, jax.tree.map(lambda x: x[0], copies), *inputs)

    def on_shares(normalizer: Any, copies: Any, *inputs: Any) -> Any:
        rows = PartitionSpec(ENVS_AXIS)
        specs = (PartitionSpec(), *[rows] * (1 + len(inputs)))
        shared = jax.shard_map(own, mesh=mesh, in_specs=specs, out_specs=rows)
        return shared(normalizer, copies, *inputs)

    return on_shares


def replicated(mesh: Mesh) -> NamedSharding:
    """A copy on every device."""
    return NamedSharding(mesh, PartitionSpec())
