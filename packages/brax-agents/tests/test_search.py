"""ES and ARS: what they make of returns, against arithmetic, and how they count."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import Counter, Point, make_learner

from brax import plugins
from brax.training.agents.ars import train as ars
from brax.training.agents.ars.gradient import best_direction
from brax.training.agents.es import train as es
from brax.training.agents.es.gradient import search_gradient, shape_fitness

pytestmark = pytest.mark.slow

POINT, TOP = np.array([0.5, -1.0, 2.0]), np.array([1.0, 1.0, -1.0])


def _quadratic(x):
    """Return the height of a hill with its top at TOP; the gradient is -2 (x - TOP)."""
    return -np.sum((x - TOP) ** 2, axis=-1)


def test_mirrored_noise_gives_the_gradient_of_a_quadratic_along_itself():
    """(f(x + s e) - f(x - s e)) / 2s is exactly the slope along e: odd terms beyond it are none."""
    noise = np.random.default_rng(0).normal(size=(5, 3))
    plus, minus = _quadratic(POINT + 0.3 * noise), _quadratic(POINT - 0.3 * noise)
    slopes = noise @ (-2 * (POINT - TOP))
    expected = np.mean(slopes[:, None] * noise, axis=0)
    got = search_gradient({"x": jnp.asarray(noise)}, jnp.asarray(plus), jnp.asarray(minus), 0.3)
    np.testing.assert_allclose(got["x"], expected, rtol=1e-4)


def test_on_average_it_is_the_gradient():
    noise = np.random.default_rng(1).normal(size=(200_000, 3)).astype(np.float32)
    plus, minus = _quadratic(POINT + 0.1 * noise), _quadratic(POINT - 0.1 * noise)
    got = search_gradient(jnp.asarray(noise), jnp.asarray(plus), jnp.asarray(minus), 0.1)
    np.testing.assert_allclose(got, -2 * (POINT - TOP), atol=0.1)


@pytest.mark.parametrize(
    ("shaping", "expected"),
    [
        ("original", [3.0, -1.0, 10.0, 2.0]),
        ("centered_rank", [1 / 6, -1 / 2, 1 / 2, -1 / 6]),
        # max(0, log 3 - log rank) is 1.0986, 0.4055, 0, 0 from the best on: 0.7304, 0.2696 of it
        ("wierstra", [0.0196, -0.25, 0.4804, -0.25]),
    ],
)
def test_fitness_is_shaped(shaping, expected):
    got = shape_fitness(jnp.array([3.0, -1.0, 10.0, 2.0]), shaping)
    np.testing.assert_allclose(got, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("shaping", "worst", "equal", "best"),
    [
        # Ranks 0, 1 to 3 and 4 of five
        ("centered_rank", -0.5, 0.0, 0.5),
        # log 3.5 - log rank is 1.2528, 0.5596, 0.1542, 0, 0 from the best on: 0.6370, 0.2845,
        # 0.0784 of their sum, so those in the middle have 0.1210 on average
        ("wierstra", -0.2, -0.0790, 0.4370),
    ],
)
def test_equal_returns_weigh_the_same(shaping, worst, equal, best):
    got = shape_fitness(jnp.array([7.0, 2.0, 7.0, 9.0, 7.0]), shaping)
    np.testing.assert_allclose(got, [equal, worst, equal, best, equal], atol=1e-4)
    same = shape_fitness(jnp.full(6, 1000.0), shaping)
    np.testing.assert_allclose(same, 0.0, atol=1e-7)


def test_the_best_directions_are_averaged_in_units_of_their_deviation():
    """The first and the last have the best returns, 4 and 8; theirs are 4, 0, 2, 8, mean 3.5."""
    noise = jnp.array([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])
    plus, minus = jnp.array([4.0, 1.0, 2.0]), jnp.array([0.0, 3.0, 8.0])
    deviation = np.sqrt((0.5**2 + 3.5**2 + 1.5**2 + 4.5**2) / 4)
    expected = (4 * np.array([1.0, 0.0]) - 6 * np.array([2.0, -1.0])) / (2 * deviation)
    np.testing.assert_allclose(best_direction(noise, plus, minus, 2), expected, rtol=1e-5)


@pytest.mark.parametrize("action_repeat", [1, 2])
def test_only_first_episodes_count(action_repeat):
    """Episodes that terminate earn 1 + 2 in 2 steps, the others 1 + 2 + 3 in 3.

    Where an action is for two steps, they take 1 and 2 actions, and the last is for one.
    """
    settings: dict[str, Any] = {
        "episode_length": 3,
        "normalize_observations": True,
        "run_evals": False,
    }
    settings |= {"action_repeat": action_repeat}
    small: dict[str, Any] = {"network_factory": {"hidden_layer_sizes": [4]}}
    _, params, metrics = es.train(Counter(), 16 * 3, population_size=16, **settings, **small)
    length = metrics["episode/length"]
    assert 2 < length < 3
    assert metrics["training/return_mean"] == pytest.approx(3 * length - 3)
    assert metrics["episode/sum_reward"] == pytest.approx(3 * length - 3)
    assert int(params.normalizer.count) == round(16 * (length - (action_repeat - 1)))

    _, _, metrics = ars.train(
        Counter(),
        16 * 3,
        number_of_directions=8,
        top_directions=2,
        reward_shift=0.5,
        **settings,
    )
    length = metrics["episode/length"]
    assert metrics["training/return_mean"] == pytest.approx(3 * length - 3 - 0.5 * length)


def test_both_of_a_pair_start_alike():
    """Both of a pair start alike: their return, 3 or 6, depends only on the start."""
    small: dict[str, Any] = {"population_size": 16, "network_factory": {"hidden_layer_sizes": [4]}}
    learner = make_learner(plugins.get("trainer", "es"), Counter(), episode_length=3, **small)
    policy = learner.networks.policy_network.init(jax.random.key(0))
    policies = jax.tree.map(lambda x: jnp.stack([x] * 16), policy)
    returns, _, _ = jax.jit(learner.returns)(policies, (), jax.random.key(1))
    plus, minus = jnp.split(returns, 2)
    assert plus.tolist() == minus.tolist() and {*plus.tolist()} == {3.0, 6.0}


class Mass(Counter):
    """Earns its mass in each step."""

    def __init__(self, mass=1.0):
        self.sys: Any = {"mass": jnp.float32(mass)}

    def with_sys(self, sys):
        return Mass(sys["mass"])

    def step(self, state, action):
        return super().step(state, action).replace(reward=self.sys["mass"])


def _fixed(sys):
    return {"mass": 10.0 ** jnp.arange(8)}, {"mass": 0}


def _drawn(sys, rng):
    return {"mass": jax.vmap(jax.random.uniform)(rng)}, {"mass": 0}


@pytest.mark.parametrize("draw", [_fixed, _drawn])
def test_both_of_a_pair_play_in_the_same_system(draw):
    """Without noise the return is the system's mass for each of two steps, or of three."""
    small: dict[str, Any] = {"population_size": 8, "network_factory": {"hidden_layer_sizes": [4]}}
    small |= {"episode_length": 3, "randomization_fn": draw}
    learner = make_learner(plugins.get("trainer", "es"), Mass(), **small)
    policy = learner.networks.policy_network.init(jax.random.key(0))
    policies = jax.tree.map(lambda x: jnp.stack([x] * 8), policy)
    returns, _, _ = jax.jit(learner.returns)(policies, (), jax.random.key(1))
    plus, minus = np.split(np.asarray(returns), 2)
    assert plus.tolist() == minus.tolist() and len({*plus.tolist()}) == 4
    if draw is _fixed:
        assert {*(plus / [1.0, 10.0, 100.0, 1000.0])} <= {2.0, 3.0}


def test_a_linear_policy_of_zeros_does_nothing():
    make_policy, params, _ = ars.train(Counter(), 0, run_evals=False)
    action, _ = make_policy(params)(jnp.array([3.0, 4.0]), jax.random.key(0))
    assert action.tolist() == [0.0]


def test_parameters_to_start_from_stay_with_the_caller():
    """Whoever passes arrays of JAX can use them for the next run too."""
    sizes: dict[str, Any] = {"number_of_directions": 4, "top_directions": 2, "episode_length": 3}
    _, params, _ = ars.train(Point(), 0, run_evals=False, **sizes)
    given = jax.tree.map(jnp.array, params)
    first, again = (
        ars.train(Point(), 8 * 3, run_evals=False, restore_params=given, **sizes)[1]
        for _ in range(2)
    )
    assert jax.tree.all(jax.tree.map(np.array_equal, first, again))
    assert not jax.tree.all(jax.tree.map(np.array_equal, first.policy, given.policy))


@pytest.mark.parametrize("kind", [np.float16, jnp.bfloat16, np.float64])
def test_parameters_to_start_from_may_have_another_precision(kind):
    """Numbers that each type can represent start the same run."""
    sizes: dict[str, Any] = {"number_of_directions": 4, "top_directions": 2, "episode_length": 3}
    _, params, _ = ars.train(Point(), 0, run_evals=False, **sizes)
    given = params._replace(policy=jax.tree.map(lambda x: np.full_like(x, 0.5), params.policy))
    other = given._replace(policy=jax.tree.map(lambda x: x.astype(kind), given.policy))
    first, again = (
        ars.train(Point(), 8 * 3, run_evals=False, restore_params=each, **sizes)[1]
        for each in (given, other)
    )
    assert jax.tree.all(jax.tree.map(np.array_equal, first, again))


@pytest.mark.parametrize("agent", ["es", "ars"])
def test_a_training_step_is_all_steps_of_an_episode_of_each_policy(agent):
    sizes = {"es": {"population_size": 8}, "ars": {"number_of_directions": 4, "top_directions": 1}}
    settings: dict[str, Any] = {"episode_length": 10, "action_repeat": 3, **sizes[agent]}
    config, _ = plugins.get("trainer", agent).check(settings)
    assert config.env_steps_per_training_step == 8 * 10
