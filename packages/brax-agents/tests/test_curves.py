"""`brax plot`: what is read from runs, the mean and interval over seeds, and what is drawn."""

import json

import numpy as np
import pytest

from brax import cli
from brax.errors import ConfigError
from brax.training.analysis import curves

METRIC = "eval/episode_reward"


@pytest.fixture
def run(tmp_path):
    """Make a run's folder with reports in it."""

    def make(name, reports, environment="ant", env=(), **config):
        folder = tmp_path / name
        folder.mkdir()
        record = {"environment": environment, "environment_kwargs": dict(env), "trainer": "ppo"}
        (folder / "run.json").write_text(json.dumps(record | {"config": config, "versions": {}}))
        lines = [json.dumps({"step": step, METRIC: value}) + "\n" for step, value in reports]
        (folder / "metrics.jsonl").write_text("".join(lines))
        return folder

    return make


def test_the_mean_and_the_interval_are_student_s():
    """The 97.5 % points of t with two and one degrees of freedom are 4.30265 and 12.7062."""
    steps = np.array([0, 10])
    three = [(steps, np.array([value, 7.0])) for value in (1.0, 2.0, 3.0)]
    found = curves.curve("", three)
    np.testing.assert_allclose(found.mean, [2, 7])
    np.testing.assert_allclose(found.half_width, [4.30265 / np.sqrt(3), 0], rtol=1e-5)
    found = curves.curve("", three[:2])
    np.testing.assert_allclose(found.half_width[0], 12.7062 * np.sqrt(0.5) / np.sqrt(2), rtol=1e-5)
    assert np.isnan(curves.curve("", three[:1]).half_width).all()


def test_runs_of_other_steps_are_joined_where_all_have_values():
    """One line is x from 0 to 10, the other 10 x from 2 to 6."""
    series = [
        (np.array([0, 10]), np.array([0.0, 10.0])),
        (np.array([2, 6]), np.array([20.0, 60.0])),
    ]
    found = curves.curve("", series)
    np.testing.assert_array_equal(found.steps, [2, 6])
    np.testing.assert_allclose(found.mean, [11, 33])
    apart = curves.curve("", [series[0], (np.array([20, 30]), np.zeros(2))])
    assert len(apart.steps) == len(apart.mean) == 0


@pytest.mark.parametrize("line", ["[1]", '{"a": 1}', '{"step": 1, "a": "x"}', "{", "7"])
def test_a_line_that_is_no_report_is_named(run, line):
    folder = run("a", [(0, 1.0), (10, 2.0)])
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(
        ConfigError, match=r"metrics.jsonl', line 3 cannot be read: expected a report, such as {"
    ):
        curves.read(folder, METRIC)


@pytest.mark.parametrize("change", [{"config": 5}, {"environment_kwargs": [1]}, {"more": 1}])
def test_a_record_that_is_none_is_named(run, change):
    path = run("a", [(0, 1.0)]) / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ConfigError, match=r"run.json'( cannot be read|: \w+ must be a table)"):
        curves.curves([path.parent], METRIC)


def test_only_seeds_are_joined(run):
    short = [(0, 1.0), (10, 2.0)]
    folders = [run(f"a{seed}", short, seed=seed, learning_rate=0.1) for seed in range(2)]
    folders += [run("b", short, seed=0, learning_rate=0.2, num_timesteps=5)]
    folders += [run("c", short, seed=0, learning_rate=0.1, env={"gravity": 1})]
    found = curves.curves([*folders, folders[0]], METRIC)
    assert [(curve.label, len(curve.runs)) for curve in found] == [
        ("ant, ppo, learning_rate=0.1", 2),
        ("ant, ppo, learning_rate=0.2", 1),
        ("ant, ppo, learning_rate=0.1, env.gravity=1", 1),
    ]


def test_what_was_reported_twice_or_cut_off_counts_once(run):
    """A run that was resumed at 10 reported 20 again; a crash cut the last line off."""
    folder = run("a", [(0, 1.0), (10, 2.0), (20, 3.0), (10, 4.0), (20, None), (30, 6.0)])
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 40, "eval/epi')
    steps, values = curves.read(folder, METRIC)
    assert steps.tolist() == [0, 10, 30]
    assert values.tolist() == [1.0, 4.0, 6.0]


def test_an_unknown_metric_is_answered_with_the_nearest(run):
    folder = run("a", [(0, 1.0)])
    with pytest.raises(ConfigError, match=r"It has: eval/episode_reward\. Did you mean 'eval/epi"):
        curves.read(folder, "episode_reward")
    (folder / "metrics.jsonl").write_text("{]\n")
    with pytest.raises(ConfigError, match="cannot be read"):
        curves.read(folder, METRIC)


def test_the_command_writes_a_picture_and_a_page(run, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    folders = [run(f"a{seed}", [(0, 1.0), (10, 2.0 + seed)], "<b>", seed=seed) for seed in (0, 1)]
    assert cli.main(["plot", *map(str, folders)]) == 0
    assert capsys.readouterr().out.split() == ["curves.png", "curves.html"]
    from PIL import Image

    pixels = np.asarray(Image.open("curves.png").convert("RGB")).astype(int)
    blue = (pixels[..., 2] - pixels[..., 0] > 60).mean()
    assert pixels.shape == (675, 1200, 3)
    assert 0.001 < blue < 0.9
    page = (tmp_path / "curves.html").read_text()
    assert "<td>&lt;b&gt;, ppo</td><td>2</td><td>10</td><td>2.5</td>" in page
    assert "<b>" not in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--output", "a.jpg"], "curves are written to .png, .svg, .html"),
        (["--metric", "reward"], "has no numbers of 'reward'"),
        (["--output", "no/a.png"], "cannot write 'no/a.png'"),
    ],
)
def test_the_command_refuses_in_one_line(run, capsys, arguments, said):
    pytest.importorskip("matplotlib")
    assert cli.main(["plot", str(run("a", [(0, 1.0)])), *arguments]) == 2
    assert said in capsys.readouterr().err
