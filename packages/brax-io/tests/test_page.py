"""The page in a browser: it draws, plays, scrubs and asks nobody for anything."""

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scenes import EVIL, unpack, walk, walker

from brax import cli
from brax.io import html

ANT = Path(__file__).parent / "models" / "ant.xml"


class Visit:
    """A page that is open, and what it did."""

    def __init__(self, context, url):
        self.requests: list[Any] = []
        self.complaints: list[Any] = []
        self.page = context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append("a dialog opened"))
        self.url = url
        self.page.goto(self.url)
        self.page.wait_for_selector(".brax-viewer[data-state=ready]")

    def drawn(self):
        return int(self.page.locator(".brax-viewer").get_attribute("data-drawn") or 0)

    def wait_for_drawing(self, before, frames=1):
        deadline = time.monotonic() + 20
        while self.drawn() < before + frames:
            assert time.monotonic() < deadline, "nothing was drawn"
            self.page.wait_for_timeout(20)

    def act(self, action, *args, **options):
        """Do something that must change the picture."""
        before = self.drawn()
        action(*args, **options)
        self.wait_for_drawing(before)

    def seek(self, frame):
        if not self.readout("frame").startswith(f"{frame + 1} of "):
            self.act(self.page.get_by_label("Frame").fill, str(frame))

    def picture(self):
        png = self.page.locator(".brax-viewer > canvas").screenshot()
        return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), float)

    def readout(self, name):
        return self.page.locator(f".bx-readout dt:text-is('{name}') + dd").inner_text()


@pytest.fixture(scope="module")
def visit(browser, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "walk.html"
    rows = np.arange(41.0)
    series = {"reward": rows, "action": np.stack([rows, -rows], axis=1)}
    forces = np.tile([0.0, 0, 30], (41, 5, 1))
    html.save(path, walker(EVIL), walk(41), title="walk", series=series, forces=forces)
    context = browser.new_context(viewport={"width": 640, "height": 420})
    yield Visit(context, path.as_uri())
    context.close()


def ball_columns(picture):
    """Columns of the ball's pixels, which are much redder than green."""
    reddish = (picture[..., 0] > 1.5 * picture[..., 1]) & (picture[..., 0] > 60)
    assert reddish.sum() > 200
    return np.nonzero(reddish)[1]


def count_of(picture, colour):
    return (np.abs(picture - colour).max(-1) < 25).sum()


def test_frames_are_drawn_when_it_plays(visit):
    visit.seek(0)
    before = visit.drawn()
    visit.page.get_by_role("button", name="Play").click()
    visit.wait_for_drawing(before, frames=4)
    visit.page.get_by_role("button", name="Pause").click()
    assert float(visit.readout("time").removesuffix(" s")) > 0


def test_nothing_is_drawn_when_nothing_changes(visit):
    visit.seek(5)
    counts = [visit.drawn()]
    while len(counts) < 12 and counts[-1:] != counts[-2:-1]:  # what is late may still be drawn
        visit.page.wait_for_timeout(500)
        counts.append(visit.drawn())
    assert counts[-1] == counts[-2], counts


def test_scrubbing_shows_the_frame(visit):
    visit.seek(8)
    assert visit.readout("frame") == "9 of 41"
    assert visit.readout("time") == "0.40 s"
    assert visit.readout("reward") == "8.000"


def test_plots_show_every_series_and_lead_to_its_frames(visit):
    """Three quarters of 41 frames along is frame 31, the 30th after the first."""
    visit.page.get_by_text("Plots (2)").click()
    figure = visit.page.locator(".bx-plots figure").nth(1)
    visit.seek(10)
    assert figure.locator("output").inner_text() == "10.0 -10.0"
    canvas = figure.locator("canvas")
    box = canvas.bounding_box()
    x, y = 0.75 * box["width"], box["height"] / 2
    visit.act(canvas.click, position={"x": x, "y": y})
    assert visit.readout("frame") == "31 of 41"
    pixels = np.asarray(Image.open(io.BytesIO(canvas.screenshot())).convert("RGB"), float)
    colours = np.ptp(pixels, axis=-1) > 60  # the card is grey, the curves are not
    quarter = colours[:, int(x) // 2]  # halfway to the mark: one curve above, one below
    assert quarter[: int(y)].any() and quarter[int(y) :].any()
    visit.page.get_by_text("Plots (2)").click()


def test_the_body_moves_and_the_camera_follows(visit):
    """The ball glides 1.5 m along x, which the camera sees to its right."""
    follow = visit.page.get_by_label("Follow")
    reset = visit.page.get_by_role("button", name="Reset view")
    visit.seek(0)
    follow.select_option(label="nothing")
    visit.act(reset.click)
    start = ball_columns(visit.picture())
    visit.seek(30)
    assert ball_columns(visit.picture()).mean() > start.mean() + 40
    follow.select_option(label=EVIL)
    visit.act(reset.click)
    centred = ball_columns(visit.picture()).mean()
    assert abs(centred - 320) < 12
    visit.seek(40)
    assert abs(ball_columns(visit.picture()).mean() - centred) < 3


MARKS = {
    "Contacts": (255, 61, 87),
    "Forces": (255, 163, 25),
    "Joints": (47, 123, 255),
    "Axes": (48, 164, 108),
    "Mass": (214, 64, 159),
}


@pytest.mark.parametrize("name, mark", MARKS.items())
def test_overlays_appear(visit, name, mark):
    visit.seek(1)
    box = visit.page.get_by_label(name)
    visit.act(box.check)
    shown = count_of(visit.picture(), mark)
    visit.act(box.uncheck)
    assert shown > count_of(visit.picture(), mark) + 20


def test_a_click_inspects_a_link(visit):
    """The knee bends by half the sine of the time: at 1 s by .4207 rad, which is 24 degrees."""
    visit.page.get_by_label("Follow").select_option(label=EVIL)
    visit.seek(20)
    visit.act(visit.page.get_by_role("button", name="Reset view").click)
    card = visit.page.get_by_label("Inspector")
    columns = ball_columns(visit.picture())
    place = {"x": float(columns.mean()), "y": 170.0}
    visit.act(visit.page.locator(".brax-viewer > canvas").click, position=place)
    assert card.locator("h2").inner_text() == EVIL
    assert card.locator("dt:text-is('mass') + dd").inner_text() == "1 kg"
    assert card.locator("dt:text-is('parent') + dd").inner_text() == "world"
    assert card.locator("dt:text-is('position') + dd").inner_text() == "1.000 0.000 0.240"
    visit.page.get_by_text("Links (3)").click()
    visit.act(visit.page.locator(".bx-links").get_by_role("button", name="leg").click)
    knee = card.locator("dt:text-is('knee') + dd")
    assert knee.inner_text() == "0.421 rad (24°)"
    visit.seek(0)
    assert knee.inner_text() == "0.000 rad (0°)"
    visit.page.get_by_text("Links (3)").click()
    visit.act(card.get_by_role("button", name="Close").click)
    assert card.is_hidden()


def test_keys_do_what_their_card_says(visit):
    viewer = visit.page.locator(".brax-viewer")
    visit.seek(5)
    viewer.focus()
    for key, frame in (("ArrowRight", 6), ("PageDown", 16), ("ArrowLeft", 15), ("End", 40)):
        visit.act(viewer.press, key)
        assert visit.readout("frame") == f"{frame + 1} of 41", key
    visit.act(viewer.press, "Home")
    theme = viewer.get_attribute("data-theme")
    visit.act(viewer.press, "t")
    assert viewer.get_attribute("data-theme") != theme
    visit.act(viewer.press, "t")
    for key, name in (("c", "Contacts"), ("o", "Forces"), ("j", "Joints"), ("m", "Mass")):
        visit.act(viewer.press, key)
        assert visit.page.get_by_label(name).is_checked(), name
        visit.act(viewer.press, key)
    viewer.press("+")
    assert visit.page.get_by_label("Speed").input_value() == "2"
    viewer.press("-")
    for pair in ("ad", "ws", "zy"):
        still = visit.picture()
        visit.act(viewer.press, pair[0])
        moved = np.abs(visit.picture() - still).mean()
        visit.act(viewer.press, pair[1])  # undoes the other
        # A slow machine lowers the resolution between the pictures, which blurs edges.
        assert np.abs(visit.picture() - still).mean() < moved / 2, pair
    keys = visit.page.get_by_label("Keys")
    viewer.press("?")
    assert "play or pause" in keys.inner_text()
    viewer.press("Escape")
    assert keys.is_hidden()


FOCUSED = """() => {
  const now = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(now);
  const name = now.ariaLabel ?? now.labels?.[0]?.textContent ?? now.textContent;
  return [name.split("\\n")[0].trim(), outlineStyle, parseFloat(outlineWidth)];
}"""


def test_tab_reaches_every_control_and_shows_where_it_is(visit):
    visit.page.locator(".brax-viewer").focus()
    marks = ["Contacts", "Forces", "Joints", "Axes", "Mass"]
    last = ["Reset view", "Light / dark", "?"]
    names = ["Plots (2)", "Links (3)", "Play", "Frame", "Speed", "Follow", *marks, *last]
    for name in names:
        visit.page.keyboard.press("Tab")
        reached, style, width = visit.page.evaluate(FOCUSED)
        assert reached.startswith(name)
        assert style != "none" and width >= 2, name


def test_keys_work_before_anything_has_the_focus(visit):
    page = visit.page
    page.evaluate("document.activeElement.blur()")
    card = page.locator(".bx-keys")
    assert card.is_hidden()
    page.keyboard.press("?")
    card.wait_for()
    page.keyboard.press("?")
    assert card.is_hidden()


def test_the_focused_control_reacts_to_keys(visit):
    page = visit.page
    visit.seek(5)
    page.get_by_label("Frame").focus()
    visit.act(page.keyboard.press, "ArrowRight")
    assert visit.readout("frame") == "7 of 41"
    page.get_by_role("button", name="Play").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Pause").wait_for()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Play").wait_for()
    page.get_by_label("Joints").focus()
    visit.act(page.keyboard.press, "Space")
    assert page.get_by_label("Joints").is_checked()
    visit.act(page.keyboard.press, "Space")
    page.get_by_label("Speed").focus()
    page.keyboard.press("ArrowDown")
    assert page.get_by_label("Speed").input_value() == "2"
    page.keyboard.press("ArrowUp")


def test_a_malicious_name_is_shown_as_text(visit):
    visit.page.get_by_text("Links (3)").click()
    assert visit.page.locator(".bx-links li").first.inner_text() == EVIL
    assert visit.page.locator(".bx-follow option").nth(1).inner_text() == EVIL
    assert visit.page.locator("script").count() == 3


def test_it_asked_for_nothing_and_complained_of_nothing(visit):
    assert visit.requests == [visit.url]
    assert visit.complaints == []


INSERT = """page => {
  const cell = document.body.appendChild(document.createElement("div"));
  cell.innerHTML = page;
  for (const old of cell.querySelectorAll("script")) {  // as JupyterLab does
    const script = document.createElement("script");
    for (const { name, value } of old.attributes) script.setAttribute(name, value);
    script.textContent = old.textContent;
    old.replaceWith(script);
  }
}"""


@pytest.mark.slow
def test_two_cells_of_a_notebook_do_not_meet(browser):
    page = browser.new_page()
    for frames, title in ((3, "first"), (5, "second")):
        page.evaluate(INSERT, html.render(walker(), walk(frames), height=300, title=title))
    page.wait_for_selector(".brax-viewer[data-state=ready] >> nth=1")
    viewers = page.locator(".brax-viewer")
    assert [box["height"] for box in (v.bounding_box() for v in viewers.all())] == [300, 300]
    assert page.locator("h1").all_inner_texts() == ["first", "second"]
    viewers.nth(1).get_by_label("Frame").fill("4")
    texts = [v.locator(".bx-readout").inner_text() for v in viewers.all()]
    assert "1 of 3" in texts[0]
    assert "5 of 5" in texts[1]
    page.close()


@pytest.mark.slow
def test_a_cell_of_a_notebook_shows_its_last_value(browser):
    """The page is in a frame that is 300 pixels high and knows nothing of the notebook."""
    page, requests = browser.new_page(), []
    shown = html.render(walker(EVIL), walk(3), height=300, title='"><b>')
    page.on("request", lambda request: requests.append(request.url))
    page.evaluate("cell => { document.body.innerHTML = cell; }", shown._repr_html_())
    frame = page.frame_locator("iframe")
    frame.locator(".brax-viewer[data-state=ready]").wait_for()
    assert frame.locator("h1").inner_text() == '"><b>'
    assert page.locator("iframe").bounding_box()["height"] == 300
    frame.get_by_label("Frame").fill("2")
    frame.get_by_text("3 of 3").wait_for()
    inside = page.frames[1]
    assert inside.evaluate("self.origin") == "null"
    with pytest.raises(Exception, match="cross-origin"):
        inside.evaluate("parent.document.body")
    assert [url for url in requests if not url.startswith("about:")] == []
    page.close()


@pytest.mark.slow
def test_two_trajectories_go_by_one_clock(browser, tmp_path):
    """41 frames beside 11: the shorter one waits at its end."""
    path = tmp_path / "two.html"
    pair = {
        "first": html.Trajectory(walker(), walk(41), {"reward": np.arange(41.0)}),
        "second": html.Trajectory(walker("trunk"), walk(11)),
    }
    html.save_compare(path, pair)
    context = browser.new_context(viewport={"width": 1000, "height": 420})
    visit = Visit(context, path.as_uri())
    visit.page.wait_for_selector(".brax-viewer[data-state=ready] >> nth=1")
    viewers = visit.page.locator(".brax-viewer").all()
    boxes = [viewer.bounding_box() for viewer in viewers]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[1]["x"] >= boxes[0]["width"]

    def readouts(name):
        row = f".bx-readout dt:text-is('{name}') + dd"
        return [viewer.locator(row).inner_text() for viewer in viewers]

    def settle(name, wanted):
        deadline = time.monotonic() + 20
        while readouts(name) != wanted:
            assert time.monotonic() < deadline, readouts(name)
            visit.page.wait_for_timeout(20)

    viewers[1].get_by_label("Frame").fill("8")
    settle("frame", ["9 of 41", "9 of 11"])
    viewers[0].get_by_label("Frame").fill("30")
    settle("frame", ["31 of 41", "11 of 11"])
    settle("time", ["1.50 s", "1.50 s"])
    viewers[1].get_by_role("button", name="Play").click()
    viewers[0].get_by_role("button", name="Pause").click(timeout=20_000)
    viewers[1].get_by_role("button", name="Play").wait_for(timeout=20_000)
    assert len(set(readouts("time"))) == 1
    assert visit.requests == [visit.url]
    assert visit.complaints == []
    context.close()


@pytest.mark.slow
def test_a_key_acts_once_on_the_clock_of_two_viewers_and_on_the_view_of_each(browser, tmp_path):
    """Nothing has the focus, so both viewers get the keys."""
    path = tmp_path / "two.html"
    pair = {name: html.Trajectory(walker(), walk(41)) for name in ("first", "second")}
    html.save_compare(path, pair)
    context = browser.new_context(viewport={"width": 1000, "height": 420})
    visit = Visit(context, path.as_uri())
    page = visit.page
    page.wait_for_selector(".brax-viewer[data-state=ready] >> nth=1")

    def settle(frame):
        for i in range(2):
            row = page.locator(".bx-readout dt:text-is('frame') + dd").nth(i)
            row.filter(has_text=f"{frame} of 41").wait_for(timeout=20_000)

    for key, frame in (("ArrowRight", 2), ("PageDown", 12), ("ArrowLeft", 11), ("End", 41)):
        page.keyboard.press(key)
        settle(frame)
    page.keyboard.press("+")
    speeds = page.get_by_label("Speed")
    page.wait_for_timeout(200)
    assert [speeds.nth(i).input_value() for i in range(2)] == ["2", "2"]
    page.keyboard.press("Space")
    for i in range(2):
        page.get_by_role("button", name="Pause").nth(i).wait_for(timeout=20_000)
    themes = [v.get_attribute("data-theme") for v in page.locator(".brax-viewer").all()]
    page.keyboard.press("t")
    others = [v.get_attribute("data-theme") for v in page.locator(".brax-viewer").all()]
    assert all(a != b for a, b in zip(themes, others, strict=True))
    assert visit.complaints == []
    context.close()


@pytest.mark.slow
def test_names_of_metrics_and_joints_may_be_those_of_other_rows(browser, tmp_path):
    path = tmp_path / "names.html"
    rows = np.arange(41.0)
    system = walker().replace(joint_names=("root", "position", "swing", "lift"))
    html.save(path, system, walk(41), series={"time": rows + 100, "frame": rows + 200})
    context = browser.new_context(viewport={"width": 1000, "height": 420})
    visit = Visit(context, path.as_uri())
    visit.act(visit.page.locator(".bx-scrub").fill, "20")

    def read(card, name):
        return visit.page.locator(f"{card} dt:text-is('{name}') + dd").all_inner_texts()

    assert read(".bx-readout", "time") == ["1.00 s", "120.000"]
    assert read(".bx-readout", "frame") == ["21 of 41", "220.000"]
    visit.act(visit.page.locator(".bx-links").get_by_role("button", name="leg").click)
    assert read(".bx-inspector", "position") == ["1.300 0.000 0.240", "0.421 rad (24°)"]
    assert visit.complaints == []
    context.close()


@pytest.mark.slow
def test_a_browser_that_cannot_draw_says_so(launch, tmp_path):
    html.save(tmp_path / "a.html", walker(), walk(2))
    page = launch("--disable-3d-apis").new_page()
    page.goto((tmp_path / "a.html").as_uri())
    assert "no WebGL 2" in page.locator(".bx-failure").inner_text()
    page.context.browser.close()


@pytest.mark.slow
def test_an_ant_drops_onto_its_feet(browser, tmp_path):
    """From a model file to pixels: physics, page and browser together.

    Let go with its torso at 1.2 m, the ant comes down and rests on its feet, which still slide
    apart: not all of them touch at each frame, but at least three do within a quarter of a second.
    """
    text = ANT.read_text("utf-8")
    assert 'data="0 0 0.55 ' in text
    (tmp_path / "ant.xml").write_text(text.replace('data="0 0 0.55 ', 'data="0 0 1.2 '), "utf-8")
    path = tmp_path / "ant.html"
    model_file = str(tmp_path / "ant.xml")
    assert cli.main(["view", model_file, "--seconds", "2", "--output", str(path)]) == 0
    model, arrays = unpack(path.read_text("utf-8"))
    height = arrays["pos"][:, model["links"].index("torso"), 2]
    assert height[0] == pytest.approx(1.2)
    assert 0.25 < height[-1] < 0.7
    assert arrays["contacts"][0, :, 0].sum() == 0
    assert arrays["contacts"][-13:, :, 0].any(axis=0).sum() >= 3
    context = browser.new_context(viewport={"width": 640, "height": 420})
    visit = Visit(context, path.as_uri())
    visit.page.get_by_label("Follow").select_option(label="nothing")
    visit.act(visit.page.get_by_role("button", name="Reset view").click)
    rows = []
    for frame in (0, model["frames"] - 1):
        visit.seek(frame)
        picture = visit.picture()
        ant = picture[..., 0] - picture[..., 2] > 40  # the ant is brown, all else is blue or grey
        assert ant.sum() > 2000
        rows.append(np.nonzero(ant)[0].mean())
    assert rows[1] > rows[0] + 8
    assert visit.requests == [visit.url]
    assert visit.complaints == []
    context.close()
