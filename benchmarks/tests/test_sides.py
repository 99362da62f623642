"""A side is a real process: it answers, and its end is told."""

import sys

import pytest
from sides import BenchError, Side
from validation import problems


def test_a_side_that_ends_is_an_error(capfd):
    settings = {"backend": "spring", "loop": "vmap", "batch": 2, "length": 2}
    with pytest.raises(BenchError, match="ours ended with code 1 when asked to describe"):
        Side("ours", sys.executable, environment="no_such_environment", **settings)
    assert "no_such_environment" in capfd.readouterr().err


@pytest.mark.slow
def test_our_side_runs_and_its_result_counts():
    settings = {"backend": "spring", "loop": "vmap", "batch": 32, "length": 20}
    side = Side("ours", sys.executable, environment="ant", **settings)
    compiled = side.ask("compile")
    assert compiled.keys() == {"trace", "compile", "reset"}
    assert side.ask("run")["seconds"] > 0
    check, flight = side.ask("check"), side.ask("flight")
    side.close()
    assert len(check["heights"]) == 32
    assert len(flight["linear"]) == 20
    assert problems(check, flight) == []
