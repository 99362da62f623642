"""docs/learning.md says what the stored curves say, and these are of the recipes as they are."""

import json
import shlex
import tomllib

import learning
import learning_page
import pytest
from click.testing import CliRunner

from brax import plugins
from brax.training.runner.presets import STORED_RETURNS, best_trainer

REPORTS = learning_page.load(learning.RESULTS)
IDLE = learning_page.load(learning.RESULTS / "idle")


def test_the_page_and_the_packaged_returns_are_what_the_curves_make_of_them():
    assert learning_page.PAGE.read_text() == learning_page.text(REPORTS, IDLE)
    assert STORED_RETURNS.read_text() == learning_page.returns(REPORTS)


@pytest.mark.parametrize("name", REPORTS)
def test_a_curve_is_of_the_recipe_as_it_is(name):
    report = REPORTS[name]
    asked = shlex.split(report["command"])
    preset = learning_page.preset(report)
    best = best_trainer(report["environment"], preset)
    trainer = asked[asked.index("--trainer") + 1] if "--trainer" in asked else best
    presets = plugins.get("trainer", trainer).presets
    recipe = dict((presets["any"] | presets.get(report["environment"], {}))[preset])
    recipe.pop("seed", None)
    assert (report["trainer"], report["settings"]) == (trainer, recipe)
    assert len(report["returns"]) == len(report["seeds"]) >= 3
    # A preset with a return that suffices may end earlier.
    assert report["steps"][-1] >= recipe["num_timesteps"] or "stop_at_reward" in recipe
    assert "dirty" not in report["commit"]


@pytest.mark.parametrize("name", IDLE)
def test_a_run_alone_has_the_recipe_of_the_curves(name):
    alone, report = IDLE[name], REPORTS[name]
    assert alone["settings"] == report["settings"]
    assert alone["seeds"] == report["seeds"][:1] and alone["machine"]["cores"] == 2
    assert alone["load"] < 2 and "dirty" not in alone["commit"]


def test_each_recipe_of_an_environment_has_its_row_and_its_returns():
    short = REPORTS["swimmer"]
    command = "brax train swimmer --preset record"
    longer = short | {"command": command, "returns": [[1.0, 350.0], [2.0, 360.0], [3.0, 370.0]]}
    reports = {"swimmer": short, "swimmer_record": longer}
    text = learning_page.text(reports, {"swimmer": {"seconds": [33.4]}})
    rows = [line for line in text.splitlines() if "| `swimmer` |" in line]
    assert [row.split(" | ")[1] for row in rows] == [f"`{short['command']}`", f"`{command}`"]
    assert rows[1].split(" | ")[6:8] == ["301", "360"]
    assert [row.split(" | ")[-1] for row in rows] == ["33 |", " |"]
    stopped = short | {"ended": [3_000_000, 1_000_000, 2_000_000]}
    text = learning_page.text({"a": stopped}, {})
    (row,) = (line for line in text.splitlines() if "| `swimmer` |" in line)
    assert row.split(" | ")[3] == "1,000,000 to 3,000,000"
    found = tomllib.loads(learning_page.returns(reports))
    assert found["record"] == {"swimmer": {"reppo": [350.0, 360.0, 370.0]}}
    assert found["cpu"] == {"swimmer": {"reppo": [series[-1] for series in short["returns"]]}}


def test_runs_become_a_report(tmp_path):
    for seed in (0, 1):
        folder = tmp_path / f"seed{seed}"
        folder.mkdir()
        record = {"environment": "ur5e", "environment_kwargs": {}, "trainer": "ppo"}
        asked = record | {"config": {"seed": seed, "num_envs": 8}, "versions": {}}
        (folder / "run.json").write_text(json.dumps(asked))
        more = {"eval/episode_x_velocity": 30.0 + seed, "eval/avg_episode_length": 20.0}
        # Grasp has a reward of this name too, and no object that ends at a goal.
        more |= {"eval/episode_reward_hit": 4.0, "eval/episode_reward_near": 1.0}
        times = (0, 10, 20)[: 3 - seed]
        lines = [{"step": step, learning.METRIC: seed + step / 3, **more} for step in times]
        lines.append({"step": times[-1], "training/walltime": 1.0})
        (folder / "metrics.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    found = learning.learned([tmp_path / "seed0", tmp_path / "seed1"])
    assert found == {
        "trainer": "ppo",
        "settings": {"num_envs": 8},
        "steps": [0, 10, 20],
        "ended": [20, 10],
        "returns": [[0.0, 3.33333, 6.66667], [1.0, 4.33333, 4.33333]],
        "seen": [{"speed": 1.5, "targets": 4.0}, {"speed": 1.55, "targets": 4.0}],
    }


def test_what_fails_in_a_later_seed_leaves_the_report_of_those_before(tmp_path, monkeypatch):
    def timed(command):
        if "11" in command:
            raise OSError("no space left")
        return 2.0, 1.0

    monkeypatch.setattr(learning, "RESULTS", tmp_path / "learning")
    monkeypatch.setattr(learning, "timed", timed)
    monkeypatch.setattr(learning, "learned", lambda found: {"settings": {}, "runs": len(found)})
    monkeypatch.setattr(learning, "random_return", lambda env, settings: 0.0)
    done = CliRunner().invoke(learning.main, ["train", "fast", "--seeds", "3"])
    assert isinstance(done.exception, OSError)
    report = json.loads((tmp_path / "learning" / "fast.json").read_text())
    assert (report["seeds"], report["seconds"], report["runs"]) == ([10], [2.0], 1)


def test_a_picture_has_a_panel_for_each_environment(tmp_path):
    report = {"steps": [0, 10], "returns": [[0.0, 1.0], [0.0, 2.0]], "random": 0.5}
    more = {"environment": "swimmer", "cpu_seconds": [60.0, 180.0]}
    learning_page.draw({f"e{i}": report | more for i in range(5)}, tmp_path / "a.png")
    from PIL import Image

    assert Image.open(tmp_path / "a.png").size == (1200, 495)
