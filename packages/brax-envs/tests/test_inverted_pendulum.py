"""The inverted pendulum's numbers, from its description and from arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.envs.inverted_pendulum import LAYOUT
from brax.envs.observation import size


def at(pendulum, *q):
    """A state at rest with the given cart position and pole angle."""
    start = pendulum.reset(jax.random.key(0))
    return start.replace(pipeline_state=pendulum.env.pipeline_init(jnp.array(q), jnp.zeros(2)))


def test_sizes(pendulum):
    assert pendulum.env.observation_size == size(LAYOUT) == 4
    assert pendulum.env.action_size == 1
    assert float(pendulum.env.dt) == pytest.approx(0.02)
    assert pendulum.env.sys.collisions == ()


def test_observation_and_reward(pendulum):
    state = pendulum.step(pendulum.reset(jax.random.key(0)), jnp.ones(1))
    physics = state.pipeline_state
    np.testing.assert_array_equal(state.obs, jnp.concatenate([physics.q, physics.qd]))
    assert state.reward == 1 and state.metrics == {} and state.info == {}


def test_resets_are_spread_as_told(pendulum):
    state = jax.jit(jax.vmap(pendulum.env.reset))(jax.random.split(jax.random.key(1), 512))
    assert 0.0095 < np.abs(state.obs).max() <= 0.01 + 1e-7
    assert np.std(state.obs) == pytest.approx(0.01 / np.sqrt(3), rel=0.05)


@pytest.mark.parametrize("angle, done", [(0.0, 0), (0.19, 0), (-0.19, 0), (0.21, 1), (-0.21, 1)])
def test_it_ends_when_the_pole_has_fallen(pendulum, angle, done):
    # In 0.02 s from rest the pole moves by about g / l * angle * t^2 / 2: below 0.003 rad.
    assert pendulum.step(at(pendulum, 0.0, angle), jnp.zeros(1)).done == done


def test_lost_numbers_have_fallen(pendulum):
    assert pendulum.step(at(pendulum, 0.0, 0.0), jnp.full(1, jnp.nan)).done == 1


@pytest.mark.parametrize("action", [1.0, -1.0, 0.5, 7.0])
def test_the_action_is_scaled_to_the_motors_range(pendulum, action):
    """The cart's first acceleration, by the equations of motion of a cart with a pole.

    With the pole upright: (M + m) x'' + m l a'' = F and m l x'' + I a'' = 0, where I is the pole's
    inertia about the hinge; masses and inertia are those of solid capsules of density 1000.
    """
    force = 100 * 3 * np.clip(action, -1, 1)
    cart, pole = _capsule_mass(0.1, 0.2), _capsule_mass(0.049, 0.6)
    inertia = _capsule_inertia(0.049, 0.6) + pole * 0.3**2
    acceleration = force / (cart + pole - (pole * 0.3) ** 2 / inertia)
    state = pendulum.step(at(pendulum, 0.0, 0.0), jnp.full(1, action))
    # Damping of 1 N s/m on 10 kg, and the pole's lean, change this by less than 2 %.
    np.testing.assert_allclose(state.obs[2], acceleration * 0.02, rtol=0.02)


def _capsule_mass(radius, length):
    return 1000 * np.pi * radius**2 * (length + 4 / 3 * radius)


def _capsule_inertia(radius, length):
    """Across the axis, about the centre: a cylinder and two half balls at its ends."""
    cylinder = 1000 * np.pi * radius**2 * length
    ball = 1000 * 4 / 3 * np.pi * radius**3
    return cylinder * (radius**2 / 4 + length**2 / 12) + ball * (
        2 / 5 * radius**2 + length**2 / 4 + 3 / 8 * length * radius
    )
