"""Installed distributions and their locations."""

import os
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

import pytest

import brax

OURS = ("brax-core", "brax-io", "brax-envs", "brax-agents")


def test_all_four_distributions_have_one_version():
    assert {metadata.version(name) for name in OURS} == {brax.__version__}


@pytest.mark.parametrize("module", ["brax", "brax.env", "brax.io", "brax.envs", "brax.training"])
def test_each_part_imports_by_itself(module):
    done = subprocess.run(
        [sys.executable, "-c", f"import {module}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_only_core_owns_the_package_itself():
    owners = [
        name
        for name in OURS
        if any(str(file) == "brax/__init__.py" for file in metadata.files(name) or ())
    ]
    if owners:  # an editable install lists no such files
        assert owners == ["brax-core"]


@pytest.mark.skipif(
    "BRAX_TEST_WHEELS" not in os.environ, reason="only hatch run wheels installs wheels"
)
def test_nothing_comes_from_the_source_tree():
    source = Path(os.environ["BRAX_SOURCE"]).resolve()
    assert [entry for entry in sys.path if Path(entry).resolve().is_relative_to(source)] == []
    for place in brax.__path__:
        assert "site-packages" in Path(place).parts


def test_types_are_shipped():
    assert resources.files("brax").joinpath("py.typed").is_file()


def test_the_command_is_there(brax):
    done = brax("--version")
    assert done.stdout.split()[-1] == metadata.version("brax-core"), done.stderr
