"""`brax plugins`: what is registered, where it comes from, and what is broken."""

import inspect
import json
import platform
import traceback
from collections.abc import Iterable
from dataclasses import asdict
from importlib import metadata
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from brax import plugins
from brax.cli.kernels import described, of_plugins
from brax.errors import BraxError, unknown_name
from brax.kernels.codegen.explain import Outcome
from brax.plugins import Registered, Status

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("plugins")
def command() -> None:
    """Show the plugins: joints, shapes, environments, agents, commands and the rest."""


@command.command("list")
@as_json
def list_plugins(as_json: bool) -> None:
    """List the installed plugins and everything that they provide."""
    found = list(_everything())
    if as_json:
        _print_json(
            {
                "plugins": [_status_facts(s) for s in plugins.statuses()],
                "registered": [_facts(r) for r in found],
            }
        )
        return
    _print_table(
        ("kind", "name", "distribution", "version", "summary"),
        [(r.kind, r.name, r.distribution, r.version, r.summary) for r in found],
    )
    for status in plugins.statuses():
        if status.state != "loaded":
            click.echo(f"{status.origin} {status.state}: {status.reason}. {status.remedy}".rstrip())


@command.command("show")
@click.argument("name")
@as_json
def show(name: str, as_json: bool) -> None:
    """Show what is registered under NAME, or what the distribution NAME provides."""
    found = [r for r in _everything() if name in (r.name, r.distribution)]
    statuses = [s for s in plugins.statuses() if s.origin.distribution == name]
    if not found and not statuses:
        known = {r.name for r in _everything()} | {
            s.origin.distribution for s in plugins.statuses()
        }
        raise unknown_name("plugin", name, known)
    facts = [_status_facts(s) for s in statuses]
    facts += [_facts(r) | _object_facts(r) for r in found]
    if as_json:
        _print_json(facts)
        return
    for entry in facts:
        for key, value in entry.items():
            if value:
                click.echo(f"{key:>13}  {value}")
        click.echo()


@command.command("doctor")
@as_json
def doctor(as_json: bool) -> int:
    """Load everything that is registered; the exit code is 1 if something is broken."""
    statuses = plugins.statuses()
    broken = [_status_facts(s) for s in statuses if s.state == "failed"]
    found = list(_everything())
    broken += [_facts(r) | facts for r in found if "error" in (facts := _object_facts(r))]
    # Objects that load may still never be used: another one has their keys.
    broken += [{"error": clash} for clash in plugins.clashes()]
    kernels = of_plugins(found)
    report = {
        "ok": not broken,
        "python": platform.python_version(),
        "jax": metadata.version("jax"),
        "plugins": {str(s.origin): s.state for s in statuses},
        "checked": len(found),
        "broken": broken,
        "kernels": {name: [asdict(o) for o in mine] for name, mine in kernels.items()},
    }
    if as_json:
        _print_json(report)
    else:
        _print_diagnosis(report)
    return 1 if broken else 0


def _print_diagnosis(report: dict[str, Any]) -> None:
    """Print the report of `doctor` as text."""
    click.echo(f"Python {report['python']}, JAX {report['jax']}")
    for origin, state in report["plugins"].items():
        click.echo(f"{state:>6}  {origin}")
    left_out = "plugin {distribution} {version}: {reason}. {remedy}"
    for entry in report["broken"]:
        click.echo(f"broken: {entry.get('error') or left_out.format(**entry)}")
    for distribution, mine in report["kernels"].items():
        for line in described(Outcome(**kernel) for kernel in mine):
            click.echo(f"{distribution}: {line}")
    click.echo(f"{report['checked']} objects checked, {len(report['broken'])} problems")


def _everything() -> Iterable[Registered]:
    """Return the registered specs of all kinds."""
    return (r for kind in plugins.KINDS for r in plugins.specs(kind).values())


def _facts(registered: Registered) -> dict[str, Any]:
    """Return the facts about a registered spec that are known without an import."""
    keys = ("kind", "name", "target", "summary", "distribution", "version")
    return {key: getattr(registered, key) for key in keys}


def _status_facts(status: Status) -> dict[str, Any]:
    """Return the facts about the loading of a plugin."""
    return {
        "distribution": status.origin.distribution,
        "version": status.origin.version,
        "entry_point": status.origin.entry_point,
        "state": status.state,
        "reason": status.reason,
        "remedy": status.remedy,
    }


def _object_facts(registered: Registered) -> dict[str, Any]:
    """Return facts about an object that are known when it is loaded, or the error."""
    try:
        value = plugins.get(registered.kind, registered.name)
    except BraxError as error:
        if click.get_current_context().find_root().obj["debug"]:
            traceback.print_exception(error)
        return {"error": str(error)}
    # An instance is documented by its class.
    described = value if inspect.isclass(value) or inspect.isroutine(value) else type(value)
    documentation = inspect.cleandoc(described.__doc__ or "")  # its own, not its base class's
    return {"defined in": described.__module__, "documentation": documentation.split("\n")[0]}


def _print_json(value: object) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2))


def _print_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print rows as a table, one row a line where the output is no terminal."""
    table = Table(*header, box=None, pad_edge=False)
    for row in rows:
        # In a string rich would read words in brackets as its markup, and leave them out.
        table.add_row(*map(Text, row))
    console = Console()
    if not console.is_terminal:
        console.width = 1000  # one line a row, for grep
    console.print(table)
