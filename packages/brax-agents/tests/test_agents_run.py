"""Runs of all agents: continuing, restoring, and giving the same result twice."""

import contextlib
import functools
import json
import os
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import test_bc
import test_sac
import test_td3
from agent_toys import Point, check_same_bits, lists, on_devices

from brax import plugins
from brax.errors import CheckpointError
from brax.training.checkpoints import checkpoint
from brax.training.runner.loop import Loop

COMMON: dict[str, Any] = {"episode_length": 20, "normalize_observations": True, "run_evals": False}
HIDDEN: dict[str, Any] = {"network_factory": {"hidden_layer_sizes": [8]}}
BOTH: dict[str, Any] = {
    "network_factory": {"policy_hidden_layer_sizes": [8], "value_hidden_layer_sizes": [8]}
}
WINDOW: dict[str, Any] = {"num_envs": 16, "horizon_length": 5}
UNROLL: dict[str, Any] = {
    "num_envs": 16,
    "unroll_length": 5,
    "num_minibatches": 2,
    "discounting": 0.9,
}
AGENTS: dict[str, Any] = {
    "sac": (test_sac.SMALL, 16, 40),
    "td3": (test_td3.SMALL, 16, 40),
    "es": ({"population_size": 16, "learning_rate": 0.05} | HIDDEN, 320, 4),
    "ars": ({"number_of_directions": 8, "top_directions": 4}, 320, 4),
    "apg": ({"learning_rate": 1e-2} | WINDOW | HIDDEN, 80, 4),
    "bc": (test_bc.SMALL | {"teacher_inference_fn": test_bc.teacher}, test_bc.STEP, 4),
    "reppo": ({"num_updates_per_batch": 2} | UNROLL | BOTH, 80, 4),
    "shac": ({"critic_updates": 2, "discounting": 0.9} | WINDOW | BOTH, 80, 4),
}
"""Small settings of each agent, its environment steps of one training step, and how many of those
to take."""

DIVIDED = [n if n == "sac" else pytest.param(n, marks=pytest.mark.long) for n in AGENTS]


def train(name, **more):
    """Run an agent for a short time."""
    own, step, number = AGENTS[name]
    number = more.pop("number", number)
    settings = {**own, **COMMON, **more}
    return plugins.get("trainer", name).train(Point(), num_timesteps=number * step, **settings)


QUICK = ("ars",)
EACH = [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in AGENTS]


@pytest.fixture(scope="module", params=EACH)
def halves(request, tmp_path_factory):
    """States after 2N steps at once, after N, and after N and N more from a checkpoint."""
    name = request.param
    whole, half = (tmp_path_factory.mktemp(kind) for kind in ("whole", "half"))
    make_policy, params, _ = train(name, save_checkpoint_path=whole)
    train(name, number=AGENTS[name][2] // 2, save_checkpoint_path=half)
    train(name, save_checkpoint_path=half, restore_checkpoint_path=half)
    return name, (whole, half), make_policy, params


def test_2n_is_n_and_n_more_to_the_last_bit(halves):
    """In all that a checkpoint holds: optimizer, buffers, keys, environments."""
    _, folders, *_ = halves
    check_same_bits(*folders)
    whole = checkpoint.load(folders[0]).arrays
    first = checkpoint.load(folders[1] / f"{checkpoint.available(folders[1])[0]:012d}").arrays
    assert not all(np.array_equal(whole[n], first[n]) for n in whole if "params/policy" in n)


@pytest.mark.parametrize(
    "end", ["an error of the user", pytest.param("complete", marks=pytest.mark.slow)]
)
def test_a_run_leaves_the_process_as_it_was(tmp_path, end):
    """Signal handlers, which note Ctrl-C while it trains, too."""
    from process_state import changed, snapshot  # of the core's tests

    def progress(steps, metrics):
        seen.append(snapshot()["signal handlers"])
        if end != "complete":
            raise ZeroDivisionError

    seen: list[Any] = []
    before = snapshot()
    expected = contextlib.nullcontext() if end == "complete" else pytest.raises(ZeroDivisionError)
    with expected:
        train("ars", run_evals=True, progress_fn=progress, save_checkpoint_path=tmp_path)
    assert seen[0] != before["signal handlers"]
    after = snapshot()
    # Whoever computes opens JAX's devices; JAX and Orbax keep threads for what comes later.
    for name in ("JAX's devices are open", "threads", "functions at exit"):
        after[name] = before[name]
    assert changed(before, after) == []


def test_a_checkpoint_that_has_all_steps_is_evaluated_and_told(tmp_path):
    """Steps of both runs count; who asks for 0 wants the parameters, and is not warned."""
    *_, first = train("ars", number=2, save_checkpoint_path=tmp_path, run_evals=True)
    with pytest.warns(UserWarning, match=r"num_timesteps=320 trains nothing, since .* has 640 ste"):
        *_, again = train("ars", number=1, restore_checkpoint_path=tmp_path, run_evals=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        *_, zero = train("ars", number=0, restore_checkpoint_path=tmp_path, run_evals=True)
    for name in ("eval/episode_reward", "eval/episode_distance_std"):
        assert first[name] == again[name] == zero[name]


def test_a_resumed_run_counts_seconds_on(tmp_path, monkeypatch):
    train("ars", number=2, save_checkpoint_path=tmp_path)
    given, before = [], checkpoint.load(tmp_path).record["seconds"]

    def run(loop, state, step, seconds):
        given.append((step, seconds))
        return state, {}

    monkeypatch.setattr(Loop, "run", run)
    train("ars", restore_checkpoint_path=tmp_path)
    assert given == [(2, before)] and before > 0


def test_a_resumed_run_has_the_evaluations_of_one_that_never_stopped(tmp_path):
    evaluated = {"run_evals": True, "num_eval_envs": 4, "num_evals": 3}
    *_, whole = train("ars", **evaluated)
    train("ars", number=2, save_checkpoint_path=tmp_path, **evaluated)
    *_, rest = train("ars", restore_checkpoint_path=tmp_path, **evaluated)
    assert rest["eval/episode_reward"] == whole["eval/episode_reward"]


def test_the_policy_comes_back_from_the_folder(halves):
    name, folders, make_policy, params = halves
    obs, key = np.array([0.3, 0.2], np.float32), jax.random.key(0)
    for deterministic in (True, False):
        policy = plugins.get("trainer", name).load_policy(folders[0], deterministic)
        assert policy(obs, key)[0] == make_policy(params, deterministic)(obs, key)[0]


def test_the_parameters_come_back_alone(halves, tmp_path):
    name, folders, make_policy, params = halves
    agent = plugins.get("trainer", name)
    record = checkpoint.load(folders[0]).record
    settings: dict[str, Any] = {k: v for k, v in record["network"].items() if k != "factory"}
    config = agent.network_config(
        record["observation_size"],
        record["action_size"],
        record["config"]["normalize_observations"],
        functools.partial(agent.make_networks, **settings),
    )
    agent.save(tmp_path, 7, tuple(params), config)
    for folder in (folders[0], tmp_path):
        loaded = agent.load(folder)
        assert loaded._fields == params._fields
        jax.tree.map(np.testing.assert_array_equal, loaded, type(loaded)(*params))
    obs, key = np.array([0.3, 0.2], np.float32), jax.random.key(0)
    policy = agent.load_policy(tmp_path / "000000000007")
    assert policy(obs, key)[0] == make_policy(params, True)(obs, key)[0]
    with pytest.raises(CheckpointError, match=r"holds only parameters.*with restore_params"):
        train(name, restore_checkpoint_path=tmp_path)


def params_on(name, count):
    """Parameters after a short run on some devices, as lists."""
    _, params, _ = train(name, max_devices_per_host=count)
    return lists(params)


DEVICES = """
import sys
sys.path.insert(0, sys.argv[1])
import json, brax
from test_agents_run import params_on
print(json.dumps([params_on(sys.argv[2], count) for count in (1, 8)]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", DIVIDED)
def test_eight_devices_learn_what_one_learns(name):
    # T71
    printed = on_devices(8, "-c", DEVICES, os.path.dirname(__file__), name)
    for one, eight in zip(*json.loads(printed.splitlines()[-1]), strict=True):
        scale = max(np.abs(one).max(), 1e-3)
        np.testing.assert_allclose(eight, one, rtol=1e-4, atol=1e-4 * scale)


class Seen(Point):
    """Tells the policy where the point is, and the critics in other words."""

    def reset(self, rng):
        return self._tell(super().reset(rng))

    def step(self, state, action):
        return self._tell(super().step(state, action))

    def _tell(self, state):
        x = state.pipeline_state
        return state.replace(obs={"state": x, "privileged_state": jnp.tile(x, 2)})


DICTIONARY: dict[str, Any] = {
    "sac": {"hidden_layer_sizes": [4], "value_obs_key": "privileged_state"},
    "td3": {"q_hidden_layer_sizes": [4], "value_obs_key": "privileged_state"},
    "es": {"hidden_layer_sizes": [4], "policy_obs_key": "privileged_state"},
    "ars": {"policy_obs_key": "privileged_state"},
    "apg": {"hidden_layer_sizes": [4], "policy_obs_key": "state"},
    "reppo": BOTH["network_factory"] | {"value_obs_key": "privileged_state"},
    "shac": BOTH["network_factory"] | {"value_obs_key": "privileged_state"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DICTIONARY)
def test_dictionaries_of_observations(name):
    """Each network reads the one that it is told to, and statistics are kept of both."""
    *_, step, number = AGENTS[name]
    settings: dict[str, Any] = {**AGENTS[name][0], **COMMON, "network_factory": DICTIONARY[name]}
    trainer = plugins.get("trainer", name)
    make_policy, params, _ = trainer.train(Seen(), num_timesteps=number * step, **settings)
    assert {k: v.shape for k, v in params.normalizer.mean.items()} == {
        "state": (2,),
        "privileged_state": (4,),
    }
    first = next(x for x in jax.tree.leaves(params.policy) if x.ndim == 2)
    assert first.shape[0] == (4 if name in ("es", "ars") else 2)
    obs = {"state": jnp.ones(2), "privileged_state": jnp.ones(4)}
    assert make_policy(params)(obs, jax.random.key(0))[0].shape == (1,)
