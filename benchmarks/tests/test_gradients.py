"""The oracles of gradients: one row, and that the page says what they find."""

import math

import pytest
from gradient_lab import Setup
from gradient_oracles import ORACLES, Row
from gradients import PAGE, cells, table, table_of, with_table

ROUNDING = 1e-7
"""Errors below are rounding, of the differences if not of the step."""


@pytest.mark.slow
def test_a_cheap_row():
    (oracle,) = [o for o in ORACLES if o.name == "a ball that slips"]
    rows = oracle.rows(Setup("spring"))
    assert [row.quantity for row in rows] == ["by speed", "by friction", "by gravity"]
    assert all(row.met for row in rows)


def test_a_table_goes_into_the_page_and_comes_out_again():
    rows = [Row("a", "b", "c", 0.5, 0.1), Row("d", "e", "f", 0.99, 0.95, more=True)]
    page = with_table("x <!-- oracles -->\nold\n<!-- end of oracles --> y", table(rows))
    assert table_of(page) == [cells(row) for row in rows]
    assert [row[-1] for row in table_of(page)] == ["**missed**", "met"]


def test_the_page_has_every_oracle_and_pipeline():
    listed = {(row[0], row[2]) for row in table_of(PAGE.read_text())}
    assert listed == {(o.name, str(setup)) for o in ORACLES for setup in o.setups}


def about(text):
    """Return the size of an error in a cell of the table, at least that of rounding."""
    error = math.inf if text == "never" else float(text)
    return max(error, ROUNDING)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("oracle", ORACLES, ids=lambda o: o.name)
def test_the_page_says_what_the_program_finds(oracle):
    listed = [row for row in table_of(PAGE.read_text()) if row[0] == oracle.name]
    found = [cells(row) for setup in oracle.setups for row in oracle.rows(setup)]
    assert [row[:3] + row[4:] for row in found] == [row[:3] + row[4:] for row in listed]
    for here, there in zip(found, listed, strict=True):
        assert about(here[3]) == pytest.approx(about(there[3]), rel=0.3)
