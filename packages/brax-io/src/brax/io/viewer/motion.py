"""What moves in the viewer page: poses, coordinates, contacts and joint axes, a row per frame."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from brax.base import State, System, Transform
from brax.errors import ConfigError, ModelError
from brax.io.viewer import overlays


def arrays(
    sys: System, states: State | Sequence[State], forces: Any = None
) -> dict[str, np.ndarray]:
    """Returns the numbers of a trajectory, each array with frames in front.

    Args:
        sys: the system that the states belong to.
        states: states in order of time, or one state whose leaves have time in front.
        forces: on the second geom of each possible contact [N], (frames, n, 3), or None.

    Returns:
        `pos` (frames, n_links, 3) and `rot` (frames, n_links, 4) of the links; `q` (frames, nq);
        `axes` (frames, n, 6): anchor and axis, in their links' frames, of the joints that
        `overlays.turning_joints` lists; `contacts` (frames, n, 7): whether it touches, point and
        normal; and, if given, `forces` (frames, n, 3).

    Raises:
        ConfigError: if there is no state, or the states or forces are not one trajectory's.
        ModelError: if the states belong to another system, or are not finite.
    """
    x, q = _checked(sys, states)
    found = _found(sys, x, q)
    touches = found.pop("contacts")
    kept = touches[..., 0].any(axis=0)  # points that never touch need no rows
    found["contacts"] = touches[:, kept]
    if forces is not None:
        acting = _forces(forces, touches)
        found["forces"] = np.where(touches[..., :1] > 0, acting, 0.0)[:, kept]
    return found


def moment(sys: System, state: State) -> dict[str, np.ndarray]:
    """Returns the numbers of one state as `arrays` does, with a row for every possible contact."""
    return _found(sys, *_checked(sys, [state]))


def poses(sys: System, states: State | Sequence[State]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the link frames alone, (frames, n_links, 3) and (frames, n_links, 4).

    Arguments and errors are those of `arrays`.
    """
    x, _ = _checked(sys, states)
    return np.asarray(x.pos), np.asarray(x.rot)


def interval(sys: System, dt: float | None) -> float:
    """The time between two states [s]: `dt`, by default the system's time step.

    Raises:
        ConfigError: if it is not a positive number.
    """
    seconds = float(sys.opt.timestep if dt is None else dt)
    if not 0 < seconds < float("inf"):
        raise ConfigError(f"dt must be a positive number of seconds, got {seconds}")
    return seconds


def _checked(sys: System, states: State | Sequence[State]) -> tuple[Transform, np.ndarray]:
    x, q = _stack(states)
    _check(sys, x, q)
    return x, q


def _stack(states: State | Sequence[State]) -> tuple[Transform, np.ndarray]:
    if not isinstance(states, Sequence):
        x, q = jax.device_get((states.x, states.q))
        if x.pos.ndim != 3 or q.ndim != 2:
            raise ConfigError(
                f"states.x.pos has shape {x.pos.shape}: give a list of states, or one state whose "
                "leaves have time (and nothing else) in front"
            )
        return x, q
    if not states:
        raise ConfigError("the trajectory is empty: give at least one state")
    rows = jax.device_get([(state.x, state.q) for state in states])
    shapes = [row[0].pos.shape for row in rows]
    odd = next((i for i, shape in enumerate(shapes) if shape != shapes[0] or len(shape) != 2), None)
    if odd is not None:
        raise ConfigError(
            f"frame {odd}: state.x.pos has shape {shapes[odd]}, not (n_links, 3): "
            "give the states of one environment of one system"
        )
    x, q = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
    return x, q


def _check(sys: System, x: Transform, q: np.ndarray) -> None:
    wanted = (sys.num_links(), sys.q_size())
    if (x.pos.shape[1], q.shape[1]) != wanted:
        raise ModelError(
            f"the states have {x.pos.shape[1]} links and {q.shape[1]} coordinates, the system has "
            f"{wanted[0]} and {wanted[1]}: they come from another system"
        )
    if not len(q):
        raise ConfigError("the trajectory is empty: give at least one state")
    finite = np.isfinite(x.pos).all(-1) & np.isfinite(x.rot).all(-1)
    if not finite.all():
        frame, link = np.argwhere(~finite)[0]
        raise ModelError(f"frame {frame}, link '{sys.link_names[link]}': not finite")


def _found(sys: System, x: Transform, q: np.ndarray) -> dict[str, np.ndarray]:
    touches = overlays.contacts(sys, x)
    axes = overlays.turning_axes(sys, q)
    found = {"pos": x.pos, "rot": x.rot, "q": q, "axes": axes, "contacts": touches}
    return {name: np.asarray(values) for name, values in found.items()}


def _forces(forces: Any, touches: np.ndarray) -> np.ndarray:
    """Forces, one for each possible contact in each frame."""
    given, shape = np.asarray(forces, np.float32), (*touches.shape[:2], 3)
    if given.shape != shape:
        raise ConfigError(
            f"forces have shape {given.shape}; expected {shape}: one for each possible contact of "
            "`brax.contact.get` in each frame"
        )
    if not np.isfinite(given).all():
        raise ConfigError("forces are not finite")
    return given
