"""The README does what it says: its Python runs, its commands exist."""

import re
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from brax import plugins
from brax.cli import root

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", README, re.S)
COMMANDS = re.findall(r"^(brax .+?)(?:   .*)?$", README, re.M)


def run(block):
    names: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), names)
    return names


def block_with(text):
    (block,) = [block for block in PYTHON if text in block]
    return block


@pytest.mark.parametrize(
    ("name", "links"), [("inverted_pendulum", 2), pytest.param("ant", 9, marks=pytest.mark.slow)]
)
def test_an_environment_moves_and_is_written_as_a_page(name, links, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run(block_with("html.save").replace('environment("ant")', f'environment("{name}")'))
    assert names["env"].sys.num_links() == links
    assert names["states"].x.pos.shape == (60, links, 3)
    assert np.ptp(names["states"].q, axis=0).min() > 0.01
    assert (tmp_path / "ant.html").stat().st_size > 100_000


@pytest.mark.slow
def test_the_gradient_is_a_second_of_flight():
    assert float(run(block_with("jax.grad"))["slope"]) == pytest.approx(1.0, rel=1e-5)


def test_imports_of_earlier_versions():
    names = run(block_with("from brax.envs.base"))
    assert names["env"].action_size == 1
    assert callable(names["train"])


def test_the_pendulum_of_the_core_package_swings():
    """Point mass on 1 m: the first acceleration is (motor - m g sin q) / (m + I) rad/s^2."""
    text = (ROOT / "packages/brax-core/README.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.S)
    state = run(block)["state"]
    expected = (2 * 0.3 - 9.81 * np.sin(0.5)) / 1.01 * 10 * 0.002
    np.testing.assert_allclose(state.qd, [expected], rtol=0.01)


def test_every_python_block_is_run_here():
    assert len(PYTHON) == 3


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_exist_with_their_options(line):
    command: click.Command = root
    for word in line.split()[1:]:
        if isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            assert found is not None, word
            command = found
        elif word.startswith("-"):
            assert word in {opt for param in command.params for opt in param.opts}


def test_the_commands_are_found():
    assert {line.split()[1] for line in COMMANDS} == set(plugins.names("command"))


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name
)
def test_links_lead_somewhere(page):
    # A blank ends the target: what follows is the link's title.
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing
