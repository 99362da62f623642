"""The examples at the heads of pages run, and give what the pages say."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DOCS = Path(__file__).parents[1]


def run(page):
    """Run the first Python block of a page; return its names."""
    names: dict[str, Any] = {}
    block = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S)[0]
    exec(compile(block, page, "exec"), names)
    return names


def test_conventions_of_coordinates():
    state = run("conventions.md")["state"]
    np.testing.assert_allclose(state.x.pos, [[0, 0, 1]], atol=1e-7)
    np.testing.assert_allclose(state.x.rot, [[1, 0, 0, 0]], atol=1e-7)
    np.testing.assert_allclose(state.xd.vel, [[2, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(state.xd.ang, [[0, 0, 3]], atol=1e-6)


@pytest.mark.slow
def test_a_ball_that_bounces_in_spring():
    """The fourth bounce ends after 0.985 s, so the ball is on the floor after a second.

    It lands after sqrt(1.8 / g) = 0.428 s. Each flight takes 0.4 times as long as the one before,
    since the restitution of a pair is the mean of 0.8 and the plane's 0.
    """
    state = run("physics.md")["state"]
    assert float(state.x.pos[0, 2]) == pytest.approx(0.1, abs=0.005)


@pytest.mark.slow
def test_the_gradient_of_a_bounce():
    """2 g tau / v - 1, for a fall of 0.9 m and 0.7 s in all."""
    speed = math.sqrt(2 * 9.81 * 0.9)
    after = 0.7 - speed / 9.81
    slope = float(run("gradients.md")["slope"])
    assert slope == pytest.approx(2 * 9.81 * after / speed - 1, abs=0.01)
    assert slope == pytest.approx(0.27, abs=0.01)  # as the page says
