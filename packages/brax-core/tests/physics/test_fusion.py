"""Programs whose operations XLA has fused into loops compute what they do one by one.

A compiler's wrong loop once gave constrained accelerations that were off by 8e-3 in the median.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.interpreters import partial_eval
from physics_lab import PIPELINES

from brax import plugins
from brax.builder import ModelBuilder
from brax.kernels.fusion_barrier import fusion_barrier
from brax.kernels.materialize import materialized

BATCH = 8


def hopper():
    """Return a body on a leg with a foot: contacts, a limit, motors, damping and rotors."""
    model = ModelBuilder()
    model.add_geom(type="plane", size=(0, 0, 1))
    model.add_body("body", pos=(0, 0, 0.5), mass=2.0, inertia=(0.03, 0.02, 0.01))
    model.add_joint("body", "free")
    model.add_body("leg", "body", pos=(0, 0, -0.1), mass=0.5, inertia=(3e-3, 3e-3, 1e-3))
    joint: dict[str, Any] = dict(range=(-0.3, 0.3), damping=0.1, armature=0.01, stiffness=1.0)
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
    """Return a function's results compiled as a whole, and operation by operation."""
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


def test_a_value_with_several_uses_is_computed_once_or_twice():
    """Each round needs both values of the one before twice: copies of copies would be 2^12."""

    def spiral(x, y):
        for _ in range(12):
            x, y = jnp.sin(x) * y + 1.0, jnp.cos(y) * x
        return x, y

    x = jnp.linspace(0.0, 1.0, 256)
    text = jax.jit(materialized(spiral)).lower(x, x).compile().as_text()
    assert text
    assert text.count(" sine(") <= 2 * 12
    assert text.count(" cosine(") <= 2 * 12


def test_materialization_changes_no_result():
    """Calls, loops and branches, by the values that their definitions give."""

    def program(x, y):
        def add(carry, inputs):
            total, product = carry
            return (total + inputs, fusion_barrier(product * inputs)), total

        (total, product), before = jax.lax.scan(add, (x, y), jnp.stack([x, y, x]), reverse=True)
        doubled = jax.lax.while_loop(
            lambda v: jnp.max(v[0]) < 20, lambda v: (2 * v[0] + v[1], v[1]), (x, y)
        )
        branch = jax.lax.cond(x[0] > 0, lambda a: a + 1, lambda a: a - 1, x)
        return total, product, before, doubled[0], branch, jax.jit(jax.nn.relu)(x - 2)

    x, y = jnp.array([1.0, 2.0, 3.0]), jnp.array([2.0, 0.0, 1.0])
    total, product, before, doubled, branch, relu = jax.jit(materialized(program))(x, y)
    np.testing.assert_array_equal(total, [5, 6, 10])
    np.testing.assert_array_equal(product, [4, 0, 9])
    np.testing.assert_array_equal(before, [[4, 4, 7], [2, 4, 6], [1, 2, 3]])
    np.testing.assert_array_equal(doubled, [22, 16, 31])
    np.testing.assert_array_equal(branch, [2, 3, 4])
    np.testing.assert_array_equal(relu, [0, 0, 1])


def test_a_derivative_of_what_is_computed_once_is_left_to_xla():
    """Its transpose has fewer results than operands."""

    def linear(tangent):
        return jax.jvp(lambda x: fusion_barrier((jnp.sin(x), 3 * x)), (angle,), (tangent,))[1]

    def transposed(a, b):
        return jax.linear_transpose(linear, angle)((a, b))

    angle, weight = jnp.array([0.0, 1.0]), jnp.array([1.0, 2.0])
    (found,) = jax.jit(materialized(transposed))(weight, weight)
    np.testing.assert_allclose(found, weight * (np.cos(angle) + 3), rtol=1e-6)


@pytest.mark.parametrize(("platform", "barriers"), [("cpu", 1), ("cuda", 0), ("tpu", 0)])
def test_only_programs_for_a_cpu_have_barriers(platform, barriers):
    x = jnp.ones(3)
    traced = jax.jit(lambda x: jnp.sin(fusion_barrier(x * 2))).trace(x)
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    assert text.count('inlineable = "false"') == barriers


def test_a_barrier_is_the_identity_under_every_transformation():
    def function(x, n):
        a, b, _ = fusion_barrier((x**2, 3 * x, n))
        return jnp.sum(a) + jnp.sum(b)

    x, n = jnp.array([1.0, 2.0]), jnp.arange(2)
    for rule in (jax.grad, jax.jacfwd, lambda f: jax.grad(jax.checkpoint(f))):
        np.testing.assert_array_equal(rule(function)(x, n), 2 * x + 3)
        np.testing.assert_array_equal(jax.jit(rule(function))(x, n), 2 * x + 3)
    # Axes of operands that are mapped stay where they are; others have none.
    out = jax.vmap(lambda x, y: fusion_barrier((x, y)), (1, None), (1, None))(jnp.eye(2, 3), x)
    np.testing.assert_array_equal(out[0], jnp.eye(2, 3))
    np.testing.assert_array_equal(out[1], x)
    assert fusion_barrier(()) == ()


def test_a_barrier_does_not_keep_what_nobody_uses():
    traced = jax.make_jaxpr(lambda x: fusion_barrier((2 * x, jnp.sin(x)))[0])(1.0)
    needed, _ = partial_eval.dce_jaxpr(traced.jaxpr, [True])
    assert [e.primitive.name for e in needed.eqns] == ["mul", "fusion_barrier"]
