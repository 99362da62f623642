"""The page of thresholds has the values of the code, and all thresholds that steer its speed."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "packages/brax-core/src/brax"
AGENTS = ROOT / "packages/brax-agents/src/brax"
PAGE = (ROOT / "docs/performance-model.md").read_text()
ROWS = re.findall(r"^\| `(\w+)` \| `([\w/]+)\.py` \| `([^`]+)` \|", PAGE, re.MULTILINE)
THRESHOLD = re.compile(r"_?(?:MAX|MIN|MOST)_[A-Z0-9_]+")


def _value(text):
    """Return the number or tuple that a cell shows, such as `2**14`."""
    return eval(compile(ast.parse(text, mode="eval"), "cell", "eval"), {"__builtins__": {}})


def _coded(module, name):
    """Return the value of a constant, by its module below `brax`."""
    return getattr(importlib.import_module(f"brax.{module.replace('/', '.')}"), name)


def _thresholds(source, folder):
    """Return names and modules of the thresholds that a folder or a module defines."""
    top = source / folder
    found = set()
    for path in top.rglob("*.py") if top.is_dir() else [top]:
        module = str(path.relative_to(source).with_suffix(""))
        for node in ast.parse(path.read_text()).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
            names = {
                n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)
            }
            found |= {(name, module) for name in names if THRESHOLD.fullmatch(name)}
    return found


def test_the_values_of_thresholds_are_those_of_the_code():
    assert len(ROWS) >= 15
    for name, module, shown in ROWS:
        assert (name, _coded(module, name)) == (name, _value(shown))


@pytest.mark.parametrize(
    ("source", "folder"),
    [(CORE, "kernels"), (CORE, "generalized"), (AGENTS, "training/nn/layers.py")],
)
def test_every_threshold_of_a_folder_is_on_the_page(source, folder):
    found = _thresholds(source, folder)
    assert found
    assert found - {(name, module) for name, module, _ in ROWS} == set()


def test_every_threshold_of_a_number_of_things_is_on_the_page():
    """Thresholds of other folders that are no whole numbers are tolerances."""
    found = {
        (name, module)
        for name, module in _thresholds(CORE, ".")
        if type(_coded(module, name)) is int
    }
    assert {"components", "tree", "colliders/broad_phase"} <= {module for _, module in found}
    assert found - {(name, module) for name, module, _ in ROWS} == set()
