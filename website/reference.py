"""Writes the pages of the reference: the Python names, the command line, settings and presets."""

import ast
import dataclasses
import inspect
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import public_api

from brax import plugins
from brax.cli import root
from brax.envs.describe import meaning
from brax.training.agent import Agent
from brax.training.config import RunConfig, Runtime

HEAD = """# Reference

- [Command line](command-line.md): the commands of `brax` and their options
- [Settings and presets](settings.md): the numbers of every agent
- [Options of a system](python/brax.base.md#brax.base.Option): timestep, gravity, iterations
- [Environments](../collection.md): sizes, observations, rewards and parameters
- [Sensors](../sensors.md#sensor-types): what can be measured
- [Model files](../models.md#supported-elements): what of MJCF and URDF is supported
- [All signatures as text](../public-api.txt)

## Python modules

"""

SETTINGS = """# Settings and presets

`train` of an agent takes these settings as keyword arguments, and `brax train` takes them as
`--set NAME=VALUE`. Values are checked before a run starts. [Agents](../agents.md) explains
which to change.

A preset is a table of settings for an environment. Settings that it does not name have their
defaults. The table `any` serves environments that are not named.
"""


VARIABLES = """## Environment variables

| variable | meaning |
|---|---|
| `BRAX_NATIVE=0` | XLA compiles the kernels, so that programs are slower. It shows whether a \
fault is that of the [code generator](../code-generator.md), which compiles them otherwise. |
| `BRAX_DUMP_IR=FOLDER` | Writes each kernel in all of its stages to a folder. |
| `BRAX_PLUGINS`, `BRAX_PLUGINS_DISABLE` and others | They say which plugins are loaded, \
see [Switches](../plugins.md#switches). |
| `JAX_NUM_CPU_DEVICES=N` | JAX's: the number of devices that a CPU is; `brax` sets it to the \
number of cores. |
"""


def pages() -> dict[str, str]:
    """Return the text of every page of the reference, by its place in the site."""
    modules = {f"reference/python/{m}.md": module(m) for m in shown()}
    rows = [f"| [`{m}`](python/{m}.md) | {first_line(m)} |" for m in shown()]
    index = HEAD + "\n".join(["| module | |", "|---|---|", *rows]) + "\n"
    return {
        "reference/index.md": index,
        "reference/command-line.md": "\n\n".join(
            ["# Command line", *command(root, "brax", 2), VARIABLES]
        ),
        "reference/settings.md": settings(),
        **modules,
    }


def navigation() -> list[Any]:
    """Return the pages of modules, in a folder for each package that has several."""
    groups: dict[str, list[str]] = {}
    for name in shown():
        package = re.match(r"brax\.(?:training\.agents|training|envs|io)(?=\.)", name)
        groups.setdefault(package[0] if package else "brax", []).append(
            f"reference/python/{name}.md"
        )
    return [{package: modules} for package, modules in groups.items()]


def shown() -> list[str]:
    """Return the public modules that have names of their own."""
    return [m for m in public_api.public_modules() if public_api.public_names(m)]


def first_line(module: str) -> str:
    """Return the first line of a module's docstring."""
    tree = ast.parse(public_api.sources()[module].read_text("utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0]


def module(name: str) -> str:
    """Return the page of a module: its own names, and links to those that other modules define."""
    own, links, inherited = [], [], set()
    for public in public_api.public_names(name):
        first = next(public_api.lines(public, public_api.definitions(name).get(public)), "")
        origin = first.removeprefix(f"{public} = ")
        if not first:  # a type variable
            continue
        if origin == first:
            own.append(public)
            inherited |= from_bases(name, public)
        elif origin.rpartition(".")[0] in shown():
            links.append(f"- `{public}`: [`{origin}`][{origin}]")
        else:
            links.append(f"- `{public}`: `{origin}`")
    parts = [
        f"---\ntitle: {name}\n---",
        f"::: {name}\n    options:\n      heading_level: 1\n      members: {json.dumps(own)}"
        + f"\n      inherited_members: {json.dumps(sorted(inherited))}" * bool(inherited),
    ]
    if links:
        parts += ["## Names that other modules define", "\n".join(links)]
    return "\n\n".join(parts) + "\n"


def from_bases(module: str, name: str) -> set[str]:
    """Return the names of the public methods that a class has from bases that are not public."""
    home, node = public_api.found(module, name)
    if not isinstance(node, ast.ClassDef):
        return set()
    parts = [part for part, _ in public_api.body(node, home) if part not in node.body]
    names = {part.name for part in parts if isinstance(part, ast.FunctionDef)}
    return {name for name in names if not name.startswith("_")}


def command(found: click.Command, name: str, level: int) -> Iterator[str]:
    """Yield the parts of the page on a command and its subcommands."""
    context = click.Context(found, info_name=name)
    yield f"{'#' * level} {name}"
    yield f"```text\n{found.get_usage(context).removeprefix('Usage: ')}\n```"
    # A form feed ends what is for readers, and \\b keeps the lines of a paragraph.
    paragraphs = inspect.cleandoc(found.help or "").partition("\f")[0].split("\n\n")
    yield "\n\n".join(
        f"```text\n{p[2:]}\n```" if p.startswith("\b\n") else plain(p) for p in paragraphs
    )
    records = [p.get_help_record(context) for p in found.get_params(context)]
    rows = [f"| `{names}` | {plain(text)} |" for names, text in filter(None, records)]
    yield "\n".join(["| option | meaning |", "|---|---|", *rows])
    if isinstance(found, click.Group):
        for child in found.list_commands(context):
            if (sub := found.get_command(context, child)) is not None:
                yield from command(sub, f"{name} {child}", min(level + 1, 4))


def plain(text: str) -> str:
    """Return a text so that Markdown shows it as it is, on one line."""
    escaped = re.sub(r"([\[\]*|])", r"\\\1", " ".join(text.split()))
    return escaped.replace("<", "&lt;").replace(">", "&gt;")


def settings() -> str:
    """Return the page of the agents' settings and presets."""
    agents = [a for a in plugins.all_that_load("trainer").values() if isinstance(a, Agent)]
    parts = [SETTINGS, "## Every agent", table(RunConfig), "## Functions and paths", table(Runtime)]
    for agent in sorted(agents, key=lambda a: a.name):
        presets = Path(inspect.getfile(agent.config)).with_name("presets.toml")
        parts += [f"## {agent.name}", table(agent.config, RunConfig)]
        if agent.runtime is not Runtime:
            parts.append(table(agent.runtime, Runtime))
        parts += [f"### Presets of {agent.name}", f"```toml\n{presets.read_text('utf-8')}```"]
    return "\n\n".join(parts) + "\n"


def table(cls: type, base: type | None = None) -> str:
    """Return the fields of a dataclass as a table, without those of its base that are the same."""
    known = {f.name: f.default for f in dataclasses.fields(base)} if base else {}
    rows = [
        f"| `{f.name}` | {default(f)} | {allowed(f)} | {meaning(cls, f.name)} |"
        for f in dataclasses.fields(cls)
        if f.name not in known or known[f.name] != f.default
    ]
    return "\n".join(["| setting | default | allowed | meaning |", "|---|---|---|---|", *rows])


def default(field: dataclasses.Field[Any]) -> str:
    """Return the default of a setting as Python writes it, if that is short."""
    return "" if callable(field.default) else f"`{field.default!r}`"


def allowed(field: dataclasses.Field[Any]) -> str:
    """Return the values that a setting may have."""
    if words := field.metadata.get("words"):
        return ", ".join(f"`{word}`" for word in words)
    low, high, is_open = field.metadata.get("range", (-math.inf, math.inf, False))
    if high < math.inf:
        return f"{'above ' if is_open else ''}{low} to {high}"
    return f"{'above' if is_open else 'at least'} {low}" if low > -math.inf else ""
