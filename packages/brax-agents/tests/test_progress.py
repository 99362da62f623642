"""Progress that a user sees while an agent trains."""

import io
import json
import math
import time
from typing import Any

import pytest
from rich.console import Console

from brax.training.loggers import MetricLoggers
from brax.training.loggers.jsonl import JsonLines
from brax.training.runner import progress as progress_module
from brax.training.runner.progress import Progress

EVALUATION: dict[str, Any] = {
    "eval/episode_reward": 1234.56,
    "eval/episode_reward_std": 7.0,
    "eval/avg_episode_length": 1000.0,
}


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def _shown(terminal, act, total=1000, title="ppo on ant"):
    out, clock = io.StringIO(), Clock()
    console = Console(file=out, force_terminal=terminal, width=100)
    with Progress(title, total, console, clock) as shown:
        act(shown, clock)
    return out.getvalue()


def test_lines_where_there_is_no_terminal():
    def act(shown, clock):
        shown.update(0, EVALUATION)
        clock.now = 61.0
        shown.update(250, {**EVALUATION, "training/sps": 50.0})

    first, second, third = _shown(False, act).splitlines()
    assert first == "ppo on ant: 1,000 steps; compiling, 0:00 elapsed"
    assert second.startswith("0 steps: return 1234.6 +- 7.0, length 1000; compiling")
    assert third.startswith("250 steps: return 1234.6")
    assert third.endswith("25%, 250 steps, 50 steps/s, 1:01 elapsed, 0:15 left")


def test_the_remaining_time_is_that_of_the_whole_run():
    def act(shown, clock):
        for now, steps, speed in [(10.0, 100, 50.0), (20.0, 300, 400.0), (30.0, 400, 1.0)]:
            clock.now = now
            shown.update(steps, {**EVALUATION, "training/sps": speed})

    # 300 steps in the 20 s from the first report to the last: 600 more take 40 s.
    assert _shown(False, act).endswith("40%, 400 steps, 1 steps/s, 0:30 elapsed, 0:40 left\n")


def test_only_what_a_trainer_reports_is_shown():
    def act(shown, clock):
        clock.now = 2.0
        shown.update(100, {"eval/episode_reward": 12.0})

    _, line = _shown(False, act).splitlines()
    assert line == "100 steps: return 12.0; 10%, 100 steps, 0:02 elapsed"
    first, line = _shown(False, act, total=0).splitlines()
    assert first == "ppo on ant: compiling, 0:00 elapsed"
    assert line == "100 steps: return 12.0; 100 steps, 0:02 elapsed"
    assert "100 steps, 0:02 elapsed" in _shown(True, act, total=0)


def test_a_resumed_run_compiles_after_its_first_report():
    out = io.StringIO()
    with Progress("ppo on ant", 1000, Console(file=out, width=100), Clock(), resumed=True) as shown:
        shown.update(250, EVALUATION)
        shown.update(500, EVALUATION)
    _, first, second = out.getvalue().splitlines()
    assert first.endswith("length 1000; compiling, 0:00 elapsed")
    assert second.endswith("length 1000; 50%, 500 steps, 0:00 elapsed")


def test_never_silent_for_long(monkeypatch):
    monkeypatch.setattr(progress_module, "STATUS_LINE_SECONDS", 0.1)
    out = io.StringIO()
    with Progress("ppo on ant", 1000, Console(file=out, width=100)):
        time.sleep(1.8)
    assert out.getvalue().count("compiling") >= 2


def test_a_table_in_a_terminal():
    def act(shown, clock):
        shown.update(500, {**EVALUATION, "training/sps": 50.0})

    text = _shown(True, act)
    assert "return" in text and "1234.6" in text and "50%" in text and "0:10 left" in text


def test_a_title_with_brackets_in_a_terminal():
    text = _shown(True, lambda shown, clock: None, title="ppo on ant, runs/[a]x[/b]")
    assert "ppo on ant, runs/[a]x[/b]" in text


def test_one_line_of_json_per_report(tmp_path):
    logger = JsonLines(tmp_path)
    logger.write(10, {"a": 1.5})
    logger.write(20, {"a": math.nan, "b": math.inf})
    logger.close()
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert lines == [{"step": 10, "a": 1.5}, {"step": 20, "a": None, "b": None}]


def test_a_logger_that_fails_is_left_out_and_the_others_go_on(tmp_path, monkeypatch):
    class Broken:
        def __init__(self, run_dir):
            pass

        def write(self, step, metrics):
            raise ConnectionError("no server")

        def close(self):
            raise AssertionError("was left out")

    kinds = {"broken": Broken, "jsonl": JsonLines}
    monkeypatch.setattr("brax.plugins.names", lambda kind: list(kinds))
    monkeypatch.setattr("brax.plugins.get", lambda kind, name: kinds[name])
    loggers = MetricLoggers(tmp_path)
    with pytest.warns(UserWarning, match="'broken' is left out: ConnectionError: no server"):
        loggers.write(1, {"a": 1.0})
    loggers.write(2, {"a": 2.0})
    loggers.close()
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2


def test_a_pipe_in_a_notebook_gets_lines(monkeypatch, capsys):
    """Jupyter sets this variable for the commands that a cell runs."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Progress("ppo on ant", 1000) as shown:
        shown.update(500, {"eval/episode_reward": 2.0})
    out = capsys.readouterr().out
    assert "500 steps: return 2.0" in out and "\x1b[" not in out
