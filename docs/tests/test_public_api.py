"""The public names of the four packages are those of `docs/public-api.txt`."""

import ast
import difflib
import importlib
import re
from pathlib import PurePosixPath

import public_api
import pytest


def test_the_public_names_are_those_of_the_snapshot():
    kept, now = public_api.PAGE.read_text("utf-8").splitlines(), public_api.page().splitlines()
    changes = list(difflib.unified_diff(kept, now, lineterm="", n=0))[2:]
    if changes:
        pytest.fail(
            "The public API is not that of docs/public-api.txt: run `hatch run public-api`, and "
            "say in the CHANGELOG.md of the package what changes for users.\n" + "\n".join(changes),
            pytrace=False,
        )


def test_every_pattern_of_modules_names_one():
    found = [PurePosixPath(name.replace(".", "/")) for name in public_api.public_modules()]
    for pattern in public_api.MODULES:
        assert any(path.match(pattern) for path in found), pattern
    assert PurePosixPath("brax/training/agents/ppo/train") in found
    assert not [path for path in found if "losses" in path.parts]


@pytest.mark.parametrize(
    "module", ["brax", "brax.base", "brax.envs.api", "brax.training.types", "brax.training.acting"]
)
def test_what_is_read_from_the_source_is_what_the_module_has(module):
    names = public_api.public_names(module)
    assert names
    assert [name for name in names if not hasattr(importlib.import_module(module), name)] == []


def test_a_change_of_a_signature_changes_the_line():
    (line,) = public_api.lines("f", _parse("def f(a, *, b: int = 1) -> str: ..."))
    assert line == "def f(a, *, b: int=1) -> str"
    found = [
        *public_api.lines(
            "A", _parse("class A(B):\n x: int = 1\n _y: int\n def _f(self): ..."), "brax.errors"
        )
    ]
    assert found == ["class A(B)", "    x: int = 1"]


def test_a_class_has_the_methods_of_bases_that_are_not_public():
    """The methods of a model's description are in a base class, which users do not import."""
    text = public_api.PAGE.read_text("utf-8")
    builder = re.search(r"^class ModelBuilder\(.*\n((?:    .*\n)+)", text, re.M)
    assert builder
    names = re.findall(r"def (\w+)", builder[1])
    assert {"add_body", "add_joint", "add_tendon", "build"} <= set(names)
    assert len(names) == len(set(names))
    assert (
        "    def replace" not in text.partition("class Transform(Base)")[2].partition("class ")[0]
    )


def _parse(text):
    return ast.parse(text).body[0]
