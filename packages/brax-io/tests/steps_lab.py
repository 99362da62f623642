"""Steps of models beside MuJoCo's, from random states, in double precision."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from brax import plugins
from brax.io import mjcf

QUICK = {"xla_backend_optimization_level": "0", "xla_llvm_disable_expensive_passes": True}
"""Each program runs a few steps only."""


def check_steps(xml, states=6, tolerance=1e-9, spread=(0.5, 1.0)):
    """Compare the change of the velocities in a step, and the activations, with MuJoCo's.

    Args:
        xml: the text of the model.
        states: the number of random states, their controls and activations random too.
        spread: standard deviations of the coordinates and of the velocities.
        tolerance: bound of the error, relative to the largest change of a velocity.
    """
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations = 1e-14, 200, 100
    before, velocities, activations = _along_mujoco(model, states, spread)
    with jax.enable_x64(True):
        sys = mjcf.loads(xml).tree_replace({"opt.iterations": 40, "opt.ls_iterations": 15})
        engine = plugins.get("pipeline", "generalized")

        def step(q, qd, activation, ctrl):
            state = engine.init(sys, q, qd)
            if len(activation):
                state = state.replace(activation=activation)
            state = engine.step(sys, state, ctrl)
            return state.qd, state.activation if len(activation) else activation

        found = jax.jit(jax.vmap(step), compiler_options=QUICK)(*map(jnp.asarray, before))
        moved, activated = map(np.asarray, found)
    change = np.maximum(np.abs(velocities - before[1]).max(axis=1), 1e-9)
    error = np.abs(moved - velocities).max(axis=1) / change
    assert error.max() < tolerance, error
    np.testing.assert_allclose(activated, activations, rtol=1e-10, atol=1e-12)


def _along_mujoco(model, states, spread):
    """Return random states, and MuJoCo's velocities and activations one step later."""
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    before, after = [], []
    for _ in range(states):
        mujoco.mj_resetData(model, data)
        mujoco.mj_integratePos(model, data.qpos, spread[0] * rng.normal(size=model.nv), 1.0)
        data.qvel[:] = spread[1] * rng.normal(size=model.nv)
        data.ctrl[:], data.act[:] = 2 * rng.normal(size=model.nu), rng.uniform(size=model.na)
        before.append([a.copy() for a in (data.qpos, data.qvel, data.act, data.ctrl)])
        mujoco.mj_step(model, data)
        after.append([a.copy() for a in (data.qvel, data.act)])
    before, after = ([np.array(a) for a in zip(*each, strict=True)] for each in (before, after))
    return before, *after
