"""Runs of PPO that stop, go on, meet numbers that are not numbers, or use more devices."""

import functools
import itertools
import json
import logging
import os
import signal
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import SMALL, STEP, Counter, Point, make_learner, on_devices

from brax import plugins
from brax.errors import CheckpointError, ConfigError, TrainingError
from brax.training.agents.ppo import train as ppo
from brax.training.agents.ppo.checkpoint import load_policy
from brax.training.agents.ppo.losses import targets
from brax.training.checkpoints import checkpoint
from brax.training.runner import loop

QUIET: dict[str, Any] = {**SMALL, "run_evals": False}


def _same(one, other):
    leaves = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in leaves)


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """Parameters after 2N steps at once, after N, and after N and N more from a checkpoint."""
    folder = tmp_path_factory.mktemp("run")
    _, whole, _ = ppo.train(Point(), 12 * STEP, **QUIET)
    _, half, _ = ppo.train(Point(), 6 * STEP, **QUIET, save_checkpoint_path=folder)
    _, rest, _ = ppo.train(
        Point(),
        12 * STEP,
        **QUIET,
        save_checkpoint_path=folder,
        restore_checkpoint_path=folder,
    )
    return folder, whole, half, rest


def test_2n_is_n_and_n_more_to_the_last_bit(halves):
    _, whole, half, rest = halves
    assert _same(whole, rest)
    assert not _same(whole, half)


def test_the_old_checkpoint_is_still_there(halves):
    assert checkpoint.available(halves[0]) == [6 * STEP, 12 * STEP]


def test_nothing_is_left_to_train(halves):
    folder, whole, *_ = halves
    _, params, _ = ppo.train(Point(), 12 * STEP, **QUIET, restore_checkpoint_path=folder)
    assert _same(whole, params)


def test_the_policy_comes_back_from_the_folder(halves):
    folder, whole, *_ = halves
    make_policy, _, _ = ppo.train(Point(), 0, **QUIET)
    obs, key = np.array([0.3, 0.2], np.float32), jax.random.key(0)
    for deterministic in (True, False):
        got, _ = load_policy(folder, deterministic)(obs, key)
        assert got == make_policy(whole, deterministic)(obs, key)[0]


class Other(Point):
    """An environment of another name."""


@pytest.mark.parametrize(
    ("environment", "change", "error", "message"),
    [
        (Other(), {}, CheckpointError, "saved with environment Point, but this run has Other"),
        (
            Point(),
            {"network_factory": {**SMALL["network_factory"], "activation": "tanh"}},
            CheckpointError,
            r"saved with network\.activation swish, but this run has tanh\.",
        ),
        (Point(), {"unroll_length": 10}, ConfigError, "must stay what it was .* 160; it is 320"),
        (Point(), {"num_envs": 8}, CheckpointError, r"env_state/.* was saved as .*\(16,.*\(8,"),
        (Point(), {"normalize_observations": False}, CheckpointError, "params/normalizer"),
        (Point(), {"restore_params": ((), (), ())}, ConfigError, "not both"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(halves, environment, change, error, message):
    with pytest.raises(error, match=message):
        ppo.train(environment, 20 * STEP, **{**QUIET, **change}, restore_checkpoint_path=halves[0])


def test_parameters_to_start_from(halves):
    _, whole, *_ = halves
    _, params, _ = ppo.train(Point(), 0, **QUIET, restore_params=tuple(whole))
    assert _same(whole, params)


def test_no_steps_give_the_first_parameters():
    _, one, _ = ppo.train(Point(), 0, **QUIET)
    _, other, _ = ppo.train(Point(), 0, **QUIET, num_evals=5)
    _, third, _ = ppo.train(Point(), 0, **{**QUIET, "seed": 1})
    assert _same(one, other) and not _same(one, third)


def test_ctrl_c_saves_and_what_is_saved_goes_on(halves, tmp_path):
    """A signal in the middle of a run; the rest of it ends where the whole run did."""
    before = signal.getsignal(signal.SIGINT)

    def interrupt(steps, metrics):
        if steps == 3 * STEP:
            os.kill(os.getpid(), signal.SIGINT)

    reports: dict[str, Any] = {"log_training_metrics": True, "training_metrics_steps": STEP}
    with pytest.raises(KeyboardInterrupt):
        ppo.train(
            Point(),
            12 * STEP,
            **QUIET,
            **reports,
            save_checkpoint_path=tmp_path,
            progress_fn=interrupt,
        )
    assert signal.getsignal(signal.SIGINT) is before
    assert checkpoint.available(tmp_path) == [3 * STEP]
    _, params, _ = ppo.train(Point(), 12 * STEP, **QUIET, restore_checkpoint_path=tmp_path)
    assert _same(params, halves[1])


def test_sigterm_saves_and_exits_143(tmp_path):
    def terminate(steps, metrics):
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SystemExit, match="143"):
        ppo.train(
            Point(),
            12 * STEP,
            **QUIET,
            log_training_metrics=True,
            save_checkpoint_path=tmp_path,
            progress_fn=terminate,
        )
    assert len(checkpoint.available(tmp_path)) == 1


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("")

    class Never(Point):
        def reset(self, rng):
            if not isinstance(rng, jax.core.Tracer):
                raise AssertionError("the run has started")
            return super().reset(rng)

    with pytest.raises(CheckpointError, match="cannot write"):
        ppo.train(Never(), 1000, **QUIET, save_checkpoint_path=tmp_path / "file")


class Poor(Point):
    """Its reward is not a number's worth: so large that its square overflows."""

    def step(self, state, action):
        state = super().step(state, action)
        return state.replace(reward=jnp.float32(1e9) * (1 + state.obs[1]))


@pytest.mark.slow
def test_gradients_that_are_not_finite_are_skipped_and_then_stop_the_run(tmp_path):
    settings: dict[str, Any] = {**QUIET, "normalize_advantage": False, "reward_scaling": 1e12}
    with pytest.raises(
        TrainingError, match=r"gradient is not finite at step \d+, \d+ updates"
    ) as e:
        ppo.train(Poor(), 50 * STEP, **settings, save_checkpoint_path=tmp_path)
    assert "v_loss" in str(e.value) and "learning_rate" in str(e.value)
    found = checkpoint.load(tmp_path)
    assert f"The checkpoint of step {found.steps} has the state" in str(e.value)
    assert found.arrays["bad_updates"] >= loop.MAX_BAD_UPDATES
    learned = [x for name, x in found.arrays.items() if name.startswith(("params", "optimizer"))]
    assert all(np.isfinite(x).all() for x in learned)


class Fragile(Point):
    """Breaks when it is pushed to the right of 0.9."""

    def step(self, state, action):
        state = super().step(state, action)
        x = jnp.where(state.pipeline_state[0] > 0.9, jnp.nan, state.pipeline_state)
        return state.replace(pipeline_state=x, obs=x)


@pytest.mark.slow
def test_environments_that_break_are_counted_and_do_not_reach_the_parameters():
    seen = []
    _, params, metrics = ppo.train(
        Fragile(), 10 * STEP, **QUIET, progress_fn=lambda steps, m: seen.append(m)
    )
    assert metrics["training/nan_envs"] > 0
    assert metrics["training/skipped_updates"] == 0
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(params))
    assert int(params.normalizer.count) == 10 * STEP


@pytest.mark.slow
@pytest.mark.parametrize("bootstrap", [True, False])
def test_targets_of_both_ends(bootstrap):
    """The true last observation decides the value after a step, at both kinds of end.

    Those of `Counter` end of themselves after 2 steps or, here, by the time limit after 3. The
    target of one step is its scaled reward and, but after a termination, the discounted value of
    what comes after it: after a truncation, no further than those of the stretch. Without bootstrap
    a truncated step is left out.
    """
    settings: dict[str, Any] = {
        **SMALL,
        "episode_length": 3,
        "gae_lambda": 0.0,
        "reward_scaling": 0.5,
    }
    settings |= {"bootstrap_on_timeout": bootstrap, "advantage_estimator": "gae"}
    learner = make_learner(plugins.get("trainer", "ppo"), Counter(), **settings)
    state = jax.jit(learner.init)(jax.random.key(0))
    _, batch, _ = jax.jit(learner._collect)(state, jax.random.key(1))
    params = state.params
    count, ends = np.moveaxis(np.asarray(batch.observation), -1, 0)
    terminated, truncated = (ends == 2) & (count == 1), (ends == 100) & (count == 2)
    assert terminated.any() and truncated.any()
    judge = functools.partial(learner.networks.value_network.apply, params.normalizer, params.value)
    now, after = judge(batch.observation), judge(jnp.stack([count + 1, ends], axis=-1))
    np.testing.assert_allclose(batch.value, now, rtol=1e-4, atol=1e-5)
    near = np.clip(after, now.min(axis=1, keepdims=True), now.max(axis=1, keepdims=True))
    assert (near != after)[truncated].any()
    after = np.where(terminated, 0.0, np.where(truncated, near, after))
    target = 0.5 * (count + 1) + 0.9 * after
    if not bootstrap:
        target = np.where(truncated, now, target)
    found, advantage = targets(batch, batch.value, batch.last_value, learner.config.loss)
    np.testing.assert_allclose(found, target, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(advantage, target - now, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(batch.used, 1 - (truncated & (not bootstrap)))


@pytest.mark.slow
@pytest.mark.parametrize("resets", [0, 2])
def test_fresh_resets_between_evaluations(tmp_path, resets):
    """The second number of a `Point` is drawn by a reset, and that of its next episodes too.

    With two resets the first is half way, after two of four training steps.
    """
    saves: dict[str, Any] = {
        "save_interval_steps": STEP,
        "keep_checkpoints": 9,
        "save_checkpoint_path": tmp_path,
    }
    ppo.train(Point(), 4 * STEP, **QUIET, num_resets_per_eval=resets, **saves)
    one, three, four = (
        checkpoint.load(tmp_path / f"{n * STEP:012d}").arrays["env_state/obs"][:, 1]
        for n in (1, 3, 4)
    )
    assert len(np.unique(one)) == 16
    np.testing.assert_array_equal(three, four)
    if resets:
        assert not np.isin(three, one).any()
    else:
        np.testing.assert_array_equal(three, one)


def test_every_function_is_compiled_once(caplog):
    """Three evaluations and 20 calls of the training step compile each program once."""
    reports: dict[str, Any] = {
        "log_training_metrics": True,
        "training_metrics_steps": STEP,
        "num_evals": 3,
    }
    jax.config.update("jax_log_compiles", True)
    try:
        with caplog.at_level(logging.WARNING):
            ppo.train(Point(), 20 * STEP, **SMALL, **reports)
    finally:
        jax.config.update("jax_log_compiles", False)
    messages = [record.getMessage() for record in caplog.records]
    for function in ("jit(advance)", "jit(_unroll)", "jit(init)"):
        assert sum(m.startswith(f"Compiling {function} ") for m in messages) == 1


DEVICES = """
import json, sys
import jax
sys.path.insert(0, sys.argv[1])
from agent_toys import SMALL, STEP, Point, lists
from brax.training.agents.ppo import train as ppo

out = {}
for count in (1, 8):
    _, params, metrics = ppo.train(
        Point(), 3 * STEP, **SMALL, max_devices_per_host=count, num_evals=2
    )
    out[count] = lists(params)
    out[f"reward {count}"] = metrics["eval/episode_reward"]
print(json.dumps({"devices": jax.device_count(), **out}))
"""


@pytest.mark.slow
def test_eight_devices_learn_what_one_learns():
    # T71
    printed = on_devices(8, "-c", DEVICES, os.path.dirname(__file__))
    found = json.loads(printed.splitlines()[-1])
    assert found["devices"] == 8
    for one, eight in zip(found["1"], found["8"], strict=True):
        scale = max(np.abs(one).max(), 1e-3)
        np.testing.assert_allclose(eight, one, rtol=1e-5, atol=1e-5 * scale)
    assert found["reward 8"] == pytest.approx(found["reward 1"], rel=1e-3)


def test_randomized_systems_get_a_key_for_each_environment():
    """`wrap_env_fn` is given the function with its keys bound."""
    got: dict[int, Any] = {}

    def wrap_env_fn(env, *, episode_length, action_repeat, randomization_fn):
        got[len(got)] = randomization_fn
        from brax.env import wrap

        return wrap(env, episode_length, action_repeat)

    def randomize(sys, rng):
        return sys, rng

    settings: dict[str, Any] = {**QUIET, "wrap_env_fn": wrap_env_fn, "randomization_fn": randomize}
    ppo.train(Point(), 0, **settings)
    assert isinstance(got[0], functools.partial)
    assert got[0].keywords["rng"].shape == (SMALL["num_envs"],)


def test_reports_come_about_every_second_unless_asked_for_more(monkeypatch):
    clock = itertools.count()  # one millisecond a look, whatever else the machine does
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock) * 1e-3)
    seen = []
    ppo.train(
        Point(),
        40 * STEP,
        **QUIET,
        log_training_metrics=True,
        progress_fn=lambda steps, metrics: seen.append(steps),
    )
    assert seen == [STEP, 40 * STEP, 40 * STEP]  # the pace is measured, the rest takes no second


@pytest.mark.slow
def test_parameters_handed_out_stay_whole():
    kept = []
    ppo.train(
        Point(),
        4 * STEP,
        **QUIET,
        num_evals=3,
        policy_params_fn=lambda steps, make_policy, params: kept.append((steps, params)),
    )
    assert [steps for steps, _ in kept] == [0, 2 * STEP, 4 * STEP]
    assert all(np.isfinite(x).all() for _, params in kept for x in jax.tree.leaves(params))
    assert not _same(kept[0][1], kept[2][1])
