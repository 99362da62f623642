"""docs/environments.md: its example is a file that runs."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from brax.env import wrap
from brax.testing import check_environment

FOUND = [p / "docs" for p in Path(__file__).parents if (p / "docs").is_dir()]
if not FOUND:
    pytest.skip("only where the documentation is", allow_module_level=True)
DOCS = FOUND[0]
EXAMPLE = DOCS / "examples" / "cart.py"
PACKAGE = Path(__file__).parents[1]


def load(path):
    """Return the module in a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def cart():
    return load(EXAMPLE).Cart


@pytest.mark.slow
def test_the_page_of_the_collection_is_what_the_code_says():
    assert (DOCS / "collection.md").read_text() == load(DOCS / "collection.py").page(), (
        "write it anew: hatch run collection"
    )


@pytest.mark.slow
@pytest.mark.parametrize("page", [DOCS / "environments.md", PACKAGE / "README.md"])
def test_the_first_example_of_a_page_runs(page):
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", page.read_text(), re.S)[0], names)
    assert jnp.isfinite(names["state"].reward).all()


def test_the_page_shows_the_file():
    page = (DOCS / "environments.md").read_text()
    assert EXAMPLE.read_text().strip() in page


def test_the_example_drives_to_its_target(cart):
    check_environment(cart(), steps=0)
    env = wrap(cart(), episode_length=100)

    def step(state, _):
        # A motor of 5 N per unit makes this 20 N/m and, with the rail, 8 N s/m on 1 kg.
        x, speed, target = state.obs.T
        return env.step(state, (4 * (target - x) - 1.5 * speed)[:, None]), None

    @jax.jit
    def run(keys):
        return jax.lax.scan(step, env.reset(keys), length=99)[0]

    last = run(jax.random.split(jax.random.key(0), 8))
    assert (last.metrics["distance"] < 0.01).all()
    assert len(jnp.unique(last.info["target"])) == 8


def test_randomization_on_the_page_works(cart):
    page = (DOCS / "environments.md").read_text()
    code = next(c for c in re.findall(r"```python\n(.*?)```", page, re.S) if "randomize" in c)
    names = {"jax": jax, "jnp": jnp, "wrap": wrap, "Cart": cart}
    exec(code, names)
    state = jax.jit(names["env"].reset)(jax.random.split(jax.random.key(0), 3))
    friction = state.info["randomized"]["geom.friction"]
    assert friction.shape == (3, 1, 3)
    assert len(jnp.unique(friction[:, 0, 0])) == 3
    code = next(c for c in re.findall(r"```python\n(.*?)```", page, re.S) if "Range(" in c)
    exec(code, names)
    drawn = jax.jit(names["env"].reset)(jax.random.split(jax.random.key(0), 3)).info["randomized"]
    assert set(drawn) == {"geom.friction", "link.inertia.mass", "opt.gravity", "dof.damping"}
