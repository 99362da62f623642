"""brax sweep, brax eval and brax compare, as a user types them."""

import json
import re
import types
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import SMALL, STEP, Point, make_learner, on_devices
from jax.sharding import AbstractMesh

from brax import cli, plugins
from brax.errors import ConfigError
from brax.plugins import Spec, hookimpl
from brax.training.agents.ppo.checkpoint import load_policy
from brax.training.checkpoints import checkpoint
from brax.training.cli import execution
from brax.training.cli.sweep import Range, label, variations
from brax.training.distributed import devices
from brax.training.runner.seeds import SeedsProgram, can_train_together, train_seeds


class Preset(Point):
    """Brings settings of its own."""

    presets = {"ppo": {"small": {**SMALL, "num_timesteps": 2 * STEP}}}  # noqa: RUF012


@pytest.fixture(autouse=True, scope="module")
def plugin():
    plugin: Any = types.ModuleType("toys")
    plugin.BRAX_PLUGIN_API = 1
    plugin.brax_environments = hookimpl(lambda: [Spec("toy_point", Preset)])
    plugin.brax_environments.__name__ = "brax_environments"
    plugin.brax_trainers = hookimpl(lambda: [Spec("epochs", Epochs)])
    plugin.brax_trainers.__name__ = "brax_trainers"
    plugins.register(plugin, "toys")
    yield
    plugins.unregister("toys")


@pytest.fixture
def here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made_up(folder, scores, environment="toy_point"):
    """Folders of runs that are said to have earned these scores."""
    for i, score in enumerate(scores):
        run = folder / f"seed{i}"
        run.mkdir(parents=True)
        told = {"environment": environment, "environment_kwargs": {}, "trainer": "ppo"}
        (run / "run.json").write_text(json.dumps({**told, "config": {}, "versions": {}}))
        lines = [{"step": 0, "eval/episode_reward": -99.0}]
        lines += [{"step": 5, "eval/episode_reward": score}, {"step": 6, "training/sps": 1.0}]
        (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_compare_takes_the_last_values(here, capsys):
    made_up(here / "a", [1.0, 2.0, 4.0, 9.0])
    made_up(here / "b", [11.0, 12.0, 14.0, 19.0])
    assert cli.main(["compare", "a", "b", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["iqm"][0] == 3.0 and second["iqm"][0] == 13.0 and "difference" not in first
    assert second["difference"][0] == 10.0 and second["improvement"] == [1.0, 1.0, 1.0]
    assert cli.main(["compare", "a", "b/seed3"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "a 4 3 (" in out and "b/seed3 1 19 16 1" in out


def test_what_is_not_known_is_null(here, capsys):
    made_up(here / "a", [3.0])
    assert cli.main(["compare", "a", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert entry["iqm"] == [3.0, None, None]


def test_a_line_is_not_folded_where_it_is_read_by_a_program(here, capsys):
    name = "a_long_name_of_a_group_of_runs_" * 3
    made_up(here / name, [1.0, 2.0, 4.0, 9.0])
    assert cli.main(["compare", name]) == 0
    assert any(name in line and " 4 " in line for line in capsys.readouterr().out.splitlines())


def test_names_in_brackets_are_shown(here, capsys):
    for name in ("[a]x", "[b]x", "x[/b]"):
        made_up(here / name, [1.0, 2.0])
    assert cli.main(["compare", "[a]x", "[b]x", "x[/b]"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-3:]] == ["[a]x", "[b]x", "x[/b]"]


def test_runs_that_differ_in_more_than_their_seeds_are_not_one_group(here, capsys):
    made_up(here / "a", [1.0, 2.0])
    path = here / "a" / "seed1" / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"config": {"num_envs": 3}}))
    assert cli.main(["compare", "a"]) == 2
    assert "the runs in 'a' differ in num_envs, not only in their seeds" in capsys.readouterr().err


WRONG = [
    (["compare", "nothing"], "'nothing' is not a run and contains none", "run.json"),
    (["compare", "a", "c"], "only runs of one environment", "'c/seed0' is of other"),
    (["compare", "a", "--metric", "eval/episode_rewards"], "no 'eval/episode_rewards'", "Did you"),
    (["compare", "bad"], "last 'eval/episode_reward' of run 'bad/seed0' is not", "finite"),
    (["eval", "nothing"], "'nothing' is not a run", "run.json"),
    (["eval", "a/seed0", "--step", "7"], "no checkpoint of step 7", "It has"),
    (["eval", "a/seed0", "--seed", str(2**32)], "'--seed': 4294967296 is not in", "<=4294967295"),
    (
        ["sweep", "toy_point", "--vary", "learning_rate=1"],
        "learning_rate=1: expected a list",
        "low",
    ),
    (["sweep", "toy_point", "--vary", "tau={low=2, high=1}"], "numbers low < high", "tau"),
    (["sweep", "toy_point", "--vary", "tau={low=0, high=1, log=true}"], "above 0 with log", "tau"),
    (["sweep", "toy_point", "--vary", "tau={low=1, high=2}"], "a range is drawn from", "--samples"),
    (["sweep", "toy_point", "--vary", "env.a=[1]"], "only runs of one environment", "env.a"),
    (["sweep", "toy_point", "--vary", "leraning_rate=[1]"], "'leraning_rate'", "'learning_rate'"),
    (
        ["sweep", "toy_point", "--vary", "learning_rate=[1, 0]"],
        "learning_rate=0 must be above",
        "0",
    ),
    (["sweep", "toy_point", "--set", "num_evals=0"], "num_evals must be at least 1", "sweep"),
    (["sweep", "toy_point", "--vary", "num_evals=[2, 0]"], "num_evals must be at", "sweep"),
    (["sweep", "toy_point", "--name", "../s"], "'../s' is not allowed as a run's name", "path"),
    (["sweep", "toy_point", "--vary", "seed"], "expected KEY=VALUE", "seed"),
    (
        ["sweep", "toy_point", "--vary", "unroll_length=[5, 10]", "--samples", "3"],
        "--samples 3: there are only 2 combinations",
        "leave it out",
    ),
    (["sweep", "toy_point", "--set", "seed=5"], "seed: a sweep trains every group", "--seeds"),
    (["sweep", "toy_point", "--vary", "seed=[5, 6]"], "seed: a sweep trains", "--seeds"),
    (
        ["sweep", "toy_point", "--set", "restore_checkpoint_path=runs/a"],
        "restore_checkpoint_path: all seeds would",
        "--seeds 1",
    ),
    (
        ["sweep", "toy_point", "--vary", "save_checkpoint_path=['a', 'b']"],
        "save_checkpoint_path: a run keeps",
        "--name",
    ),
]


@pytest.mark.parametrize(("args", "message", "hint"), WRONG, ids=lambda x: " ".join(x)[:40])
def test_what_is_wrong_is_one_line_and_exit_2(args, message, hint, here, capsys):
    (here / "nothing").mkdir()
    made_up(here / "a", [1.0])
    made_up(here / "c", [1.0], "other")
    made_up(here / "bad", [None])
    if args[0] == "sweep":
        args = [*args, "--preset", "small"]
    assert cli.main(args) == 2
    err = capsys.readouterr().err.strip()
    assert message in err and hint in err and len(err.splitlines()) == 1
    assert not (here / "runs").exists()


def test_a_grid_is_every_combination():
    cells = variations({"a": [1, 2], "b": {"c": ["x", "y"]}}, None)
    assert cells == [{"a": a, "b.c": c} for a in (1, 2) for c in ("x", "y")]
    assert [label(c) for c in cells[:2]] == ["a=1,b.c=x", "a=1,b.c=y"]
    assert variations({}, None) == [{}] and label({}) == "default"
    near = variations({"rate": [1e-3, 1.0000001e-3]}, None)
    assert len({label(cell) for cell in near}) == 2


def test_samples_are_spread_over_ranges_and_more_begin_with_the_same():
    vary = {
        "rate": {"low": 1e-4, "high": 1e-2, "log": True},
        "n": {"low": 1, "high": 3},
        "w": ["u"],
    }
    cells = variations(vary, 600)
    assert variations(vary, 5) == cells[:5]
    assert {cell["n"] for cell in cells} == {1, 2, 3} and {cell["w"] for cell in cells} == {"u"}
    rates = np.array([cell["rate"] for cell in cells])
    assert 1e-4 <= rates.min() < 1.1e-4 and 0.9e-2 < rates.max() <= 1e-2
    # half of them below the geometric mean of the ends, up to four deviations of the count
    assert abs(np.mean(rates < 1e-3) - 0.5) < 4 * np.sqrt(0.25 / 600)
    assert isinstance(variations({"n": [1]}, 1)[0]["n"], int) and Range(low=1)["low"] == 1


SWEEP = [
    "sweep",
    "toy_point",
    "--preset",
    "small",
    "--name",
    "s",
    "--vary",
    "entropy_cost=[0.0, 1.0]",
]


def test_a_sweep_trains_no_run_again_that_has_ended(here, monkeypatch):
    """Also where a run has fewer steps than were asked for, or no checkpoint says how many."""

    def train_run(run, folder, environment, **more):
        trained.append((folder.name, *more))
        if folder.name == "seed0":
            (folder / "checkpoints" / f"{STEP:012d}").mkdir(parents=True, exist_ok=True)
        if len(trained) == 1:
            raise KeyboardInterrupt
        report = json.dumps({"step": 1, "eval/episode_reward": 2.0})
        (folder / "metrics.jsonl").write_text(f"{report}\n")

    trained: list[tuple[str, ...]] = []
    monkeypatch.setattr(execution, "train_run", train_run)
    command = [*SWEEP[:-2], "--one-by-one"]
    assert cli.main([*command, "--seeds", "2"]) != 0
    assert cli.main([*command, "--seeds", "2"]) == 0
    assert trained == [("seed0",), ("seed0", "restore_checkpoint_path"), ("seed1",)]
    assert cli.main([*command, "--seeds", "3"]) == 0
    assert trained[3:] == [("seed2",)]


class Epochs:
    """A third-party trainer whose steps are not counted by num_timesteps."""

    name = "epochs"

    @staticmethod
    def train(environment, epochs=2, **settings):
        raise AssertionError("the test trains in its place")

    @staticmethod
    def load_policy(path, deterministic=True):
        raise NotImplementedError


def test_a_sweep_continues_runs_whose_last_step_is_not_known(here, monkeypatch):
    def train_run(run, folder, environment, **more):
        trained.append((folder.name, *more))
        (folder / "checkpoints" / f"{STEP:012d}").mkdir(parents=True, exist_ok=True)
        if len(trained) == 1:
            raise KeyboardInterrupt
        report = json.dumps({"step": 1, "eval/episode_reward": 2.0})
        (folder / "metrics.jsonl").write_text(f"{report}\n")

    trained: list[tuple[str, ...]] = []
    monkeypatch.setattr(execution, "train_run", train_run)
    command = ["sweep", "toy_point", "--trainer", "epochs", "--name", "s", "--seeds", "1"]
    assert cli.main(command) != 0
    assert cli.main(command) == 0
    assert trained == [("seed0",), ("seed0", "restore_checkpoint_path")]


@pytest.mark.parametrize(
    ("name", "other"), [("environment", "other"), ("environment_kwargs", {"a": 1}), ("config", {})]
)
def test_runs_of_another_sweep_are_found_before_any_training(
    name, other, here, monkeypatch, capsys
):
    def train_run(run, folder, environment, **more):
        trained.append(folder)
        report = json.dumps({"step": 1, "eval/episode_reward": 2.0})
        (folder / "metrics.jsonl").write_text(f"{report}\n")

    trained: list[Path] = []
    monkeypatch.setattr(execution, "train_run", train_run)
    assert cli.main([*SWEEP, "--one-by-one", "--seeds", "1"]) == 0
    assert len(trained) == 2
    capsys.readouterr()
    last = trained[-1] / "run.json"
    last.write_text(json.dumps({**json.loads(last.read_text()), name: other}))
    assert cli.main([*SWEEP, "--one-by-one", "--seeds", "2"]) == 2
    assert "entropy_cost=1.0/seed0' exists with other settings" in capsys.readouterr().err
    assert len(trained) == 2


@pytest.mark.slow
@pytest.mark.long
def test_seeds_together_learn_what_they_learn_alone(here, capsys):
    """Two seeds in one program; a third alone, and only it, when asked for; all are compared."""
    assert cli.main([*SWEEP, "--seeds", "2"]) == 0
    out = capsys.readouterr().out
    assert "mean of 2 seeds" in out and "entropy_cost=1.0" in out
    cell = Path("runs/s/entropy_cost=0.0")
    for seed in range(2):
        assert (cell / f"seed{seed}/finished").is_file()
        alone = f"alone{seed}"
        args = ["train", "toy_point", "--preset", "small", "--name", alone, "--seed", str(seed)]
        assert cli.main([*args, "--set", "entropy_cost=0.0"]) == 0
        one = checkpoint.load(Path("runs") / alone)
        other = checkpoint.load(cell / f"seed{seed}")
        assert one.steps == other.steps and one.record["config"] == other.record["config"]
        assert one.arrays.keys() == other.arrays.keys()
        for name in one.arrays:
            np.testing.assert_allclose(one.arrays[name], other.arrays[name], rtol=1e-4, atol=1e-5)
    capsys.readouterr()
    assert cli.main([*SWEEP, "--seeds", "3"]) == 0
    out = capsys.readouterr().out
    assert "seed2" in out and "seed0" not in out.split("interquartile")[0]
    assert cli.main(["compare", str(cell), "runs/s/entropy_cost=1.0", "--json"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert [entry["runs"] for entry in table] == [3, 3]
    assert cli.main([*SWEEP, "--seeds", "3", "--set", "learning_rate=0.1"]) == 2
    assert "exists with other settings" in capsys.readouterr().err


def test_seeds_together_wait_for_no_thread():
    """A batch of LAPACK's factorizations stops a CPU's program for ever where two run at a time.

    As those of the orthogonal matrices would that APG's networks begin with.
    """
    agent = plugins.get("trainer", "apg")
    learner = make_learner(agent, Point(), network_factory={"hidden_layer_sizes": [8, 9]})
    program = SeedsProgram(learner, learner.mesh, 3)
    text = jax.jit(program._functions.init).lower(jax.random.split(jax.random.key(0), 3)).as_text()
    sizes = re.findall(r"lapack_sgeqrf.* -> \(tensor<([^>]*)>", text)
    assert len(sizes) == 3
    assert not [size for size in sizes if size.count("x") > 2]  # one matrix at a time


PARTS = """
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from brax.training.runner.seeds import state_of_seed

devices = jax.devices()
place = NamedSharding(Mesh(np.array(devices), ("seeds",)), PartitionSpec("seeds"))
keys = jax.random.split(jax.random.key(0), 4)
states = jax.device_put({"x": np.arange(12.0).reshape(4, 3), "n": np.arange(4), "key": keys}, place)
for i in range(4):
    own = state_of_seed(states, i)
    assert all(leaf.devices() == {devices[i // 2]} for leaf in own.values()), own
    assert own["x"].tolist() == [3 * i, 3 * i + 1, 3 * i + 2], own
    assert own["n"] == i and own["key"] == keys[i], own
"""


@pytest.mark.slow
def test_a_seeds_state_is_taken_where_it_is():
    """Without a program for all devices, of which many at a time can stop a CPU's for ever."""
    on_devices(2, "-c", PARTS)


WIDE = """
import sys
from pathlib import Path

import jax
sys.path.insert(0, sys.argv[1])
from agent_toys import SMALL, STEP, Point
from brax.training.agents.ppo import PPO
from brax.training.runner.seeds import train_seeds

settings = {**SMALL, "num_envs": 256, "batch_size": 256, "num_updates_per_batch": 1}
settings["network_factory"] = {
    "policy_hidden_layer_sizes": [8], "value_hidden_layer_sizes": [256, 256]
}
folders = [Path(sys.argv[2]) / str(i) for i in range(2)]
assert jax.device_count() == 2
train_seeds(PPO, Point(), [0, 1], lambda *_: None, folders, **settings, num_timesteps=STEP)
"""


@pytest.mark.slow
def test_seeds_on_two_devices_have_wide_networks(tmp_path):
    """Minibatches of 640 rows through layers of 256 units, as PPO's networks are by default."""
    on_devices(2, "-c", WIDE, str(Path(__file__).parent), str(tmp_path))
    assert len([*tmp_path.glob("*/*/manifest.json")]) == 2


def test_the_devices_of_other_seeds_have_no_copies_of_the_weights():
    """A seed's environments are all on one device: gradients are those of one device."""
    mesh: Any = AbstractMesh((2, 1), ("seeds", devices.ENVS_AXIS))
    rows = jnp.arange(12.0).reshape(4, 3)

    def loss(weights, over):
        found = over(lambda normalizer, weights, rows: rows @ weights)((), weights, rows)
        return jnp.sum(found**2), ()

    weights = jnp.arange(3.0)
    traced = jax.make_jaxpr(lambda w: devices.grad(loss, w, mesh, len(rows))[0])(weights)
    assert "shard_map" not in str(traced)
    # The gradient of |A w|^2 is 2 A^T A w.
    expected = 2 * np.asarray(rows).T @ np.asarray(rows) @ np.arange(3.0)
    (found,) = jax.core.eval_jaxpr(traced.jaxpr, traced.consts, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert devices.shard(rows, mesh) is rows


def test_replay_buffers_do_not_fit_together():
    settings: dict[str, Any] = {"num_envs": 4, "max_replay_size": 16}
    assert not can_train_together(plugins.get("trainer", "sac"), Point(), settings)
    assert can_train_together(plugins.get("trainer", "es"), Point(), {})


def draw(sys, rng):
    """Draws what the tests below never look at."""
    return sys, sys


@pytest.mark.parametrize(
    "given",
    [
        {"restore_checkpoint_path": "runs/a"},
        {"restore_params": ()},
        {"save_checkpoint_path": "runs/a"},
        {"max_devices_per_host": 1},
        {"stop_at_reward": 1.0, "num_evals": 3},
        {"max_seconds": 5},
        {"randomization_fn": draw},
    ],
    ids=lambda given: next(iter(given)),
)
def test_what_is_of_one_run_does_not_fit_together(given, here):
    """It would be one seed's, or ignored."""
    agent = plugins.get("trainer", "es")
    assert not can_train_together(agent, Point(), given)
    message = f"seeds that train together cannot have {next(iter(given))}: leave"
    with pytest.raises(ConfigError, match=message):
        train_seeds(agent, Point(), [0, 1], print, [here / "a", here / "b"], **given)


@pytest.mark.slow
def test_eval_measures_the_policy(here, capsys):
    args = ["train", "toy_point", "--preset", "small", "--name", "a"]
    assert cli.main(args) == 0
    capsys.readouterr()
    assert cli.main(["eval", "runs/a", "--episodes", "64", "--seed", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    policy = load_policy("runs/a")
    import jax

    keys = jax.random.split(jax.random.key(0), 64)
    state = jax.vmap(Point().reset)(keys)
    total = jax.numpy.zeros(())
    for _ in range(20):
        state = jax.vmap(Point().step)(state, policy(state.obs, keys[0])[0])
        total = total + state.reward
    error = float(total.std()) / 8
    assert found["episode_reward"] == pytest.approx(float(total.mean()), abs=5 * error)
    assert found["avg_episode_length"] == 20.0 and found["std_episode_length"] == 0.0
    assert cli.main(["eval", "runs/a", "--episodes", "8", "--step", str(2 * STEP)]) == 0
    assert "8 episodes" in capsys.readouterr().out
    record = json.loads(Path("runs/a/run.json").read_text())
    record["config"]["eval_episode_length"] = 30
    Path("runs/a/run.json").write_text(json.dumps(record))
    assert cli.main(["eval", "runs/a", "--episodes", "8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["avg_episode_length"] == 30.0
