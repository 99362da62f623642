"""A learner, compiled: the functions that the shared loop calls."""

import re
import threading
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from brax.kernels.gpu_options import gpu_options
from brax.training.distributed import devices, hosts
from brax.training.learner import Learner, Tally

_OBJECT_ADDRESS = re.compile(r'backend_config = "\d+"')
"""Text by which JAX names a Python object of this process, by its address."""

_TRACING = threading.Lock()
"""Lock of the thread that traces a program."""


def trace_and_compile(trace: Callable[[], jax.stages.Lowered]) -> jax.stages.Compiled:
    """Trace a program and compile it. Threads that do so trace in turn and compile side by side.

    A third-party environment may hold values of the program that is being traced, as Playground's
    wrappers put a randomized model into the environment. Training and evaluation share the
    environment, and traced at the same time, each would read the other's values.
    """
    with _TRACING:
        lowered = trace()
    return lowered.compile()


class Functions(NamedTuple):
    """The functions that are compiled."""

    init: Callable[..., Any]
    """From a key to the first state."""
    advance: Callable[..., Any]
    """From a state and a number of training steps to the state after them and a tally."""
    fresh_environments: Callable[..., Any]
    """From a state to one whose environments are reset."""


class Program:
    """Compiled functions of an agent's training state, split over a mesh of devices."""

    def __init__(self, learner: Learner, mesh: Mesh) -> None:
        """Store the functions; nothing is compiled."""
        self._functions = Functions(learner.init, learner.advance, learner.fresh_environments)
        self._split, self._split_axis = learner.split, learner.split_axis
        self.with_params = learner.with_params
        # Only its shape and type matter: it is what the programs are compiled for.
        self._key = jax.random.key(0)
        self._mesh = mesh
        self._init: Any = None
        self._advance: Any = None

    def place(self, state: Any) -> Any:
        """Return the sharding of each leaf of a state, or of its shapes."""
        # Every device has a copy of all that is not listed in the learner's `split`.
        whole = jax.tree.map(lambda _: devices.replicated(self._mesh), state)
        split = {
            name: devices.shardings(getattr(state, name), self._mesh, length, self._split_axis)
            for name, length in self._split.items()
        }
        return whole._replace(**split)

    def shapes(self) -> Any:
        """Return the shapes of a training state."""
        return jax.eval_shape(self._functions.init, self._key)

    def compile_init(self) -> None:
        """Compile the function that makes the first state."""
        self._init = trace_and_compile(self._lower_init)

    def compile_advance(self) -> None:
        """Compile the training step, once for every number of steps."""
        self._advance = trace_and_compile(self._lower_advance)

    def checksum(self) -> int:
        """Return a checksum of the uncompiled programs of the first state and the training step."""
        text = self._lower_init().as_text() + self._lower_advance().as_text()
        # Addresses of Python objects differ between processes that run the same program.
        return zlib.crc32(_OBJECT_ADDRESS.sub("", text).encode())

    def _lower_init(self) -> jax.stages.Lowered:
        """Trace and lower the function that makes the first state."""
        init = jax.jit(
            self._functions.init,
            out_shardings=self.place(self.shapes()),
            compiler_options=self._options(),
        )
        return init.lower(self._key)

    def _lower_advance(self) -> jax.stages.Lowered:
        """Trace and lower the training step."""
        state = self.shapes()
        places = self.place(state)
        whole = devices.replicated(self._mesh)
        advance = jax.jit(
            self._functions.advance,
            in_shardings=(places, whole),
            out_shardings=(places, whole),
            # The new state takes the memory of the old one, which may be most of a device's.
            donate_argnums=0,
            compiler_options=self._options(),
        )
        return advance.lower(state, jnp.int32(1))

    def _options(self) -> dict[str, Any] | None:
        """Return XLA's options for the mesh's devices, which are all of one kind."""
        return gpu_options(self._mesh.devices.flat[0])

    def init(self, key: jax.Array) -> Any:
        """Return the first state, on the devices."""
        return self._init(key)

    def advance(self, state: Any, steps: int) -> tuple[Any, Tally]:
        """Take training steps; `state` is consumed. The tally is returned on the host."""
        state, tally = self._advance(
            state, hosts.place(np.int32(steps), devices.replicated(self._mesh))
        )
        # This waits for the devices, so that the loop's clock measures the computation.
        return state, jax.device_get(tally)

    def fresh_environments(self, state: Any) -> Any:
        """Reset all environments; `state` is consumed."""
        # Compiled at the first use, since most runs have no resets.
        fresh = jax.jit(
            self._functions.fresh_environments,
            out_shardings=self.place(state),
            # As in `_lower_advance`: most leaves, such as a replay buffer, stay where they are.
            donate_argnums=0,
        )
        return fresh(state)

    def bad_updates(self, state: Any) -> int:
        """Return the number of consecutive updates that were skipped for a non-finite gradient."""
        return int(state.bad_updates)

    def metrics(self, tally: Tally) -> dict[str, float]:
        """Return means over updates and over the episodes that ended, where there were any."""
        learned, acted = tally
        found = {}
        # No loss is reported where no update was made: it would look like a loss of 0.
        if learned.updates:
            for name, x in learned.losses.items():
                found[f"training/{name}"] = float(x / learned.updates)
        if learned.skipped:
            for name, x in learned.skipped_losses.items():
                found[f"training/skipped_{name}"] = float(x / learned.skipped)
        found["training/skipped_updates"] = float(learned.skipped)
        found["training/nan_envs"] = float(acted.nan_envs)
        if acted.episodes_ended:
            for name, x in acted.episodes.items():
                found[f"episode/{name}"] = float(np.float64(x) / acted.episodes_ended)
        return found
