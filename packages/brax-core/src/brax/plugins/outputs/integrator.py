"""Output checks of integrators."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax

from brax.errors import closest
from brax.integrators.interface import Flow, Integrator, Moves
from brax.plugins.outputs.traced import Fault, call, describe, like


def problems(integrator: Integrator[Any]) -> Iterator[str]:
    """Yield what is wrong with an integrator's name and order, and with the state it returns."""
    name, order = (getattr(integrator, key, None) for key in ("name", "order"))
    if not isinstance(name, str) or name != name.lower():
        yield f"name must be a text in lower case, got {name!r}"
    if type(order) is not int or order < 1:
        yield f"order must be a number of at least 1, got {order!r}"
    # Without `needs_flow` the stages of `Flow` do not exist, as in the pipelines that lack them.
    moves: Moves[_State] = _Flow() if integrator.needs_flow else _TracedMoves()
    try:
        out = call("step", lambda s, dt: integrator.step(moves, s, dt), _State(like()), like())
    except Fault as fault:
        yield str(fault)
        return
    if not isinstance(out, _State):
        yield (
            f"step must return the state that its last stage returned, but returns {describe(out)}"
        )


class _State(NamedTuple):
    """A state without known structure, since an integrator may only pass it on."""

    numbers: Any


class _TracedMoves(Moves[_State]):
    """Stages that add the time to the state."""

    def __getattr__(self, name: str) -> Any:
        """Raise an error that says which stages exist, where one does not."""
        if hasattr(Flow, name):
            raise AttributeError(f"only Flow has '{name}': set needs_flow = True")
        known = [move for move in dir(self) if not move.startswith("_")]
        raise AttributeError(f"there is no stage '{name}'.{closest(name, known)}".rstrip("."))

    def kick(self, state: _State, dt: jax.Array) -> _State:
        """Return the state with the time added."""
        return _State(state.numbers + dt)

    def drift(self, state: _State, dt: jax.Array) -> _State:
        """Return the state with the time added."""
        return _State(state.numbers + dt)


class _Flow(_TracedMoves, Flow[_State]):
    """The stages of an integrator that sets `needs_flow`."""

    def rates(self, state: _State, start: _State) -> Any:
        """Return the state's numbers, of the right shape."""
        return state.numbers

    def advance(self, start: _State, rates: Any, dt: jax.Array) -> _State:
        """Return the state with the rates added, times the time."""
        return _State(start.numbers + dt * rates)

    def implicit_kick(self, state: _State, dt: jax.Array, inertia: bool) -> _State:
        """Return the state with the time added."""
        return _State(state.numbers + dt)
