"""Pictures and films of a trajectory, drawn by MuJoCo without a screen.

There is one picture for each state. A film shows them at the times of the trajectory.
"""

import io
import os
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np

from brax.base import State, System
from brax.errors import ConfigError, closest
from brax.io import _arguments
from brax.io.rendering.canvas import canvas
from brax.io.viewer import motion

_GIF_TICK = 0.01
"""Time unit of a GIF [s]."""
_MIN_GIF_TICKS = 2
"""Shortest duration of a GIF's frame that programs honour, in its time unit."""


def render_array(
    sys: System,
    trajectory: State | Sequence[State],
    height: int = 240,
    width: int = 320,
    camera: object = None,
) -> np.ndarray:
    """Draw a trajectory as arrays of pixels.

    Args:
        sys: the system.
        trajectory: states in order of time, one state whose leaves have a leading time axis, or a
            single state.
        height: height of the pictures [pixels].
        width: width of the pictures [pixels].
        camera: name or number of one of the model's cameras; or name of the link that the camera
            follows, the first by default; or a `mujoco.MjvCamera`.

    Returns:
        RGB colours, uint8, shape (frames, height, width, 3), or (height, width, 3) for a single
        state.

    Raises:
        ConfigError: if an argument is not allowed, or OpenGL is missing; the message says what to
            install.
        ModelError: if a state is not finite or belongs to another system, or a geom cannot be
            drawn.
    """
    states = _states(trajectory)
    pos, rot = motion.poses(sys, states)
    pictures = np.stack(list(_pictures(sys, pos, rot, height, width, camera)))
    return pictures if states is trajectory else pictures[0]


def render(
    sys: System,
    trajectory: State | Sequence[State],
    height: int = 240,
    width: int = 320,
    camera: object = None,
    fmt: str = "png",
    *,
    dt: float | None = None,
) -> bytes:
    """Return a trajectory as the contents of an image or film file.

    Args:
        sys: the system.
        trajectory: as in `render_array`.
        height: height of the pictures [pixels], even for `mp4`.
        width: width of the pictures [pixels], even for `mp4`.
        camera: as in `render_array`.
        fmt: `png` (animated if there are several states), `gif` or `mp4`.
        dt: time between two states [s]; by default the system's time step. A GIF counts in
            hundredths of a second, and no frame is shorter than two of them. Frames closer than
            that are left out; the others are shown at their times to within half a hundredth.

    Raises:
        ConfigError: as `render_array`, or if the format is unknown, a size of an MP4 is odd, or the
            package that writes the format is not installed.
        ModelError: as `render_array`.
    """
    if not isinstance(fmt, str) or fmt not in _IMAGE_ENCODERS:
        raise ConfigError(
            f"fmt '{fmt}': allowed are {', '.join(_IMAGE_ENCODERS)}.{closest(fmt, _IMAGE_ENCODERS)}"
        )
    pos, rot = motion.poses(sys, _states(trajectory))
    seconds = motion.interval(sys, dt)

    def draw(frames: Sequence[int]) -> Iterator[np.ndarray]:
        chosen = list(frames)
        return _pictures(sys, pos[chosen], rot[chosen], height, width, camera)

    return _IMAGE_ENCODERS[fmt](draw, len(pos), seconds, (height, width))


def save(
    path: str | os.PathLike[str], sys: System, trajectory: State | Sequence[State], **options: Any
) -> None:
    """Write a `.png`, `.gif` or `.mp4` file; the options are those of `render`.

    Raises:
        ConfigError: if the file cannot be written, or as `render`.
        ModelError: as `render`.
    """
    target = _arguments.path(path)
    fmt = target.suffix.removeprefix(".").lower()
    content = render(sys, trajectory, fmt=fmt, **options)
    _arguments.write(target, content)


def _states(trajectory: State | Sequence[State]) -> State | Sequence[State]:
    """Return the trajectory, in which a single state is wrapped in a list."""
    single = isinstance(trajectory, State) and np.ndim(trajectory.x.pos) == 2
    return [trajectory] if single else trajectory  # type: ignore[list-item]


def _pictures(
    sys: System, pos: np.ndarray, rot: np.ndarray, height: int, width: int, camera: object
) -> Iterator[np.ndarray]:
    """Yield the pictures in order, and release the renderer after the last one."""
    with canvas(sys, height, width, camera) as drawing:
        drawing.aim(pos, rot)
        for frame in zip(pos, rot, strict=True):
            yield drawing.draw(*frame)


def gif_frames(frames: int, dt: float) -> tuple[list[int], list[int]]:
    """Return the frames that a GIF shows, and their durations.

    Args:
        frames: number of frames.
        dt: time between two frames [s].

    Returns:
        Their indices, and durations in hundredths of a second.
    """
    # Every time is rounded by itself, so that rounding errors do not add up over the film.
    ticks = [round(i * dt / _GIF_TICK) for i in range(frames + 1)]
    kept: list[int] = []
    for i in range(frames):
        if not kept or ticks[i] - ticks[kept[-1]] >= _MIN_GIF_TICKS:
            kept.append(i)
    ends = [*(ticks[i] for i in kept[1:]), max(ticks[-1], ticks[kept[-1]] + _MIN_GIF_TICKS)]
    return kept, [end - ticks[i] for i, end in zip(kept, ends, strict=True)]


Draw = Callable[[Sequence[int]], Iterator[np.ndarray]]


def _png(draw: Draw, frames: int, dt: float, size: tuple[int, int]) -> bytes:
    pillow = _pillow()
    first, *rest = [pillow.fromarray(picture) for picture in draw(range(frames))]
    content = io.BytesIO()
    more = {"save_all": True, "append_images": rest, "duration": 1000 * dt, "loop": 0}
    first.save(content, "PNG", **(more if rest else {}))
    return content.getvalue()


def _gif(draw: Draw, frames: int, dt: float, size: tuple[int, int]) -> bytes:
    pillow = _pillow()
    kept, durations = gif_frames(frames, dt)
    first, *rest = [pillow.fromarray(picture) for picture in draw(kept)]
    content = io.BytesIO()
    milliseconds = [10 * ticks for ticks in durations]
    first.save(content, "GIF", save_all=True, append_images=rest, duration=milliseconds, loop=0)
    return content.getvalue()


def _mp4(draw: Draw, frames: int, dt: float, size: tuple[int, int]) -> bytes:
    # The pixel format yuv420p stores colours at half resolution.
    if any(side % 2 for side in size):
        raise ConfigError(f"an MP4 needs an even height and width, got {size[0]} and {size[1]}")
    av = _av()
    content = io.BytesIO()
    # 1/90000 s is the customary time unit of video streams.
    tick = Fraction(dt).limit_denominator(90_000)
    if not 0 < tick <= 3600:
        raise ConfigError(f"an MP4's frames are 1/90000 s to an hour apart, got dt={dt} s")
    with av.open(content, "w", format="mp4") as film:
        stream = film.add_stream("libx264", rate=1 / tick)
        stream.height, stream.width = size
        stream.pix_fmt, stream.time_base = "yuv420p", tick
        stream.options = {"crf": "20", "preset": "veryfast"}
        for i, picture in enumerate(draw(range(frames))):
            frame = av.VideoFrame.from_ndarray(picture)
            frame.pts, frame.time_base = i, tick
            film.mux(stream.encode(frame))
        film.mux(stream.encode(None))
    return content.getvalue()


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError as error:
        raise ConfigError(
            "pictures need the package pillow: pip install 'brax-io[image]'"
        ) from error
    return Image


def _av() -> ModuleType:
    try:
        import av
    except ImportError as error:
        raise ConfigError("an MP4 needs the package av: pip install 'brax-io[image]'") from error
    return av


_IMAGE_ENCODERS = {"png": _png, "gif": _gif, "mp4": _mp4}
"""The function that writes each format."""
