"""Accelerations of long trees, by the articulated-body algorithm."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import both, generic, theirs
from physics_lab import FAST_COMPILE

from brax import dynamics
from brax.generalized.pipeline import GENERALIZED
from brax.generalized.smooth_dynamics import articulated
from brax.generalized.smooth_dynamics.structure import dof_parents, structure
from brax.kernels.batch_last import batch_last
from brax.tree import layout


def tree():
    """Return a free body with a chain of many equal links and a branch, and another tree.

    Their joints are of all types, several to a body, and away from the bodies' origins.
    """
    inertial = '<inertial pos=".02 .01 .03" mass="{}" diaginertia=".01 .02 .025" quat="1 .2 .1 0"/>'
    link = (
        '<body pos=".1 .02 0" quat="1 .1 0 .2"><joint axis="1 2 0" pos=".01 0 .02" armature=".01"/>'
        + inertial.format(0.4)
    )
    several = (
        '<body pos="0 .1 0"><joint type="slide" axis="0 1 1" pos=".05 0 0" armature=".02"/>'
        '<joint axis="0 0 1" pos="0 .03 0"/>' + inertial.format(1.5)
    )
    ball = '<body pos=".1 0 .1"><joint type="ball" pos="0 .02 .01"/>' + inertial.format(0.7)
    chain = link * 17 + several + "</body>" + ball + "</body>" + "</body>" * 17
    other = several + ball + "</body></body>"
    base = f'<body pos="0 0 1"><freejoint/>{inertial.format(2)}{chain}{several}</body></body>'
    return f"<mujoco><worldbody>{base}{other}</worldbody></mujoco>"


@functools.cache
def peer():
    made = both(tree())
    assert articulated.suits(made.sys, structure(dof_parents(made.sys)))
    return made


@functools.partial(jax.jit, compiler_options=FAST_COMPILE, static_argnums=4)
def found(q, qd, force, resistance, inertia_forces):
    """Return the accelerations of a batch."""

    @batch_last
    def one(sys, q, qd, force, resistance):
        plan = layout(sys)
        return articulated.accelerations(sys, plan, q, qd, force, inertia_forces, resistance)

    return jax.vmap(one, (None, 0, 0, 0, 0))(peer().sys, q, qd, force, resistance)


def states(count):
    """Return coordinates, rates, forces and resistances."""
    rng = np.random.default_rng(1)
    q, qd = (np.array(x) for x in zip(*(generic(peer(), rng) for _ in range(count)), strict=True))
    return q, qd, rng.normal(size=qd.shape), rng.uniform(0.1, 2.0, qd.shape)


def matrices(q, qd):
    """Return mass matrices and bias forces by MuJoCo."""
    every = [theirs(peer(), *state) for state in zip(q, qd, strict=True)]
    return np.array([x.mass for x in every]), np.array([x.bias for x in every])


@pytest.mark.slow
@pytest.mark.parametrize("inertia_forces", [True, False])
def test_they_are_those_of_mujocos_mass_matrix(inertia_forces):
    q, qd, force, resistance = states(3)
    masses, biases = matrices(q, qd if inertia_forces else 0 * qd)
    masses += np.einsum("ij,bj->bij", np.eye(masses.shape[-1]), resistance)
    wanted = np.linalg.solve(masses, (force - biases)[..., None])[..., 0]
    ours = found(q, qd, force, resistance, inertia_forces)
    np.testing.assert_allclose(ours, wanted, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.slow
@pytest.mark.long
def test_derivatives_are_those_of_differences():
    """Forwards along a direction, and backwards its transpose."""
    q, qd, force, _ = states(1)
    at = q[0], qd[0], force[0]
    rng = np.random.default_rng(2)
    # Quaternions change along their tangents alone.
    moved = np.array(q[0])
    mujoco.mj_integratePos(peer().model, moved, rng.normal(size=qd.shape[1]), 1e-6)
    along = (moved - q[0]) / 1e-6, rng.normal(size=qd.shape[1]), rng.normal(size=qd.shape[1])
    weight = rng.normal(size=qd.shape[1])

    @functools.partial(jax.jit, compiler_options=FAST_COMPILE)
    def both_ways(at, along):
        f = functools.partial(dynamics.forward_dynamics, peer().sys)
        value, change = jax.jvp(f, at, along)
        return value, change, jax.vjp(f, *at)[1](weight)

    change, pulled = both_ways(at, along)[1:]
    back = sum(np.dot(a, b) for a, b in zip(pulled, along, strict=True))
    np.testing.assert_allclose(back, np.dot(weight, change), rtol=1e-10)
    step = 1e-6
    ends = [
        both_ways(tuple(x + s * d for x, d in zip(at, along, strict=True)), along)[0]
        for s in (-step, step)
    ]
    wanted = (ends[1] - ends[0]) / (2 * step)
    np.testing.assert_allclose(change, wanted, atol=1e-6 * np.abs(wanted).max())


@pytest.mark.slow
def test_a_chain_keeps_its_digits_in_single_precision():
    """Thirty links: 4e-7 of the change is wrong, and with a mass matrix 1.8e-4."""
    link = (
        '<body pos="{} 0 0"><joint axis="0 {} {}" armature=".001" damping=".01"/>'
        '<geom type="capsule" size=".02" fromto="0 0 0 .1 0 0" contype="0"/>'
    )
    bodies = "".join(link.format(0.1 * (i > 0), i % 2, 1 - i % 2) for i in range(30))
    with jax.enable_x64(False):
        chain = both(f"<mujoco><worldbody>{bodies}{'</body>' * 30}</worldbody></mujoco>")
    q, qd = generic(chain, np.random.default_rng(3), 0.1)
    chain.data.qpos[:], chain.data.qvel[:] = q, qd

    @functools.partial(jax.jit, compiler_options=FAST_COMPILE)
    def stepped(q, qd):
        state = GENERALIZED.init(chain.sys, q, qd)
        return GENERALIZED.step(chain.sys, state, jnp.zeros(0), 5).qd

    with jax.enable_x64(False):
        ours = stepped(q, qd)
    assert ours.dtype == np.float32
    mujoco.mj_step(chain.model, chain.data, 5)
    wanted = chain.data.qvel
    error = np.abs(ours - wanted).max() / np.abs(wanted - qd).max()
    assert error < 5e-6
