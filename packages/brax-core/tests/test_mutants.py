"""The lists of mutants keep up with the sources that they are about."""

import ast

import mutants
import pytest

MUTANTS = mutants.read()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutants_place_and_test_are_there(name):
    mutant = MUTANTS[name]
    ast.parse(mutant.applied)  # which a place that is gone makes fail: update, and run mutants.py
    path, _, test = mutant.test.partition("::")
    assert f"{test.partition('[')[0]}" in (mutant.tests / path).read_text()
