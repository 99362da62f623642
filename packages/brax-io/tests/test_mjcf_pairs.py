"""Explicit contact pairs of model files, against MuJoCo."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from brax import contact, plugins
from brax.base import Transform
from brax.builder import ModelBuilder
from brax.errors import ModelError
from brax.io import json, mjcf

BODIES = """
<mujoco>
  <option timestep=".005" gravity="0 0 -9.81" {option}/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" contype="0" conaffinity="0"/>
    <body name="a" pos="0 0 .095"><freejoint/>
      <geom name="ball" size=".1" mass="1" friction=".9"/>
      <body name="b" pos="0 0 .17"><joint name="j" axis="0 1 0"/>
        <geom name="top" size=".08" mass=".5"/></body>
    </body>
    <body name="c" pos=".19 0 .1"><freejoint/><geom name="other" size=".1" mass="1"/></body>
  </worldbody>
  <contact>
    <exclude body1="a" body2="c"/>
    {pairs}
  </contact>
</mujoco>
"""
FLOOR = (
    '<pair name="low" geom1="floor" geom2="ball" condim="{condim}" friction="{friction}" '
    'margin=".003" solref=".03 1.2" solimp=".8 .9 .002 .5 2"/>'
)
SELF = '<pair geom1="ball" geom2="top"/>'
SIDE = '<pair geom1="ball" geom2="other" friction=".3 .3 .01 .001 .001"/>'
UNEVEN = ".2 .6 .02 .005 .003"
SOLVER = 'iterations="20" ls_iterations="{}"'


def xml(condim=3, friction=UNEVEN, others="", option=""):
    pairs = FLOOR.format(condim=condim, friction=friction) + others
    return BODIES.format(pairs=pairs, option=option)


@functools.cache
def loaded(*args):
    text = xml(*args)
    return mjcf.loads(text), mujoco.MjModel.from_xml_string(text)


def test_explicit_pairs_pass_every_filter():
    """Bits, a body and its carrier, and excluded bodies."""
    system, model = loaded(3, UNEVEN, SELF + SIDE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    ours = [
        {system.geom_names[g] for g in pair}
        for group in system.collisions
        for pair in zip(group.geom1, group.geom2, strict=True)
    ]
    theirs = [{model.geom(g).name for g in pair} for pair in data.contact.geom]
    assert all(pair in ours for pair in theirs)
    assert len(theirs) == 3
    assert len(ours) == 4  # the last is top and other, which are apart


def test_a_pair_that_would_be_tested_anyway_is_tested_once():
    pair = '<pair geom1="top" geom2="other" condim="1"/>'
    system, _ = loaded(3, UNEVEN, pair)
    numbers = [n for group in system.collisions for n in group.pairs]
    assert sorted(numbers) == [0, 1]
    assert sum(len(group.geom1) for group in system.collisions) == 2


def test_its_numbers_are_leaves_and_come_back_from_json():
    system, _ = loaded(4)
    np.testing.assert_allclose(system.pair_friction, [[0.2, 0.6, 0.02, 0.005, 0.003]], rtol=1e-6)
    assert system.pair_names == ("low",)
    assert system.pair_uneven == (True,)
    again = json.loads(json.dumps(system))
    assert again.collisions == system.collisions
    assert jax.tree.all(jax.tree.map(np.array_equal, again, system.replace(file_model=None)))
    found = contact.get(system, Transform.zero((3,)))
    assert found is not None
    np.testing.assert_allclose(found.friction[-1, :2], [0.2, 0.6], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("condim", "cone"),
    [(1, "pyramidal"), (3, "pyramidal"), (4, "pyramidal"), (6, "pyramidal"), (3, "elliptic")],
)
def test_a_step_is_mujocos(condim, cone):
    """The ball sinks by 5 mm, slides both ways and spins; only the pair's numbers hold it."""
    # Of round cones each step of the search along a line is a long program.
    solver = SOLVER.format(20 if cone == "pyramidal" else 4)
    system, model = loaded(condim, UNEVEN, "", f'cone="{cone}" {solver}')
    model.opt.ls_iterations = 50
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    pipeline = plugins.get("pipeline", "generalized")
    step = jax.jit(lambda q, qd: pipeline.step(system, pipeline.init(system, q, qd), jnp.zeros(0)))
    for _ in range(5):
        data.qvel[:] = rng.normal(size=model.nv) * 0.5
        data.qpos[:] = model.qpos0
        state = step(jnp.array(data.qpos), jnp.array(data.qvel))
        mujoco.mj_step(model, data)
        np.testing.assert_allclose(state.qd, data.qvel, atol=2e-4)


@pytest.mark.parametrize("name", ["spring", "positional"])
def test_pipelines_of_maximal_coordinates_take_it_too(name):
    """Their friction is hard; `brax-core` holds it to arithmetic."""
    system, pipeline = loaded(6)[0], plugins.get("pipeline", name)
    state = pipeline.init(system, system.init_q, jnp.zeros(system.qd_size()))
    after = jax.jit(lambda s: pipeline.step(system, s, jnp.zeros(0)))(state)
    assert np.isfinite(after.qd).all()


def ball_on_a_floor(**pair):
    builder = ModelBuilder()
    builder.set_option(timestep=0.005)
    builder.add_geom("world", "plane", "floor", size=(1, 1, 1), friction=(0.9, 0, 0))
    builder.add_body("a", pos=(0, 0, 0.1), mass=1.0, inertia=(0.004, 0.004, 0.004))
    builder.add_joint("a", "free")
    builder.add_geom("a", "sphere", "ball", size=(0.1,))
    builder.add_pair(**({"geom1": "floor", "geom2": "ball"} | pair))
    return builder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spring", "positional"])
def test_a_pairs_friction_slows_a_ball_in_maximal_coordinates(name):
    """It slides a metre a second on friction 0.4, whatever the geoms' own is."""
    system = ball_on_a_floor(friction=(0.4, 0.4, 0, 0, 0)).build()
    pipeline = plugins.get("pipeline", name)
    state = pipeline.init(system, system.init_q, jnp.zeros(6).at[0].set(1.0))
    after = jax.jit(pipeline.step, static_argnums=3)(system, state, jnp.zeros(0), 4)
    np.testing.assert_allclose(1.0 - after.qd[0], 0.4 * 9.81 * 0.02, rtol=0.05)


@pytest.mark.parametrize(
    ("pair", "told"),
    [
        ({"geom2": "bal"}, "there is no geom 'bal'. Did you mean 'ball'?"),
        ({"geom2": "floor"}, "do not move against each other"),
        ({"condim": 2}, "condim must be 1, 3, 4 or 6, got 2"),
        ({"friction": (1, 1, 1)}, "friction needs 5 numbers"),
        ({"friction": (1, -1, 0, 0, 0)}, "friction must be >= 0"),
    ],
)
def test_what_is_no_pair_is_refused(pair, told):
    builder = ball_on_a_floor(**pair)
    with pytest.raises(ModelError) as error:
        builder.build()
    assert told in str(error.value)


CARRIED = """<mujoco><option><flag filterparent="{}"/></option><worldbody>
<geom name="world" pos="0 0 -.9"/>
<body mocap="true"><geom name="hand"/><body pos="0 0 .2"><geom name="palm"/></body>
  <body pos="0 0 .5"><joint type="slide"/><geom name="finger"/>
    <body pos="0 0 .5"><joint type="slide"/><geom name="tip"/></body></body>
  <body pos="0 .5 0"><joint type="slide"/><geom name="thumb"/></body></body>
<body mocap="true" pos="0 0 .3"><geom name="other"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("flag", ["enable", "disable"])
def test_a_mocap_body_is_the_parent_of_what_it_carries(flag):
    """It was the world, so that a hand collided with its own fingers."""
    text = CARRIED.format(flag).replace("<geom", '<geom size="1"')
    system, model = mjcf.loads(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    right = {frozenset(model.geom(g).name for g in c.geom) for c in data.contact}
    pairs = [p for group in system.collisions for p in zip(group.geom1, group.geom2, strict=True)]
    assert {frozenset(system.geom_names[g] for g in pair) for pair in pairs} == right
