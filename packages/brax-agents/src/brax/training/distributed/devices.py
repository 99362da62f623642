"""Placement of a batch on several devices: environments are split, the rest is copied."""

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
"""Type of a network's `apply(normalizer, weights, *inputs)`; inputs and outputs have rows first."""

ENVS_AXIS = "envs"
"""Name of the mesh axis over which environments are split."""


def env_mesh(num_envs: int, max_devices: int | None = None) -> Mesh:
    """Return the mesh of devices that share the environments.

    Args:
        num_envs: number of environments.
        max_devices: number of devices of each process to use; by default all, but only one if
            the command `brax` has made devices of the cores of a CPU.

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
    # Each process would otherwise make a mesh of its own and wait for the others for ever.
    if max_devices is None and fewest < max(counts):
        raise ConfigError(
            f"the processes have different numbers of devices: {', '.join(map(str, counts))}. Give "
            f"each as many, or set max_devices_per_host, at most {fewest}."
        )
    # Cores share the work on one device too, and need not wait for each other after every step: on
    # two cores PPO was 1.1 and ES 3 to 4 times as fast on one device.
    on_cores = _cores.cores_are_devices and devices[0].platform == "cpu"
    each = max_devices or (1 if on_cores else fewest)
    # Grouped by process, so that the environments of one process are neighbours.
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
    """Return the number of devices of each process."""
    owners = [device.process_index for device in devices]
    return [owners.count(host) for host in range(max(owners) + 1)]


def shardings(tree: Any, mesh: Mesh, num_envs: int, axis: int = 0) -> Any:
    """Return the sharding of each leaf: split if this axis of it is that of the environments."""

    def place(leaf: Any) -> NamedSharding:
        # Told by length: an array of the same length that is not by environment is split too, which
        # only costs time.
        has = leaf.ndim > axis and leaf.shape[axis] == num_envs
        return NamedSharding(mesh, _split_at(axis) if has else PartitionSpec())

    return jax.tree.map(place, tree)


def _split_at(axis: int) -> PartitionSpec:
    """Return the specification of an array whose axis is split."""
    return PartitionSpec(*[None] * axis, ENVS_AXIS)


def shard(tree: T, mesh: Mesh, axis: int = 0) -> T:
    """Split an axis of traced arrays over the devices, if it can be split evenly.

    Without this, every device would work on all rows that are gathered from the rows of all
    devices.
    """
    count = mesh.shape[ENVS_AXIS]

    def place(x: jax.Array) -> jax.Array:
        if x.shape[axis] % count:
            return x
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, _split_at(axis)))

    return jax.tree.map(place, tree) if count > 1 else tree


def grad(
    loss: Callable[[Any, Callable[[Apply], Apply]], tuple[jax.Array, T]],
    weights: object,
    mesh: Mesh,
    rows: int,
) -> tuple[Any, T]:
    """Return the gradient of a loss over rows that the devices share, and the loss's other result.

    Each device has a copy of the weights, so that their gradients are summed once, as one vector.
    Otherwise they would be summed layer by layer, and the devices would wait for each other each
    time.

    Args:
        loss: `loss(weights, over)`, which calls networks as `over(apply)`.
        weights: weights to differentiate by.
        mesh: the devices.
        rows: length of the first axis of the networks' inputs.
    """
    count = mesh.shape[ENVS_AXIS]
    # Rows that cannot be split evenly are left to XLA's own partitioning.
    if count == 1 or rows % count:
        return jax.grad(loss, has_aux=True)(weights, lambda apply: apply)
    # (devices, weights): the copy of each device lies on that device.
    vector, restore = ravel_pytree(weights)
    copies = shard(jnp.broadcast_to(vector, (count, *vector.shape)), mesh)

    def by_copies(copies: jax.Array) -> tuple[jax.Array, T]:
        return loss(jax.vmap(restore)(copies), lambda apply: _on_shards(apply, mesh))

    grads, rest = jax.grad(by_copies, has_aux=True)(copies)
    # The only place at which devices wait for each other: one sum of one vector.
    return restore(jnp.sum(grads, axis=0)), rest


def _on_shards(apply: Apply, mesh: Mesh) -> Apply:
    """Return a network of which every device applies its own copy to its share of the rows."""

    def own(normalizer: object, copies: object, *inputs: object) -> Any:
        # Inside, the axis of copies has length 1.
        return apply(normalizer, jax.tree.map(lambda x: x[0], copies), *inputs)

    def on_shares(normalizer: object, copies: object, *inputs: object) -> Any:
        rows = PartitionSpec(ENVS_AXIS)
        specs = (PartitionSpec(), *[rows] * (1 + len(inputs)))
        # Batched over copies by `vmap` instead, XLA's CPU compiler made products that read columns:
        # PPO was a sixth slower on two devices.
        shared = jax.shard_map(own, mesh=mesh, in_specs=specs, out_specs=rows)
        return shared(normalizer, copies, *inputs)

    return on_shares


def replicated(mesh: Mesh) -> NamedSharding:
    """Return the sharding that puts a copy on every device."""
    return NamedSharding(mesh, PartitionSpec())
