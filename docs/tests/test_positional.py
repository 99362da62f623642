"""The page of the positional pipeline: its example bounces as high as restitution says."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[1] / "positional.md"


@pytest.mark.slow
def test_the_example_bounces_to_a_quarter_of_the_height():
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    names: dict[str, Any] = {}
    exec(compile(block, "positional.md", "exec"), names)
    # A ball that falls 1 m leaves with half of its speed, and height is the square of speed.
    assert float(names["height"][300:].max()) == pytest.approx(0.25, rel=2e-3)  # measured .25000
