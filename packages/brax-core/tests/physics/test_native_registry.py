"""The registry of operations: each of JAX's primitives is known in one place."""

import ast
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import brax.kernels.batch_last
from brax.kernels.codegen.lowering import control_flow, registry
from brax.kernels.codegen.operations import elements, named, operation
from brax.kernels.codegen.single_precision import MARK
from brax.kernels.recognized import recognized
from brax.kernels.skip import UNREAD

KERNELS = Path(brax.kernels.batch_last.__file__).parent
OTHER_NAMES = "math_functions.py", "single_precision.py", "program_size.py"
"""Modules about functions of C's library, and about operations of XLA's HLO."""


def tables(tree):
    """Yield the strings that each table, comparison and registration of a module names."""
    inner = set()
    for node in ast.walk(tree):
        parts: Sequence[ast.AST | None] = []
        if isinstance(node, ast.Dict):
            parts = node.keys
        elif isinstance(node, (ast.Set, ast.Tuple, ast.List)):
            parts = node.elts
        elif isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("_rule"):
            parts = [x for arg in node.args for x in ast.walk(arg)]
            inner |= {id(x) for x in parts}
        if id(node) in inner and not isinstance(node, ast.Call):
            continue
        yield {x.value for x in parts if isinstance(x, ast.Constant) and isinstance(x.value, str)}


def test_no_primitive_is_named_in_more_than_one_table():
    count = Counter(
        (name, str(path.relative_to(KERNELS)))
        for path in KERNELS.rglob("*.py")
        if path.name not in OTHER_NAMES
        for names in tables(ast.parse(path.read_text()))
        for name in names
        if name in registry._OPERATIONS
    )
    places = Counter(name for name, _ in count.elements())
    assert {name: [p for n, p in count if n == name] for name, n in places.items() if n > 1} == {}
    # The others are registered by the constants of their names, or by C's table.
    assert len(places) > 100


def test_functions_with_rules_have_names_that_no_user_gives_by_chance():
    """Python's grammar has no dot in a name."""
    names = {*control_flow._FUNCTIONS, UNREAD, MARK}
    assert len(names) == 11
    assert {name for name in names if name.isidentifier() or not name.startswith("brax.")} == set()
    with pytest.raises(AssertionError, match="unread"):
        recognized("unread", lambda x: x)


def test_an_operation_is_registered_once():
    with pytest.raises(AssertionError, match="reduce_sum"):
        registry.lowering_rule("reduce_sum")(None)
    assert named("eigh") == registry.Operation("eigh")


def test_an_equation_counts_its_largest_array_without_the_batch():
    product, total = jax.make_jaxpr(lambda x: (2 * x).sum(0))(jnp.ones((3, 4, 7))).eqns
    assert operation(total).reduces and not operation(product).reduces
    assert [elements(e, 7) for e in (product, total)] == [12, 12]
    assert elements(total) == 84
