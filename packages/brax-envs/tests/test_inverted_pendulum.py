"""The inverted pendulum's numbers, from its description and from arithmetic."""

import jax.numpy as jnp
import numpy as np
import pytest

from brax.envs.inverted_pendulum import InvertedPendulum
from brax.envs.observation import size


def leaning(pendulum, angle):
    """Return a state at rest in the middle of the rail, with the pole at an angle."""
    physics = pendulum.start.pipeline_state
    pole = jnp.array([np.cos(angle / 2), 0, np.sin(angle / 2), 0], jnp.float32)
    x = physics.x.replace(
        pos=jnp.zeros_like(physics.x.pos), rot=jnp.stack([jnp.array([1.0, 0, 0, 0]), pole])
    )
    still = physics.xd * 0
    q = jnp.array([0.0, angle], jnp.float32)
    physics = physics.replace(q=q, qd=jnp.zeros(2), x=x, xd=still)
    return pendulum.start.replace(pipeline_state=physics)


def test_sizes(pendulum):
    assert pendulum.env.observation_size == size(InvertedPendulum.layout) == 4
    assert pendulum.env.action_size == 1
    assert float(pendulum.env.dt) == pytest.approx(0.02)
    assert pendulum.env.sys.collisions == ()


def test_observation_and_reward(pendulum):
    state = pendulum.step(pendulum.start, jnp.ones(1))
    physics = state.pipeline_state
    np.testing.assert_array_equal(state.obs, jnp.concatenate([physics.q, physics.qd]))
    assert state.reward == 1 and state.metrics == {"reward_alive": 1} and state.info == {}


def test_starts_are_spread_as_told(pendulum):
    obs = np.asarray(pendulum.starts.obs)
    assert 0.0095 < np.abs(obs).max() <= 0.01 + 1e-6
    assert np.std(obs) == pytest.approx(0.01 / np.sqrt(3), rel=0.05)


@pytest.mark.parametrize("angle, done", [(0.0, 0), (0.19, 0), (-0.19, 0), (0.21, 1), (-0.21, 1)])
def test_it_ends_when_the_pole_has_fallen(pendulum, angle, done):
    # In 0.02 s from rest the pole moves by about g / l * angle * t^2 / 2: below 0.003 rad.
    assert pendulum.step(leaning(pendulum, angle), jnp.zeros(1)).done == done


def test_lost_numbers_have_fallen(pendulum, lost):
    assert pendulum.step(lost(pendulum.start), jnp.zeros(1)).done == 1


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
    state = pendulum.step(leaning(pendulum, 0.0), jnp.array([action]))
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
