"""Batches, loops and compilation change nothing: T67, T69, T70."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import ball_on_plane, chain, record, settings

from brax.spring.pipeline import SPRING

BATCH = 7


def states(sys, n, seed=0):
    """Return generic coordinates and velocities; the first are those of a smaller batch."""
    rng = np.random.default_rng(seed)
    draws = rng.standard_normal((64, sys.q_size() + sys.qd_size()))[:n]
    q = np.asarray(sys.init_q) + 0.1 * draws[:, : sys.q_size()]
    return jnp.asarray(q), jnp.asarray(0.5 * draws[:, sys.q_size() :])


def one_step(sys, q, qd):
    state = SPRING.step(sys, SPRING.init(sys, q, qd), jnp.zeros(sys.act_size()))
    return jnp.concatenate([state.q, state.qd])


batch_step = jax.jit(jax.vmap(one_step, in_axes=(None, 0, 0)))
single_step = jax.jit(one_step)


def ulps(a, b):
    """Difference in units of the last place of numbers of size one, or of their own size."""
    return np.max(np.abs(a - b) / (np.finfo(a.dtype).eps * np.maximum(1.0, np.abs(b))))


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, BATCH, 64])
def test_a_batch_steps_as_its_members(f64, n):
    # T69
    sys = chain(2, 0.02)
    q, qd = states(sys, n)
    alone = np.stack([single_step(sys, *pair) for pair in zip(q, qd, strict=True)])
    assert ulps(np.asarray(batch_step(sys, q, qd)), alone) <= 8


@pytest.mark.slow
@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e30])
def test_a_broken_member_does_not_affect_the_others(bound, poison):
    # T69: exactly.
    sys = ball_on_plane()
    q, qd = states(sys, BATCH)
    whole = np.asarray(batch_step(sys, q, qd))
    broken = np.asarray(batch_step(sys, q, qd.at[3].set(poison)))
    others = np.arange(BATCH) != 3
    np.testing.assert_array_equal(broken[others], whole[others])
    assert not np.array_equal(broken[3], whole[3])


@pytest.mark.slow
def test_eager_steps_a_scan_and_one_call_agree(f64):
    # T70: 20 steps.
    sys, q, qd = settings(chain(2, 0.02), 0.01), jnp.array([0.3, -0.2]), jnp.array([0.5, 1.0])
    state = SPRING.init(sys, q, qd)
    for _ in range(20):
        state = SPRING.step(sys, state, jnp.zeros(0))
    eager = np.concatenate([state.q, state.qd])
    scanned = record(sys, q=q, qd=qd, steps=20)
    frames = record(sys, q=q, qd=qd, steps=1, n_frames=20)
    for motion in (scanned, frames):
        assert ulps(np.concatenate([motion.q[-1], motion.qd[-1]]), eager) <= 20 * 8


@pytest.mark.slow
def test_the_same_bits_twice(f64):
    # T67
    sys = chain(2, 0.02)
    runs = [record(sys, q=[0.3, -0.2], qd=[0.5, 1.0], steps=50) for _ in range(2)]
    np.testing.assert_array_equal(runs[0].q, runs[1].q)


@pytest.mark.slow
def test_a_batch_of_masses_steps_as_its_members(f64):
    # A leaf of the model that is batched, as in domain randomization.
    sys = chain(2, 0.02)
    q, qd = jnp.array([0.3, -0.2]), jnp.array([0.5, 1.0])
    masses = jnp.linspace(0.5, 2.0, 2 * BATCH).reshape(BATCH, 2)

    def with_mass(mass):
        return one_step(sys.tree_replace({"link.inertia.mass": mass}), q, qd)

    alone = np.stack([jax.jit(with_mass)(m) for m in masses])
    assert ulps(np.asarray(jax.jit(jax.vmap(with_mass))(masses)), alone) <= 8
