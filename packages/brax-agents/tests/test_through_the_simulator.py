"""APG and SHAC: their returns against definitions, their gradients against differences."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import Point, make_learner
from jax.flatten_util import ravel_pytree

from brax import plugins
from brax.training import types
from brax.training.agents.apg.learner import known_returns, to_come
from brax.training.agents.shac.losses import short_horizon_return
from brax.training.config import Runtime
from brax.training.learning.gradient_clipping import clip_gradient
from brax.training.learning.zeroth_order import leave_one_out_advantage
from brax.training.runner import parts
from brax.training.runner.program import Program

pytestmark = pytest.mark.slow

DISCOUNT, TIME, N = 0.9, 9, 7


def _definition(data):
    """Return the sum over episodes of the returns within the window, by loops."""
    totals = np.zeros(N)
    for n in range(N):
        start = 0
        for t in range(TIME):
            last = data["termination"][t, n] or data["truncation"][t, n] or t == TIME - 1
            if not last:
                continue
            for s in range(start, t + 1):
                totals[n] += DISCOUNT ** (s - start) * data["rewards"][s, n]
            if not data["termination"][t, n]:
                totals[n] += DISCOUNT ** (t + 1 - start) * data["next_values"][t, n]
            start = t + 1
    return totals


def test_returns_of_a_window_are_the_sums_that_define_them():
    rng = np.random.default_rng(3)
    ended = rng.choice(["no", "terminated", "truncated"], (TIME, N), p=[0.6, 0.2, 0.2])
    ended[-1, :3] = ["no", "terminated", "truncated"]
    data = {
        "rewards": rng.normal(size=(TIME, N)),
        "termination": (ended == "terminated").astype(float),
        "truncation": (ended == "truncated").astype(float),
        "next_values": rng.normal(size=(TIME, N)),
    }
    got = short_horizon_return(**jax.tree.map(jnp.asarray, data), discount=DISCOUNT)
    np.testing.assert_allclose(got, _definition(data), atol=1e-5)


SMALL: dict[str, Any] = {"num_envs": 8, "episode_length": 6, "horizon_length": 4}
HIDDEN: dict[str, Any] = {
    "apg": {"hidden_layer_sizes": [8]},
    "shac": {"policy_hidden_layer_sizes": [8], "value_hidden_layer_sizes": [8]},
}


@pytest.mark.parametrize(
    ("name", "more"), [("apg", {}), ("shac", {}), ("shac", {"entropy_cost": 0.5})]
)
def test_the_gradient_goes_through_the_environment(name, more):
    """Its slope along two directions, against differences of the loss."""
    settings: dict[str, Any] = {**SMALL, "network_factory": HIDDEN[name], **more}
    learner = make_learner(plugins.get("trainer", name), Point(), **settings)
    loss = learner.loss if name == "apg" else learner.actor_loss
    state = jax.jit(learner.init)(jax.random.key(0))
    value_and_grad = jax.jit(jax.value_and_grad(loss, has_aux=True))
    key = jax.random.key(1)
    leaves, structure = jax.tree.flatten(state.params.policy)

    def noise(seed):
        keys = jax.random.split(jax.random.key(seed), len(leaves))
        return [jax.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)]

    leaves = [x + 0.3 * n for x, n in zip(leaves, noise(2), strict=True)]
    (_, (_, data, *_)), grads = value_and_grad(jax.tree.unflatten(structure, leaves), state, key)
    assert data.reward.shape == (4, 8)
    for way in (noise(3), noise(4)):
        slope: Any = sum(jnp.vdot(g, w) for g, w in zip(jax.tree.leaves(grads), way, strict=True))

        def at(step, way=way):
            there = [x + step * w for x, w in zip(leaves, way, strict=True)]
            return value_and_grad(jax.tree.unflatten(structure, there), state, key)[0][0]

        difference = (at(3e-3) - at(-3e-3)) / 6e-3
        assert abs(slope) > 1e-2
        assert float(slope) == pytest.approx(float(difference), rel=2e-2)


def test_the_bonus_of_entropy_is_of_what_was_done():
    """Against the entropy of the distributions that acted, by quadrature."""
    found = []
    for cost in (0.0, 0.5):
        settings: dict[str, Any] = {**SMALL, "num_envs": 20_000, "entropy_cost": cost}
        factory = {"network_factory": HIDDEN["shac"]}
        learner = make_learner(plugins.get("trainer", "shac"), Point(), **settings, **factory)
        state = jax.jit(learner.init)(jax.random.key(0))
        loss = jax.jit(learner.actor_loss)
        found.append(loss(state.params.policy, state, jax.random.key(1)))
    (without, (_, data, _)), (value, _) = found
    apply = learner.networks.policy_network.apply
    logits = apply(state.params.normalizer, state.params.policy, data.observation)
    loc, scale = np.split(np.asarray(logits, float), 2, axis=-1)
    scale = np.logaddexp(0.0, scale) + 0.001
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    raw = loc[..., None] + scale[..., None] * points
    slope = 2.0 * (np.log(2.0) - np.logaddexp(raw, -raw))  # the logarithm of tanh's
    widens = slope @ weights / weights.sum()
    entropy = np.sum(0.5 * np.log(2.0 * np.pi * np.e) + np.log(scale) + widens, axis=-1).mean()
    # One sample of each of 80 000: a standard error of 0.003.
    assert float(without - value) / 0.5 == pytest.approx(entropy, abs=0.01)
    assert abs(entropy) > 0.1


def test_what_comes_after_an_action_is_the_sum_that_defines_it():
    rng = np.random.default_rng(4)
    rewards, ended = rng.normal(size=(TIME, N)), rng.random((TIME, N)) < 0.2
    want = np.zeros((TIME, N))
    for t in range(TIME):
        for n in range(N):
            over = np.flatnonzero(ended[t:, n])
            end = t + over[0] if len(over) else TIME - 1
            want[t, n] = rewards[t : end + 1, n].sum()
    got = to_come(jnp.asarray(rewards), jnp.asarray(ended, float))
    np.testing.assert_allclose(got, want, atol=1e-6)


def _known(rewards, ended, truncated):
    rewards, ended, truncated = map(jnp.asarray, (rewards, ended, truncated))
    extras = {"state_extras": {"truncation": truncated}}
    nothing = jnp.zeros(0)
    seen = types.Transition(nothing, nothing, rewards, 1.0 - ended, nothing, extras)
    return known_returns(seen)


def test_nothing_is_credited_with_the_next_episode():
    """Two environments, of which one episode ends with the first of two steps."""
    ended = [[1.0, 0.0], [0.0, 0.0]]
    returns, known = _known([[1.0, 2.0], [10.0, 20.0]], ended, jnp.zeros((2, 2)))
    np.testing.assert_allclose(returns, [[1.0, 22.0], [10.0, 20.0]])
    np.testing.assert_array_equal(known, 1.0)


def test_the_time_limit_is_nobodys_fault():
    """The first of three episodes is cut after the first of two steps: it says nothing of it."""
    cut = [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    returns, known = _known([[1.0, 2.0, 4.0], [10.0, 20.0, 30.0]], cut, cut)
    np.testing.assert_array_equal(known, [[0.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    # Returns 1 (cut), 22, 34 and 10, 20, 30. Where nothing is observed that differs, the others
    # let expect their mean: 34 and 22; 25, 20 and 15.
    for seen in (jnp.ones((2, 3, 4)), {"pixels/camera": jnp.ones((2, 3, 8, 8, 3))}):
        got = leave_one_out_advantage(seen, returns, known)
        np.testing.assert_allclose(got, [[0.0, -12.0, 12.0], [-15.0, 0.0, 15.0]], atol=1e-5)
    np.testing.assert_array_equal(leave_one_out_advantage(seen, returns, jnp.zeros((2, 3))), 0.0)


def test_each_episode_is_compared_with_what_the_others_let_expect():
    """A ridge regression fitted anew without each of them, in NumPy, is what is expected of it."""
    rng = np.random.default_rng(5)
    state, extra = rng.normal(size=(3, 40, 2)), rng.normal(size=(3, 40, 1))
    returns, known = rng.normal(size=(3, 40)) + state[..., 0] ** 2, rng.random((3, 40)) < 0.7
    x = np.concatenate([state, extra], axis=-1)
    x = (x - x.mean((0, 1))) / x.std((0, 1))
    features = np.concatenate([x, x**2], axis=-1)
    want = np.zeros((3, 40))
    for t, n in zip(*np.nonzero(known), strict=True):
        others = known[t] & (np.arange(40) != n)
        f, y = features[t, others], returns[t, others]
        centred = f - f.mean(0)
        slope = np.linalg.solve(centred.T @ centred + np.eye(6), centred.T @ (y - y.mean()))
        want[t, n] = returns[t, n] - y.mean() - (features[t, n] - f.mean(0)) @ slope
    tree = {"state": jnp.asarray(state, jnp.float32), "extra": jnp.asarray(extra, jnp.float32)}
    tree["pixels/camera"] = jnp.asarray(rng.normal(size=(3, 40, 4, 4, 1)), jnp.float32)
    got = leave_one_out_advantage(
        tree, jnp.asarray(returns, jnp.float32), jnp.asarray(known, jnp.float32)
    )
    np.testing.assert_allclose(got, want, atol=1e-4)


def _estimates(name, share, windows):
    """Return the loss and its gradient in each window of many environments."""
    settings: dict[str, Any] = {**SMALL, "num_envs": 100_000, "zeroth_order": share}
    factory = {"network_factory": HIDDEN[name]}
    learner = make_learner(plugins.get("trainer", name), Point(), **settings, **factory)
    whole = learner.loss if name == "apg" else learner.actor_loss
    state = jax.jit(learner.init)(jax.random.key(0))
    loss = jax.jit(jax.value_and_grad(lambda *args: whole(*args)[0]))
    keys = jax.random.split(jax.random.key(1), 8)[:windows]
    runs = [loss(state.params.policy, state, key) for key in keys]
    values, grads = zip(*((v, ravel_pytree(g)[0]) for v, g in runs), strict=True)
    return np.array(values), np.array(grads)


@pytest.mark.parametrize("name", ["apg", pytest.param("shac", marks=pytest.mark.long)])
def test_both_estimates_of_a_gradient_agree(name):
    """The estimates agree where rewards are smooth and no episode ends, with any share."""
    value, first = _estimates(name, 0.0, 8)
    whole, zeroth = _estimates(name, 1.0, 8)
    (part,), (mixed,) = _estimates(name, 0.25, 1)
    np.testing.assert_allclose(whole, value, rtol=1e-6)
    np.testing.assert_allclose(part, value[0], rtol=1e-6)
    size = np.linalg.norm(first.mean(axis=0))
    want = 0.75 * first[0] + 0.25 * zeroth[0]
    np.testing.assert_allclose(mixed, want, atol=float(1e-5 * size))
    # APG's are 0.06 apart; one window has 0.1 of the size as noise.
    assert np.linalg.norm(np.mean(first - zeroth, axis=0)) < 0.1 * size


def test_what_comes_back_of_each_environment_is_limited():
    """Direction kept, whatever the size; nothing of what is not finite."""
    grads = [
        jnp.array([[3.0, 0.0], [0.3, 0.0], [3e30, 0.0], [0.0, 0.0], [jnp.inf, 1.0]]),
        jnp.array([4.0, 0.4, 4e30, 0.0, 1.0]),
    ]
    leaves = [jnp.ones((5, 2)), jnp.ones(5)]
    wide, thin = jax.vjp(lambda x: clip_gradient(x, 1.0), leaves)[1](grads)[0]
    np.testing.assert_allclose(wide[:, 0], [0.6, 0.3, 0.6, 0.0, 0.0], rtol=1e-6)
    np.testing.assert_allclose(wide[:, 1], 0.0)
    np.testing.assert_allclose(thin, [0.8, 0.4, 0.8, 0.0, 0.0], rtol=1e-6)


@pytest.mark.parametrize(("most", "differs"), [(1e-3, True), (1e6, False)])
def test_a_limit_changes_derivatives_alone(most, differs):
    found = []
    for limited in (None, most):
        settings: dict[str, Any] = {
            **SMALL,
            "network_factory": HIDDEN["shac"],
            "max_state_gradient": limited,
        }
        learner = make_learner(plugins.get("trainer", "shac"), Point(), **settings)
        state = jax.jit(learner.init)(jax.random.key(0))
        loss = jax.jit(jax.value_and_grad(learner.actor_loss, has_aux=True))
        (value, _), grads = loss(state.params.policy, state, jax.random.key(1))
        found.append((float(value), ravel_pytree(grads)[0]))
    (value, plain), (same, limited) = found
    assert value == same
    assert np.allclose(plain, limited, rtol=1e-5, atol=1e-7) != differs
    assert float(jnp.vdot(plain, limited)) > 0


class Breaking(Point):
    """An environment that breaks beyond 0.5: the reward is NaN, or it ends and earns nothing.

    The second is what `EpisodeWrapper` makes of the first.
    """

    def __init__(self, broken):
        self.broken = broken

    def step(self, state, action):
        new = super().step(state, action)
        x = new.pipeline_state[0]
        beyond = x > 0.5
        if self.broken:
            return new.replace(reward=-jnp.sqrt(jnp.where(beyond, -1.0, 1.0) * (1.0 + x**2)))
        reward = jnp.where(beyond, 0.0, -jnp.sqrt(1.0 + x**2))
        return new.replace(reward=reward, done=beyond.astype(jnp.float32))


@pytest.mark.parametrize("share", [pytest.param(0.0, marks=pytest.mark.long), 0.5])
@pytest.mark.parametrize("name", HIDDEN)
def test_an_environment_that_breaks_takes_nothing_from_the_others(name, share):
    found = []
    settings: dict[str, Any] = {**SMALL, "network_factory": HIDDEN[name], "zeroth_order": share}
    for broken in (True, False):
        learner = make_learner(plugins.get("trainer", name), Breaking(broken), **settings)
        whole = learner.loss if name == "apg" else learner.actor_loss
        loss = jax.jit(jax.value_and_grad(whole, has_aux=True))
        state = jax.jit(learner.init)(jax.random.key(0))
        (value, (_, data, *_)), grads = loss(state.params.policy, state, jax.random.key(1))
        broke = data.extras["state_extras"]["nan"]
        assert (0 < broke.sum() < broke.size) if broken else not broke.any()
        found.append((value, ravel_pytree(grads)[0]))
    (value, got), (same, want) = found
    assert float(value) == pytest.approx(float(same), rel=1e-6)
    assert np.linalg.norm(want) > 1e-3
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_parameters_to_start_from_are_the_target_of_shacs_critic_too():
    settings: dict[str, Any] = {**SMALL, "network_factory": HIDDEN["shac"], "critic_updates": 1}
    learner = make_learner(plugins.get("trainer", "shac"), Point(), **settings)
    program = Program(learner, learner.mesh)
    program.compile_init()
    given = jax.device_get(program.init(jax.random.key(7)).params)
    runtime = Runtime(restore_params=given)
    state = parts.initial_state(program, jax.random.key(0), runtime, None).state
    for critic in (state.params.value, state.target_value):
        jax.tree.map(np.testing.assert_array_equal, critic, given.value)
    program.compile_advance()  # which takes over the memory of the state
    state, _ = program.advance(state, 1)
    assert int(state.bad_updates) == 0
