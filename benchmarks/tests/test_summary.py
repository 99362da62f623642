"""Ratios and medians, from made-up seconds."""

import pytest
from summary import OURS, PEER, rows, summarize

REPORT = {
    "batch": 100,
    "length": 10,
    "sides": {
        OURS: {
            "compile": [{"trace": 1.0, "compile": 2.0}, {"trace": 1.0, "compile": 4.0}],
            "run": [{"seconds": 1.0}, {"seconds": 2.0}, {"seconds": 4.0}],
        },
        PEER: {
            "compile": [{"trace": 4.0, "compile": 2.0}, {"trace": 4.0, "compile": 6.0}],
            "run": [{"seconds": 6.0}, {"seconds": 20.0}, {"seconds": 8.0}],
        },
    },
}


def test_each_round_is_compared_with_the_same_round_of_the_peer():
    ours = summarize(REPORT)[OURS]
    assert ours["steps_per_second"] == [1000, 500, 250]
    assert ours["speed_ratio"] == 6  # of 6, 10 and 2
    assert ours["compile_seconds"] == 4
    assert ours["compile_ratio"] == 0.5  # of 0.5 and 0.5


def test_the_peer_is_itself():
    peer = summarize(REPORT)[PEER]
    assert (peer["speed_ratio"], peer["compile_ratio"]) == (1, 1)


def test_a_missing_round_is_no_comparison():
    sides = {**REPORT["sides"], OURS: {**REPORT["sides"][OURS], "run": [{"seconds": 1.0}]}}
    with pytest.raises(ValueError, match="zip"):
        summarize({**REPORT, "sides": sides})


def test_the_table_has_a_row_for_each_side():
    first, second = rows(REPORT)
    assert first == ("brax", "500", "250 to 1,000", "6.00 x", "4.0", "0.50 x")
    assert second[0] == PEER
