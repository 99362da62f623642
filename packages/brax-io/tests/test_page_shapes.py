"""Every kind of shape in the page, in both themes: each is seen in its own colour."""

import colorsys

import jax.numpy as jnp
import numpy as np
import pytest
from test_page import Visit

from brax import plugins
from brax.builder import ModelBuilder
from brax.colliders.interface import GeometryType
from brax.io import html

CORNERS = [[0, 0, 0], [0.4, 0, 0], [0, 0.4, 0], [0, 0, 0.4], [0.4, 0.4, 0.4]]
SIZES = {
    "sphere": (0.2,),
    "capsule": (0.12, 0.15),
    "cylinder": (0.18, 0.18),
    "box": (0.15, 0.2, 0.1),
    "ellipsoid": (0.1, 0.2, 0.25),
    "mesh": (),
    "stairs": (0.2,),
}
HUES = np.arange(len(SIZES)) / len(SIZES)


class Stairs(GeometryType):
    """A plugin's shape that is not convex: three steps."""

    name = "stairs"
    size_names = ("step",)

    def mesh(self, size, points=None):
        """Each step is a box of twelve triangles."""
        box = np.array([[x, y, z] for x in (0, 1) for y in (-1, 1) for z in (0, 1)], float)
        faces = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]]
        faces += [[2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
        steps = [
            box * [size[0], size[0], size[0] * (i + 1)] + [size[0] * i, 0, 0] for i in range(3)
        ]
        return np.concatenate(steps), np.concatenate([np.array(faces) + 8 * i for i in range(3)])


def shapes():
    """Return a row of shapes of as many hues on a floor."""
    made = ModelBuilder()
    made.add_geom(type="plane", contype=0, conaffinity=0)
    for i, (kind, size) in enumerate(SIZES.items()):
        made.add_body(kind, pos=(0.7 * i, 0.35 * i, 0.3), mass=1.0, inertia=(1, 1, 1))
        made.add_joint(kind, "slide")
        own = kind == "stairs"
        made.add_geom(
            kind,
            "sphere" if own else kind,
            size=size,
            points=np.array(CORNERS) if kind == "mesh" else (),
            rgba=(*colorsys.hsv_to_rgb(HUES[i], 0.9, 0.9), 1),
            contype=0,
            conaffinity=0,
        )
    sys = made.build()
    return sys.replace(geom_types=(*sys.geom_types[:-1], Stairs()))


def count_of_hues(picture):
    """Pixels of strong colour within a twentieth of a turn of each hue."""
    low, high = picture.min(-1), picture.max(-1)
    strong = picture[(high > 60) & (low < 0.45 * high)] / 255
    found = np.array([colorsys.rgb_to_hsv(*pixel)[0] for pixel in strong])
    return [int((np.abs((found - h + 0.5) % 1 - 0.5) < 0.05).sum()) for h in HUES]


@pytest.mark.slow
def test_every_shape_is_seen_in_both_themes(browser, tmp_path):
    sys, path = shapes(), tmp_path / "shapes.html"
    state = plugins.get("pipeline", "spring").init(sys, sys.init_q, jnp.zeros(sys.qd_size()))
    html.save(path, sys, [state], title="shapes")
    context = browser.new_context(viewport={"width": 900, "height": 600}, offline=True)
    visit = Visit(context, path.as_uri())
    for theme in ("light", "dark"):
        visit.page.wait_for_timeout(600)  # a picture at rest is the finest
        assert visit.page.locator(".brax-viewer").get_attribute("data-theme") == theme
        counts = count_of_hues(visit.picture())
        assert min(counts) > 150, dict(zip(SIZES, counts, strict=True))
        visit.act(visit.page.locator(".brax-viewer").press, "t")
    assert visit.requests == [visit.url] and visit.complaints == []
    visit.page.screenshot(path=tmp_path / "shapes.png")
    context.close()
