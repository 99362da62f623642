"""docs/benchmarks.md says what the committed report says."""

import json
from pathlib import Path

from summary import rows

ROOT = Path(__file__).parents[2]
REPORT = json.loads((ROOT / "benchmarks/results/ant-spring-cpu.json").read_text())


def test_the_page_has_the_table_of_the_report():
    page = (ROOT / "docs/benchmarks.md").read_text()
    for row in rows(REPORT):
        assert f"| {' | '.join(row)} |" in page
    assert REPORT["commit"] in page
