"""The moving parts of the viewer page: poses, coordinates, contacts and joint axes, by frame."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from brax.base import State, System, Transform
from brax.errors import ConfigError, ModelError
from brax.io import _arguments
from brax.io._arguments import kind, number, numbers
from brax.io.viewer import overlays, scene
from brax.mocap import at_rest


def arrays(
    sys: System, states: State | Sequence[State], forces: object = None
) -> dict[str, np.ndarray]:
    """Return the arrays of a trajectory, with a leading frame axis.

    Args:
        sys: the system that the states belong to.
        states: states in order of time, or one state whose leaves have a leading time axis.
        forces: force on the second geom of each possible contact [N], world axes, (frames, n, 3),
            or None.

    Returns:
        `pos` (frames, n, 3) and `rot` (frames, n, 4): world poses of the links, then of the mocap
        bodies. `q` (frames, nq): coordinates. `axes` (frames, n, 6): anchor and axis, in the links'
        frames, of the joints in `overlays.rotational_joints`. `contacts` (frames, n, 7): 1 if the
        contact is active, point and normal. `forces` (frames, n, 3), if given.

    Raises:
        ConfigError: if `sys` is not a system, there is no state, or the states or forces do not
            form one trajectory.
        ModelError: if the states belong to another system, or are not finite.
    """
    found = _found(sys, checked(sys, states))
    touches = found.pop("contacts")
    kept = touches[..., 0].any(axis=0)  # contacts that are never active need no rows
    found["contacts"] = touches[:, kept]
    if forces is not None:
        acting = _forces(forces, touches)
        found["forces"] = np.where(touches[..., :1] > 0, acting, 0.0)[:, kept]
    return found


def moment(sys: System, state: State) -> dict[str, np.ndarray]:
    """Return the arrays of one state as in `arrays`, with a row for every possible contact."""
    return _found(sys, checked(sys, [state]))


def poses(sys: System, states: State | Sequence[State]) -> tuple[np.ndarray, np.ndarray]:
    """Return only `pos` and `rot` of `arrays`, with its arguments and errors."""
    frames = _frames(checked(sys, states))
    return np.asarray(frames.pos), np.asarray(frames.rot)


def interval(sys: System, dt: float | None) -> float:
    """Return the time between two states [s]: `dt`, by default the system's time step.

    Raises:
        ConfigError: if it is not a positive number, or `sys` is not a system.
    """
    _arguments.system(sys)
    seconds = number(sys.opt.timestep if dt is None else dt, "dt")
    if not 0 < seconds < float("inf"):
        raise ConfigError(f"dt must be a positive number of seconds, got {seconds}")
    return seconds


class _Motion(NamedTuple):
    """The poses and coordinates of a trajectory, with a leading frame axis."""

    x: Transform
    q: np.ndarray
    mocap: Transform | None


def checked(sys: System, states: State | Sequence[State]) -> _Motion:
    """Return a trajectory's arrays on the host, after the checks of `arrays`."""
    _arguments.system(sys)
    rest = at_rest(sys)
    moved = _stack(states, rest)
    _check(sys, moved)
    return moved


def _check_state(state: object, what: str) -> None:
    if not isinstance(state, State):
        raise ConfigError(
            f"{what}, got {kind(state)}: give what a pipeline returns; an environment's state has "
            "it as `pipeline_state`"
        )


def _stack(states: State | Sequence[State], rest: Transform | None) -> _Motion:
    """Return the stacked arrays; `rest` are the mocap poses of states without any."""
    if not isinstance(states, Sequence):
        _check_state(states, "states must be a list of states, or one state")
        moved = _Motion(*jax.device_get((states.x, states.q, states.mocap)))
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
    rows = [_Motion(*row) for row in numbers]
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


def _shapes(row: _Motion) -> list[tuple[int, ...]]:
    return [np.shape(leaf) for leaf in jax.tree.leaves(row)]


def _check(sys: System, moved: _Motion) -> None:
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


def _frames(moved: _Motion) -> Transform:
    """Return the poses of the links, then of the mocap bodies."""
    if moved.mocap is None:
        return moved.x
    return jax.tree.map(lambda *each: np.concatenate(each, axis=1), moved.x, moved.mocap)


def _found(sys: System, moved: _Motion) -> dict[str, np.ndarray]:
    frames, touches = _frames(moved), overlays.contacts(sys, moved.x, moved.mocap)
    axes = overlays.rotation_axes(sys, moved.q)
    found = {"pos": frames.pos, "rot": frames.rot, "q": moved.q, "axes": axes, "contacts": touches}
    return {name: np.asarray(values) for name, values in found.items()}


def _forces(forces: object, touches: np.ndarray) -> np.ndarray:
    """Return the forces, after checking that there is one for each possible contact."""
    given, shape = numbers(forces, "forces"), (*touches.shape[:2], 3)
    if given.shape != shape:
        raise ConfigError(
            f"forces have shape {given.shape}; expected {shape}: one for each possible contact of "
            "`brax.contact.get` in each frame"
        )
    if not np.isfinite(given).all():
        raise ConfigError("forces are not finite")
    return given
