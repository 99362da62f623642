"""Properties of all pipelines: T18, T26, T67, T68, T72, T75, T76."""

import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import physics_lab
import pytest
from physics_lab import FAST_COMPILE, G, ball_on_plane, chain, rail, record, settings

from brax import tree
from brax.builder import ModelBuilder
from brax.generalized.pipeline import GENERALIZED
from brax.kernels.batch_last import batch_last
from brax.positional.pipeline import POSITIONAL
from brax.spring.pipeline import SPRING


@pytest.fixture(params=[SPRING, POSITIONAL, GENERALIZED], ids=lambda p: p.name)
def pipeline(request, monkeypatch):
    """Return the pipeline of the test, which `record` runs too."""
    monkeypatch.setattr(physics_lab, "PIPELINE", request.param)
    return request.param


@pytest.mark.parametrize(("ratio", "overshoots"), [(0.99, True), (1.01, False)])
def test_a_spring_overshoots_below_critical_damping_only(f64, pipeline, ratio, overshoots):
    # T26: mass and stiffness of one. From 1e8 m the overshoot at .99 is exp(-22.05) of that, .03 m.
    sys = settings(rail(stiffness=1.0, damping=2 * ratio), 1e-3)
    q = record(sys, q=[1e8], steps=40_000, every=100).q[:, 0]
    assert (q.min() < -1e-2) == overshoots
    assert q.min() > (-0.1 if overshoots else -1e-6)


def rolling():
    """Return a ball with friction on a slope: its motion depends on every part of the state."""
    return settings(ball_on_plane(), 1e-3, physics_lab.slope(15))


@pytest.mark.slow
def test_two_runs_have_the_same_bits_and_so_does_one_that_was_saved(f64, pipeline):
    # T67, T68: the state holds all that the next step depends on, warm starts included.
    sys, act = rolling(), jnp.zeros(0)
    go = jax.jit(lambda s: jax.lax.fori_loop(0, 20, lambda _, s: pipeline.step(sys, s, act), s))
    start = pipeline.init(sys, sys.init_q.at[2].add(-1e-4), jnp.full(6, 0.1))
    start = start.replace(contact=None)
    saved = jax.tree.map(np.array, go(start))  # as a file holds it
    for a, b in zip(*map(jax.tree.leaves, (go(go(start)), go(saved))), strict=True):
        np.testing.assert_array_equal(a, b)


def test_arrays_keep_the_precision(bound, pipeline):
    # T72: nothing is promoted or cut on the way.
    sys = rolling()
    shapes = jax.eval_shape(
        lambda: pipeline.step(sys, pipeline.init(sys, sys.init_q, jnp.zeros(6)), jnp.zeros(0))
    )
    wanted = jnp.dtype(bound(jnp.float64, jnp.float32))
    assert {x.dtype for x in jax.tree.leaves(shapes)} == {wanted}


def test_a_state_of_integers_has_the_types_of_the_state_after_a_step(pipeline):
    """So a loop may carry it."""
    sys = rolling()
    q, qd = jnp.array([0, 0, 1, 1, 0, 0, 0]), jnp.zeros(6, int)
    start = jax.eval_shape(lambda: pipeline.init(sys, q, qd).replace(contact=None))
    after = jax.eval_shape(lambda state: pipeline.step(sys, state, jnp.zeros(0)), start)
    assert start == after


@pytest.mark.slow
def test_a_triple_pendulum_of_springs_swings_as_in_joint_coordinates(f64, monkeypatch):
    # T18: a second at dt 1e-4. Three bodies swing far, and the error is of first order.
    found = {}
    for kind in (SPRING, GENERALIZED):
        monkeypatch.setattr(physics_lab, "PIPELINE", kind)
        for dt in (1e-4, 2e-4):
            sys = settings(chain(3), dt)
            steps = round(1 / dt)
            motion = record(sys, q=[1.0, 0.5, -0.5], steps=steps, every=steps // 100)
            found[kind.name, dt] = motion.pos
    apart = [np.abs(found["spring", dt] - found["generalized", dt]).max() for dt in (1e-4, 2e-4)]
    assert apart[0] < 2e-2
    assert np.ptp(found["spring", 1e-4], axis=0).max() > 1.0
    assert 1.5 < apart[1] / apart[0] < 2.5 or apart[1] < 1e-4


@pytest.mark.parametrize(
    "derived", [False, pytest.param(True, marks=[pytest.mark.slow, pytest.mark.long])]
)
@pytest.mark.parametrize(
    "kind", [SPRING, pytest.param(POSITIONAL, marks=pytest.mark.slow)], ids=lambda p: p.name
)
def test_a_long_chain_moves_in_loops_as_written_out(f64, monkeypatch, kind, derived):
    """Its motion after four steps, and that motion's derivatives by where and how it starts."""
    sys = settings(chain(5, free=True, damping=0.1, stiffness=2.0, range=(-0.3, 0.3)), 5e-3)
    rng = np.random.default_rng(0)
    q = sys.init_q + 0.4 * rng.normal(size=sys.q_size())
    qd, weights = rng.normal(size=sys.qd_size()), rng.normal(size=sys.q_size())
    found = []
    for long in (4, 1000):
        monkeypatch.setattr(tree, "MIN_CHAIN_DEPTHS", long)
        tree._layout.cache_clear()
        assert max(g.depths for g in tree.layout(sys).groups) == (4 if long == 4 else 1)
        run = batch_last(functools.partial(kind._run, n_frames=4), full=(1, 2))

        def reached(q, qd, run=run):
            after = run(sys, kind.init(sys, q, qd), jnp.zeros(0), None)
            return weights @ after.q, (after.q, after.qd)

        slope = jax.value_and_grad(reached, argnums=(0, 1), has_aux=True) if derived else reached
        found.append(jax.jit(slope, compiler_options=FAST_COMPILE)(q, qd))
    tree._layout.cache_clear()
    for looped, written in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_allclose(looped, written, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [1.0, 1e2, 1e4, 1e6])
def test_a_pendulum_on_a_heavier_one_stays_finite(f64, pipeline, ratio):
    # T75: masses and moments of two links apart by a ratio, either way round.
    sys = settings(chain(2, 0.02), 1e-3)
    for heavy in (0, 1):
        scale = np.where(np.arange(2) == heavy, ratio, 1.0)
        changes: dict[str, Any] = {
            "link.inertia.mass": scale,
            "link.inertia.moments": np.asarray(sys.link.inertia.moments) * scale[:, None],
        }
        motion = record(settings(sys, **changes), q=[1.0, 0.5], steps=1000)
        assert np.abs(motion.qd).max() < 1e3 * np.sqrt(ratio)
        assert np.abs(motion.pos).max() < 2.1


@pytest.mark.slow
def test_a_body_of_a_milligram_falls_and_rests(f64, pipeline):
    # T76
    sys = ball_on_plane(mass=1e-6)
    motion = record(settings(sys, 1e-3), q=[0, 0, 0.1, 1, 0, 0, 0], steps=1000)
    assert motion.q[-1, 2] == pytest.approx(0.05, abs=2e-3)
    assert np.abs(motion.qd[-1]).max() < 1e-2


def pile(ratio):
    """Return a ball upon a ball upon a plane, the upper one heavier by a ratio."""
    model = ModelBuilder()
    model.add_geom(type="plane", name="floor", size=(0, 0, 1))
    for i, mass in enumerate((1.0, ratio)):
        name = f"ball{i}"
        model.add_body(name, pos=(0, 0, 0.1 + 0.2 * i), mass=mass, inertia=(0.004 * mass,) * 3)
        model.add_joint(name, "free")
        model.add_geom(name, "sphere", size=(0.1,))
    return model.build()


def piled(sweeps=4):
    sys = settings(pile(1e4), 1e-3)
    return record(sys.replace(opt=sys.opt.replace(sweeps=sweeps)), steps=1000)


@pytest.mark.slow
def test_a_pile_of_balls_of_mass_ratio_ten_thousand_stays_finite(f64, pipeline):
    # T76: one second. Positional presses the light one into the floor, and out of it at 5 m/s.
    motion = piled()
    assert np.isfinite(motion.qd).all() and np.abs(motion.pos).max() < 1.0


@pytest.mark.slow
def test_a_pile_of_balls_of_mass_ratio_ten_thousand_does_not_explode(f64, pipeline):
    # T76: no ball moves faster than one that falls as far; in positional, with 16 passes. 1.9, 1.5
    motion = piled(16 if pipeline.name == "positional" else 4)
    assert np.abs(motion.qd).max() < np.sqrt(2 * G * 0.3) + 0.5
    assert np.abs(motion.pos).max() < 1.0


@pytest.mark.slow
def test_many_passes_hold_up_a_heavy_ball_on_a_light_one(f64, monkeypatch):
    # T76: the light ball is pressed in by .0083 m; with 4 passes by its whole radius, .1 m.
    monkeypatch.setattr(physics_lab, "PIPELINE", POSITIONAL)
    heights = piled(64).pos[-1, :, 2]
    np.testing.assert_allclose(heights, (0.1, 0.3), atol=0.02)


@pytest.mark.slow
def test_what_is_thrown_away_is_not_computed_again_for_what_is_kept(pipeline, monkeypatch):
    """A check of every number of a discarded state adds no computation to what XLA compiles.

    XLA would put the kinematics into the loop of the check, for every number anew: the length of
    the longest of its loops was 1206 for 617, 329 for 241, and beyond what compiles.
    """
    monkeypatch.setenv("BRAX_NATIVE", "0")
    sys = chain(4, free=True)
    act, rest = jnp.zeros(sys.act_size()), jnp.zeros(sys.qd_size())
    state = jax.vmap(lambda q: pipeline.init(sys, q, rest))(jnp.tile(sys.init_q, (8, 1)))

    def step(state):
        new = pipeline.step(sys, state, act)
        finite = jax.tree.map(lambda x: jnp.isfinite(x).all(), new)
        return new, jax.tree.reduce(jnp.logical_and, finite)

    def longest_loop(function):
        text = jax.jit(jax.vmap(function)).lower(state).compile().as_text()
        assert text
        parts = re.split(r"\n(?=%|ENTRY)", text)
        return max(part.count("\n") for part in parts if part.startswith("%fused_computation"))

    assert longest_loop(lambda state: step(state)[1]) <= 1.05 * longest_loop(step)
