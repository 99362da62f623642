"""Pictures and films: what is drawn, when it is shown, and that the renderer is given back."""

import io
import os
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scenes import BALL, glide, walk, walker

from brax.builder import ModelBuilder
from brax.colliders import GeometryType
from brax.env import PipelineEnv
from brax.errors import ConfigError, ModelError
from brax.io import image
from brax.io.rendering import canvas

Image = pytest.importorskip("PIL.Image")
NAMES = {"plane": (), "sphere": (0.3,), "capsule": (0.2, 0.2), "box": (0.3, 0.2, 0.2)}
NAMES |= {"cylinder": (0.3, 0.2), "ellipsoid": (0.3, 0.2, 0.2)}


@pytest.fixture(scope="module")
def gl():
    """Needs something to draw with."""
    try:
        with canvas.canvas(walker(), 8, 8, None):
            pass
    except ConfigError as error:
        if os.environ.get("BRAX_REQUIRE_GL") == "1":
            raise
        pytest.skip(str(error))


@pytest.fixture
def opened(monkeypatch):
    """Return the opened OpenGL contexts, each with whether it was freed."""
    found = []
    make = canvas._surface

    def surface(height, width):
        made = make(height, width)
        free = made.free
        found.append(False)
        number = len(found) - 1
        made.free = lambda: (found.__setitem__(number, True), free())
        return made

    monkeypatch.setattr(canvas, "_surface", surface)
    return found


def red(picture):
    """Rows and columns of what is as red as the walker's ball."""
    picture = picture.astype(int)
    return np.argwhere(picture[..., 0] - picture[..., 2] > 60)


def test_a_trajectory_is_drawn(gl, opened):
    """The ball stays in the middle, where the camera follows it, while the floor moves."""
    pictures = image.render_array(walker(), walk(20), height=120, width=160)
    assert pictures.shape == (20, 120, 160, 3)
    assert pictures.dtype == np.uint8
    middles = np.array([red(picture).mean(axis=0) for picture in pictures])
    np.testing.assert_allclose(middles, np.broadcast_to(middles[0], middles.shape), atol=1.5)
    assert 40 < middles[0, 0] < 80 and 60 < middles[0, 1] < 100
    assert (pictures[0] != pictures[-1]).mean() > 0.1
    assert opened == [True]


def test_an_environment_draws_its_states(gl):
    class Walk(PipelineEnv):
        reset: Any = None
        step: Any = None

    drawn = Walk(walker()).render(walk(2), height=60, width=80, camera="leg")
    np.testing.assert_array_equal(drawn, image.render_array(walker(), walk(2), 60, 80, "leg"))


def test_a_camera_that_stands_sees_the_ball_go_by(gl):
    """Looking along y, with x to the right, from 4 m: 0.95 m at 45 degrees across 120 rows."""
    import mujoco

    camera = mujoco.MjvCamera()
    camera.lookat, camera.distance, camera.azimuth, camera.elevation = (0, 0, 0.24), 4, 90, 0
    first, last = image.render_array(walker(), [glide(0.0), glide(0.95)], 120, 160, camera)
    moved = red(last).mean(axis=0) - red(first).mean(axis=0)
    np.testing.assert_allclose(moved, [0, 0.95 * 60 / (4 * np.tan(np.pi / 8))], atol=1.0)
    of_arm = image.render_array(walker(), glide(0.0), 120, 160, "arm")
    assert red(of_arm).mean(axis=0)[1] != pytest.approx(80, abs=5)


class Wedge(GeometryType):
    """A plugin's shape: a tetrahedron."""

    name = "wedge"
    size_names = ("side",)

    def mesh(self, size, points=None):
        corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) * size[0]
        return corners, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


@pytest.mark.parametrize("kind", [*NAMES, "wedge"])
def test_every_shape_is_seen(gl, kind):
    made = ModelBuilder()
    made.add_body("body", mass=1.0, inertia=(0.1, 0.1, 0.1))
    made.add_joint("body", "hinge")
    size = NAMES.get(kind, (0.4,))
    body = "world" if kind == "plane" else "body"
    shape = "sphere" if kind == "wedge" else kind
    made.add_geom(body, shape, size=size, rgba=BALL, contype=0, conaffinity=0)
    sys = made.build()
    if kind == "wedge":
        sys = sys.replace(geom_types=(Wedge(),))
    state = glide(0.0)
    state = state.replace(x=state.x.slice(0, 1), q=state.q[:1])
    picture = image.render_array(sys, state, 60, 80)
    assert picture.shape == (60, 80, 3)
    if kind == "plane":  # in its own colours: grey below, sky above
        assert picture[:10].mean() > picture[-10:].mean() + 20
    else:
        assert len(red(picture)) > 50


@pytest.mark.parametrize("dt", [0.002, 0.01, 0.015, 1 / 30, 0.05, 0.999])
def test_a_gif_shows_frames_at_their_times(dt):
    kept, ticks = image.gif_frames(300, dt)
    starts = np.cumsum([0, *ticks])
    np.testing.assert_allclose(starts[:-1] * 0.01, np.array(kept) * dt, atol=0.005 + 1e-9)
    assert min(ticks) >= 2
    assert starts[-1] * 0.01 == pytest.approx(300 * dt, abs=0.025)
    if dt >= 0.025:
        assert kept == list(range(300))


def test_the_frames_of_a_gif_and_of_a_png(gl, opened):
    """Frames of 0.05 s."""
    with Image.open(io.BytesIO(image.render(walker(), walk(7), 48, 64, fmt="gif"))) as film:
        assert (film.size, film.n_frames, film.info["loop"]) == ((64, 48), 7, 0)
        for i in range(7):
            film.seek(i)
            assert film.info["duration"] == 50
    with Image.open(io.BytesIO(image.render(walker(), walk(3), 48, 64, dt=0.02))) as film:
        assert (film.format, film.n_frames, film.info["duration"]) == ("PNG", 3, 20)
    with Image.open(io.BytesIO(image.render(walker(), glide(0.0), 48, 64))) as picture:
        assert (picture.size, getattr(picture, "n_frames", 1)) == ((64, 48), 1)
    assert opened == [True] * 3


@pytest.mark.slow
@pytest.mark.parametrize("dt", [0.05, 1 / 30, 0.0123])
def test_the_frames_of_an_mp4(gl, dt):
    av = pytest.importorskip("av")
    content = image.render(walker(), walk(9), 48, 64, fmt="mp4", dt=dt)
    with av.open(io.BytesIO(content)) as film:
        frames = list(film.decode(video=0))
        times = [float(frame.pts * Fraction(frame.time_base)) for frame in frames]
    np.testing.assert_allclose(times, dt * np.arange(9), atol=1e-4)
    assert (frames[0].width, frames[0].height) == (64, 48)
    drawn = image.render_array(walker(), walk(9), 48, 64)
    assert np.abs(frames[4].to_ndarray(format="rgb24").astype(int) - drawn[4]).mean() < 5


def test_files_are_written_by_suffix(gl, tmp_path):
    for name in ("a.gif", "b.GIF"):
        image.save(tmp_path / name, walker(), walk(2), height=48, width=64)
        assert (tmp_path / name).read_bytes()[:4] == b"GIF8"
    with pytest.raises(ConfigError, match=r"fmt 'gi': allowed are png, gif, mp4\. Did you mean"):
        image.save(tmp_path / "a.gi", walker(), walk(2))
    with pytest.raises(ConfigError, match="cannot write"):
        image.save(tmp_path / "no" / "a.png", walker(), walk(1), height=48, width=64)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"height": 0}, "height must be a positive whole number of pixels, got 0"),
        ({"width": 9.5}, "width must be a positive whole number of pixels, got 9.5"),
        ({"camera": "toso"}, r"no camera and no link 'toso'\. .*Did you mean 'torso'"),
        ({"fmt": "mp4", "height": 31}, "an MP4 needs an even height and width, got 31 and 320"),
        ({"height": 10**6}, "height must be at most 8192 pixels, got 1000000"),
        ({"dt": 0.0}, "dt must be a positive number of seconds"),
        ({"dt": 1e-7, "fmt": "mp4"}, "1/90000 s to an hour apart, got dt=1e-07 s"),
    ],
)
def test_arguments_are_checked(gl, opened, settings, said):
    with pytest.raises(ConfigError, match=said):
        image.render(walker(), walk(2), **settings)
    assert all(opened)


def test_a_trajectory_that_cannot_be_drawn_gives_the_renderer_back(gl, opened):
    lost = glide(float("nan"))
    with pytest.raises(ModelError, match="frame 1, link 'torso': not finite"):
        image.render_array(walker(), [glide(0.0), lost])
    shapeless = walker().replace(geom_types=(type("Odd", (Wedge,), {"mesh": None})(),) * 4)
    with pytest.raises(ModelError, match="mesh raised TypeError"):
        image.render_array(shapeless, walk(1))
    assert opened == [True]


def test_without_opengl_it_is_said_what_to_install(monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("ctypes.util.find_library", lambda name: None)
    with pytest.raises(ConfigError, match="neither EGL nor OSMesa is installed: apt install libos"):
        image.render_array(walker(), walk(1))
    monkeypatch.setenv("MUJOCO_GL", "nonsense")
    with pytest.raises(ConfigError, match=r"OpenGL failed \(ModuleNotFoundError.*MUJOCO_GL=osmesa"):
        image.render_array(walker(), walk(1))


@pytest.mark.parametrize(("module", "fmt"), [("PIL", "gif"), ("av", "mp4")])
def test_without_a_writer_it_is_said_what_to_install(gl, monkeypatch, module, fmt):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(ConfigError, match=r"pip install 'brax-io\[image\]'"):
        image.render(walker(), walk(1), fmt=fmt)
