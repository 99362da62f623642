"""docs/training.md and docs/agents.md list every setting as the code has it."""

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from brax import plugins
from brax.envs.describe import meaning
from brax.training.agent import Agent
from brax.training.config import RunConfig, Runtime

DOCS = Path(__file__).parents[3] / "docs"
PAGES = [DOCS / "training.md", DOCS / "agents.md"]
if not DOCS.exists():
    pytest.skip("docs/ is not here", allow_module_level=True)
TEXT = "".join(page.read_text("utf-8") for page in PAGES)
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", re.MULTILINE)
OURS = [n for n, spec in plugins.specs("trainer").items() if spec.distribution == "brax-agents"]
FOUND = (plugins.get("trainer", name) for name in OURS)
AGENTS = [agent for agent in FOUND if isinstance(agent, Agent)]
OWN = [cls for agent in AGENTS for cls in (agent.config, agent.runtime)]
CLASSES = list(dict.fromkeys([RunConfig, Runtime, *OWN]))


def _documented(cls):
    """Name, default and docstring of each field of its own, as the page should show them."""
    for field in dataclasses.fields(cls):
        if field.name not in inspect.get_annotations(cls):
            continue
        doc = meaning(cls, field.name)
        assert doc, f"{field.name} has no docstring"
        default = field.default
        if isinstance(default, str):
            default = str(default)
        shown = getattr(default, "__name__", repr(default))
        yield field.name, "" if shown == "<lambda>" else f"`{shown}`", doc


def table(cls):
    """Return the rows of a settings table."""
    return [f"| `{name}` | {default} | {doc} |" for name, default, doc in _documented(cls)]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_setting_is_listed_with_its_default_and_meaning(cls):
    missing = [row for row in table(cls) if row not in TEXT]
    assert not missing, "docs/training.md or docs/agents.md should have:\n" + "\n".join(missing)


def test_no_other_setting_is_listed():
    fields = {f.name for cls in CLASSES for f in dataclasses.fields(cls)}
    networks = {p for agent in AGENTS for p in inspect.signature(agent.make_networks).parameters}
    assert {name for name, *_ in ROW.findall(TEXT)} <= fields | networks


@pytest.mark.slow
def test_the_example_of_images_learns():
    """By chance it earns 0, and what is best without seeing is 0 too."""
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (block,) = [block for block in blocks if "Lamp" in block]
    names: dict[str, Any] = {}
    exec(compile(block, "agents.md", "exec"), names)
    assert names["metrics"]["eval/episode_reward"] > 10


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_what_has_another_name_or_is_not_supported_is_listed(agent):
    for name in [*agent.config.unsupported, *agent.config.old_names]:
        assert f"`{name}`" in TEXT
