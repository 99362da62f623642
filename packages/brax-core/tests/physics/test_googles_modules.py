"""`brax.actuator` and `brax.com`, modules of Google's brax: closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import actuator, com, dynamics
from brax.base import Motion, Transform
from brax.builder import ModelBuilder
from brax.errors import ShapeError
from brax.generalized.pipeline import GENERALIZED


@pytest.fixture(scope="module")
def arm():
    """Two hinges, with a motor and a position servo on the first and a filter on the second."""
    model = ModelBuilder()
    model.add_body("a", mass=2.0, inertia=(1, 2, 2.5), ipos=(0.5, 0, 0), iquat=(0.6, 0.8, 0, 0))
    model.add_body("b", "a", pos=(1, 0, 0), mass=3.0, inertia=(2, 2, 2), ipos=(0, 0.25, 0))
    model.add_joint("a", "hinge", "one")
    model.add_joint("b", "hinge", "two")
    model.add_actuator("one", gear=2.0, ctrl_range=(-1, 1))
    model.add_actuator(
        "one", name="servo", gear=3.0, gainprm=(7.0,), biasprm=(0, -7.0, -0.5), force_range=(-9, 9)
    )
    model.add_actuator("two", "filter", gear=5.0, dynprm=(0.5,))
    return model.build()


@pytest.mark.parametrize(
    ("act", "first"),
    [
        # Gear times (control, clipped to 1), plus gear times 7 (control - 3 q) - 0.5 (3 qd).
        ((3.0, 0.5, 1.0), 2 + 3 * (7 * (0.5 - 0.3) - 1.5 * 0.4)),
        ((-0.25, 5.0, 1.0), -0.5 + 3 * 9),
        ((0.0, -5.0, 0.0), 3 * -9),
    ],
)
def test_forces_of_actuators(arm, act, first):
    q, qd = jnp.array([0.1, -2.0]), jnp.array([0.4, 1.0])
    found = jax.jit(actuator.to_tau)(arm, jnp.array(act), q, qd)
    # The filter's activation is zero, whatever its control is.
    np.testing.assert_allclose(found, [first, 0], rtol=1e-5)


def test_a_step_applies_these_forces(arm):
    still = arm.tree_replace({"opt.gravity": jnp.zeros(3)})
    state, act = GENERALIZED.init(still, jnp.zeros(2), jnp.zeros(2)), jnp.array([0.5, 0.1, 0.0])
    moved = GENERALIZED.step(still, state, act)
    force = actuator.to_tau(still, act, state.q, state.qd)
    impulse = dynamics.mass_matrix(still, state.q) @ moved.qd
    np.testing.assert_allclose(impulse, force * still.opt.timestep, rtol=1e-4, atol=1e-7)


def test_forces_of_a_model_without_actuators():
    model = ModelBuilder()
    model.add_body("a", mass=1.0, inertia=(1, 1, 1))
    model.add_joint("a", "free")
    sys = model.build()
    found = actuator.to_tau(sys, jnp.zeros(0), sys.init_q, jnp.ones(6))
    np.testing.assert_array_equal(found, np.zeros(6))
    with pytest.raises(
        ShapeError, match=r"to_tau: argument 'act' has shape \(1,\); the model has 0"
    ):
        actuator.to_tau(sys, jnp.zeros(1), sys.init_q, jnp.ones(6))


def test_frames_at_the_centres_of_mass(arm):
    # Link a is at the origin, and b is turned by a quarter about z.
    x = Transform(
        jnp.array([[0.0, 0, 0], [1.0, 0, 0]]),
        jnp.array([[1.0, 0, 0, 0], [0.5**0.5, 0, 0, 0.5**0.5]]),
    )
    xd = Motion(jnp.array([[0.0, 0, 2], [0, 0, 4.0]]), jnp.array([[0.0, 0, 0], [0, 2.0, 0]]))
    x_i, xd_i = com.from_world(arm, x, xd)
    np.testing.assert_allclose(x_i.pos, [[0.5, 0, 0], [0.75, 0, 0]], atol=1e-6)
    np.testing.assert_array_equal(x_i.rot, x.rot)
    # w x r: 2 times 0.5 along y; 2 less 4 times 0.25 along y.
    np.testing.assert_allclose(xd_i.vel, [[0, 1, 0], [0, 1, 0]], atol=1e-6)
    np.testing.assert_array_equal(xd_i.ang, xd.ang)
    back = com.to_world(arm, x_i, xd_i)
    for one, two in zip(jax.tree.leaves(back), jax.tree.leaves((x, xd)), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)


def test_inverse_inertia_in_world_axes(arm):
    x = Transform.zero((2,))
    # The axes of a are turned about x, with cosine -0.28 and sine 0.96.
    turn = np.array([[1, 0, 0], [0, -0.28, -0.96], [0, 0.96, -0.28]])
    expected = [turn @ np.diag(1 / np.array([1, 2, 2.5])) @ turn.T, np.eye(3) / 2]
    np.testing.assert_allclose(com.inv_inertia(arm, x), expected, rtol=1e-5, atol=1e-6)
