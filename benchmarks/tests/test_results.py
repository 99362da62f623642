"""docs/benchmarks.md says what the committed report says."""

import json

import page
import pytest

REPORTS = sorted((page.ROOT / "benchmarks/results").glob("*.json"))


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_the_page_is_what_the_report_makes_of_it(path):
    text = page.PAGE.read_text()
    assert page.fill(text, json.loads(path.read_text()), path.stem) == text
