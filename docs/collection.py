"""Writes collection.md, the page of all environments of brax-envs, from their code."""

import inspect
from pathlib import Path

from brax import plugins
from brax.envs.describe import describe

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# The collection, environment by environment

Each section describes one environment: task, time steps, observation, metrics and parameters.
`brax.envs.get_environment(name, **parameters)` makes it, and `brax envs show NAME` prints the same
tables. The reward is the sum of the metrics that are marked as its terms.

For the models' differences from Gymnasium's, and for what agents learned, see
[environments.md](environments.md). `hatch run collection` writes this page from the code, and a
test compares the two.
"""


def section(name: str) -> str:
    """Return the section on an environment."""
    env = plugins.get("environment", name)()
    parts = [f"## {name}", inspect.cleandoc(type(env).__doc__ or "")]
    for headers, rows in describe(env):
        titles = headers or ("property", "value")
        table = [f"| {' | '.join(line)} |" for line in (titles, *rows)]
        parts.append("\n".join([table[0], "|---" * len(titles) + "|", *table[1:]]))
    return "\n\n".join(parts)


def page() -> str:
    """Return the whole page."""
    specs = plugins.specs("environment").items()
    ours = [name for name, spec in specs if spec.distribution == "brax-envs"]
    return "\n\n".join([HEAD.strip(), *(section(name) for name in ours)]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
