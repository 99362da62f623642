"""Policies with memory: cells and loss against NumPy, and what a run carries from step to step."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import SMALL, STEP, Counter, Point, make_learner
from test_ppo_losses import CONFIG, TIME, N, definition, experience

from brax.env import Env, State, wrap
from brax.errors import ConfigError
from brax.plugins.outputs.policy import act, first_memory
from brax.training.agents.bc import BC
from brax.training.agents.ppo import PPO
from brax.training.agents.ppo.losses import Memory, compute_ppo_loss
from brax.training.agents.ppo.networks import make_ppo_networks
from brax.training.agents.ppo.train import train
from brax.training.agents.sac import SAC
from brax.training.checkpoints import checkpoint
from brax.training.policies import RecurrentPolicy
from brax.training.runner.acting import over_batch
from brax.training.runner.evaluator import Evaluator

UNITS = 4
SIZES = {"gru": UNITS, "lstm": 2 * UNITS}
"""Lengths of the memory."""


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def run(kind, weights, x, memory, first):
    """Return outputs (n, time, k) of a network of one layer, and its memory after each step."""
    p = jax.tree.map(np.float64, weights["params"])
    x, memory = np.float64(x), np.float64(memory)
    outputs, memories = [], []
    for t in range(x.shape[1]):
        memory = np.where(first[:, t, None] > 0, 0.0, memory)
        h = memory[:, -UNITS:]
        given = x[:, t] @ p["inputs"]["kernel"] + p["inputs"]["bias"]
        own = h @ p["kernel"] + p["bias"]
        g, o = (np.split(y, y.shape[1] // UNITS, axis=1) for y in (given, own))
        if kind == "gru":
            r, z = sigmoid(g[0] + o[0]), sigmoid(g[1] + o[1])
            memory = z * h + (1 - z) * np.tanh(g[2] + r * o[2])
        else:
            c = sigmoid(g[1] + o[1] + 1) * memory[:, :UNITS]
            c += sigmoid(g[0] + o[0]) * np.tanh(g[2] + o[2])
            memory = np.concatenate([c, sigmoid(g[3] + o[3]) * np.tanh(c)], axis=1)
        memories.append(memory)
        last = p["head"]["hidden_0"]
        data = np.concatenate([x[:, t], memory[:, -UNITS:]], axis=1)
        outputs.append(data @ last["kernel"] + last["bias"])
    return np.stack(outputs, axis=1), np.stack(memories, axis=1)


@pytest.fixture(scope="module", params=SIZES)
def tiny(request):
    """Networks of one layer behind a cell, their parameters, and experience with memory."""
    kind = request.param
    networks, params, batch, keys = experience(memory=kind, memory_size=UNITS)
    batch = batch._replace(
        timeout_value=jax.random.normal(keys[2], (N, TIME)),
        memory=Memory(*jax.random.normal(keys[8], (2, N, SIZES[kind]))),
    )
    return kind, networks, params, batch


def begins(batch):
    """1 where a step follows the end of an episode in its unroll."""
    first = np.zeros((N, TIME))
    first[:, 1:] = np.asarray(batch.termination + batch.truncation)[:, :-1]
    assert 0 < first.sum() < first.size
    return first


def test_a_sequence_is_its_steps_one_after_the_other_and_forgets_at_ends(tiny):
    kind, networks, params, batch = tiny
    network, first = networks.policy_network, begins(batch)
    x, memory = batch.observation, batch.memory.policy
    expected, memories = run(kind, params.policy, x, memory, first)
    found, last = network.apply((), params.policy, x, memory, jnp.asarray(first))
    np.testing.assert_allclose(found, expected, atol=2e-6)
    np.testing.assert_allclose(last, memories[:, -1], atol=2e-6)
    one, then = network.apply((), params.policy, x[:, 0], memory)
    np.testing.assert_allclose(one, expected[:, 0], atol=2e-6)
    np.testing.assert_allclose(then, memories[:, 0], atol=2e-6)
    # Without its past, the first step of an episode does not depend on the memory before it.
    n, t = np.argwhere(first)[0]
    alone, _ = network.apply((), params.policy, x[n : n + 1, t], jnp.zeros((1, SIZES[kind])))
    np.testing.assert_allclose(alone[0], expected[n, t], atol=2e-6)


@pytest.mark.parametrize(("burn_in", "recompute"), [(0, False), (2, False), (2, True)])
def test_the_loss_runs_over_whole_unrolls(tiny, burn_in, recompute):
    """Surrogate and value error of PPO, of outputs that NumPy's cells compute."""
    kind, networks, params, batch = tiny
    config = CONFIG._replace(memory_burn_in=burn_in, recompute_targets=recompute)
    loss = jax.jit(compute_ppo_loss, static_argnums=(3, 4))
    _, parts = loss(params, batch, jax.random.key(0), networks, config)

    first = begins(batch)
    logits, _ = run(kind, params.policy, batch.observation, batch.memory.policy, first)
    values, memories = run(kind, params.value, batch.observation, batch.memory.value, first)
    after, _ = run(
        kind,
        params.value,
        batch.last_observation[:, None],
        memories[:, -1],
        np.zeros((N, 1)),
    )
    loc, scale = logits[..., :2], np.log1p(np.exp(logits[..., 2:])) + 0.001
    raw = np.asarray(batch.raw_action, np.float64)
    log_prob = -0.5 * ((raw - loc) / scale) ** 2 - np.log(scale * np.sqrt(2 * np.pi))
    log_prob = (log_prob - np.log(1 - np.tanh(raw) ** 2)).sum(-1)
    ratio = np.exp(log_prob - np.asarray(batch.log_prob))[:, burn_in:]
    values = values[..., 0]
    target, advantages = definition(
        {
            "truncation": np.asarray(batch.truncation).T,
            "termination": np.asarray(batch.termination).T,
            "rewards": np.asarray(batch.reward).T,
            "values": values.T if recompute else np.asarray(batch.value).T,
            "bootstrap_value": after[:, 0, 0] if recompute else np.asarray(batch.last_value),
        },
        np.asarray(batch.timeout_value).T,
    )
    advantages = advantages.T[:, burn_in:]
    scaled = (advantages - advantages.mean()) / advantages.std()
    surrogate = np.minimum(ratio * scaled, np.clip(ratio, 0.8, 1.2) * scaled).mean()
    assert float(parts["policy_loss"]) == pytest.approx(-surrogate, rel=1e-4)
    error = ((target.T - values)[:, burn_in:] ** 2).mean()
    assert float(parts["v_loss"]) == pytest.approx(0.25 * error, rel=1e-4)


def test_burned_in_steps_have_no_gradient(tiny):
    """Neither by what was seen in them nor by the memory before them."""
    _, networks, params, batch = tiny
    calm = batch._replace(
        termination=jnp.zeros((N, TIME)), truncation=jnp.zeros((N, TIME)), timeout_value=None
    )

    def loss(observation, memory, burn_in):
        config = CONFIG._replace(memory_burn_in=burn_in)
        given = calm._replace(observation=observation, memory=memory)
        return compute_ppo_loss(params, given, jax.random.key(0), networks, config)[0]

    slope = jax.jit(jax.grad(loss, argnums=(0, 1)), static_argnums=2)
    seen, memory = slope(calm.observation, calm.memory, 2)
    np.testing.assert_array_equal(seen[:, :2], 0.0)
    jax.tree.map(lambda x: np.testing.assert_array_equal(x, 0.0), memory)
    assert (np.abs(seen[:, 2:]) > 0).any(axis=-1).all()
    # Without it, the gradient goes back through time to the first step.
    _, memory = slope(calm.observation, calm.memory, 0)
    assert all((np.abs(x) > 0).any(axis=-1).all() for x in memory)


class Small(Counter):
    """Shows small numbers, so that networks of random weights are exact to 1e-5."""

    def reset(self, rng):
        return self._shown(super().reset(rng))

    def step(self, state, action):
        return self._shown(super().step(state, action))

    def _shown(self, state):
        return state.replace(obs=jnp.sin(state.pipeline_state))


@pytest.mark.slow
def test_what_is_collected_is_what_the_networks_say_of_the_whole_unroll():
    """Memory carried over unrolls and training steps, and lost where episodes end.

    Half of the episodes terminate after 2 steps, the others are truncated after 7, and an unroll
    has 5.
    """
    learner = make_learner(
        PPO, Small(), **(SMALL | {"episode_length": 7, "memory": "lstm", "memory_size": UNITS})
    )
    state = jax.jit(learner.init)(jax.random.key(0))
    for _ in range(2):
        before = state.memory[0]
        state, batch, _ = jax.jit(learner._collect)(state, jax.random.key(1))
    params, networks = state.params, learner.networks
    logits, last = networks.policy_network.apply(
        params.normalizer, params.policy, batch.observation, batch.memory.policy, batch.first
    )
    log_prob = networks.parametric_action_distribution.log_prob(logits, batch.raw_action)
    np.testing.assert_allclose(log_prob, batch.log_prob, atol=1e-5)
    values, _ = networks.value_network.apply(
        params.normalizer, params.value, batch.observation, batch.memory.value, batch.first
    )
    np.testing.assert_allclose(values, batch.value, atol=1e-5)

    # Rows are unrolls, those of an environment one after the other.
    rows = jax.tree.map(lambda x: x.reshape(16, 2, *x.shape[1:]), batch)
    ended = np.asarray(rows.termination + rows.truncation)[:, :, -1] > 0
    assert ended.any() and not ended.all()
    np.testing.assert_array_equal(rows.memory.policy[:, 0], before.policy)
    last = np.asarray(last).reshape(16, 2, -1)
    goes_on = np.where(ended[..., None], 0.0, last)
    np.testing.assert_allclose(rows.memory.policy[:, 1], goes_on[:, 0], atol=1e-5)
    np.testing.assert_allclose(state.memory[0].policy, goes_on[:, 1], atol=1e-5)
    # The value after an unroll that has not ended is that of the next one's first observation.
    kept = ~ended[:, 0]
    np.testing.assert_allclose(rows.last_value[kept, 0], rows.value[kept, 1, 0], atol=1e-5)
    fresh = jax.jit(learner.fresh_environments)(state)
    assert not np.any(fresh.memory[0].policy) and not np.any(fresh.memory[0].value)


class Echo(Env):
    """Pays its action."""

    action_size = 1

    def reset(self, rng):
        zero = jnp.zeros(())
        return State(jnp.zeros(1), jnp.zeros(1), zero, zero, {}, {})

    def step(self, state, action):
        return state.replace(reward=action[0])


def test_evaluations_carry_memory():
    """A policy that counts its steps from 0 earns 0 + 1 + ... + 9 in an episode of 10."""
    count = RecurrentPolicy(lambda obs, key, memory: (memory, {"memory": memory + 1.0}), 1)
    evaluator = Evaluator(
        wrap(Echo(), episode_length=10), lambda _: over_batch(count), 3, 10, 1, jax.random.key(0)
    )
    metrics = evaluator.run_evaluation((), {}, aggregate_episodes=False)
    np.testing.assert_array_equal(metrics["eval/episode_reward"], [45.0] * 3)


def test_a_policy_with_memory_says_that_it_needs_it():
    policy = RecurrentPolicy(lambda obs, key, memory: (memory, {"memory": memory}), 3)
    with pytest.raises(ConfigError, match=r"this policy has memory: call .* with 3 zeros in"):
        policy(jnp.zeros(2), jax.random.key(0))


NETWORKS = functools.partial(make_ppo_networks, memory="gru")
REFUSED = [
    (PPO, {"memory": "rnn"}, "memory='rnn' must be one of None, gru, lstm."),
    (PPO, {"memory_burn_in": 2}, "memory_burn_in=2 needs memory: set memory to gru or lstm"),
    (PPO, {"memory": "gru", "memory_burn_in": 5}, "memory_burn_in=5 must be below unroll_length=5"),
    (PPO, {"network_factory": {"memory": "rnn"}}, "unknown memory 'rnn'. Allowed: gru, lstm."),
    (PPO, {"network_factory": {"memory_size": 0}}, "memory_size=0 must be a whole number"),
    (SAC, {"memory": "gru"}, "unknown setting 'memory'"),
    (
        BC,
        {
            "network_factory": NETWORKS,
            "teacher_inference_fn": lambda obs, key: (jnp.zeros((16, 1)), {}),
        },
        "networks with memory, which bc does not carry from step to step; ppo does.",
    ),
    (
        BC,
        {
            "teacher_inference_fn": RecurrentPolicy(
                lambda obs, key, memory: (memory, {"memory": memory}), 1
            ),
        },
        "teacher_inference_fn has memory, which BC does not carry from step to step",
    ),
]


@pytest.mark.parametrize(("agent", "settings", "message"), REFUSED)
def test_what_is_refused(agent, settings, message):
    common = {"num_envs": 16, "episode_length": 20}
    unroll = {"unroll_length": 5, "batch_size": 16, "num_minibatches": 1} if agent is PPO else {}
    with pytest.raises(ConfigError) as found:
        agent.train(Point(), num_timesteps=80, **common, **unroll, **settings)
    assert message in str(found.value)


def test_one_network_with_memory_is_refused():
    def half(*sizes, **more):
        made, plain = NETWORKS(*sizes, **more), make_ppo_networks(*sizes, **more)
        return type(made)(
            made.policy_network, plain.value_network, made.parametric_action_distribution
        )

    with pytest.raises(ConfigError, match="memory for only one of policy_network and value_netw"):
        train(Point(), 80, **(SMALL | {"network_factory": half}))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gru", pytest.param("lstm", marks=pytest.mark.long)])
def test_a_resumed_run_has_the_bits_of_one_that_never_stopped(tmp_path, kind):
    """Memory included; and the policy that is loaded is the one that was trained."""
    settings: dict[str, Any] = SMALL | {"memory": kind, "memory_size": UNITS, "memory_burn_in": 1}
    settings |= {"use_distributional_critic": True, "recompute_targets": True, "run_evals": False}
    whole, half = tmp_path / "whole", tmp_path / "half"
    make_policy, params, _ = train(Point(), 4 * STEP, save_checkpoint_path=whole, **settings)
    train(Point(), 2 * STEP, save_checkpoint_path=half, **settings)
    train(Point(), 4 * STEP, save_checkpoint_path=half, restore_checkpoint_path=half, **settings)
    found, again = (checkpoint.load(path).arrays for path in (whole, half))
    assert any("memory" in name for name in found)
    assert found.keys() == again.keys()
    assert [name for name in found if not np.array_equal(found[name], again[name])] == []

    loaded: Any = PPO.load_policy(whole)
    trained = make_policy(params, deterministic=True)
    assert loaded.memory_size == SIZES[kind]
    one = other = first_memory(loaded)
    for t in range(3):
        seen = jnp.array([0.1 * t, -0.5])
        action, one = act(loaded, seen, jax.random.key(0), one)
        expected, other = act(trained, seen, jax.random.key(0), other)
        np.testing.assert_array_equal(action, expected)
    assert np.any(one[0])


class Recall(Env):
    """Shows a sign in the first step, and pays 1 a step for actions of that sign at 1.

    Without memory the best action after the first step is any, which earns 0 on average.
    """

    action_size = 1

    def reset(self, rng):
        sign = jnp.where(jax.random.bernoulli(rng), 1.0, -1.0)
        zero = jnp.zeros(())
        return State(sign, sign[None], zero, zero, {}, {})

    def step(self, state, action):
        return state.replace(obs=jnp.zeros(1), reward=state.pipeline_state * action[0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [None, "gru", pytest.param("lstm", marks=pytest.mark.long)])
def test_memory_recalls_what_is_no_longer_seen(kind):
    """Return of at most 20; without memory only the first step's action can be right."""
    settings: dict[str, Any] = SMALL | {
        "memory": kind,
        "memory_size": 16,
        "deterministic_eval": True,
    }
    *_, metrics = train(Recall(), 100 * STEP, **settings)
    if kind is None:
        assert abs(metrics["eval/episode_reward"]) < 5.0
    else:
        assert metrics["eval/episode_reward"] > 15.0
