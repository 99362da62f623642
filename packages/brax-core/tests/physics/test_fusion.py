"""Programs whose operations XLA has fused into loops compute what they do one by one.

A compiler's wrong loop once gave constrained accelerations that were off by 8e-3 in the median.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import PIPELINES

from brax import plugins
from brax.builder import ModelBuilder

BATCH = 8


def hopper():
    """A body on a leg with a foot: contacts, a limit, motors, damping and rotors."""
    model = ModelBuilder()
    model.add_geom(type="plane", size=(0, 0, 1))
    model.add_body("body", pos=(0, 0, 0.5), mass=2.0, inertia=(0.03, 0.02, 0.01))
    model.add_joint("body", "free")
    model.add_body("leg", "body", pos=(0, 0, -0.1), mass=0.5, inertia=(3e-3, 3e-3, 1e-3))
    joint = dict(range=(-0.3, 0.3), damping=0.1, armature=0.01, stiffness=1.0)
    model.add_joint("leg", "hinge", name="hip", axis=(0, 1, 0), **joint)
    model.add_actuator("hip", gear=5.0)
    model.add_geom("leg", "capsule", pos=(0, 0, -0.2), size=(0.05, 0.1))
    model.set_option(timestep=0.005)
    return model.build()


def states(sys, lowest):
    """States near the floor, some in it, that move."""
    rng = np.random.default_rng(0)
    q = np.asarray(sys.init_q) + 0.1 * rng.normal(size=(BATCH, sys.q_size()))
    q[:, 2] = lowest + np.linspace(-0.01, 0.02, BATCH)
    act = rng.uniform(-1, 1, size=(BATCH, sys.act_size()))
    return jnp.asarray(q), jnp.asarray(rng.normal(size=(BATCH, sys.qd_size()))), jnp.asarray(act)


def both_ways(function, *args):
    """What a function gives when it is compiled as a whole, and operation by operation."""
    fused = jax.jit(function)(*args)
    with jax.disable_jit():
        unfused = function(*args)
    return jax.tree.leaves(fused), jax.tree.leaves(unfused)


def stepper(pipeline):
    engine = plugins.get("pipeline", pipeline)

    def step(sys, q, qd, act):
        def one(q, qd, act):
            state = engine.step(sys, engine.init(sys, q, qd), act)
            return state.q, state.qd, state.x, state.xd

        return jax.vmap(one)(q, qd, act)

    return step


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_step_with_contact(f64, pipeline):
    # 4e-15
    sys = hopper()
    for a, b in zip(*both_ways(stepper(pipeline), sys, *states(sys, 0.45)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("pipeline", ["spring", "generalized"])
def test_the_gradient_of_a_step_with_contact(f64, pipeline):
    sys, step = hopper(), stepper(pipeline)

    def loss(sys, q, qd, act):
        return sum(jnp.sum(jnp.sin(x)) for x in jax.tree.leaves(step(sys, q, qd, act)))

    value = jax.value_and_grad(loss, argnums=(1, 2, 3))
    for a, b in zip(*both_ways(value, sys, *states(sys, 0.45)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
