"""What moves in the viewer page: poses, coordinates, contacts and joint axes, a row per frame."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from brax.base import State, System, Transform
from brax.errors import ConfigError, ModelError
from brax.io import _arguments
from brax.io._arguments import kind, number, numbers
from brax.io.viewer import overlays, scene
from brax.mocap import at_rest


def arrays(
    sys: System, states: State | Sequence[State], forces: Any = None
) -> dict[str, np.ndarray]:
    """Returns the numbers of a trajectory, each array with frames in front.

    Args:
        sys: the system that the states belong to.
        states: states in order of time, or one state whose leaves have time in front.
        forces: on the second geom of each possible contact [N], (frames, n, 3), or None.

    Returns:
        `pos` (frames, n, 3) and `rot` (frames, n, 4) of the links, then of the bodies that the
        state places; `q` (frames, nq);
        `axes` (frames, n, 6): anchor and axis, in their links' frames, of the joints that
        `overlays.rotational_joints` lists; `contacts` (frames, n, 7): whether it touches, point and
        normal; and, if given, `forces` (frames, n, 3).

    Raises:
        ConfigError: if `sys` is no system, there is no state, or the states or forces are not one
            trajectory's.
        ModelError: if the states belong to another system, or are not finite.
    """
    found = _found(sys, checked(sys, states))
    touches = found.pop("contacts")
    kept = touches[..., 0].any(axis=0)  # points that never touch need no rows
    found["contacts"] = touches[:, kept]
    if forces is not None:
        acting = _forces(forces, touches)
        found["forces"] = np.where(touches[..., :1] > 0, acting, 0.0)[:, kept]
    return found


def moment(sys: System, state: State) -> dict[str, np.ndarray]:
    """Returns the numbers of one state as `arrays` does, with a row for every possible contact."""
    return _found(sys, checked(sys, [state]))


def poses(sys: System, states: State | Sequence[State]) -> tuple[np.ndarray, np.ndarray]:
    """Returns `pos` and `rot` of `arrays` alone, with its arguments and errors."""
    frames = _frames(checked(sys, states))
    return np.asarray(frames.pos), np.asarray(frames.rot)


def interval(sys: System, dt: float | None) -> float:
    """The time between two states [s]: `dt`, by default the system's time step.

    Raises:
        ConfigError: if it is not a positive number, or `sys` is no system.
    """
    _arguments.system(sys)
    seconds = number(sys.opt.timestep if dt is None else dt, "dt")
    if not 0 < seconds < float("inf"):
        raise ConfigError(f"dt must be a positive number of seconds, got {seconds}")
    return seconds


class _Moved(NamedTuple):
    """A trajectory's numbers, frames in front."""

    x: Transform
    q: np.ndarray
    mocap: Transform | None


def checked(sys: System, states: State | Sequence[State]) -> _Moved:
    """The numbers of a trajectory on the host, with the arguments and errors of `arrays`."""
    _arguments.system(sys)
    rest = at_rest(sys)
    moved = _stack(states, rest)
    _check(sys, moved)
    return moved


def _check_state(state: Any, what: str) -> None:
    if not isinstance(state, State):
        raise ConfigError(
            f"{what}, got {kind(state)}: give what a pipeline returns; an environment's state has "
            "it as `pipeline_state`"
        )


def _stack(states: State | Sequence[State], rest: Transform | None) -> _Moved:
    """The numbers, `rest` where a state does not say where it places bodies."""
    if not isinstance(states, Sequence):
        _check_state(states, "states must be a list of states, or one state")
        moved = _Moved(*jax.device_get((states.x, states.q, states.mocap)))
        if moved.x.pos.ndim != 3 or moved.q.ndim != 2:
            raise ConfigError(
                f"states.x.pos has shape {moved.x.pos.shape}: give a list of states, or one state "
                "whose leaves have time (and nothing else) in front"
            )
        if moved.mocap is not None or rest is None:
            return moved
        always = jax.tree.map(lambda a: np.broadcast_to(a, (len(moved.q), *a.shape)), rest)
        return moved._replace(mocap=always)
    if not states:
        raise ConfigError("the trajectory is empty: give at least one state")
    for i, state in enumerate(states):
        _check_state(state, f"frame {i} must be a state")
    numbers = jax.device_get([(s.x, s.q, rest if s.mocap is None else s.mocap) for s in states])
    rows = [_Moved(*row) for row in numbers]
    shapes = [row.x.pos.shape for row in rows]
    odd = next((i for i, shape in enumerate(shapes) if shape != shapes[0] or len(shape) != 2), None)
    if odd is not None:
        raise ConfigError(
            f"frame {odd}: state.x.pos has shape {shapes[odd]}, not (n_links, 3): "
            "give the states of one environment of one system"
        )
    other = next((i for i, row in enumerate(rows) if _shapes(row) != _shapes(rows[0])), None)
    if other is not None:
        raise ConfigError(
            f"frame {other} has coordinates or mocap bodies of another shape than frame 0: "
            "give the states of one environment of one system"
        )
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)


def _shapes(row: _Moved) -> list[tuple[int, ...]]:
    return [np.shape(leaf) for leaf in jax.tree.leaves(row)]


def _check(sys: System, moved: _Moved) -> None:
    x, q = moved.x, moved.q
    wanted = (sys.num_links(), sys.q_size())
    if (x.pos.shape[1], q.shape[1]) != wanted:
        raise ModelError(
            f"the states have {x.pos.shape[1]} links and {q.shape[1]} coordinates, the system has "
            f"{wanted[0]} and {wanted[1]}: they come from another system"
        )
    if not len(q):
        raise ConfigError("the trajectory is empty: give at least one state")
    frames = _frames(moved)
    finite = np.isfinite(frames.pos).all(-1) & np.isfinite(frames.rot).all(-1)
    if not finite.all():
        frame, link = np.argwhere(~finite)[0]
        raise ModelError(f"frame {frame}, link '{scene.frame_names(sys)[link]}': not finite")


def _frames(moved: _Moved) -> Transform:
    """Frames of the links, then of the bodies that the state places."""
    if moved.mocap is None:
        return moved.x
    return jax.tree.map(lambda *each: np.concatenate(each, axis=1), moved.x, moved.mocap)


def _found(sys: System, moved: _Moved) -> dict[str, np.ndarray]:
    frames, touches = _frames(moved), overlays.contacts(sys, moved.x, moved.mocap)
    axes = overlays.rotation_axes(sys, moved.q)
    found = {"pos": frames.pos, "rot": frames.rot, "q": moved.q, "axes": axes, "contacts": touches}
    return {name: np.asarray(values) for name, values in found.items()}


def _forces(forces: Any, touches: np.ndarray) -> np.ndarray:
    """Forces, one for each possible contact in each frame."""
    given, shape = numbers(forces, "forces"), (*touches.shape[:2], 3)
    if given.shape != shape:
        raise ConfigError(
            f"forces have shape {given.shape}; expected {shape}: one for each possible contact of "
            "`brax.contact.get` in each frame"
        )
    if not np.isfinite(given).all():
        raise ConfigError("forces are not finite")
    return given
