"""The page of thresholds has the values of the code, and all thresholds of kernels and solver."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "packages/brax-core/src/brax"
PAGE = (ROOT / "docs/performance-model.md").read_text()
ROWS = re.findall(r"^\| `(\w+)` \| `([\w/]+)\.py` \| `([^`]+)` \|", PAGE, re.MULTILINE)


def _value(text):
    """Return the number or tuple that a cell shows, such as `2**14`."""
    return eval(compile(ast.parse(text, mode="eval"), "cell", "eval"), {"__builtins__": {}})


def test_the_values_of_thresholds_are_those_of_the_code():
    assert len(ROWS) >= 15
    for name, module, shown in ROWS:
        found = getattr(importlib.import_module(f"brax.{module.replace('/', '.')}"), name)
        assert (name, found) == (name, _value(shown))


@pytest.mark.parametrize("folder", ["kernels", "generalized"])
def test_every_threshold_of_a_folder_is_on_the_page(folder):
    named = re.compile(r"^(_?(?:MAX|MIN)_\w+) =", re.MULTILINE)
    found = {
        (name, str(path.relative_to(SOURCE).with_suffix("")))
        for path in (SOURCE / folder).rglob("*.py")
        for name in named.findall(path.read_text())
    }
    assert found - {(name, module) for name, module, _ in ROWS} == set()
