"""Every Python block of the documentation is valid Python."""

import ast
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/*.md", "packages/*/*.md", "integration_tests/plugins/*/*.md")
    for page in ROOT.glob(pattern)
)
BLOCK = re.compile(r"^( *)```(?:python|py|pycon)\b[^\n]*\n(.*?)^ *```", re.S | re.M)


def source(block: str) -> str:
    """Return a block at the margin: an excerpt of a file is indented below the file's name."""
    return textwrap.dedent(re.sub(r"\A# \S+\.py\n", "", textwrap.dedent(block)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_parse(page):
    text = page.read_text("utf-8")
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start(2))
        # Empty lines in front, so that a SyntaxError names the line of the page.
        ast.parse("\n" * line + source(found[2]), str(page))


def test_the_pages_are_found():
    """A wrong pattern would pass without reading anything."""
    with_blocks = [page.name for page in PAGES if BLOCK.search(page.read_text("utf-8"))]
    assert {"README.md", "training.md", "plugins.md"} <= set(with_blocks)


@pytest.mark.parametrize("block", ["import jax import numpy\n", "class A: pass\n    b = 1\n"])
def test_a_broken_block_is_found(block):
    with pytest.raises(SyntaxError):
        ast.parse(source(block))
