"""The gallery's pages are of the present code, play, and show what arithmetic predicts."""

import base64
import gzip
import json
import re

import gallery
import numpy as np
import pytest

from brax import envs
from brax.io import html as viewer
from brax.io.viewer import scene

NAMES = ["ant", *gallery.SCENES]
GRAVITY = 9.81
FRAME = gallery.SUBSTEPS * gallery.TIMESTEP


def stored(name):
    """Return the model and the arrays, by name, of a stored page."""
    text = json.loads((gallery.FOLDER / f"{name}.json").read_text("utf-8"))["viewers"]
    model, packed = re.findall(r"<script[^>]*>(.*?)</script>", text)
    model = json.loads(model)
    planes = np.frombuffer(gzip.decompress(base64.b64decode(packed)), np.uint8)
    numbers = planes.reshape(4, -1).T.copy().view("<f4").ravel()
    arrays = {}
    for name, shape in model["arrays"]:
        part, numbers = np.split(numbers, [np.prod(shape, dtype=int)])
        arrays[name] = np.moveaxis(part.reshape(*shape[1:], shape[0]), -1, 0)
    assert numbers.size == 0
    return model, arrays


def points(name, body, local):
    """Return where a point of a body is in each frame, shape (frames, 3)."""
    model, arrays = stored(name)
    link = model["links"].index(body)
    w, v = arrays["rot"][:, link, :1], arrays["rot"][:, link, 1:]
    cross = np.cross(v, local)
    return arrays["pos"][:, link] + local + 2 * (w * cross + np.cross(v, cross))


def test_every_page_is_stored_and_shown():
    assert sorted(path.stem for path in gallery.FOLDER.glob("*.json")) == sorted(NAMES)
    page = (gallery.FOLDER.parent / "gallery.md").read_text("utf-8")
    for name in NAMES:
        assert f"(gallery/{name}.json " in page
    assert sum(path.stat().st_size for path in gallery.FOLDER.glob("*.json")) < 200_000


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_of_the_present_model_and_format(name):
    """After a change of either, `hatch run docs:gallery` makes the pages again."""
    model, _ = stored(name)
    sys = envs.get_environment("ant").sys if name == "ant" else gallery.system(name)
    numbers = {"pos": np.zeros((1, 0, 3))}
    part = viewer._part(sys, numbers, model["title"], model["dt"], None)
    present = json.loads(re.findall(r'"brax-model">(.*?)</script>', part)[0])
    assert list(model) == list(present)
    for key, values in scene.describe(sys).items():
        assert str(model[key]) == str(values) or key == "geoms"
    assert [g["name"] for g in model["geoms"]] == [g["name"] for g in present["geoms"]]


def test_the_stack_within_the_limit_stands_and_the_other_falls():
    model, arrays = stored("stacks")
    heights = dict(zip(model["links"], np.moveaxis(arrays["pos"][..., 2], 1, 0), strict=True))
    for row in range(gallery.BLOCKS):
        assert np.abs(heights[f"low_{row}"] - 0.06 - 0.12 * row).max() < 2e-3
    assert heights["high_3"][-1] < 0.3 < 0.41 < heights["high_3"][0]


def test_the_linkage_stays_closed_and_its_rocker_swings_as_far_as_its_bars_allow():
    _, arrays = stored("linkage")
    top = points("linkage", "coupler", [gallery.COUPLER, 0, 0])
    assert np.abs(top - points("linkage", "rocker", [gallery.ROCKER, 0, 0])).max() < 1e-3
    crank = points("linkage", "crank", [1, 0, 0]) - arrays["pos"][:, :1].mean(0)
    assert np.ptp(np.unwrap(np.arctan2(crank[:, 2], crank[:, 0]))) > 4 * np.pi
    tip = top - [gallery.GROUND, 0, 1]
    angle = np.arctan2(tip[:, 2], tip[:, 0])
    # At the ends of the swing crank and coupler are in line: the sides of a triangle are known.
    ground, rocker = gallery.GROUND, gallery.ROCKER
    sides = gallery.COUPLER + gallery.CRANK * np.array([1, -1])
    inner = np.arccos((ground**2 + rocker**2 - sides**2) / (2 * ground * rocker))
    assert np.ptp(angle) == pytest.approx(inner[0] - inner[1], abs=0.02)


def test_the_arm_comes_to_rest_where_moments_balance():
    ends = points("arm", "forearm", [gallery.ALONG, 0, 0]) - [0, 0, 0.5 + gallery.ABOVE]
    lengths = np.linalg.norm(ends, axis=1)
    # The tendon's lever is ABOVE * ALONG * sin / length, and the weight's is LEVER * sin: at rest
    # (length - wanted) * STIFFNESS * ABOVE * ALONG / length = WEIGHT * LEVER.
    share = gallery.WEIGHT * gallery.LEVER
    share /= gallery.STIFFNESS * gallery.ABOVE * gallery.ALONG
    for time, wanted in zip((2.9, 5.9, 8.9), gallery.PULLS, strict=True):
        assert lengths[round(time / FRAME)] == pytest.approx(wanted / (1 - share), abs=5e-4)


def test_the_race_takes_the_times_of_arithmetic():
    model, arrays = stored("race")
    down = np.array([np.cos(gallery.SLOPE), 0, -np.sin(gallery.SLOPE)])
    times = np.arange(model["frames"]) * FRAME
    for name, share in gallery.INERTIA.items():
        along = (arrays["pos"][:, model["links"].index(name)] - arrays["pos"][0, 0]) @ down
        seen = np.interp(gallery.LENGTH, along, times)
        wanted = np.sqrt(2 * gallery.LENGTH * (1 + share) / (GRAVITY * np.sin(gallery.SLOPE)))
        assert seen == pytest.approx(wanted, rel=0.01), name


def test_the_ant_walks_and_does_not_fall():
    _, arrays = stored("ant")
    assert arrays["pos"][-1, 0, 0] > 3
    assert arrays["pos"][:, 0, 2].min() > 0.2


@pytest.mark.parametrize("colors", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
def test_the_frames_play_and_request_nothing(show, width, colors):
    page = show("gallery.html", width, colors)
    frames = page.locator("iframe.viewer")
    assert frames.count() == len(NAMES)
    for number in range(len(NAMES)):
        frame = frames.nth(number)
        assert len(frame.get_attribute("title")) > 20
        frame.scroll_into_view_if_needed()
        frame.content_frame.get_by_role("button", name="Play").wait_for()
    assert {url.split(":")[0] for url in page.requested} <= {"file", "data"}
    assert page.problems == []
