"""Numbers that a model was built without and that are set later, against MuJoCo's same fields."""

import dataclasses

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import both
from physics_lab import FAST_COMPILE

from brax.env.randomization import Randomization, Range
from brax.errors import ModelError
from brax.generalized.pipeline import GENERALIZED

PLAIN = """<mujoco><worldbody><body><joint name="a" axis="0 1 0" armature=".01"/>
<geom size=".05" pos=".2 0 0" mass="1" contype="0"/><body pos=".4 0 0"><joint name="b" type="slide"
axis="0 1 0"/><geom size=".05" mass=".5" contype="0"/></body></body></worldbody>
<tendon><fixed><joint joint="a" coef="1"/><joint joint="b" coef="2"/></fixed></tendon>
<actuator><motor joint="a"/></actuator></mujoco>"""
"""A model without dry friction, limits, springs, dampers, a medium or compensated weights."""

FULL = [[-0.1, 0.05], [-0.02, 0.05]]
SET = {
    "dof_frictionloss": [0.3, 0.2],
    "dof_damping": [0.3, 0.2],
    "dof_armature": [0.3, 0.2],
    "jnt_stiffness": [5.0, 3.0],
    "jnt_range": FULL,
    "jnt_actfrcrange": [[-0.2, 0.1], [-1.0, 1.0]],
    "body_gravcomp": [0.0, 0.5, 1.0],
    "body_mass": [0.0, 2.0, 1.0],
    "tendon_stiffness": [4.0],
    "tendon_damping": [0.7],
    "tendon_frictionloss": [0.4],
    "tendon.limit": [[-0.1, 0.05]],
    "opt.viscosity": 3.0,
    "opt.density": 50.0,
    "opt.gravity": [1.0, 2.0, 3.0],
    "actuator_ctrlrange": [[-0.5, 0.5]],
    "actuator_forcerange": [[-0.3, 0.3]],
    "actuator_gear": [2.0],
    "actuator_gainprm": [[0.5] + [0.0] * 9],
}
"""Numbers by our names."""


def put(model, name, value):
    """Set MuJoCo's field, and the flag that goes with it."""
    flags = {
        "jnt_range": model.jnt_limited,
        "jnt_actfrcrange": model.jnt_actfrclimited,
        "tendon.limit": model.tendon_limited,
        "actuator_ctrlrange": model.actuator_ctrllimited,
        "actuator_forcerange": model.actuator_forcelimited,
    }
    if name in flags:
        flags[name][:] = 1
    if name.startswith("opt."):
        setattr(model.opt, name.removeprefix("opt."), value)
    elif name == "actuator_gear":
        model.actuator_gear[:, 0] = value
    else:
        getattr(model, name.replace("tendon.limit", "tendon_range"))[:] = value


def changed(sys, name, value):
    """Our model with the numbers."""
    value = jnp.asarray(value, float)
    if name == "tendon.limit":
        return sys.tree_replace({name: (value[..., 0], value[..., 1])})
    return sys.tree_replace({name: value})


@pytest.mark.slow
@pytest.mark.parametrize("name", SET)
def test_a_number_that_is_set_later_has_mujocos_effect(name):
    """Under `vmap`, as domain randomization sets it, beside the model as it was."""
    peer = both(PLAIN)
    # MuJoCo reads weights that are compensated where any was when it compiled the model.
    theirs = both(PLAIN.replace("<body>", '<body gravcomp="1e-12">'))
    model, data = theirs.model, theirs.data
    q, qd, act = np.array([0.2, 0.04]), np.array([1.0, -0.3]), np.array([0.8])
    sys = peer.sys.replace(opt=peer.sys.opt.replace(iterations=20, ls_iterations=10))

    def step(value):
        mine = changed(sys, name, value)
        start = GENERALIZED.init(mine, jnp.array(q), jnp.array(qd))
        return GENERALIZED.step(mine, start, jnp.array(act)).qd

    two = jnp.stack([jnp.asarray(SET[name], float)] * 2)
    found = jax.jit(jax.vmap(step), compiler_options=FAST_COMPILE)(two)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, qd, act
    mujoco.mj_step(model, data)
    before = data.qvel.copy()
    mujoco.mj_resetData(model, data)
    put(model, name, SET[name])
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, qd, act
    mujoco.mj_step(model, data)
    assert np.abs(data.qvel - before).max() > 1e-5
    np.testing.assert_allclose(found, [data.qvel] * 2, rtol=1e-9, atol=1e-10)


def test_a_batch_and_its_axes_have_one_structure():
    """So that `jax.vmap` takes a randomized model."""
    sys = both(PLAIN).sys
    draw = Randomization(
        {"dof_frictionloss": Range(0, 1, "set"), "opt.viscosity": Range(0, 1, "set")}
    )
    batch, axes = draw(sys, jax.random.split(jax.random.key(0), 3))
    assert batch.joint_dry == axes.joint_dry == (True, True)
    assert batch.opt.enable_fluid and axes.opt.enable_fluid
    total = jax.vmap(lambda s: s.dof.frictionloss.sum() + s.opt.viscosity, in_axes=(axes,))(batch)
    assert total.shape == (3,)


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("dof", "frictionloss", [0.1, 0.0]),
        ("dof", "limit", ([-1.0, -np.inf], [np.inf, np.inf])),
        ("tendon", "frictionloss", [0.1]),
        ("tendon", "limit", ([-1.0], [1.0])),
        ("tendon", "margin", [0.1]),
        ("joint", "margin", [0.1, 0.0]),
        ("joint", "actuator_range", [[-1.0, 1.0], [-np.inf, np.inf]]),
        ("opt", "density", 1.0),
    ],
)
def test_a_number_put_past_replace_is_refused_by_name(part, field, value):
    sys = both(PLAIN).sys
    value = tuple(map(jnp.array, value)) if isinstance(value, tuple) else jnp.array(value)
    mine = dataclasses.replace(getattr(sys, part), **{field: value})
    with pytest.raises(ModelError, match=f"leaf '{part}.{field}' has a value without effect"):
        GENERALIZED.init(dataclasses.replace(sys, **{part: mine}), jnp.zeros(2), jnp.zeros(2))
