"""Measures every pipeline on every oracle of gradients: `hatch run gradients`.

Writes the table and the figures of `docs/gradients.md`.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import click
import gradient_figures
from gradient_oracles import ORACLES, Row
from rich.console import Console

PAGE = Path(__file__).parents[1] / "docs" / "gradients.md"
HEAD = "| answer | derivative | pipeline | error | bar | |\n|---|---|---|---|---|---|"

console = Console(stderr=True)


@click.command()
@click.option(
    "--only", default="", help="Only oracles whose name has this; prints, writes nothing."
)
def main(only: str) -> None:
    """Measures the oracles and writes the page."""
    rows = list(measure(only))
    if only:
        return
    PAGE.write_text(with_table(PAGE.read_text(), table(rows)))
    gradient_figures.draw(PAGE.parent / "images")
    console.print(PAGE)


def measure(only: str = "") -> Iterable[Row]:
    """All rows, as they are found."""
    for oracle in ORACLES:
        for setup in oracle.setups if only in oracle.name else ():
            for row in oracle.rows(setup):
                console.print(line(row), highlight=False, soft_wrap=True)
                yield row


def cells(row: Row) -> list[str]:
    """Return a row of the table."""
    more = "at least " if row.more else ""
    error = "never" if row.error == float("inf") else f"{row.error:.2g}"
    verdict = "met" if row.met else "**missed**"
    return [row.oracle, row.quantity, row.setup, error, f"{more}{row.bar:g}", verdict]


def line(row: Row) -> str:
    """Return a row in Markdown."""
    return "| " + " | ".join(cells(row)) + " |"


def table(rows: Iterable[Row]) -> str:
    """Return the table of the page."""
    return "\n".join([HEAD, *map(line, rows)])


def table_of(page: str) -> list[list[str]]:
    """Return the rows of a page's table, without its head."""
    found = _BETWEEN.search(page)
    assert found, "the page has no table"
    lines = found[2].strip().splitlines()[2:]
    return [[cell.strip() for cell in text.strip("|").split("|")] for text in lines]


def with_table(page: str, text: str) -> str:
    """Return the page with its table replaced."""
    return _BETWEEN.sub(lambda m: f"{m[1]}\n\n{text}\n\n{m[3]}", page)


_BETWEEN = re.compile(r"(<!-- oracles -->)(.*?)(<!-- end of oracles -->)", re.DOTALL)


if __name__ == "__main__":
    main()
