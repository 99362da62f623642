"""Ratios, medians and tables, from made-up seconds."""

from typing import Any

import pytest
from cells import MUJOCO, OURS, PEER
from summary import summarize, tables


def side(compiles, runs):
    return {
        "compile": [{"trace": 1.0, "compile": c - 1.0} for c in compiles],
        "run": [{"seconds": s, "cores": c} for s, c in runs],
    }


CELL: dict[str, Any] = {
    "batch": 100,
    "length": 10,
    "sides": {
        OURS: side([3.0, 5.0], [(1.0, 1.0), (2.0, 2.0), (4.0, 4.0)]),
        PEER: side([6.0, 10.0], [(6.0, 12.0), (20.0, 30.0), (8.0, 16.0)]),
    },
}


def test_each_round_is_compared_with_the_same_round_of_the_peer():
    found = summarize(CELL)
    assert found[OURS]["speed"] == 500
    assert found[OURS]["compile"] == 4
    assert found[PEER]["faster"] == 6  # of 6, 10 and 2
    assert found[PEER]["cheaper"] == 12  # of 12, 15 and 4
    assert found[PEER]["compiles"] == 0.5


def test_a_side_that_compiles_nothing_has_no_ratio():
    peer = CELL["sides"][PEER] | {"compile": [{"trace": 0.0, "compile": 0.0}] * 2}
    found = summarize({**CELL, "sides": {**CELL["sides"], PEER: peer}})
    assert found[PEER]["compiles"] is None


def test_a_missing_round_is_no_comparison():
    sides = {**CELL["sides"], PEER: side([6.0, 10.0], [(1.0, 1.0)])}
    with pytest.raises(ValueError, match="zip"):
        summarize({**CELL, "sides": sides})


def test_tables_have_a_row_for_each_cell_and_its_failure():
    alone = {**CELL, "sides": {OURS: CELL["sides"][OURS]}}
    memory = {"batch": 65536, "temporary": 2**29, "arguments": 2**28, "results": 2**28}
    report = {
        "cells": {
            "peer/ant/spring/random": CELL,
            "peer/ant/positional/random": {"failed": "not valid"},
            "peer/humanoid/spring/random": {"skipped": "no model"},
            "peer/ant/generalized/random": alone,
            "memory/spring": memory,
            "batch/spring/100": alone,
        }
    }
    found = {title: (header, rows) for title, header, rows in tables(report)}
    assert list(found) == ["Against Google's brax", "Memory of a compiled step, ant", "Batch, ant"]
    header, rows = found["Against Google's brax"]
    assert {len(row) for row in rows} == {len(header)}
    given = ("ant", "spring", "random")
    assert rows[0] == (*given, "500", "125", "6.00 x", "12.00 x", "4.0", "8.0", "0.50 x")
    assert rows[1][:4] == ("ant", "positional", "random", "not valid")
    assert rows[2][3:] == ("500", "", "", "", "4.0", "", "")
    assert found["Memory of a compiled step, ant"][1] == [("spring", "65,536", "512.0", "256.0")]
    assert found["Batch, ant"][1] == [("spring", "100", "500", "4.0")]


def answers(*starts, speed):
    """Trainings that report at first, then every 10 s from a start on, the first epoch slower."""
    return [
        [{"seconds": 1.0, "speed": 0.0}]
        + [{"seconds": s + 10.0 * i, "speed": speed / (1 if i else 7)} for i in range(4)]
        for s in starts
    ]


def test_a_training_is_fast_after_its_first_epoch_and_that_tells_what_comes_before():
    sides = {
        OURS: {"answers": answers(15.0, 19.0, speed=600.0)},
        PEER: {"answers": answers(40.0, 40.0, speed=200.0)},
    }
    report = {"cells": {"training/ant/spring/small": {"sides": sides}}}
    ((_, header, rows),) = tables(report)
    given = ("ant", "spring", "small")
    # Before training 15 - 10 = 5 s and 9 s, of 30 s.
    assert rows == [(*given, "600", "200", "3.00 x", "7.0", "30.0", "0.23 x")]
    assert len(header) == len(rows[0])
    del sides[PEER]
    ((_, header, rows),) = tables(report)
    assert rows == [(*given, "600", "", "", "7.0", "", "")]


def steps(settled, falling):
    """One measurement: seconds of 100 steps, on one core."""
    return {
        kind: {"steps": 100, "seconds": s, "cores": 2 * s}
        for kind, s in (("settled", settled), ("falling", falling))
    }


def test_models_have_a_ratio_for_settled_and_for_falling_states():
    ours = {"compile": [{"trace": 1.0, "compile": 2.5}], "load": 0.25}
    ours["run"] = [steps(1.0, 0.5), steps(2.0, 1.0), steps(4.0, 2.0)]
    theirs = {"dofs": 9, "contacts": {"settled": 2.04, "falling": 0.0}}
    theirs["run"] = [steps(3.0, 2.5), steps(6.0, 5.0), steps(4.0, 2.0)]
    cell = {"length": 20, "batch": 0, "sides": {OURS: ours, MUJOCO: theirs}}
    ((title, header, (row,)),) = tables({"cells": {"models/cheetah": cell}})
    assert title == "Against MuJoCo C, models as people have them"
    assert len(header) == len(row)
    assert row[:5] == ("cheetah", "9", "2.0, 0.0", "50", "25")
    assert row[5:] == ("3.00 x", "3.00 x", "5.00 x", "5.00 x", "", "", "3.5", "0.2")


def test_models_with_a_policy_have_a_ratio_for_it():
    run = {"steps": 100, "seconds": 1.0, "cores": 2.0}
    kinds = ("settled", "falling", "trained")
    ours = {"compile": [{"trace": 1.0, "compile": 2.5}], "load": 0.25}
    ours["run"] = [dict.fromkeys(kinds, run)]
    theirs = {"dofs": 9, "contacts": {"settled": 2.04, "falling": 0.0, "trained": 1.5}}
    theirs["run"] = [{**dict.fromkeys(kinds, run), "trained": {**run, "seconds": 4.0}}]
    cell = {"length": 20, "batch": 0, "sides": {OURS: ours, MUJOCO: theirs}}
    ((_, header, (row,)),) = tables({"cells": {"models/cheetah": cell}})
    assert row[header.index("contacts: settled, falling, trained")] == "2.0, 0.0, 1.5"
    assert row[header.index("trained: faster")] == "4.00 x"
