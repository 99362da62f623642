"""Writes known-answers.md: the answers that the tests must reach, and how near they come.

`python docs/known_answers.py` writes the page. `python docs/known_answers.py measure [FILE ...]`
first runs the tests that hold an answer and records their residuals in known-answers.json.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).parent
ROOT = DOCS.parent
RECORD = DOCS / "known-answers.json"
TEXT = DOCS / "known_answers.toml"
NUMBER = re.compile(r"\bT\d\d\b")


class Answer(NamedTuple):
    """One known answer."""

    number: str
    what: str
    formula: str
    source: str
    elsewhere: str = ""
    """Text of the page where no test holds the answer."""


def answers() -> dict[str, list[Answer]]:
    """Return all answers, by the headings of the page."""
    groups = tomllib.loads(TEXT.read_text("utf-8"))
    return {name: [Answer(k, *row) for k, row in rows.items()] for name, rows in groups.items()}


def test_files() -> list[Path]:
    """Return the test files of all packages."""
    return sorted(ROOT.glob("packages/*/tests/**/test_*.py"))


def holders() -> dict[str, list[str]]:
    """Return the tests that hold each answer: those whose source names its number."""
    found: dict[str, list[str]] = {}
    for path in test_files():
        source = path.read_text("utf-8")
        if not NUMBER.search(source):
            continue
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                text = ast.get_source_segment(source, node) or ""
                for number in sorted(set(NUMBER.findall(text))):
                    found.setdefault(number, []).append(f"{path.relative_to(ROOT)}::{node.name}")
    return found


def table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [titles, ("---",) * len(titles), *rows]
    safe = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in safe)


def figures(lanes: dict[str, list[float]]) -> tuple[str, str]:
    """Return the bounds and the residuals of a test, double precision before single."""
    if not lanes:
        return "exact", "exact"
    bounds, residuals = [], []
    for residual, bound in (lanes.get(lane, (None, None)) for lane in ("double", "single")):
        if residual is None or bound is None:
            bounds.append("-")
            residuals.append("-")
            continue
        rounded = float(f"{residual:.2g}") <= bound
        bounds.append(f"{bound:.3g}")
        residuals.append(f"{residual:{'.2g' if rounded else '.3g'}}")
    if "single" not in lanes:
        return bounds[0], residuals[0]
    return " / ".join(bounds), " / ".join(residuals)


def test_rows(answer: Answer, names: list[str], record: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of an answer's tests: number, test, bound, residual."""
    if not names:
        return [(answer.number, answer.elsewhere, "", "")]
    rows: list[tuple[str, ...]] = []
    for name in names:
        path, function = name.split("::")
        words = function.removeprefix("test_").replace("_", " ")
        link = f"[{words}](../{path})"
        lanes = record["tests"].get(name)
        known = ("", "not measured") if lanes is None else figures(lanes)
        rows.append((answer.number, link, *known))
    return rows


HEAD = """# Known answers

The tests compare Brax with answers from other sources: closed forms, published results, and other
programs. Each answer has a number, which tests and documentation use. A test covers an answer if
its source names the number. `hatch run known-answers` writes this page from the tests, and a test
keeps it up to date.

In the tables of tests, *bound* is the error that the test allows, and *residual* is the measured
one. Both are of the comparison with the largest ratio of residual to bound, over all pipelines and
cases of the test. Where there are two numbers, the first is in double and the second in single
precision. *Exact* means that the test compares without a tolerance: bits, counts or signs.
Measured {date} on {machine}, JAX {jax}; `hatch run known-answers measure`
measures again.

Some numbers of the sequence are not used.
"""


def page() -> str:
    """Return the text of known-answers.md."""
    record, held = json.loads(RECORD.read_text("utf-8")), holders()
    parts = [HEAD.format(**record)]
    for name, group in answers().items():
        rows = [row for a in group for row in test_rows(a, held.get(a.number, []), record)]
        parts += [
            f"## {name}\n",
            table(("T", "what", "answer", "source"), [tuple(a[:4]) for a in group]) + "\n",
            table(("T", "test", "bound", "residual"), rows) + "\n",
        ]
    return "\n".join(parts)


def measure(files: list[str]) -> None:
    """Run the tests that hold an answer, file by file, and record their residuals."""
    import jax

    wanted = {name.split("::")[1] for names in holders().values() for name in names}
    every = [p for p in test_files() if any(word in wanted for word in words(p))]
    chosen = [p for p in every if not files or str(p.relative_to(ROOT)) in files]
    old = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {"tests": {}}
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "residuals.json"
        paths = [str(DOCS), os.environ.get("PYTHONPATH", "")]
        more = {"PYTHONPATH": os.pathsep.join(paths), "BRAX_RESIDUALS": str(kept)}
        options = ["-q", "-p", "residuals", "-o", "enable_assertion_pass_hook=true"]
        for path in chosen:
            command = [sys.executable, "-m", "pytest", *options, "-m", "not long", str(path)]
            subprocess.run(command, cwd=ROOT, env=os.environ | more, check=False)
        new = json.loads(kept.read_text())
    tests = old["tests"] | new
    record = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"a CPU with {os.cpu_count()} cores",
        "jax": jax.__version__,
        "tests": dict(sorted(tests.items())),
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def words(path: Path) -> set[str]:
    """Return the names that a file uses."""
    return set(re.findall(r"\w+", path.read_text("utf-8")))


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(sys.argv[2:])
    (DOCS / "known-answers.md").write_text(page(), "utf-8")
