"""A NaN in what a step is given comes out of it, in every pipeline, and ends one environment."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import FAST_COMPILE, PIPELINES

from brax import contact, math, plugins
from brax.base import Force
from brax.builder import ModelBuilder
from brax.colliders.broad_phase import uses_broad_phase
from brax.colliders.interface import Collider
from brax.colliders.primitive.plane_sphere import PLANE_SPHERE
from brax.components import Quat, Vec3, normalize, normalize_quat, sqrt
from brax.env import PipelineEnv, State
from brax.env.wrappers import EpisodeWrapper
from brax.io import mjcf

ROBOT = """<mujoco><option timestep=".004" density="1.2" iterations="8"/>
<compiler angle="radian"/>
<worldbody>
<geom name="floor" type="plane" size="5 5 1" friction=".8 .02 .01"/>
<body name="hull" pos="0 0 .18" gravcomp=".1"><freejoint/>
<geom name="ball" size=".2" condim="6" friction=".5 .01 .02"/><site name="top" pos="0 0 .2"/>
<body name="arm" pos=".3 0 0"><joint name="b" axis="0 1 0" limited="true" range="-.1 .05"
frictionloss=".2" damping=".1" armature=".01" stiffness=".3" springref=".1"/>
<geom name="rod" type="capsule" size=".05 .1" pos=".1 0 0" quat="1 0 1 0"/>
<site name="tip" pos=".2 0 .1"/>
<body name="hand" pos=".3 0 0"><joint name="c" type="slide" axis="1 0 0" damping=".2"/>
<geom name="block" type="box" size=".05 .04 .03"/></body></body>
<body name="leg" pos="0 .3 0"><joint name="d" axis="1 0 0"/><geom name="foot" size=".1"/></body>
</body></worldbody>
<contact><pair geom1="floor" geom2="foot" friction=".7 .6 .01 .02 .02" condim="6"/></contact>
<tendon><fixed name="t" stiffness="2" damping=".1" springlength=".1" limited="true" range="-1 .01">
<joint joint="b" coef="2"/><joint joint="c" coef="-1"/></fixed>
<spatial name="s" stiffness="3" frictionloss=".1"><site site="top"/><site site="tip"/></spatial>
</tendon>
<equality><joint joint1="d" joint2="b" polycoef="0 .5 0 0 0"/></equality>
<actuator><motor joint="c" gear="2" ctrlrange="-1 1"/>
<general joint="b" dyntype="filter" dynprm=".05" gainprm="3" biastype="affine" biasprm=".1 -1 -.1"
forcerange="-2 2"/></actuator>
<sensor><touch site="tip"/></sensor></mujoco>"""
"""Touches the floor, is beyond limits, pulls tendons, and has most of what a model may have."""


@functools.lru_cache
def given():
    """Return the inputs of a step (model, state, controls, forces), with indices."""
    sys = mjcf.loads(ROBOT)
    engine = plugins.get("pipeline", "generalized")
    q = sys.init_q.at[7:].set(jnp.array([0.09, 0.02, 0.1]))
    state = engine.init(sys, q, jnp.linspace(-0.3, 0.2, sys.qd_size()))
    rng = np.random.default_rng(0)
    outer = Force(*(jnp.asarray(rng.normal(size=(sys.num_links(), 3)), q.dtype) for _ in range(2)))
    return sys, state.replace(activation=jnp.array([0.3])), jnp.array([0.4, 0.2]), outer


def places(tree):
    """Return the names of all numbers, such as `0.geom.size[3]`, by the array that they are in."""
    out = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            out[path] = [f"{name}[{i}]" for i in range(leaf.size)]
    return out


def lanes(tree, change):
    """Return a batch in which each environment has one number changed, in the order of `places`."""
    named = places(tree)
    count, first = sum(map(len, named.values())), 0

    def batched(path, leaf):
        nonlocal first
        wide = np.repeat(np.asarray(leaf)[None], count, axis=0)
        flat = wide.reshape(count, -1)
        for i in range(len(named.get(path, ()))):
            flat[first + i, i] = change(flat[first + i, i])
        first += len(named.get(path, ()))
        return jnp.asarray(wide)

    return jax.tree_util.tree_map_with_path(batched, tree)


@functools.lru_cache
def stepper(name):
    engine = plugins.get("pipeline", name)

    def step(given):
        sys, state, act, outer = given
        after = engine.step(sys, state, act, 2, outer)
        return jnp.concatenate([after.q, after.qd])

    return jax.jit(jax.vmap(step), compiler_options=FAST_COMPILE)


@functools.lru_cache
def steps(name):
    """Return the results of steps: as given, with each number changed, and with each NaN."""

    def moved(x):
        return x + 0.03 * max(1.0, abs(x)) if np.isfinite(x) else x

    changes = (lambda x: x, moved, lambda x: np.nan)
    return [np.asarray(stepper(name)(lanes(given(), change))) for change in changes]


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_each_number_that_counts_is_nan_afterwards(pipeline):
    names = [name for mine in places(given()).values() for name in mine]
    same, moved, lost = steps(pipeline)
    assert np.isfinite(same).all()
    counts, broken = (moved != same).any(axis=1), ~np.isfinite(lost).all(axis=1)
    # 256 of the 831 in `spring` and 272 in `generalized`; what does not count is soft or unused.
    assert counts.sum() > 250
    assert [n for n, c, b in zip(names, counts, broken, strict=True) if c and not b] == []


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_nan_leaves_the_other_environments_of_a_batch_alone(pipeline):
    same, _, lost = steps(pipeline)
    np.testing.assert_array_equal(lost[np.isfinite(lost)], same[np.isfinite(lost)])
    assert 0.2 < np.isfinite(lost).all(axis=1).mean() < 0.8


def test_roots_and_unit_vectors_of_nan_are_nan():
    nan, one = jnp.array([jnp.nan]), jnp.ones(1)
    assert np.isnan(sqrt(nan))
    assert np.isnan(normalize(Vec3(nan, one, one), Vec3(one, one, one))[0].y)
    assert np.isnan(normalize_quat(Quat(one, one, nan, one)).w)
    # The length of a zero vector still has a derivative.
    assert jax.grad(lambda x: normalize(Vec3(x, x, x))[1])(0.0) == 0


def test_angles_of_nan_are_nan():
    nan = jnp.full(4, jnp.nan)
    assert np.isnan(math.safe_arccos(nan)).all() and np.isnan(math.safe_arcsin(nan)).all()
    assert np.isnan(math.quat_to_euler(nan)).all()
    x = jnp.array([-1.5, -1.0, -0.999, -0.3, 0.0, 0.7, 1.0, 2.0, jnp.inf, -jnp.inf])
    exact = np.clip(np.asarray(x, float), -1, 1)
    np.testing.assert_allclose(math.safe_arccos(x), np.arccos(exact), rtol=0, atol=3e-7)
    np.testing.assert_allclose(math.safe_arcsin(x), np.arcsin(exact), rtol=0, atol=3e-7)
    slopes = jax.vmap(jax.grad(math.safe_arccos))(x)
    assert not slopes[abs(x) >= 1].any() and slopes[abs(x) < 1].all()


def test_the_broad_phase_follows_a_pair_whose_gap_is_nan():
    model = ModelBuilder()
    model.set_option(max_geom_pairs=1)
    # Three boxes in a row, too far from each other to touch.
    for i in range(3):
        model.add_body(str(i), pos=(i, 0, 0), mass=1.0, inertia=(0.1, 0.1, 0.1))
        model.add_joint(str(i), "free")
        model.add_geom(str(i), "box", str(i), size=(0.2, 0.2, 0.2))
    sys = model.build()
    assert uses_broad_phase(sys)

    def distances(width):
        changed = sys.replace(geom_size=sys.geom_size.at[1, 0].set(width))
        state = plugins.get("pipeline", "generalized").init(changed, sys.init_q, jnp.zeros(18))
        found = contact.get(changed, state.x)
        assert found is not None
        return found.dist

    near, lost = jax.jit(jax.vmap(distances))(jnp.array([0.2, jnp.nan]))
    assert near.min() > 1
    assert np.isnan(lost).any()


FLAWS = {"dist": 2.0, "pos": 3.0, "normal": 4.0}
"""Radii of the ball for which a part of the contact is NaN."""


class Flawed(Collider):
    """A collider that gives one NaN for some sizes of the ball."""

    types = ("plane", "sphere")
    n_contacts = 1

    def collide(self, a, b):
        [touch] = PLANE_SPHERE.collide(a, b)
        lost = {k: jnp.where(b.size.x == size, jnp.nan, 0.0) for k, size in FLAWS.items()}
        spoilt = {k: jax.tree.map(lambda x, k=k: x + lost[k], getattr(touch, k)) for k in FLAWS}
        return [touch._replace(**spoilt)]


@functools.lru_cache
def two_balls():
    """Return a ball on the floor, and one that falls far from it."""
    model = ModelBuilder()
    model.set_option(timestep=0.01)
    model.add_geom(type="plane", size=(0, 0, 1))
    for name, pos in (("rests", (0, 0, 0.2)), ("falls", (9, 0, 5))):
        model.add_body(name, pos=pos, mass=1.0, inertia=(0.01, 0.01, 0.01))
        model.add_joint(name, "free")
        model.add_geom(name, "sphere", name, size=(0.2,))
    return model.build()


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_nan_of_a_collider_does_not_freeze_the_world(pipeline):
    sys, engine = two_balls(), plugins.get("pipeline", pipeline)
    groups = [dataclasses.replace(g, collider=Flawed()) for g in sys.collisions]
    sys = sys.replace(collisions=tuple(groups))

    def speeds(size):
        flawed = sys.replace(geom_size=sys.geom_size.at[1, 0].set(size))
        state = engine.init(flawed, sys.init_q, jnp.zeros(12))
        return engine.step(flawed, state, jnp.zeros(0)).qd

    sizes = jnp.array([0.2, *FLAWS.values()])
    right, *wrong = jax.jit(jax.vmap(speeds), compiler_options=FAST_COMPILE)(sizes)
    assert np.isfinite(right).all()
    for flaw, found in zip(FLAWS, wrong, strict=True):
        assert np.isnan(found[:6]).any(), flaw
        falls = found[6 + 2]
        assert np.isnan(falls) or falls == pytest.approx(-9.81 * 0.01, rel=1e-5), flaw


class Balls(PipelineEnv):
    """Nothing but the motion of two balls."""

    def reset(self, rng):
        state = self.pipeline_init(self.sys.init_q, jnp.zeros(12))
        return State(state, state.q, jnp.zeros(()), jnp.zeros(()))

    def step(self, state, action):
        after = self.pipeline_step(state.pipeline_state, action)
        return state.replace(pipeline_state=after, obs=after.q)


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_an_environment_with_a_nan_in_its_model_ends_alone(pipeline):
    friction = jnp.full((3, 3, 3), 0.5).at[1, 1, 0].set(jnp.nan)

    def stepped(friction):
        balls = Balls(two_balls().replace(geom_friction=friction), pipeline)
        env = EpisodeWrapper(balls, episode_length=10)
        return env.step(env.reset(jax.random.key(0)), jnp.zeros(0))

    after = jax.jit(jax.vmap(stepped), compiler_options=FAST_COMPILE)(friction)
    np.testing.assert_array_equal(after.info["nan"], [0, 1, 0])
    np.testing.assert_array_equal(after.done, [0, 1, 0])
    np.testing.assert_array_equal(after.obs[0], after.obs[2])
    assert np.isfinite(after.obs).all()  # the state before the step
