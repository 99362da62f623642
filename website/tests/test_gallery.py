"""The gallery's pages are of the present code, play, and show what their texts say."""

import base64
import gzip
import json
import re

import gallery
import gallery_agents as agents
import gallery_scenes as scenes
import numpy as np
import pytest

from brax import envs
from brax.io import html as viewer
from brax.io.viewer import scene

PAGES = {"gallery": list(agents.records()), "gallery-scenes": list(scenes.SCENES)}
NAMES = [name for names in PAGES.values() for name in names]
GRAVITY = 9.81
FRAME = scenes.SUBSTEPS * scenes.TIMESTEP


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
    for page, names in PAGES.items():
        text = gallery.FOLDER.with_name(f"{page}.md").read_text("utf-8")
        assert [link[1] for link in gallery.LINK.finditer(text)] == names
    assert sum(p.stat().st_size for p in gallery.FOLDER.rglob("*") if p.is_file()) < 1_000_000


def test_the_table_has_the_record_of_each_agent():
    text = gallery.FOLDER.with_name("gallery.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| [`")]
    assert rows == [agents.row(name) for name in agents.records()]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_of_the_present_model_and_format(name):
    """After a change of either, `hatch run docs:gallery` makes the pages again."""
    model, _ = stored(name)
    agent = name in agents.records()
    sys = envs.get_environment(name).sys if agent else scenes.system(name)
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
    for row in range(scenes.BLOCKS):
        assert np.abs(heights[f"low_{row}"] - 0.06 - 0.12 * row).max() < 2e-3
    assert heights["high_3"][-1] < 0.3 < 0.41 < heights["high_3"][0]


def test_the_linkage_stays_closed_and_its_rocker_swings_as_far_as_its_bars_allow():
    _, arrays = stored("linkage")
    top = points("linkage", "coupler", [scenes.COUPLER, 0, 0])
    assert np.abs(top - points("linkage", "rocker", [scenes.ROCKER, 0, 0])).max() < 1e-3
    crank = points("linkage", "crank", [1, 0, 0]) - arrays["pos"][:, :1].mean(0)
    assert np.ptp(np.unwrap(np.arctan2(crank[:, 2], crank[:, 0]))) > 4 * np.pi
    tip = top - [scenes.GROUND, 0, 1]
    angle = np.arctan2(tip[:, 2], tip[:, 0])
    # At the ends of the swing crank and coupler are in line: the sides of a triangle are known.
    ground, rocker = scenes.GROUND, scenes.ROCKER
    sides = scenes.COUPLER + scenes.CRANK * np.array([1, -1])
    inner = np.arccos((ground**2 + rocker**2 - sides**2) / (2 * ground * rocker))
    assert np.ptp(angle) == pytest.approx(inner[0] - inner[1], abs=0.02)


def test_the_arm_comes_to_rest_where_moments_balance():
    ends = points("arm", "forearm", [scenes.ALONG, 0, 0]) - [0, 0, 0.5 + scenes.ABOVE]
    lengths = np.linalg.norm(ends, axis=1)
    # The tendon's lever is ABOVE * ALONG * sin / length, and the weight's is LEVER * sin: at rest
    # (length - wanted) * STIFFNESS * ABOVE * ALONG / length = WEIGHT * LEVER.
    share = scenes.WEIGHT * scenes.LEVER
    share /= scenes.STIFFNESS * scenes.ABOVE * scenes.ALONG
    for time, wanted in zip((2.9, 5.9, 8.9), scenes.PULLS, strict=True):
        assert lengths[round(time / FRAME)] == pytest.approx(wanted / (1 - share), abs=5e-4)


def test_the_race_takes_the_times_of_arithmetic():
    model, arrays = stored("race")
    down = np.array([np.cos(scenes.SLOPE), 0, -np.sin(scenes.SLOPE)])
    times = np.arange(model["frames"]) * FRAME
    for name, share in scenes.INERTIA.items():
        along = (arrays["pos"][:, model["links"].index(name)] - arrays["pos"][0, 0]) @ down
        seen = np.interp(scenes.LENGTH, along, times)
        wanted = np.sqrt(2 * scenes.LENGTH * (1 + share) / (GRAVITY * np.sin(scenes.SLOPE)))
        assert seen == pytest.approx(wanted, rel=0.01), name


def test_the_ant_runs_and_does_not_fall():
    model, arrays = stored("ant")
    assert arrays["pos"][-1, 0, 0] > 5 * (model["frames"] - 1) * model["dt"] > 5 * 7.9
    assert arrays["pos"][:, 0, 2].min() > 0.2


def test_the_arm_reaches_its_target():
    """After 0.4 s the reward, minus the distance to the target [m], stays."""
    _, arrays = stored("reacherangle")
    assert np.all(arrays["series/reward"][10:] > -0.01)


def test_the_pendulum_stays_up():
    model, arrays = stored("inverted_pendulum")
    assert (model["frames"] - 1) * model["dt"] > 7.9
    # The second number of a rotation about y is the sine of half its angle.
    assert np.abs(arrays["rot"][:, model["links"].index("pole"), 2]).max() < 0.1


def test_both_poles_stay_up():
    model, arrays = stored("inverted_double_pendulum")
    assert (model["frames"] - 1) * model["dt"] > 7.9
    # The second number of a rotation about y is the sine of half its angle.
    assert np.abs(arrays["rot"][25:, 1:, 2]).max() < 0.05


def test_the_acrobot_swings_up():
    """The tip is 1 m beyond the elbow, and passes above the upper rod's highest end, 3.2 m."""
    tip = points("acrobot", "lower_rod", [0, 0, -1])[:, 2]
    assert tip[0] < 0.3 and tip.max() > 4 and np.all(tip <= 4.2 + 1e-3)
    assert points("acrobot", "upper_rod", [0, 0, -1])[-1, 2] > 3.1


def test_the_swimmer_swims():
    _, arrays = stored("swimmer")
    middle = arrays["pos"].mean(1)
    assert middle[-1, 0] - middle[0, 0] > 2


@pytest.mark.parametrize("colors", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("name", PAGES)
def test_the_frames_play_and_request_nothing(show, name, width, colors):
    page = show(f"{name}.html", width, colors)
    frames = page.locator("iframe.viewer")
    assert frames.count() == len(PAGES[name])
    for number in range(len(PAGES[name])):
        frame = frames.nth(number)
        assert len(frame.get_attribute("title")) > 20
        frame.scroll_into_view_if_needed()
        frame.content_frame.get_by_role("button", name="Play").wait_for()
    assert {url.split(":")[0] for url in page.requested} <= {"file", "data"}
    assert page.problems == []
