"""The list of mutants keeps up with the source that it is about."""

import ast

import mutants
import pytest

MUTANTS = mutants.read()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutants_place_and_test_are_there(name):
    mutant = MUTANTS[name]
    source = (mutants.SOURCE / mutant.file).read_text()
    assert source.count(mutant.right) == 1, "update mutants.toml, and run mutants.py"
    ast.parse(source.replace(mutant.right, mutant.wrong))
    path, _, test = mutant.test.partition("::")
    assert f"{test.partition('[')[0]}" in (mutants.TESTS / path).read_text()
