"""A side is a real process: it answers, and its end is told."""

import sys
from contextlib import closing
from typing import Any

import models
import pytest
import run
from cells import POLICY
from click.testing import CliRunner
from sides import BenchError, Side
from validation import problems

ANT: dict[str, Any] = {"model": models.ant("spring"), "backend": "spring", "batch": 32}


@pytest.mark.slow
def test_a_side_that_ends_is_an_error(capfd):
    settings = ANT | {"backend": "no_such_pipeline"}
    with pytest.raises(BenchError, match="ours ended with code 1 when asked to describe"):
        Side("ours", sys.executable, settings)
    assert "no_such_pipeline" in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("policy", [None, POLICY])
def test_our_side_runs_and_its_result_counts(policy):
    with closing(Side("ours", sys.executable, ANT | {"policy": policy})) as side:
        compiled = side.ask("compile")
        assert compiled.keys() == {"trace", "compile", "reset", "cores"}
        assert side.ask("run", length=20)["seconds"] > 0
        check, flight = side.ask("check"), side.ask("flight")
    assert len(check["heights"]) == 32
    assert len(flight["linear"]) == 20
    assert problems(check, ANT["model"]["limits"], flight) == []
    assert (check["forward"] > 0.5) == bool(policy)  # m in a second; at random it stays


@pytest.mark.slow
@pytest.mark.parametrize("policy", [None, POLICY])
def test_mujoco_is_a_side(policy):
    settings = {"model": models.ant("generalized"), "batch": 64, "threads": 2, "policy": policy}
    with closing(Side("mujoco", sys.executable, settings, "mujoco_worker.py")) as side:
        assert side.about["threads"] == 2
        assert side.ask("run", length=40)["seconds"] > 0
        check = side.ask("check")
    assert problems(check, settings["model"]["limits"]) == []
    assert (check["forward"] > 0.5) == bool(policy)


def test_an_environment_that_cannot_be_made_is_one_sentence(monkeypatch):
    def none():
        raise BenchError("uv is not installed")

    monkeypatch.setattr(run, "newest_python", none)
    ended = CliRunner().invoke(
        run.main, ["--quick", "--only", "versions/ant", "--peer-python", "p", "--models", "m"]
    )
    assert (ended.exit_code, ended.output) == (1, "Error: uv is not installed\n")
