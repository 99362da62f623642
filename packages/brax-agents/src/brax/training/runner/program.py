"""A learner, compiled: what the shared loop runs."""

import re
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from brax.training.distributed import devices, hosts
from brax.training.learner import Learner, Tally

_OBJECT_ADDRESS = re.compile(r'backend_config = "\d+"')
"""Where JAX names a Python object of this process by its address."""


class Functions(NamedTuple):
    """What is compiled."""

    init: Callable[..., Any]
    """From a key to the first state."""
    advance: Callable[..., Any]
    """From a state and a number of training steps to the state after them and a tally."""
    fresh_environments: Callable[..., Any]
    """From a state to one whose environments start anew."""


class Program:
    """Compiled functions of an agent's training state, split over a mesh of devices."""

    def __init__(self, learner: Learner, mesh: Mesh) -> None:
        self._functions = Functions(learner.init, learner.advance, learner.fresh_environments)
        self._split = learner.split
        self.with_params = learner.with_params
        self._key = jax.random.key(0)
        self._mesh = mesh
        self._init: Any = None
        self._advance: Any = None

    def place(self, state: Any) -> Any:
        """Where each leaf of a state (or of its shapes) lives."""
        whole = jax.tree.map(lambda _: devices.replicated(self._mesh), state)
        split = {
            name: devices.shardings(getattr(state, name), self._mesh, length)
            for name, length in self._split.items()
        }
        return whole._replace(**split)

    def shapes(self) -> Any:
        """Shapes of a training state."""
        return jax.eval_shape(self._functions.init, self._key)

    def compile_init(self) -> None:
        """Compiles what makes the first state."""
        self._init = self._lower_init().compile()

    def compile_advance(self) -> None:
        """Compiles the training step, once for every number of steps."""
        self._advance = self._lower_advance().compile()

    def checksum(self) -> int:
        """A checksum of what makes the first state and of the training step, not yet compiled."""
        text = self._lower_init().as_text() + self._lower_advance().as_text()
        return zlib.crc32(_OBJECT_ADDRESS.sub("", text).encode())

    def _lower_init(self) -> jax.stages.Lowered:
        init = jax.jit(self._functions.init, out_shardings=self.place(self.shapes()))
        return init.lower(self._key)

    def _lower_advance(self) -> jax.stages.Lowered:
        state = self.shapes()
        places = self.place(state)
        whole = devices.replicated(self._mesh)
        advance = jax.jit(
            self._functions.advance,
            in_shardings=(places, whole),
            out_shardings=(places, whole),
            donate_argnums=0,
        )
        return advance.lower(state, jnp.int32(1))

    def init(self, key: jax.Array) -> Any:
        """Makes the first state on the devices."""
        return self._init(key)

    def advance(self, state: Any, steps: int) -> tuple[Any, Tally]:
        """Takes training steps; `state` is used up. The tally comes back to the host."""
        state, tally = self._advance(
            state, hosts.place(np.int32(steps), devices.replicated(self._mesh))
        )
        return state, jax.device_get(tally)

    def fresh_environments(self, state: Any) -> Any:
        """Resets every environment anew."""
        fresh = jax.jit(self._functions.fresh_environments, out_shardings=self.place(state))
        return fresh(state)

    def bad_updates(self, state: Any) -> int:
        """Updates in a row that were skipped because their gradient was not finite."""
        return int(state.bad_updates)

    def metrics(self, tally: Tally) -> dict[str, float]:
        """Means over updates and over the episodes that ended, where there were any."""
        learned, acted = tally
        found = {}
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
