"""Averages of policies: their weights, and that learning does not depend on them."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import (
    SMALL,
    STEP,
    Point,
    check_same_bits,
    check_two_devices_learn_what_one_learns,
    lists,
)
from test_agents_run import AGENTS, train

from brax import plugins
from brax.errors import ConfigError
from brax.training.agents.ppo import train as ppo
from brax.training.learner import Episodes, Learner, Parts, Tally, Updates
from brax.training.learning.averaging import AveragedLearner
from brax.training.policies import PolicyParams
from brax.training.runner.seeds import can_train_together, train_seeds


class Growing(NamedTuple):
    """The state of a learner whose policy is the square of the number of its training steps."""

    params: PolicyParams
    step: jax.Array
    key: jax.Array
    bad_updates: jax.Array


class GrowingLearner(Learner):
    def init(self, key: jax.Array) -> Growing:
        params = PolicyParams((), {"weight": jnp.full((2,), 7.0)})
        return Growing(params, jnp.float32(0), key, jnp.int32(0))

    def training_step(self, state: Growing) -> tuple[Growing, Tally]:
        step = state.step + 1
        params = PolicyParams((), {"weight": jnp.full((2,), step**2)})
        acted = Episodes({}, jnp.int32(0), jnp.int32(0))
        tally = Tally(Updates({}, {}, jnp.int32(1), jnp.int32(0)), acted)
        return Growing(params, step, state.key, state.bad_updates), tally


class Numbers(NamedTuple):
    """The part of a run's settings that the average reads."""

    env_steps_per_training_step: int
    policy_average_steps: int
    num_envs: int = 2


def averaged(each, over):
    info = jax.eval_shape(Point().reset, jax.random.key(0))
    config = Numbers(each, over)
    return AveragedLearner(Parts(Point(), None, config, None, None, info), GrowingLearner)  # type: ignore[arg-type]


@pytest.mark.parametrize("steps", [1, 3, 4, 9])
def test_the_average_is_the_mean_at_first_and_exponential_later(steps):
    """With 10 steps each over 40 steps, a policy has a quarter of the weight from the fourth on."""
    learner = averaged(10, 40)
    state, _ = jax.jit(learner.advance)(learner.init(jax.random.key(0)), steps)
    squares = [n**2 for n in range(1, steps + 1)]
    expected = np.mean(squares[:4])
    for square in squares[4:]:
        expected = 0.75 * expected + 0.25 * square
    np.testing.assert_allclose(state.params.policy["weight"], expected, rtol=1e-6)
    assert state.learner.params.policy["weight"][0] == steps**2
    assert state.number == steps


def test_an_average_over_one_training_step_is_the_last_policy():
    learner = averaged(10, 10)
    state, _ = jax.jit(learner.advance)(learner.init(jax.random.key(0)), 5)
    assert state.params.policy["weight"].tolist() == [25.0, 25.0]


def test_parameters_to_start_from_are_those_of_learner_and_average():
    learner = averaged(10, 40)
    params = PolicyParams((), {"weight": jnp.ones(2)})
    state = learner.with_params(learner.init(jax.random.key(0)), params)
    assert state.params.policy["weight"][0] == state.learner.params.policy["weight"][0] == 1.0
    # A training step takes over the memory of the state, as in a run.
    state, _ = jax.jit(learner.advance, donate_argnums=0)(state, 3)
    assert state.learner.params.policy["weight"].tolist() == [9.0, 9.0]


RUN: dict[str, Any] = {**SMALL, "num_eval_envs": 4, "num_evals": 3, "keep_checkpoints": 10}
AVERAGE = {"policy_average_steps": 2 * STEP}


def test_learning_does_not_depend_on_the_average(tmp_path):
    """Nor on whether the run was stopped between: the average is in the checkpoint."""
    seen = []

    def keep(steps, make_policy, params):
        seen.append((steps, params))

    def run(**more):
        return ppo.train(Point(), num_timesteps=6 * STEP, **{**RUN, "num_evals": 7, **more})

    _, without, _ = run(policy_params_fn=keep, run_evals=False)
    make_policy, params, _ = run(**AVERAGE, save_checkpoint_path=tmp_path, run_evals=False)
    assert jax.tree.all(jax.tree.map(np.array_equal, without.value, params.value))
    assert not jax.tree.all(jax.tree.map(np.array_equal, without.policy, params.policy))
    policies = [each.policy for steps, each in seen if steps]
    assert len(policies) == 6
    expected = policies[0]
    for number, policy in enumerate(policies[1:], 2):
        weight = max(0.5, 1 / number)
        expected = jax.tree.map(lambda a, x, w=weight: a + w * (x - a), expected, policy)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), params.policy, expected
    )
    obs, key = np.array([0.3, 0.2], np.float32), jax.random.key(0)
    loaded = plugins.get("trainer", "ppo").load_policy(tmp_path)
    assert loaded(obs, key)[0] == make_policy(params, True)(obs, key)[0]

    kept = tmp_path / f"{3 * STEP:012d}"
    again = tmp_path / "again"
    run(**AVERAGE, run_evals=False, restore_checkpoint_path=kept, save_checkpoint_path=again)
    check_same_bits(tmp_path, again)
    with pytest.raises(ConfigError, match=r"policy_average_steps must stay what it was in .*, 320"):
        run(run_evals=False, restore_checkpoint_path=kept)


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_averages(name):
    """Also the agents with replay buffers. An average over one training step is the last policy."""
    _, last, _ = train(name)
    _, short, _ = train(name, policy_average_steps=AGENTS[name][1])
    _, params, _ = train(name, policy_average_steps=10**9)
    same = [jax.tree.map(np.array_equal, last.policy, x.policy) for x in (short, params)]
    assert jax.tree.all(same[0]) and not jax.tree.all(same[1])
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(params))


@pytest.mark.slow
def test_candidates_have_averages_of_their_own():
    settings = {**RUN, "run_evals": False, "num_timesteps": 18 * STEP, "candidates": 2}
    _, last, _ = ppo.train(Point(), **settings)
    _, short, _ = ppo.train(Point(), **settings, policy_average_steps=STEP)
    _, long, _ = ppo.train(Point(), **settings, policy_average_steps=10**9)
    assert lists(last) == lists(short) != lists(long)


@pytest.mark.slow
def test_seeds_that_train_together_have_the_averages_of_each_alone(tmp_path):
    agent = plugins.get("trainer", "ppo")
    settings = {**RUN, **AVERAGE, "num_timesteps": 4 * STEP}
    assert can_train_together(agent, Point(), settings)
    folders = [tmp_path / str(seed) for seed in (3, 4)]
    together = train_seeds(agent, Point(), (3, 4), lambda *_: None, folders, **settings)
    *_, metrics = ppo.train(Point(), **settings, seed=4)
    name = "eval/episode_reward"
    assert together[1][name] == pytest.approx(metrics[name], rel=1e-5)


@pytest.mark.slow
def test_two_devices_learn_what_one_learns():
    settings = {**RUN, **AVERAGE, "num_timesteps": 4 * STEP}
    check_two_devices_learn_what_one_learns(**settings)


def test_an_average_is_not_shorter_than_a_training_step():
    agent = plugins.get("trainer", "ppo")
    agent.check({**RUN, "policy_average_steps": STEP})
    with pytest.raises(ConfigError, match=r"policy_average_steps=159 must be at least .*=160, the"):
        agent.check({**RUN, "policy_average_steps": STEP - 1})
