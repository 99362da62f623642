"""known-answers.md is what its code writes, and every number that is used is on it."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("known_answers", DOCS / "known_answers.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["known_answers"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["known_answers"]


@pytest.fixture(scope="module")
def listed(script):
    return {answer.number: answer for group in script.answers().values() for answer in group}


def test_the_page_is_what_the_code_writes(script):
    assert (DOCS / "known-answers.md").read_text("utf-8") == script.page()


def test_every_number_that_is_used_is_listed(script, listed):
    pages = [*DOCS.glob("*.md"), *ROOT.glob("benchmarks/*.py"), *script.test_files()]
    ranges = re.compile(r"\bT\d\d to T\d\d\b")
    used = {n for p in pages for n in script.NUMBER.findall(ranges.sub("", p.read_text("utf-8")))}
    assert used <= set(listed)


def test_every_answer_is_held_by_a_test_or_says_where_it_is(script, listed):
    held = script.holders()
    assert {n for n, answer in listed.items() if not answer.elsewhere} == set(held)


def test_every_residual_is_within_its_bound(script):
    record = json.loads((DOCS / "known-answers.json").read_text("utf-8"))["tests"]
    held = {name for names in script.holders().values() for name in names}
    assert set(record) <= held
    figures = [pair for lanes in record.values() for pair in lanes.values()]
    assert len(figures) > 60
    assert all(residual <= bound for residual, bound in figures)
