"""TD3's losses and transitions against the formulas of the papers, written out in NumPy."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.training.agents.td3 import n_step
from brax.training.agents.td3.losses import (
    TD3LossConfig,
    compute_critic_loss,
    compute_policy_loss,
    project,
)
from brax.training.agents.td3.networks import make_td3_networks
from brax.training.learning.replay_buffers import ReplayBuffer

N, OBS, ACT = 6, 3, 2
KEY = jax.random.key(9)
ATOMS = np.linspace(-2.0, 3.0, 6)
CONFIG = TD3LossConfig(reward_scaling=3.0, target_noise=0.4, target_noise_clip=0.3, atoms=None)


def _td3(num_atoms):
    """Return linear networks, their weights and targets, and transitions some of which end."""
    networks = make_td3_networks(
        OBS, ACT, policy_hidden_layer_sizes=(), q_hidden_layer_sizes=(), num_atoms=num_atoms
    )
    keys = jax.random.split(jax.random.key(5), 8)
    policies = [networks.policy_network.init(key) for key in keys[:2]]
    critics = [networks.q_network.init(key) for key in keys[2:4]]
    batch = n_step.NStep(
        observation=jax.random.normal(keys[4], (N, OBS)),
        action=jax.random.uniform(keys[5], (N, ACT), minval=-1.0),
        reward=jax.random.normal(keys[6], (N,)),
        discount=jnp.array([0.9, 0.0, 0.81, 0.9, 0.0, 0.729]),
        next_observation=jax.random.normal(keys[7], (N, OBS)),
    )
    return networks, policies, critics, batch


def _layer(params, *names):
    for name in ("params", *names):
        params = params[name]
    return np.float64(params["kernel"]), np.float64(params["bias"])


def _act(policy, obs):
    kernel, bias = _layer(policy, "hidden_0")
    return np.tanh(obs @ kernel + bias)


def _critic(q, i, obs, action):
    kernel, bias = _layer(q, f"critic_{i}", "hidden_0")
    return np.concatenate([obs, action]) @ kernel + bias


def _smoothed(policy, obs):
    """Actions with the noise that the key gives, cut at its bound, within the actions' bounds."""
    noise = 0.4 * np.float64(jax.random.normal(KEY, (N, ACT)))
    return np.clip(_act(policy, obs) + np.clip(noise, -0.3, 0.3), -1.0, 1.0)


def _softmax(logits):
    return np.exp(logits) / np.exp(logits).sum()


def _critic_loss(td3, config):
    networks, (_, target_policy), (q, target_q), batch = td3

    @jax.jit
    def loss(q):
        return compute_critic_loss(q, (), target_policy, target_q, batch, KEY, networks, config)

    return loss(q)


def test_the_loss_of_critics_of_the_mean_is_that_of_the_paper():
    td3 = _td3(0)
    _, (_, target_policy), (q, target_q), batch = td3
    batch = jax.tree.map(np.float64, batch)
    action = _smoothed(target_policy, batch.next_observation)
    loss = 0.0
    for i in range(N):
        later = [_critic(target_q, c, batch.next_observation[i], action[i])[0] for c in range(2)]
        target = 3.0 * batch.reward[i] + batch.discount[i] * min(later)
        for c in range(2):
            loss += (_critic(q, c, batch.observation[i], batch.action[i])[0] - target) ** 2 / N
    found, parts = _critic_loss(td3, CONFIG)
    assert float(found) == pytest.approx(loss, rel=1e-5) == parts["critic_loss"]
    first = [_critic(q, 0, batch.observation[i], batch.action[i])[0] for i in range(N)]
    assert float(parts["q"]) == pytest.approx(np.mean(first), rel=1e-5)


def test_the_loss_of_categorical_critics_is_that_of_the_paper():
    """The cross-entropy to the projected distribution of the critic with the lower mean."""
    td3 = _td3(len(ATOMS))
    _, (_, target_policy), (q, target_q), batch = td3
    batch = jax.tree.map(np.float64, batch)
    action = _smoothed(target_policy, batch.next_observation)
    loss, lower, beyond = 0.0, [], 0
    for i in range(N):
        later = [
            _softmax(_critic(target_q, c, batch.next_observation[i], action[i])) for c in range(2)
        ]
        lower.append(int(later[1] @ ATOMS < later[0] @ ATOMS))
        target = np.zeros(len(ATOMS))
        for atom, probability in zip(ATOMS, later[lower[-1]], strict=True):
            value = 3.0 * batch.reward[i] + batch.discount[i] * atom
            beyond += not -2.0 < value < 3.0
            place = (min(max(value, -2.0), 3.0) + 2.0) / 1.0  # atoms are 1 apart
            below, above = int(np.floor(place)), int(np.ceil(place))
            target[below] += probability * (above - place if above > below else 1.0)
            target[above] += probability * (place - below)
        for c in range(2):
            now = _softmax(_critic(q, c, batch.observation[i], batch.action[i]))
            loss -= target @ np.log(now) / N
    assert set(lower) == {0, 1} and beyond > 5
    config = CONFIG._replace(atoms=ATOMS)
    found, parts = _critic_loss(td3, config)
    assert float(found) == pytest.approx(loss, rel=1e-5)
    first = [_softmax(_critic(q, 0, batch.observation[i], batch.action[i])) for i in range(N)]
    assert float(parts["q"]) == pytest.approx(np.mean(first @ ATOMS), rel=1e-4)


@pytest.mark.parametrize("num_atoms", [0, len(ATOMS)])
def test_the_policy_s_loss_is_the_first_critic_s_value(num_atoms):
    networks, (policy, _), (q, _), batch = _td3(num_atoms)
    config = CONFIG._replace(atoms=ATOMS if num_atoms else None)
    loss = 0.0
    for obs in np.asarray(batch.observation, np.float64):
        outputs = _critic(q, 0, obs, _act(policy, obs))
        loss -= (_softmax(outputs) @ ATOMS if num_atoms else outputs[0]) / N
    found = compute_policy_loss(policy, (), q, batch.observation, networks, config)
    assert float(found) == pytest.approx(loss, rel=1e-4)


def test_targets_have_no_gradient():
    """The critics are fitted to their target, and not the target to them."""
    networks, (_, target_policy), (q, _), batch = _td3(len(ATOMS))
    config = CONFIG._replace(atoms=ATOMS)

    def loss(q, target_q):
        args = (), target_policy, target_q, batch, KEY, networks, config
        return compute_critic_loss(q, *args)[0]

    one = jax.jit(jax.grad(loss))(q, q)
    both = jax.jit(jax.grad(lambda q: loss(q, q)))(q)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), one, both)


def test_a_projection_keeps_probability_and_mean():
    draw = np.random.default_rng(0)
    probabilities = draw.dirichlet(np.ones(9), 50).astype(np.float32)
    values = draw.uniform(-2.0, 3.0, (50, 9)).astype(np.float32)
    values[:, 0], values[:, 1] = ATOMS[2], ATOMS[-1]  # at an atom, and at the last
    found = np.float64(project(jnp.asarray(probabilities), jnp.asarray(values), ATOMS))
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-6)  # measured: 2e-7
    means = np.sum(np.float64(probabilities) * values, axis=1)
    np.testing.assert_allclose(found @ ATOMS, means, atol=2e-6)  # measured: 6e-7
    beyond = np.float64(project(jnp.asarray(probabilities), jnp.full((50, 9), -7.0), ATOMS))
    np.testing.assert_allclose(beyond, [[1, 0, 0, 0, 0, 0]] * 50, atol=1e-6)


STEPS, ENVS, LENGTH = 3, 2, 7
ENDS = {(0, 2): "terminated", (0, 5): "truncated", (1, 3): "truncated", (1, 7): "terminated"}
"""Ends of episodes, by environment and step."""


def _filled(number):
    """Return a buffer after `number` steps; everything in a step says which one it is."""
    buffer = ReplayBuffer(LENGTH * ENVS, ENVS, n_step.Step.like(jnp.zeros(2), 1), 4000)
    state, insert = buffer.init(), jax.jit(buffer.insert)
    for step in range(number):
        of = np.array([[env, step] for env in range(ENVS)], np.float32)[:, None]
        kind = [ENDS.get((env, step), "") for env in range(ENVS)]
        terminated, last = (
            np.array([[x in kinds] for x in kind], np.float32)
            for kinds in (["terminated"], ["terminated", "truncated"])
        )
        after = of + np.array([0, 0.5], np.float32)
        parts: Any = (of, of[..., 1:], _reward(of[..., 1]), terminated, last, after)
        new = n_step.Step(*parts)
        state = insert(state, new)
    return buffer, state


def _reward(step):
    return np.float32(1.0 + step**2)


@pytest.mark.parametrize("number", [5, 10])
def test_a_transition_ends_with_its_episode(number):
    """Every window of the ring is drawn, before it is full and after it has come round."""
    buffer, state = _filled(number)
    draw = functools.partial(n_step.draw, buffer, key=KEY, steps=STEPS, discounting=0.9)
    found = jax.tree.map(np.asarray, jax.jit(draw)(state))
    expected = {}
    for env in range(ENVS):
        for start in range(max(0, number - LENGTH), number - STEPS + 1):
            total, discount = 0.0, 1.0
            for step in range(start, start + STEPS):
                total += discount * _reward(step)
                discount *= 0.9
                if (env, step) in ENDS:
                    break
            ended = ENDS.get((env, step)) == "terminated"
            expected[env, start] = total, 0.0 if ended else discount, step + 0.5
    for i, (env, start) in enumerate(found.observation):
        reward, discount, after = expected[int(env), int(start)]
        assert found.action[i, 0] == start
        assert found.reward[i] == pytest.approx(reward, rel=1e-6)
        assert found.discount[i] == pytest.approx(discount, rel=1e-6)
        assert found.next_observation[i].tolist() == [env, after]
    drawn, counts = np.unique(found.observation, axis=0, return_counts=True)
    assert len(drawn) == len(expected)
    # chi^2 of 5 and of 9 degrees of freedom: beyond 27.9 once in a thousand seeds, for the larger.
    assert np.sum((counts - 4000 / len(drawn)) ** 2 / (4000 / len(drawn))) < 27.9


def test_a_transition_does_not_lead_across_a_reset_of_all_environments():
    """The step before the reset is the last, and its value still counts."""
    buffer, state = _filled(2)
    marked = n_step.end_episodes(buffer, state)
    np.testing.assert_array_equal(marked.data.last[:, :3], [[0, 1, 0], [0, 1, 0]])
    np.testing.assert_array_equal(marked.data.terminated, state.data.terminated)
