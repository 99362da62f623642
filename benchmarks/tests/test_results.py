"""docs/benchmarks.md says what the committed report says."""

import json

import gpu_page
import page
import pytest

REPORTS = sorted((page.ROOT / "benchmarks/results").glob("*.json"))


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_the_page_is_what_the_report_makes_of_it(path):
    text = page.PAGE.read_text()
    assert page.fill(text, json.loads(path.read_text()), path.stem) == text


def test_the_table_for_a_gpu_is_what_is_kept():
    text = page.PAGE.read_text()
    assert gpu_page.fill(text, json.loads(gpu_page.REPORT.read_text())) == text


def test_no_environments_physics_is_left_to_xla_on_a_gpu():
    """One that is, for example for its memory, takes hundreds of kernels a step."""
    kept = json.loads(gpu_page.REPORT.read_text())
    assert len(kept) > 20
    assert {row["environment"] for row in kept if row["kernels_per_step"] > 30} == set()
