"""The page for those who come from Google's brax names what is gone, and what is there."""

import importlib
import re
from pathlib import Path

import pytest

from brax import plugins
from brax.training._removed import INSTEAD
from brax.training.agents.es.config import ESConfig

PAGE = (Path(__file__).parents[1] / "from-google.md").read_text()
ROWS = [re.fullmatch(r"\| (.*) \| (.*) \|", line) for line in PAGE.splitlines()]
SIDES = list(zip(*(row.groups() for row in ROWS if row and "`" in row[1]), strict=True))
NAME = r"`(brax(?:\.\w+)+)`"
GONE = re.findall(NAME, " ".join(SIDES[0]))
THERE = re.findall(NAME, re.sub(r"\| `brax.*? \|", "|", PAGE))


def find(name):
    """Return the module, or the object in a module, of this name; None if there is none."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("brax"):
                continue
            pytest.skip(f"{name} needs {error.name}")
        for part in parts[n:]:
            try:
                found = getattr(found, part, None)
            except ImportError:  # of a removed name: it says what to write instead
                return None
        return found
    return None


@pytest.mark.parametrize("name", GONE)
def test_what_is_said_to_be_gone_is(name):
    assert find(name) is None


@pytest.mark.parametrize("name", THERE)
def test_what_is_said_to_be_there_is(name):
    assert find(name) is not None


def test_the_tables_are_read():
    assert len(GONE) > 15 and len(THERE) > 30 and not set(GONE) & set(THERE)


@pytest.mark.parametrize("name", [name for name in GONE if name.startswith("brax.training.")])
def test_the_import_of_a_removed_name_says_what_to_write_instead(name):
    module, _, last = name.rpartition(".")
    with pytest.raises(ImportError, match=rf"^{re.escape(name)} of Google's brax is not here: \w"):
        exec(f"from {module} import {last}")


@pytest.mark.parametrize("name", INSTEAD)
def test_the_error_and_the_table_give_the_same_replacement(name):
    cell = next(right for left, right in zip(*SIDES, strict=True) if f"`{name}`" in left)
    # Words with an underscore, and names of classes.
    for word in re.findall(r"[a-z]+(?:_[a-z]+)+|(?:[A-Z][a-z]+){2,}", INSTEAD[name]):
        assert word in cell


def test_only_names_of_the_tables_are_explained():
    assert set(INSTEAD) <= set(GONE)
    with pytest.raises(ImportError, match="cannot import name 'no_such_name'"):
        exec("from brax.training.networks import no_such_name")


@pytest.mark.parametrize("name", ["spring", "positional", "generalized"])
def test_a_pipelines_module_has_its_functions(name):
    module, pipeline = find(f"brax.{name}.pipeline"), plugins.get("pipeline", name)
    assert (module.init, module.step) == (pipeline.init, pipeline.step)


def test_the_ways_of_fitness_have_these_names():
    words = ESConfig.__dataclass_fields__["fitness_shaping"].metadata["words"]
    assert {"centered_rank", "wierstra"} <= set(words)
