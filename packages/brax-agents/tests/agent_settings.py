"""Writes `brax/training/agents/settings.py`, the types of every agent's keyword arguments.

Type checkers read source text and cannot follow code that makes a type from a dataclass, so the
types are written out.
"""

import ast
import inspect
import textwrap
from pathlib import Path

from brax import plugins
from brax.training import agents
from brax.training.agent import Agent
from brax.training.config import RunConfig, Runtime

PAGE = Path(agents.__file__).with_name("settings.py")
HEAD = '''"""Types of the keyword arguments of every agent's `train`.

`hatch run settings` writes this module from the agents' dataclasses, and a test compares the two.
Editors complete from it, and type checkers refuse other names and types. `docs/agents.md` has
defaults and meanings.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict

import jax
'''
FOUND = (
    plugins.get("trainer", n)
    for n, s in plugins.specs("trainer").items()
    if s.distribution == "brax-agents"
)
AGENTS = sorted((a for a in FOUND if isinstance(a, Agent)), key=lambda a: a.name)


def fields(*classes: type) -> dict[str, str]:
    """Return the annotations of dataclasses' own fields, as the source has them."""
    found = {}
    for cls in classes:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        assert isinstance(tree, ast.ClassDef)
        for node in tree.body:
            if isinstance(node, ast.AnnAssign) and "ClassVar" not in ast.unparse(node.annotation):
                found[ast.unparse(node.target)] = ast.unparse(node.annotation)
    # It has a parameter of its own.
    found.pop("num_timesteps", None)
    return found


def keywords(agent: Agent) -> dict[str, str]:
    """Return the types of the settings of one agent, with Google's names of them."""
    shared, config = fields(RunConfig, Runtime), agent.config
    own = fields(config, *[agent.runtime] * (agent.runtime is not Runtime))
    known = shared | own
    old = {name: known[now] for name, now in config.old_names.items()}
    ignored = {
        name: f"Literal[{', '.join(map(repr, values))}]"
        for name, values in config.unsupported.items()
    }
    return {n: kind for n, kind in {**own, **old, **ignored}.items() if n not in shared}


def typed_dict(name: str, base: str, doc: str, types: dict[str, str]) -> str:
    """Return the definition of a class."""
    lines = [f"    {key}: {kind}" for key, kind in types.items()]
    return "\n".join([f"class {name}({base}, total=False):", f'    """{doc}"""', "", *lines])


def page() -> str:
    """Return the whole module."""
    shared = fields(RunConfig, Runtime)
    every = typed_dict("RunSettings", "TypedDict", "Settings of every agent.", shared)
    own = [
        typed_dict(
            f"{agent.config.__name__.removesuffix('Config')}Settings",
            "RunSettings",
            f"Settings of {agent.config.__name__.removesuffix('Config')}.",
            keywords(agent),
        )
        for agent in AGENTS
    ]
    return "\n\n\n".join([HEAD.rstrip(), every, *own]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
