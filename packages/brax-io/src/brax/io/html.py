"""The viewer: one self-contained page with a trajectory and the code that plays it."""

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import State, System
from brax.dynamics import constraint_forces
from brax.errors import BraxError, ConfigError
from brax.io import _arguments
from brax.io.viewer import motion, scene
from brax.io.viewer.packing import pack

# The empty icon prevents a request for /favicon.ico.
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
</head>
<body{body}>
{viewers}
<script>{code}</script>
</body>
</html>
"""

_VIEWER = """<div class="brax-viewer"{height}>
<noscript>This page needs JavaScript to draw.</noscript>
<script type="application/json" class="brax-model">{model}</script>
<script type="text/plain" class="brax-numbers">{numbers}</script>
</div>"""


# Without `allow-same-origin` the frame has an origin of its own, so its script cannot access the
# notebook.
_NOTEBOOK_FRAME = (
    '<iframe sandbox="allow-scripts" srcdoc="{page}" height="{height}" '
    'style="width: 100%; border: 0"></iframe>'
)


class Page(str):
    """A page as text, which a notebook shows when it is the last value of a cell."""

    height = 480
    """Height of the viewer in a notebook [pixels]."""

    def _repr_html_(self) -> str:
        """Return the page in a sandboxed frame, which cannot access the notebook."""
        return _NOTEBOOK_FRAME.format(page=html.escape(self), height=self.height)


class Trajectory(NamedTuple):
    """A trajectory to show next to others."""

    sys: System
    states: State | Sequence[State]
    """The same as in `render`."""
    series: Mapping[str, Any] = {}
    """The same as in `render`."""
    forces: Any = None
    """The same as in `render`."""


def render(
    sys: System,
    states: State | Sequence[State],
    height: int = 480,
    colab: bool = True,
    base_url: str | None = None,
    *,
    dt: float | None = None,
    title: str = "",
    series: Mapping[str, object] | None = None,
    forces: object = None,
) -> Page:
    """Return a page that plays a trajectory and requests nothing from the network.

    The page is a `str`, and a notebook shows it when it is the last value of a cell.

    Args:
        sys: the system.
        states: states in order of time, or one state whose leaves have a leading time axis.
        height: height of the viewer in a notebook [pixels].
        colab: whether the page is for a notebook's cell, `height` tall; otherwise it fills the
            window.
        base_url: has no effect; earlier versions loaded their code from it.
        dt: time between two states [s]; by default the system's time step.
        title: title of the page.
        series: curves by name, such as `{"reward": rewards}`, each (frames,) or, like actions,
            (frames, n); the first one is also drawn above the slider.
        forces: force [N] on the second geom of each possible contact, world axes, shape
            (frames, n, 3), as `contact_forces` returns them.

    Raises:
        ConfigError: if an argument is not allowed, or the trajectory is empty.
        ModelError: if a state is not finite or belongs to another system, or if a geom cannot be
            drawn.
    """
    del base_url
    if type(height) is not int or height < 1:
        raise ConfigError(f"height must be a positive whole number of pixels, got {height!r}")
    if not isinstance(title, str):
        raise ConfigError(f"title must be text, got {title!r}")
    seconds = motion.interval(sys, dt)
    series = {} if series is None else series
    title = title or "Brax"
    shown = height if colab else None
    page = _page(
        title, _viewer(Trajectory(sys, states, series, forces), title, seconds, shown), shown
    )
    page.height = height
    return page


def compare(trajectories: Mapping[str, Trajectory], *, dt: float | None = None) -> Page:
    """Return a page that plays several trajectories side by side with one clock.

    Args:
        trajectories: the trajectories by title; their systems may differ.
        dt: time between two states [s], the same for all; by default the systems' time step.

    Raises:
        ConfigError: if there is no trajectory, if the time steps differ and `dt` is not given, or
            as `render`.
        ModelError: as `render`.
    """
    _arguments.mapping(trajectories, "trajectories", "brax.io.html.Trajectory")
    for name, each in trajectories.items():
        if not isinstance(each, Trajectory):
            raise ConfigError(
                f"trajectory '{name}' must be a brax.io.html.Trajectory(sys, states), got "
                f"{_arguments.kind(each)}"
            )
    intervals = {name: motion.interval(each.sys, dt) for name, each in trajectories.items()}
    if len(set(intervals.values())) != 1:
        listed = ", ".join(f"{name}: {seconds:g}" for name, seconds in intervals.items())
        raise ConfigError(
            "trajectories side by side need one time between states, got "
            f"{listed or 'none'}: give dt"
        )
    viewers = [_viewer(each, name, intervals[name], None) for name, each in trajectories.items()]
    group = "\n".join(['<div class="bx-group">', *viewers, "</div>"])
    return _page(", ".join(trajectories), group, None)


def save_compare(
    path: str | Path, trajectories: Mapping[str, Trajectory], *, dt: float | None = None
) -> None:
    """Write the page of `compare` to a file.

    Raises:
        ConfigError: if the file cannot be written, or as `compare`.
        ModelError: as `render`.
    """
    target = _arguments.path(path)
    _arguments.write(target, compare(trajectories, dt=dt))


def save(path: str | Path, sys: System, states: State | Sequence[State], **options: Any) -> None:
    """Write a page that fills the window; the options are those of `render`.

    Raises:
        ConfigError: if the file cannot be written, or as `render`.
        ModelError: as `render`.
    """
    target = _arguments.path(path)
    _arguments.write(target, render(sys, states, **{"colab": False, **options}))


def contact_forces(
    sys: System, states: State | Sequence[State], act: jax.Array | None = None
) -> np.ndarray:
    """Return the contact forces of a trajectory.

    If the states report `State.forces`, these are the means over the step before each state.
    Otherwise they are the forces that the generalized pipeline computes at the states. States of
    `spring` and `positional` must report them, because the force of a hard contact does not follow
    from the state: put the first state through the pipeline's `with_forces`.

    Args:
        sys: the system.
        states: states in order of time, or one state whose leaves have a leading time axis.
        act: the controls at each state, (frames, nu); zero if None.

    Returns:
        Force [N] on the second geom of each possible contact, world axes, shape (frames, n, 3).

    Raises:
        ConfigError: if there is no state, the controls have another shape, or the states must
            report their forces and do not.
        ModelError: if a state is not finite or belongs to another system.
    """
    motion.checked(sys, states)  # rejects states of another system
    whole = states
    if isinstance(whole, Sequence):
        whole = jax.tree.map(lambda *leaves: jnp.stack(leaves), *whole)
    assert isinstance(whole, State)
    if whole.forces is not None:
        return np.asarray(whole.forces.contact)
    # Only the pipelines with soft contacts warm-start their solver.
    if whole.warmstart is None:
        raise ConfigError(
            "contact_forces: these states of hard contacts do not report their forces; start the "
            "trajectory with pipeline.with_forces(sys, pipeline.init(sys, q, qd))"
        )
    whole = jax.tree.map(jnp.asarray, whole.replace(contact=None))
    wanted = (len(whole.q), sys.act_size())
    ctrl = _arguments.numbers(np.zeros(wanted) if act is None else act, "act", whole.q.dtype)
    if ctrl.shape != wanted:
        raise ConfigError(f"act has shape {ctrl.shape}; expected {wanted}: one row a frame")
    found = jax.jit(jax.vmap(constraint_forces, (None, 0, 0)))(sys, whole, ctrl)[1]
    return np.asarray(found)


def live_page(sys: System, numbers: Mapping[str, np.ndarray], *, dt: float, title: str) -> str:
    """Return a page that continues with frames from its server (see `brax.io.live`).

    Args:
        sys: the system.
        numbers: the first frame: `motion.moment`, and rows named `series/...`; arrays of shape
            (1, ...).
        dt: time between two frames [s].
        title: title of the page.

    Raises:
        ModelError: if a geom cannot be drawn.
    """
    return _page(title, _part(sys, numbers, title, dt, None, live=True), None, live=True)


def _series(name: str, values: object, frames: int) -> np.ndarray:
    row = _arguments.numbers(values, f"series '{name}'")
    if row.ndim not in (1, 2) or len(row) != frames or row.size == 0:
        raise ConfigError(
            f"series '{name}' has shape {row.shape}; expected ({frames},) or ({frames}, n): "
            "one row a frame"
        )
    return row


def _viewer(shown: Trajectory, title: str, dt: float, height: int | None) -> str:
    """Return the HTML of one trajectory's viewer."""
    _arguments.mapping(shown.series, "series", "rows of numbers")
    numbers = motion.arrays(shown.sys, shown.states, shown.forces)
    frames = len(numbers["pos"])
    series = {name: _series(name, values, frames) for name, values in shown.series.items()}
    numbers |= {f"series/{name}": values for name, values in series.items()}
    return _part(shown.sys, numbers, title, dt, height)


def _part(
    sys: System,
    numbers: Mapping[str, np.ndarray],
    title: str,
    dt: float,
    height: int | None,
    live: bool = False,
) -> str:
    model = scene.describe(sys) | {
        "title": title,
        "dt": dt,
        "frames": len(numbers["pos"]),
        "series": [name.removeprefix("series/") for name in numbers if name.startswith("series/")],
        "arrays": [[name, values.shape] for name, values in numbers.items()],
        "live": live,
    }
    return _VIEWER.format(
        height=f' data-height="{height}"' if height else "",
        model=_json(model),
        # mtime=0 makes the page reproducible: the same trajectory gives the same bytes.
        numbers=base64.b64encode(gzip.compress(pack(numbers.values()), mtime=0)).decode(),
    )


def _page(title: str, viewers: str, height: int | None, live: bool = False) -> Page:
    code = _bundle()
    return Page(
        _PAGE.format(
            # Only a live page may connect, and only to its own server.
            policy=_policy(code) + "; connect-src 'self'" * live,
            # Bytes of a file's name that are not text cannot be written.
            title=html.escape(title.encode(errors="replace").decode()),
            body="" if height else ' class="bx-page"',
            viewers=viewers,
            code=code,
        )
    )


def _policy(code: str) -> str:
    """Return a content security policy that allows only this script.

    No request, no other script and no style sheet is allowed, so a name in a model cannot inject
    any. The live page adds `connect-src 'self'` for its frames.
    """
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return f"default-src 'none'; script-src 'sha256-{digest}'; img-src data:"


def _json(value: object) -> str:
    """Return JSON that no text in it can break out of.

    The escapes keep a name in the model from ending the `<script>` element or opening another.
    """
    # NaN is not JSON: the page could not parse it.
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _bundle() -> str:
    try:
        return resources.files("brax.io.viewer").joinpath("bundle.js").read_text("utf-8")
    except FileNotFoundError:
        raise BraxError(
            "the viewer's code (brax/io/viewer/bundle.js) is missing: it is made when brax-io is "
            "installed. Install brax-io again, or run `python packages/brax-io/hatch_build.py`"
        ) from None
