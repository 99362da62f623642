"""Output checks of pipelines: what `init` and `step` return."""

import jax

from brax import plugins
from brax.base import State, System
from brax.errors import PluginError
from brax.plugins.outputs.traced import describe


def checked_state(name: str, function: str, value: object) -> State:
    """Return a state that a function of a pipeline returned.

    Raises:
        PluginError: if it is not a state.
    """
    if not isinstance(value, State):
        raise PluginError(
            f"{plugins.specs('pipeline')[name]}: {function} must return a brax.base.State, but "
            f"returns {describe(value)}"
        )
    return value


class CheckedPipeline:
    """A pipeline by its name, with checks of its states."""

    def __init__(self, name: str) -> None:
        self._name, self._pipeline = name, plugins.get("pipeline", name)

    def init(self, sys: System, q: jax.Array, qd: jax.Array) -> State:
        """Return the state of a model at given coordinates."""
        return checked_state(self._name, "init", self._pipeline.init(sys, q, qd))

    def with_forces(self, sys: System, state: State) -> State:
        """Return a state whose next steps report their forces, if the pipeline can report them."""
        if not getattr(self._pipeline, "reports_forces", False):
            return state
        return checked_state(self._name, "with_forces", self._pipeline.with_forces(sys, state))

    def step(self, sys: System, state: State, act: jax.Array, n_frames: int = 1) -> State:
        """Return the state `n_frames` physics steps later, under one control."""
        new = self._pipeline.step(sys, state, act, n_frames)
        return checked_state(self._name, "step", new)
