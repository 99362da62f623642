"""Pytest plugin: records how near every passing comparison came to its bound.

`python docs/known_answers.py measure` loads it. It sees three kinds of comparison: `assert a <
b` on numbers, `pytest.approx`, and `numpy.testing.assert_allclose`. Of each test function it
keeps the comparison that used most of its bound, for double and for single precision apart.
"""

import ast
import json
import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import known_answers
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
WRAPPED = re.compile(rf"(?:np\.\w+|Array)\(({NUMBER})(?:, dtype=\w+)?(?:, weak_type=True)?\)")
SIDE = r"(\(.*\)|[^\s()]+)"
LESS = re.compile(rf"^{SIDE} <=? {SIDE}$")
OPERATORS = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop)


def number(text: str) -> float | None:
    """Return the value of an arithmetic expression, or None where it is something else."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return None
    if not all(isinstance(node, OPERATORS) for node in ast.walk(tree)):
        return None
    try:
        return float(eval(compile(tree, "bound", "eval")))
    except (TypeError, ValueError, ArithmeticError):
        return None


def name_of(item: pytest.Function) -> str:
    """Return `path::function` of the file that defines a test; other files may import it."""
    code = item.function.__code__
    return f"{Path(code.co_filename).relative_to(ROOT)}::{code.co_name}"


class Residuals:
    """The worst residual of each test function and its bound, in each precision."""

    def __init__(self, wanted: set[str]) -> None:
        """Watch the tests of these names, `path::function`."""
        self.wanted = wanted
        self.function: str | None = None
        self.found: dict[str, dict[str, list[float]]] = {}

    def add(self, residual: float, bound: float) -> None:
        """Keep a comparison if it used more of its bound than those before."""
        usable = np.isfinite([residual, bound]).all() and residual >= 0 and bound > 0
        if self.function is None or not usable:
            return
        lane = "double" if jax.config.read("jax_enable_x64") else "single"
        kept = self.found.setdefault(self.function, {}).setdefault(lane, [0.0, bound])
        if residual / bound > kept[0] / kept[1]:
            kept[:] = [float(f"{residual:.3g}"), float(f"{bound:.3g}")]

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Function]
    ) -> None:
        """Keep the wanted tests only."""
        others = [item for item in items if name_of(item) not in self.wanted]
        items[:] = [item for item in items if name_of(item) in self.wanted]
        config.hook.pytest_deselected(items=others)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Function) -> Generator[None, object, object]:
        """Note which function runs."""
        self.function = name_of(item)
        try:
            result = yield
            self.found.setdefault(self.function, {})
        finally:
            self.function = None
        return result

    def pytest_assertion_pass(self, item: pytest.Item, lineno: int, orig: str, expl: str) -> None:
        """Read the two sides of `a < b` from pytest's explanation."""
        line = WRAPPED.sub(r"\1", expl.split("\n")[0])
        for part in re.split(r"\band\b", line.strip("()") if " and " in line else line):
            match = LESS.match(part.strip())
            left, right = map(number, match.groups()) if match else (None, None)
            if left is not None and right is not None:
                self.add(left, right)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Add what was found to the file of earlier runs."""
        path = Path(os.environ["BRAX_RESIDUALS"])
        kept = json.loads(path.read_text()) if path.exists() else {}
        for function, lanes in self.found.items():
            worst = kept.setdefault(function, {})
            for lane, (residual, bound) in lanes.items():
                if lane not in worst or residual / bound > worst[lane][0] / worst[lane][1]:
                    worst[lane] = [residual, bound]
        path.write_text(json.dumps(kept))


def watch(residuals: Residuals) -> None:
    """Make pytest.approx and numpy.testing.assert_allclose report to `residuals`."""
    scalar: type[Any] = type(pytest.approx(1.0))
    equal = vars(scalar)["__eq__"]
    close = np.testing.assert_allclose

    def approx_equal(self: Any, actual: object) -> bool:
        if isinstance(actual, (int, float, np.generic, jax.Array)) and np.ndim(actual) == 0:
            error, scale = abs(float(actual) - float(self.expected)), abs(float(self.expected))
            relative = self.tolerance == (self.rel or 1e-6) * scale and scale > 0
            size = scale if relative else 1.0
            residuals.add(error / size, float(self.tolerance) / size)
        return equal(self, actual)

    def allclose(
        actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 0.0, **more: Any
    ) -> None:
        close(actual, desired, rtol=rtol, atol=atol, **more)
        a, d = np.broadcast_arrays(np.asarray(actual, float), np.asarray(desired, float))
        error, bound = np.abs(a - d).ravel(), np.ravel(atol + rtol * np.abs(d))
        if not error.size:
            return
        worst = np.argmax(error / np.where(bound > 0, bound, np.inf))
        size = np.abs(d).ravel()[worst] if not np.any(atol) else 1.0
        residuals.add(error[worst] / (size or 1.0), bound[worst] / (size or 1.0))

    # For the rest of the process.
    mock.patch.object(scalar, "__eq__", approx_equal).start()
    mock.patch.object(np.testing, "assert_allclose", allclose).start()


def pytest_configure(config: pytest.Config) -> None:
    """Start to record the tests that hold a known answer."""
    residuals = Residuals({name for names in known_answers.holders().values() for name in names})
    config.pluginmanager.register(residuals)
    watch(residuals)
