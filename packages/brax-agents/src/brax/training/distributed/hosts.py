"""Several processes that train one model, on one machine or many, by JAX's distributed runtime.

Every process runs the same program with the same settings. The environments are split over the
devices of all processes. Only the first process writes checkpoints, metrics and the run's folder.
"""

import contextlib
import functools
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from brax import errors
from brax.errors import BraxError, ConfigError, TrainingError
from brax.training.distributed import coordination

HEARTBEAT_TIMEOUT_SECONDS = 20
"""Silence [s] after which a process counts as lost and the others end."""

_LOST_PROCESS_PHRASES = (
    "gloo",
    "coordination service",
    "distributed service",
    "remote process exited",
)
"""Phrases in the errors that JAX, gloo and NCCL raise if another process is gone."""

_MAX_MESSAGE_BYTES = 2000
"""Maximum length of an error message that is sent to the other processes, in bytes."""


def join(coordinator: str | None, num_processes: int | None, process_id: int | None) -> None:
    """Connect this process with the others. Call it before JAX computes anything.

    Args:
        coordinator: `HOST:PORT` at which the first process listens; None to train alone.
        num_processes: number of processes.
        process_id: number of this process, from 0.

    Raises:
        ConfigError: if something is missing or out of range, or the others cannot be reached.
    """
    given = (coordinator, num_processes, process_id)
    if given == (None, None, None):
        return
    if coordinator is None or num_processes is None or process_id is None:
        raise ConfigError("--coordinator, --num-processes and --process-id go together: give all.")
    host, colon, port = coordinator.rpartition(":")
    if not (host and colon and port.isdigit() and 0 < int(port) < 2**16):
        raise ConfigError(
            f"--coordinator {coordinator}: expected HOST:PORT, such as 10.0.0.1:1234."
        )
    if not 0 <= process_id < num_processes:
        raise ConfigError(
            f"--process-id {process_id} must be in [0, {num_processes - 1}], below "
            f"--num-processes {num_processes}."
        )
    try:
        # JAX ends the program where a number is missing or given twice; this raises an error
        # instead.
        coordination.wait_for_all(host, int(port), num_processes, process_id)
        if any(name.lower() in ("http_proxy", "https_proxy", "grpc_proxy") for name in os.environ):
            # gRPC knows it in lower case only; the processes reach each other directly.
            os.environ["no_grpc_proxy"] = host  # noqa: SIM112
        # Without gloo, processes with CPUs cannot exchange arrays.
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(
            coordinator,
            num_processes,
            process_id,
            heartbeat_timeout_seconds=HEARTBEAT_TIMEOUT_SECONDS,
            shutdown_timeout_seconds=HEARTBEAT_TIMEOUT_SECONDS,
        )
    except (OSError, RuntimeError) as error:
        cause = " ".join(str(error).split())[:300]
        raise ConfigError(
            f"process {process_id} of {num_processes} cannot join at {coordinator}: {cause}. Start "
            "every process with the same --coordinator, each with a --process-id of its own."
        ) from error


def first() -> bool:
    """Return whether this process is the one that writes."""
    return jax.process_index() == 0


def is_single_process() -> bool:
    """Return whether there are no other processes."""
    return not jax.distributed.is_initialized() or jax.process_count() == 1


@contextlib.contextmanager
def explain_lost_process() -> Iterator[None]:
    """Explain a failure of JAX that comes from the loss of another process.

    Raises:
        TrainingError: in place of JAX's error.
    """
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        cause = " ".join(str(error).split())
        # JAX raises the same types of errors for everything; only their text tells.
        lost = any(word in cause.lower() for word in _LOST_PROCESS_PHRASES)
        if (
            isinstance(error, BraxError)
            or "RESOURCE_EXHAUSTED" in cause
            or is_single_process()
            or not lost
        ):
            raise
        # The newest checkpoint is whole even if the first process died while it wrote the next.
        raise TrainingError(
            f"process {jax.process_index()} of {jax.process_count()} lost another one "
            f"({cause[:200]}). The newest checkpoint is whole: start all of them again from it, "
            "or fewer."
        ) from error


@explain_lost_process()
def _all_gather(values: object) -> np.ndarray:
    """Return the values of all processes, in order, (processes, ...)."""
    # The first device of each process: `reversed` lets it win.
    devices = {device.process_index: device for device in reversed(jax.devices())}
    mesh = Mesh(np.array([devices[i] for i in range(jax.process_count())]), ("processes",))
    own = NamedSharding(mesh, PartitionSpec("processes"))
    return np.asarray(gather(jax.make_array_from_process_local_data(own, np.asarray(values)[None])))


def broadcast_from_first(number: int) -> int:
    """Return the first process's number, so that all processes do the same."""
    return number if is_single_process() else int(_all_gather(np.int32(number))[0])


def max_over_processes(number: int) -> int:
    """Return the largest of all processes' numbers."""
    return number if is_single_process() else int(_all_gather(np.int32(number)).max())


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Run a block that no process leaves before all have finished it; if one fails, all fail.

    Every process must enter it, and the block must not wait for other processes.

    Raises:
        BraxError: in those that did not fail, the error of the one that did.
    """
    try:
        yield
    except Exception as error:
        with contextlib.suppress(TrainingError):  # its own error is the one to tell
            _exchange_failures(error)
        raise
    # Waiting inside the block would deadlock: a process that failed would never come.
    if failure := _exchange_failures(None):
        raise failure


def _exchange_failures(own: Exception | None) -> BraxError | None:
    """Report this process's failure, if any, to the others; return that of another, if any."""
    if is_single_process():
        return None
    # Two rounds: messages are exchanged only after a failure.
    failed = _all_gather(np.int32(own is not None))
    if not failed.any():
        return None
    encoded = f"{type(own).__name__}\n{own}".encode()[:_MAX_MESSAGE_BYTES]
    # Arrays of one length, as a collective operation needs them.
    messages = _all_gather(np.frombuffer(encoded.ljust(_MAX_MESSAGE_BYTES), np.uint8))
    who = int(failed.argmax())
    name, _, message = messages[who].tobytes().decode("utf-8", "replace").partition("\n")
    where = f"process {who} of {jax.process_count()} failed: "
    # The others raise the same class, so that callers may catch it everywhere.
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, BraxError):
        return kind(where + message.strip())
    return TrainingError(f"{where}{name}: {message.strip()}")


def check_consistent(settings: Mapping[str, object]) -> None:
    """Reject processes that have different settings.

    Raises:
        ConfigError: on every process, naming what differs.
    """
    if is_single_process():
        return
    # Checksums of equal size, since a collective operation needs arrays of one shape.
    sums = [zlib.crc32(json.dumps(x, default=str).encode()) for x in settings.values()]
    alike = np.ptp(_all_gather(np.array(sums, np.uint32)).astype(np.int64), axis=0) == 0
    unlike = [name for name, same in zip(settings, alike, strict=True) if not same]
    if unlike:
        raise ConfigError(
            f"the processes have different settings: {', '.join(unlike)}. Process "
            f"{jax.process_index()} has {', '.join(f'{n}={settings[n]!r}' for n in unlike)}."
        )


def gather(tree: object) -> Any:
    """Return a tree of which this process has every leaf whole."""
    return tree if is_single_process() else _replicate(jax.tree.leaves(tree)[0].sharding.mesh)(tree)


@functools.cache
def _replicate(mesh: Mesh) -> Callable[[Any], Any]:
    """Return a function that copies every leaf to all devices of a mesh."""
    # Cached by mesh: a new function for each checkpoint would be compiled each time.
    everywhere = NamedSharding(mesh, PartitionSpec())
    return jax.jit(lambda tree: tree, out_shardings=everywhere)


def place(tree: Any, places: Any) -> Any:
    """Put a tree that every process has on the host on the devices of all processes."""
    if is_single_process():
        return jax.device_put(tree, places)

    def one(leaf: Any, place: Any) -> jax.Array:
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(one(jax.random.key_data(leaf), place))
        leaf = np.asarray(leaf)
        # Each process copies only the parts that its own devices hold.
        return jax.make_array_from_callback(leaf.shape, place, lambda index: leaf[index])

    return jax.tree.map(one, tree, places)
