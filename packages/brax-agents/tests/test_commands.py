"""brax train and brax resume, as a user types them."""

import json
import os
import signal
import types
from pathlib import Path
from typing import Any, ClassVar

import click
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import SMALL, STEP, Point

from brax import cli, plugins
from brax.builder import ModelBuilder
from brax.env import Randomization, Range
from brax.plugins import Spec, hookimpl
from brax.training.agents.ppo import PPO
from brax.training.checkpoints import checkpoint, run_directory
from brax.training.checkpoints.policies import load_run_policy
from brax.training.cli.execution import total_steps
from brax.training.cli.run_settings import parse_changes, prepare_run
from brax.training.config import evaluated_steps
from brax.training.distributed import hosts
from brax.training.runner import presets
from brax.training.runner.acting import over_batch

RUN = Path("runs/a")


class Interrupter:
    """A metric logger that presses Ctrl-C at a step."""

    at: ClassVar[int | None] = None

    def __init__(self, run_dir):
        pass

    def write(self, step, metrics):
        if Interrupter.at is not None and step >= Interrupter.at:
            Interrupter.at = None
            os.kill(os.getpid(), signal.SIGINT)

    def close(self):
        pass


class Preset(Point):
    """Brings settings of its own."""

    presets = {"ppo": {"small": {**SMALL, "num_timesteps": STEP}}}  # noqa: RUF012

    def __init__(self, width=1.0):
        self.width = width


class Told:
    """A trainer that learns nothing, and keeps what it was told."""

    name = "told"
    settings: ClassVar[Any] = None

    @staticmethod
    def train(environment, **settings):
        Told.settings = settings
        act: Any = lambda obs, key: (jnp.zeros(environment.action_size), {})  # noqa: E731
        return lambda params: act, (), {}

    @staticmethod
    def load_policy(path, deterministic=True):
        raise NotImplementedError


@click.command()
@click.argument("run")
@click.option("--steps", default=1000)
def fake_render(run, steps):
    """Stands in for the command of brax-io."""
    click.echo(f"rendered {run} {steps}")


@pytest.fixture(autouse=True)
def plugin(monkeypatch, tmp_path):
    plugin: Any = types.ModuleType("toys")
    plugin.BRAX_PLUGIN_API = 1
    specs = {
        "brax_environments": [Spec("toy_point", Preset)],
        "brax_metric_loggers": [Spec("interrupter", Interrupter)],
        "brax_trainers": [Spec("told", Told)],
    }
    if "render" not in plugins.names("command"):
        specs["brax_commands"] = [Spec("render", fake_render)]
    for hook, found in specs.items():
        function = hookimpl(lambda found=found: found)
        function.__name__ = hook
        setattr(plugin, hook, function)
    plugins.register(plugin, "toys")
    monkeypatch.chdir(tmp_path)
    yield
    plugins.unregister("toys")


def _train(*args):
    return cli.main(["train", "toy_point", "--preset", "small", "--name", "a", *args])


@pytest.mark.parametrize("name", ["half-1.0.dist-info", "jax-0.0.1.dist-info"])
def test_an_installation_without_metadata_has_no_version(name, tmp_path, monkeypatch):
    """As pip leaves a folder when it is interrupted."""
    before = run_directory.package_versions()
    (tmp_path / name).mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert run_directory.package_versions() == before
    assert before["jax"] == jax.__version__


def _reports():
    return [json.loads(line) for line in (RUN / "metrics.jsonl").read_text().splitlines()]


def test_a_run_leaves_its_record_metrics_and_checkpoints(capsys):
    assert _train("--steps", "1000", "--seed", "3", "--set", "env.width=2.5") == 0
    told = json.loads((RUN / "run.json").read_text())
    assert told["environment"] == "toy_point" and told["trainer"] == "ppo"
    assert told["environment_kwargs"] == {"width": 2.5}
    assert told["config"] == {**SMALL, "num_timesteps": 1000, "seed": 3}
    assert {"brax-core", "brax-agents", "jax", "llvmlite"} <= set(told["versions"])
    assert checkpoint.available(RUN / "checkpoints") == [7 * STEP]
    assert _reports()[-1]["step"] == 7 * STEP
    assert "eval/episode_reward" in _reports()[-1]
    out = capsys.readouterr().out
    assert "compiling" in out and "1,120 steps: return" in out and "run: runs/a" in out


@pytest.mark.slow
def test_ctrl_c_exits_130_and_resume_finishes(capsys):
    Interrupter.at = 2 * STEP
    small = ["--set", "log_training_metrics=true", "--set", f"training_metrics_steps={STEP}"]
    assert _train("--steps", str(6 * STEP), *small) == 130
    assert "brax resume runs/a" in capsys.readouterr().err
    assert checkpoint.available(RUN / "checkpoints") == [2 * STEP]
    assert cli.main(["resume", "runs/a"]) == 0
    assert checkpoint.available(RUN / "checkpoints")[-1] == 6 * STEP
    assert cli.main(["resume", "runs/a"]) == 2
    assert "is complete, with 960 steps: ask for more" in capsys.readouterr().err
    assert cli.main(["resume", "runs/a", "--steps", str(8 * STEP)]) == 0
    assert _reports()[-1]["step"] == 8 * STEP
    assert json.loads((RUN / "run.json").read_text())["config"]["num_timesteps"] == 8 * STEP
    assert cli.main(["resume", "runs/a", "--step", "7"]) == 2
    assert "has no checkpoint of step 7. It has: 320, " in capsys.readouterr().err
    assert cli.main(["resume", "runs/a", "--step", str(2 * STEP), "--steps", str(3 * STEP)]) == 0
    assert checkpoint.available(RUN / "checkpoints") == [2 * STEP, 3 * STEP]


def made_up(run, config, steps):
    """Return the folder of a run of `Told` with empty checkpoints of these steps."""
    told = {"environment": "toy_point", "environment_kwargs": {}, "trainer": "told"}
    for step in steps:
        (run / f"checkpoints/{step:012d}").mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({**told, "config": config, "versions": {}}))


def test_a_run_without_a_checkpoint_begins_anew(capsys):
    """As one that was killed before it saved."""
    RUN.mkdir(parents=True)
    made_up(RUN, {"num_timesteps": 9}, [])
    assert cli.main(["resume", "runs/a"]) == 0
    assert "restore_checkpoint_path" not in Told.settings


def test_a_run_that_fails_before_it_reports_leaves_no_folder(capsys):
    for change in ("network_factory.policy_hidden_layer_sizes=3", "restore_checkpoint_path=/nope"):
        assert _train("--steps", "1000", "--set", change) != 0
        assert not RUN.exists()


def test_a_process_that_made_no_folder_removes_none(monkeypatch, tmp_path):
    """One of several without a name has only the folder of all runs."""
    (tmp_path / "runs/other").mkdir(parents=True)
    with (
        pytest.raises(ZeroDivisionError),
        run_directory.removed_unless_started([tmp_path / "runs"]),
    ):
        raise ZeroDivisionError
    monkeypatch.setattr(hosts, "first", lambda: False)
    args = ["train", "toy_point", "--preset", "small", "--set", "restore_checkpoint_path=/nope"]
    assert cli.main(args) != 0
    assert (tmp_path / "runs/other").is_dir()


def test_paths_mean_the_same_wherever_a_run_goes_on(tmp_path):
    set_ = ["--set", "teacher=runs/b", "--set", "restore_checkpoint_path=/x/y"]
    args = ["train", "toy_point", "--trainer", "told", "--name", "a", "--steps", "9", *set_]
    assert cli.main(args) == 0
    told = json.loads((RUN / "run.json").read_text())["config"]
    assert told["teacher"] == str(tmp_path / "runs/b")
    assert told["restore_checkpoint_path"] == "/x/y"


def test_resume_goes_on_from_the_runs_own_checkpoints():
    """Not from the one that the run itself started from."""
    first = {"restore_checkpoint_path": "runs/first", "overwrite_checkpoints": False}
    made_up(RUN, {**first, "num_timesteps": 9}, [3, 5])
    assert cli.main(["resume", "runs/a"]) == 0
    assert Told.settings["restore_checkpoint_path"] == RUN / "checkpoints"
    assert cli.main(["resume", "runs/a", "--step", "3"]) == 0
    assert Told.settings["restore_checkpoint_path"] == RUN / "checkpoints/000000000003"
    assert Told.settings["overwrite_checkpoints"] is True
    assert json.loads((RUN / "run.json").read_text())["config"] == {**first, "num_timesteps": 9}


def test_a_run_whose_last_step_is_not_known_can_be_resumed():
    """A third-party trainer has a default of its own, or another name for its steps."""
    made_up(RUN, {"epochs": 2}, [5])
    assert cli.main(["resume", "runs/a"]) == 0
    assert Told.settings["restore_checkpoint_path"] == RUN / "checkpoints"


@pytest.mark.parametrize(
    ("steps", "args", "message"),
    [
        ([5], ["--steps", "4"], "is complete, with 5 steps"),
        ([5], ["--steps", "7", "--step", "6"], "no checkpoint of step 6"),
        ([], ["--steps", "7", "--step", "6"], "no checkpoint of step 6"),
    ],
)
def test_what_resume_refuses_changes_no_run(steps, args, message, capsys):
    RUN.mkdir(parents=True)
    made_up(RUN, {"num_timesteps": 9}, steps)
    assert cli.main(["resume", "runs/a", *args]) == 2
    assert message in capsys.readouterr().err
    assert json.loads((RUN / "run.json").read_text())["config"] == {"num_timesteps": 9}


def test_render_calls_the_command_of_that_name(capsys):
    if plugins.get("command", "render") is not fake_render:
        pytest.skip("brax-io is installed and brings its own")
    assert _train("--render") == 0
    assert f"rendered {RUN} 1000" in capsys.readouterr().out


WRONG = [
    (["train", "toy_pont"], "unknown environment 'toy_pont'", "'toy_point'"),
    (["train", "toy_point", "--trainer", "poo"], "unknown trainer 'poo'", "'ppo'"),
    (["train", "toy_point", "--preset", "smal"], "no preset 'smal'", "'small'"),
    (["train", "toy_point", "--sed", "1"], "No such option", "--seed"),
    (["train", "toy_point", "--steps", "-5"], "--steps", "-5"),
    (["train", "toy_point", "--set", "leraning_rate=1"], "'leraning_rate'", "'learning_rate'"),
    (["train", "toy_point", "--set", "learning_rate"], "expected KEY=VALUE", "learning_rate"),
    (["train", "toy_point", "--set", "env.widht=1"], "environment 'toy_point'", "widht"),
    (["train", "toy_point", "--set", "num_envs=24"], "num_envs=24", "nearest"),
    (
        ["train", "toy_point", "--set", "save_checkpoint_path=x"],
        "save_checkpoint_path: a",
        "--name",
    ),
    (["train", "toy_point", "--set", "checkpoint_logdir=x"], "checkpoint_logdir: a", "--runs"),
    (["train", "toy_point", "--name", "../a"], "'../a' is not allowed as a run's name", "path"),
    (["train", "toy_point", "--runs", "file/runs"], "cannot make the run's folder", "--runs"),
    (["resume", "empty"], "'empty' is not a run", "run.json"),
    (["resume", "nowhere"], "nowhere", "does not exist"),
]


@pytest.mark.parametrize(("args", "message", "hint"), WRONG, ids=lambda x: " ".join(x)[:40])
def test_what_is_wrong_is_one_line_and_exit_2(args, message, hint, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    (tmp_path / "bare").mkdir()
    told = {"environment": "toy_point", "environment_kwargs": {}, "trainer": "ppo"}
    config = {**SMALL, "num_timesteps": STEP}
    (tmp_path / "bare/run.json").write_text(json.dumps({**told, "config": config, "versions": {}}))
    assert cli.main(args) == 2
    err = capsys.readouterr().err.strip()
    assert message in err and hint in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def test_a_run_that_is_there_is_not_overwritten(tmp_path, capsys):
    (tmp_path / "runs/a").mkdir(parents=True)
    assert _train() == 2
    assert "brax resume runs/a" in capsys.readouterr().err


def test_a_run_that_is_much_longer_than_asked_for_says_so(capsys):
    """A training step is 1024 x 32 x 5 environment steps."""
    large = {"num_envs": 2048, "batch_size": 1024, "num_minibatches": 32, "unroll_length": 5}
    assert total_steps(PPO, {**large, "num_timesteps": 50_000}) == 163_840
    told = capsys.readouterr().err
    assert told.startswith(
        "50,000 steps are rounded up to 163,840: a training step takes batch_size *"
    )
    assert total_steps(PPO, {**large, "num_timesteps": 5_000_000}) == 31 * 163_840
    assert total_steps(PPO, {}) == 0
    assert total_steps(object(), {"num_timesteps": 50_000}) == 50_000  # a third-party trainer
    assert not capsys.readouterr().err


def test_settings_are_those_that_a_resumed_run_reads(monkeypatch, tmp_path):
    """Also where a preset has tuples, which JSON has not."""
    sizes = {"policy_hidden_layer_sizes": (8, 4)}
    monkeypatch.setitem(Preset.presets["ppo"], "small", {"network_factory": sizes})
    run, _ = prepare_run("toy_point", "ppo", "small", [])
    assert run.config == {"network_factory": {"policy_hidden_layer_sizes": [8, 4]}}
    assert run_directory.read(run.create(tmp_path, "a")) == run


def test_a_run_has_the_agents_own_names_of_settings(monkeypatch, capsys):
    """By which `brax eval` and `brax render` find the length of its episodes."""
    monkeypatch.setitem(Preset.presets, "bc", {"small": {"episode_length": 30}})
    for given in ("eval_length", "episode_length"):
        changes = [f"{given}=200", "teacher=runs/expert"]
        run, _ = prepare_run("toy_point", "bc", "small", changes)
        assert run.config["episode_length"] == evaluated_steps(run.config) == 200
        assert "eval_length" not in run.config
    sweep = ["sweep", "toy_point", "--trainer", "bc", "--preset", "small"]
    assert cli.main([*sweep, "--set", "teacher=a", "--vary", "eval_length=[0]"]) == 2
    assert "episode_length=0 must be at least 1" in capsys.readouterr().err


def test_a_preset_that_json_cannot_represent_makes_no_folder(monkeypatch, capsys):
    monkeypatch.setitem(Preset.presets["ppo"], "small", {"randomization_fn": _drawn})
    assert _train() == 2
    assert "randomization_fn=<function _drawn at" in (told := capsys.readouterr().err)
    assert "cannot be written into run.json" in told and len(told.splitlines()) == 1
    assert not Path("runs").exists()


def _drawn(sys, rng):
    return sys, sys


def test_changes_are_toml_or_none_and_else_text():
    assert parse_changes(["a=1e-3", "b.c=[1, 2]", "b.d=swish", "e=true", "f=", "g=None"]) == {
        "a": 1e-3,
        "b": {"c": [1, 2], "d": "swish"},
        "e": True,
        "f": "",
        "g": None,
    }


@pytest.mark.parametrize(
    ("environment", "preset"), [(e, p) for e, table in PPO.presets.items() for p in table]
)
def test_presets_are_settings_that_ppo_takes(environment, preset):
    PPO.check(PPO.presets[environment][preset])


def test_the_best_trainers_have_the_presets_that_they_are_best_with():
    for preset, table in presets.read(presets.BEST_TRAINERS).items():
        for environment, trainer in table.items():
            agent = plugins.get("trainer", trainer)
            agent.check(agent.presets[environment][preset])


def test_where_no_trainer_is_named_the_best_one_is_taken(monkeypatch, tmp_path):
    best = tmp_path / "best.toml"
    best.write_text('[default]\ntoy_point = "told"\n')
    monkeypatch.setattr(presets, "BEST_TRAINERS", best)
    assert presets.best_trainer("toy_point", "small") == "ppo"
    assert cli.main(["train", "toy_point", "--name", "a", "--steps", "9"]) == 0
    assert json.loads((RUN / "run.json").read_text())["trainer"] == "told"


def test_a_run_ends_with_the_returns_of_the_stored_runs_of_its_preset(
    monkeypatch, capsys, tmp_path
):
    stored = tmp_path / "returns.toml"
    here = "[default.toy_point]\ntold = [7100.2, 6510.1, 7559.6]\n"
    # The longer preset of the same environment and agent has returns of its own.
    stored.write_text(f"[record.toy_point]\ntold = [9000.0, 9100.0]\n{here}")
    monkeypatch.setattr(presets, "STORED_RETURNS", stored)
    args = ["train", "toy_point", "--trainer", "told", "--name"]
    assert cli.main([*args, "a"]) == 0
    line = "stored runs of this preset: return 6,510.1 to 7,559.6 over 3 seeds"
    assert capsys.readouterr().out.splitlines()[-1] == line
    assert cli.main([*args, "c", "--steps", "9"]) == 0
    line = line.replace("preset:", "preset, without your changes:")
    assert capsys.readouterr().out.splitlines()[-1] == line
    # Other settings of the environment may earn other rewards.
    assert cli.main([*args, "b", "--set", "env.width=2.0"]) == 0
    assert "stored runs" not in capsys.readouterr().out
    assert presets.stored_returns("ppo", "toy_point", "default") == []
    assert presets.stored_returns("told", "toy_point", "record") == [9000.0, 9100.0]


widened = Randomization({"body_mass": Range(0.5, 2.0)})
"""A randomization that the command is told by name; `Told` never calls it."""


def slider():
    """Return a system, for its masses."""
    model = ModelBuilder()
    model.add_body("a", mass=1.0, inertia=(1, 1, 1))
    model.add_joint("a", "slide")
    return model.build()


class Strict:
    """A trainer that takes one setting, and none of the command's own but the run's folder."""

    name = "told"
    returns: Any = (lambda params: lambda obs, key: (jnp.zeros(1), {}), (), {})

    @staticmethod
    def train(environment, rate=1.0, run_dir=None):
        Told.settings = {"rate": rate, "run_dir": run_dir}
        return Strict.returns

    load_policy = None


def test_the_physics_is_randomized_by_name(monkeypatch, capsys):
    args = ["train", "toy_point", "--trainer", "told", "--name"]
    assert cli.main([*args, "a", "--randomize", f"{__name__}:widened"]) == 0
    assert Told.settings["randomization_fn"] is widened
    told = json.loads((RUN / "run.json").read_text())["config"]
    assert told["randomization_fn"] == f"{__name__}:widened"
    assert cli.main([*args, "b", "--randomize"]) == 2
    assert "the environment Preset has no randomization of its own" in capsys.readouterr().err
    assert cli.main([*args, "b", "--randomize", "nowhere:widened"]) == 2
    assert "randomization_fn 'nowhere:widened' cannot be imported: Mod" in capsys.readouterr().err
    monkeypatch.setattr(Preset, "randomization_fn", widened, raising=False)
    assert cli.main([*args, "b", "--randomize"]) == 2
    assert "Preset has no system that could be randomized" in capsys.readouterr().err
    monkeypatch.setattr(Preset, "sys", slider(), raising=False)
    assert cli.main([*args, "b", "--randomize"]) == 0
    assert Told.settings["randomization_fn"] is widened
    assert not Path("runs/c").exists()


@pytest.mark.parametrize("name", ["backend", "ctrl_cost_weight"])
def test_a_setting_of_the_environment_is_told_as_such(name, capsys):
    assert cli.main(["train", "ant", "--set", f"{name}=1"]) == 2
    told = f"The environment takes '{name}': --set env.{name}=VALUE."
    assert capsys.readouterr().err.endswith(f"{told}\n")


def test_a_trainer_gets_what_it_takes_and_must_return_what_it_should(monkeypatch, capsys):
    monkeypatch.setattr(Told, "train", staticmethod(Strict.train))
    args = ["train", "toy_point", "--trainer", "told", "--name"]
    assert cli.main([*args, "a", "--set", "rate=2.0"]) == 0
    assert Told.settings == {"rate": 2.0, "run_dir": Path("runs/a")}
    assert cli.main([*args, "b", "--set", "rat=2.0"]) == 2
    assert "trainer 'told' takes no setting 'rat'. Did you mean 'rate'?" in capsys.readouterr().err
    assert cli.main([*args, "b", "--set", "width=2.0"]) == 2
    assert "The environment takes 'width': --set env.width=VALUE." in capsys.readouterr().err
    monkeypatch.setattr(Strict, "returns", None)
    assert cli.main([*args, "c"]) == 2
    err = capsys.readouterr().err
    assert "brax: trainer 'told' of toys (" in err
    assert "train must return (make_policy, params, metrics), but returns None" in err


class Linear:
    """A trainer whose policy takes a single observation: it appends a constant to it."""

    name = "told"
    weights = jnp.arange(3.0)

    @staticmethod
    def train(environment, progress_fn, run_dir):
        progress_fn(STEP, {"eval/episode_reward": 1.0})
        return Linear.make_policy, Linear.weights, {}

    @staticmethod
    def make_policy(weights):
        return lambda obs, key: (jnp.append(obs, 1.0) @ weights[:, None], {})

    @staticmethod
    def load_policy(path, deterministic=True):
        return Linear.make_policy(Linear.weights)


@pytest.fixture
def linear(monkeypatch):
    for name in ("train", "load_policy"):
        monkeypatch.setattr(Told, name, staticmethod(getattr(Linear, name)))
    assert cli.main(["train", "toy_point", "--trainer", "told", "--name", "a"]) == 0


def test_a_policy_for_one_observation_is_evaluated(linear, capsys):
    """As docs/plugins.md states it; the command evaluates many episodes at once."""
    assert cli.main(["eval", "runs/a", "--episodes", "3"]) == 0
    assert "3 episodes" in capsys.readouterr().out


def test_a_policy_for_one_observation_teaches(linear):
    teacher = over_batch(load_run_policy("runs/a"))
    observations = jnp.array([[1.0, 2.0], [3.0, -1.0]])
    actions, _ = teacher(observations, jax.random.key(0))
    np.testing.assert_allclose(actions, [[4.0], [1.0]])  # 0 x + 1 y + 2


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (lambda obs, key: obs, "the policy must return (action, extras), but returns"),
        (lambda obs, key: (obs, {}), "the policy must return an action of shape (1,), but"),
        (lambda obs, key: (obs @ jnp.ones(3), {}), "the policy raised TypeError: "),
        (None, "must return a function of an observation and a key, but returns None"),
    ],
)
def test_a_loaded_policy_that_breaks_its_contract_is_named(
    linear, monkeypatch, capsys, policy, problem
):
    load = staticmethod(lambda path, deterministic=True: policy)
    monkeypatch.setattr(Told, "load_policy", load)
    assert cli.main(["eval", "runs/a", "--episodes", "3"]) == 2
    err = capsys.readouterr().err
    assert "brax: trainer 'told' of toys (" in err and "load_policy" in err and problem in err


def test_settings_are_checked_before_an_environment_is_traced(monkeypatch, capsys):
    def traced(self, rng):
        raise AssertionError("reset was traced")

    monkeypatch.setattr(Preset, "reset", traced)
    monkeypatch.setattr(Told, "train", staticmethod(Strict.train))
    args = ["train", "toy_point", "--trainer", "told", "--name", "a"]
    assert cli.main([*args, "--set", "rat=2.0"]) == 2
    assert "Did you mean 'rate'?" in capsys.readouterr().err
    assert cli.main(args) == 2
    assert "reset was traced" in capsys.readouterr().err


def test_a_report_without_metrics_names_the_trainer(monkeypatch, capsys):
    def train(environment, progress_fn):
        progress_fn({"eval/episode_reward": 1.0}, 5)

    monkeypatch.setattr(Told, "train", staticmethod(train))
    assert cli.main(["train", "toy_point", "--trainer", "told", "--name", "a"]) == 2
    err = capsys.readouterr().err
    assert "brax: trainer 'told' of toys (" in err and "the metrics are a int" in err
