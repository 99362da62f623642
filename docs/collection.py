"""Writes collection.md, the page of all environments of brax-envs, from their code."""

import inspect
from pathlib import Path

from brax import plugins
from brax.envs.describe import describe

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# The collection, environment by environment

Written by `hatch run collection` from the code, as a test holds. Every environment is made by
`brax.envs.get_environment(name, **parameters)`; `brax envs show NAME` tells the same. Metrics named
as terms add up to the reward. How the models relate to others, and what was learned on them, is in
[environments.md](environments.md).
"""


def section(name: str) -> str:
    """Return the section on an environment."""
    env = plugins.get("environment", name)()
    told = [f"## {name}", inspect.cleandoc(type(env).__doc__ or "")]
    for headers, rows in describe(env):
        titles = headers or ("", "")
        table = [f"| {' | '.join(line)} |" for line in (titles, *rows)]
        told.append("\n".join([table[0], "|---" * len(titles) + "|", *table[1:]]))
    return "\n\n".join(told)


def page() -> str:
    """Return the whole page."""
    specs = plugins.specs("environment").items()
    ours = [name for name, spec in specs if spec.distribution == "brax-envs"]
    return "\n\n".join([HEAD.strip(), *(section(name) for name in ours)]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
