"""The numbers of the how-to pages are those that their code gives."""

import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

DOCS = Path(__file__).parents[1]


def run(page):
    """Run the Python blocks of a page in order; return their names."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.S):
        exec(compile(block, page, "exec"), names)
    return names


@pytest.mark.slow
def test_pipelines_agree_on_a_pendulum():
    """A rod about its pivot, by small steps: q'' = -(m g r sin q) / (I + m r²)."""
    q, qd, dt = 0.5, 0.0, 1e-5
    for _ in range(100_000):
        qd -= dt * 9.81 * 0.5 * np.sin(q) / (0.01 + 0.25)
        q += dt * qd
    angles = run("choosing-a-pipeline.md")["angles"]
    assert list(angles) == ["spring", "positional", "generalized"]
    np.testing.assert_allclose(list(angles.values()), q, atol=2e-3)
    assert np.ptp(list(angles.values())) < 1e-3


@pytest.mark.slow
def test_depths_of_contacts():
    names = run("contacts-that-jitter-or-sink.md")
    assert names["hard"] == pytest.approx(0, abs=1e-5)
    # The page's figures have two digits. Bounded by the time step, solref is the default's.
    assert names["soft"] == pytest.approx(3.7e-4, abs=5e-6)
    assert names["stiffer"] == pytest.approx(3e-5, abs=5e-6)
    assert names["bounded"] == pytest.approx(names["soft"], rel=1e-3)
    assert names["generalized"] == pytest.approx(2.0e-3, abs=5e-5)
    assert names["positional"] == pytest.approx(3e-4, abs=5e-5)


@pytest.mark.slow
def test_the_first_large_number_is_found():
    """Semi-implicit Euler of q'' = -k q multiplies the velocity by about 2 - k dt² = -8 a step."""
    names = run("nan.md")
    assert (names["environment"], names["step"]) == (2, 9)
    assert names["sys"].joint_names[names["coordinate"]] == "rail1"
    qd = np.array(names["states"].qd[2, :4, 1])
    np.testing.assert_allclose(qd, [-100, 800, -6300, 49600], rtol=1e-4)


def test_the_gradient_of_the_distance_is_the_norm_s_elsewhere():
    text = (DOCS / "nan.md").read_text("utf-8")
    (block,) = [b for b in re.findall(r"```python\n(.*?)```", text, re.S) if "def distance" in b]
    names: dict[str, Any] = {"jax": jax, "jnp": jax.numpy}
    exec(block, names)
    np.testing.assert_allclose(jax.grad(names["distance"])(np.array([3.0, 4.0])), [0.6, 0.8])
