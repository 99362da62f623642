"""Puts the tables and plots of a report into docs/benchmarks.md: `hatch run bench-page`."""

import json
import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import summary

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- results of {} -->", "<!-- end of results -->"


def text(report: Mapping[str, Any], name: str) -> str:
    """Return the part of the page for a report."""
    machine, versions = report["machine"], report["versions"]
    commits = sorted({c["commit"] for c in report["cells"].values() if "commit" in c})
    loads = [c["load"] for c in report["cells"].values() if "load" in c]
    busy = f"{min(loads):.1f} to {max(loads):.1f}" if loads else "unknown"
    lines = [
        f"`{report['command']}`, {report['date'][:10]},",
        *textwrap.wrap(f"commit {', '.join(commits)}", 100),
        f"([the report](../benchmarks/results/{name}.json)).",
        f"{machine['cores']} cores of {machine['processor']}, {machine['memory']} GiB, "
        f"on {machine['platform']}; load average {busy}.",
        *textwrap.wrap(", ".join(f"{k} {v}" for k, v in versions.items()) + ".", 100),
    ]
    failed = {c["failed"] for c in report["cells"].values() if "failed" in c}
    for title, header, rows in summary.tables(report):
        lines += ["", f"### {title}", "", row(header), row("---" for _ in header)]
        lines += [row("not counted" if x in failed else x for x in each) for each in rows]
        # A sentence would be a tower in a column of numbers.
        for each, reason in ((r, x) for r in rows for x in failed.intersection(r)):
            what = f"- {', '.join(each[: each.index(reason)])}: {reason}."
            lines += ["", *textwrap.wrap(what, 100, subsequent_indent="  ")]
        lines += _picture(title, name)
    if not lines[-1].startswith("!"):
        lines.append("")  # Markdown ends tables and lists with it
    return "\n".join(lines) + "\n"


def fill(page: str, report: Mapping[str, Any], name: str) -> str:
    """Return the page with the part of one report replaced."""
    return replaced(page, name, text(report, name))


def replaced(page: str, name: str, part: str) -> str:
    """Return the page with another text between the marks of a name."""
    before, rest = page.split(begin := BEGIN.format(name) + "\n")
    _, after = rest.split(END, 1)
    return f"{before}{begin}{part}{END}{after}"


def _picture(title: str, name: str) -> list[str]:
    for part in ("batch", "links", "contacts"):
        if summary.TITLES[part] == title:
            return ["", f"![{title}: speed and compile time](images/bench-{name}-{part}.png)"]
    return []


def row(values: Iterable[str]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(values)} |"


def main(name: str = "cpu") -> None:
    """Fill the page and draw the plots."""
    import plots

    report = json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())
    PAGE.write_text(fill(PAGE.read_text(), report, name))
    plots.draw(report, ROOT / "docs" / "images", name)


if __name__ == "__main__":
    main(*sys.argv[1:])
