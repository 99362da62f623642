"""Every Python block of the documentation is valid Python, and runs.

Blocks of a page run in order, with the names of those before. A page that takes names for granted
has a script in `given/` that makes them. Other tests run the blocks of `RUN_ELSEWHERE`, and compare
excerpts of files with the files. A block that runs nowhere says why, in a comment of the page
before it: `<!-- not run: REASON -->`.
"""

import ast
import re
import subprocess
import sys
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

NOT_RUN = re.compile(r"<!-- not run: \w[^>]+ -->\s*\Z")
EXAMPLE = ROOT / "integration_tests/plugins/brax-example-plugin/src"
FILES = [
    path.read_text("utf-8")
    for folder in (EXAMPLE, ROOT / "docs/examples")
    for path in sorted(folder.rglob("*.py"))
]
RUN_ELSEWHERE = {
    # docs/tests/test_how_to.py
    "docs/choosing-a-pipeline.md": "",
    "docs/contacts-that-jitter-or-sink.md": "",
    "docs/nan.md": "",
    "README.md": "",  # docs/tests/test_readme.py runs all of it
    "docs/agents.md": "class Lamp(Env)",  # packages/brax-agents/tests/test_docs.py
}
SMALLER = {
    r"num_timesteps=[\d_]+": "num_timesteps=1",
    r"num_envs=\d+": "num_envs=8",
    r"batch_size=\d+": "batch_size=8",
    r"num_minibatches=\d+": "num_minibatches=1",
    r"episode_length=1000": "episode_length=20",
    r"num_evals=\d+": "num_evals=1",
}
"""Settings of training runs that take minutes; other tests show that they learn."""


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


def excerpt(code: str) -> bool:
    """Return True if a file of the examples has these lines, at any indentation."""
    lines = [line.strip() for line in code.strip().splitlines()]
    joined = "\n".join(lines)
    return any(joined in "\n".join(map(str.strip, text.splitlines())) for text in FILES)


def blocks(page: Path) -> list[str]:
    """Return the blocks of a page that this module runs."""
    text, name = page.read_text("utf-8"), str(page.relative_to(ROOT))
    found = []
    for block in BLOCK.finditer(text):
        code = source(block[2])
        elsewhere = name in RUN_ELSEWHERE and RUN_ELSEWHERE[name] in code
        if not (elsewhere or excerpt(code) or NOT_RUN.search(text[: block.start()])):
            found.append(code)
    return found


RUN = [page for page in PAGES if blocks(page)]


@pytest.mark.slow
@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    subject = page.stem if page.stem != "README" else page.parent.name
    given = Path(__file__).parent / "given" / f"{subject.replace('-', '_')}.py"
    if given.exists():
        exec(compile(given.read_text("utf-8"), str(given), "exec"), names)
    for code in blocks(page):
        if "num_timesteps" in code:
            for pattern, smaller in SMALLER.items():
                code = re.sub(pattern, smaller, code)
        if "jax_num_cpu_devices" in code:  # which a process can set only once
            subprocess.run([sys.executable, "-c", code], check=True)
        else:
            exec(compile(code, str(page), "exec"), names)


def test_a_comment_excuses_only_the_block_after_it(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run: no such card -->\n\n```python\na = 1\n```\n\n```python\nb = 2\n```\n"
    )
    assert blocks(page) == ["b = 2\n"]
