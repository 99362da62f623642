"""The commands of the documentation exist with their options; its TOML and XML can be read."""

import re
import shlex
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest

from brax.cli import root

ROOT = Path(__file__).parents[2]
PAGES = [p for g in ("*.md", "docs/*.md", "packages/*/README.md") for p in sorted(ROOT.glob(g))]
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```", re.S | re.M)
HATCH = tomllib.loads((ROOT / "hatch.toml").read_text("utf-8"))["envs"]


def blocks(*languages):
    """Return the page and the text of every block in these languages."""
    return [
        pytest.param(block[3], id=f"{page.relative_to(ROOT)}-{i}")
        for page in PAGES
        for i, block in enumerate(BLOCK.finditer(page.read_text("utf-8")))
        if block[2] in languages
    ]


def commands(block, program):
    """Return the words after a program, for each line of a block that calls it."""
    lines = block.replace("\\\n", " ").splitlines()
    called = [re.match(rf"(?:\w+=\S+ +)*{program} +(.*)", line) for line in lines]
    return [shlex.split(found[1], comments=True) for found in called if found]


@pytest.mark.parametrize("block", blocks("sh", "bash"))
def test_commands_exist_with_their_options(block):
    for words in commands(block, "brax"):
        command: click.Command = root
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            word = words.pop(0)
            found = command.get_command(click.Context(command), word)
            assert found is not None, word
            command = found
        known = {option for param in command.params for option in param.opts}
        assert {w.partition("=")[0] for w in words if w.startswith("--")} <= known | {
            "--debug",
            "--help",
        }


@pytest.mark.parametrize("block", blocks("sh", "bash"))
def test_scripts_of_hatch_exist(block):
    for words in commands(block, "hatch run"):
        name = next(word for word in words if not word.startswith("-"))
        environment, _, script = name.rpartition(":")
        scripts = HATCH[environment.partition(".")[0] or "default"].get("scripts", {})
        assert script in {**HATCH["default"]["scripts"], **scripts}


@pytest.mark.parametrize("block", blocks("toml"))
def test_toml_can_be_read(block):
    assert tomllib.loads(block)


@pytest.mark.parametrize("block", blocks("xml"))
def test_xml_can_be_read(block):
    assert len(ElementTree.fromstring(f"<all>{block}</all>"))


def test_the_blocks_are_found():
    assert len(blocks("sh", "bash")) > 12
    assert sum(len(commands(p.values[0], "brax")) for p in blocks("sh", "bash")) > 25
    assert blocks("toml") and blocks("xml")
