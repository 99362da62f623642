"""docs/training.md lists every setting as the code has it, and its examples run."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

from brax.training.agents.ppo import config as ppo_config
from brax.training.agents.ppo.networks import make_ppo_networks

PAGE = Path(__file__).parents[3] / "docs" / "training.md"
if not PAGE.exists():
    pytest.skip("docs/ is not here", allow_module_level=True)
TEXT = PAGE.read_text("utf-8")
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", re.MULTILINE)


def _documented(cls):
    """Name, default and docstring of each field, as the page should show them."""
    source = inspect.getsource(cls)
    for field in dataclasses.fields(cls):
        pattern = rf'^    {field.name}: .*\n    """((?:.|\n)*?)"""'
        doc = " ".join(re.search(pattern, source, re.MULTILINE).group(1).split())
        default = field.default
        shown = getattr(default, "__name__", repr(default))
        yield field.name, "" if shown == "<lambda>" else f"`{shown}`", doc


def table(cls):
    """The rows of a settings table."""
    return [f"| `{name}` | {default} | {doc} |" for name, default, doc in _documented(cls)]


@pytest.mark.parametrize("cls", [ppo_config.PPOConfig, ppo_config.Runtime])
def test_every_setting_is_listed_with_its_default_and_meaning(cls):
    missing = [row for row in table(cls) if row not in TEXT]
    assert not missing, "docs/training.md should have:\n" + "\n".join(missing)


def test_no_other_setting_is_listed():
    fields = {
        f.name for c in (ppo_config.PPOConfig, ppo_config.Runtime) for f in dataclasses.fields(c)
    }
    networks = set(inspect.signature(make_ppo_networks).parameters)
    assert {name for name, *_ in ROW.findall(TEXT)} <= fields | networks


def test_what_is_not_supported_is_listed():
    for name in ppo_config.UNSUPPORTED:
        assert f"`{name}`" in TEXT
