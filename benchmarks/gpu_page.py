"""Puts the counts and estimates for a GPU into docs/benchmarks.md.

    python benchmarks/gpu_page.py FILE ...   # reports of `brax bench --explain --json`, kept as one
    python benchmarks/gpu_page.py            # the page alone, from what is kept

The reports need `jax[cuda12]`: `hatch run gpu-aot:brax bench --explain --json --batch-size 8192`.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from page import PAGE, ROOT, replaced, row

REPORT = ROOT / "benchmarks/results/counts/sm_90.json"
BATCHES = 8192, 65536
HEADER = (
    *("environment", "pipeline", "kernels", "traffic kB", "executed", "registers", "spilled B"),
    *("compile s", "estimate M steps/s, 8192", "65,536"),
)


def table(rows: Iterable[dict[str, Any]]) -> str:
    """Return the table of some rows, each environment and pipeline once."""
    found: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    # `fast` has no physics, and so no kernel of ours.
    for each in (x for x in rows if x["own_kernels"]):
        found.setdefault((each["environment"], each["backend"]), {})[each["batch_size"]] = each
    lines = [row(HEADER), row("---" for _ in HEADER)]
    for (name, pipeline), sizes in sorted(found.items()):
        small, large = (sizes[batch] for batch in BATCHES)
        lines.append(
            row(
                (
                    f"`{name}`",
                    f"`{pipeline}`",
                    f"{small['kernels_per_step']:.1f}",
                    f"{small['bytes_per_environment_step'] / 1e3:.1f}",
                    f"{small['instructions_per_environment_step']:,}",
                    str(small["registers"]),
                    f"{small['spilled_bytes']:,}",
                    f"{small['compile_seconds']:.1f}",
                    *(_millions(x["estimated_steps_per_second"]) for x in (small, large)),
                )
            )
        )
    return "\n".join(lines)


def fill(page: str, rows: Sequence[dict[str, Any]]) -> str:
    """Return the page with the table of some rows in its place."""
    return replaced(page, "gpu", f"\n{table(rows)}\n\n")


def _millions(speed: float) -> str:
    return f"{speed / 1e6:,.0f}" if speed >= 1e8 else f"{speed / 1e6:.3g}"


def main(*files: str) -> None:
    """Keep the rows of some reports, if any are given, and fill the page."""
    rows = [each for file in files for each in json.loads(Path(file).read_text())]
    if rows:
        # The assumptions stand in the page once.
        kept = [{k: v for k, v in each.items() if k != "assumptions"} for each in rows]
        REPORT.write_text(json.dumps(kept, indent=1) + "\n")
    PAGE.write_text(fill(PAGE.read_text(), json.loads(REPORT.read_text())))


if __name__ == "__main__":
    main(*sys.argv[1:])
