"""The metric loggers beside JSON lines: a table, TensorBoard, Weights & Biases."""

import csv
import json
import math
import time

import pytest

from brax import plugins
from brax.training.loggers import wandb
from brax.training.loggers.csv import CsvTable
from brax.training.loggers.jsonl import JsonLines


def rows(folder):
    with (folder / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_gets_a_column_for_each_new_metric(tmp_path):
    logger = CsvTable(tmp_path)
    logger.write(10, {"reward": 1.5})
    logger.write(20, {"loss, total": math.nan})
    logger.close()
    assert rows(tmp_path) == [
        {"step": "10", "reward": "1.5", "loss, total": ""},
        {"step": "20", "reward": "", "loss, total": "nan"},
    ]


def test_a_resumed_run_goes_on_with_its_table(tmp_path):
    for step in (10, 20):
        logger = CsvTable(tmp_path)
        logger.write(step, {"reward": step / 10, f"new {step}": 0.0})
        logger.close()
    assert [row["reward"] for row in rows(tmp_path)] == ["1.0", "2.0"]
    assert [row["new 20"] for row in rows(tmp_path)] == ["", "0.0"]
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.csv"]


@pytest.mark.parametrize("logger", [CsvTable, JsonLines])
def test_a_line_that_a_full_disk_cut_off_does_not_spoil_the_next(logger, tmp_path):
    def write(step):
        kept = logger(tmp_path)
        kept.write(step, {"reward": step / 10})
        kept.close()

    write(10)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    write(20)
    both = path.read_bytes()
    for cut in range(len(whole), len(both)):
        path.write_bytes(both[:cut])
        write(20)
        assert path.read_bytes() == both


def test_an_empty_table_is_begun_anew(tmp_path):
    (tmp_path / "metrics.csv").touch()
    logger = CsvTable(tmp_path)
    logger.write(10, {"reward": 1.5})
    logger.close()
    assert rows(tmp_path) == [{"step": "10", "reward": "1.5"}]


def test_both_files_are_always_written():
    assert {"csv", "jsonl"} <= set(plugins.names("metric_logger"))


def test_wandb_is_not_asked_for_where_it_is_switched_off(monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert not wandb.wanted()
    monkeypatch.delenv("WANDB_MODE")
    assert wandb.wanted()


@pytest.mark.slow
def test_wandb_keeps_a_run_on_the_disk(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")  # nothing may be asked of a server
    (tmp_path / "run.json").write_text(json.dumps({"environment": "a-world-of-its-own"}))
    logger = wandb.WeightsAndBiases(tmp_path)
    logger.write(10, {"eval/episode_reward": 1.5})
    logger.write(20, {"eval/episode_reward": 2.5})
    logger.close()
    (kept,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    # wandb's own process closes the file a moment after `finish` has returned.
    late = time.monotonic() + 60
    while (content := kept.read_bytes()).count(b"eval/episode_reward") < 2:
        assert time.monotonic() < late, content
        time.sleep(0.1)
    assert b"a-world-of-its-own" in content
