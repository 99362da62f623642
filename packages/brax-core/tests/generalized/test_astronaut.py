"""A humanoid that floats, and an ant that is hit: T59, T60, T62, in all three pipelines.

Peers of the generalized pipeline's laboratory: MuJoCo's Euler runs the same model at the same dt.
"""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import MODELS, both
from physics_lab import FAST_COMPILE

from brax.generalized.pipeline import GENERALIZED
from brax.positional.pipeline import POSITIONAL
from brax.spring.pipeline import SPRING

pytestmark = pytest.mark.slow

PIPELINES = [pytest.param(p, id=p.name) for p in (SPRING, POSITIONAL, GENERALIZED)]
SEEDS = 16
NO_WORSE = 1 + 1e-9
"""Ratio that allows for rounding where the numbers are the same."""


def floating():
    """Return the humanoid without gravity, contacts, limits and dampers, a motor on every hinge."""
    xml = MODELS["humanoid"].replace('limited="true"', 'limited="false"')
    xml = xml.replace("<geom ", '<geom contype="0" conaffinity="0" ')
    xml = xml.replace('damping="1" armature=".1"', 'armature=".02"')
    xml = xml.replace('timestep="0.004"', 'gravity="0 0 0"')
    hinges, count = [], 0
    while "<joint axis" in xml:
        xml = xml.replace("<joint axis", f'<joint name="j{count}" axis', 1)
        hinges.append(f'<motor joint="j{count}"/>')
        count += 1
    return both(xml.replace("</mujoco>", f"<actuator>{''.join(hinges)}</actuator></mujoco>"))


def turn(rot, v):
    w, u = rot[..., :1], rot[..., 1:]
    t = 2 * jnp.cross(u, v)
    return v + w * t + jnp.cross(u, t)


def conserved(sys, state):
    """Linear and angular momentum, and kinetic energy with the rotors', from the links alone."""
    frame, moments = sys.link.inertia.transform, sys.link.inertia.moments
    mass = sys.link.inertia.mass[:, None]
    arm = turn(state.x.rot, frame.pos)
    vel = state.xd.vel + jnp.cross(state.xd.ang, arm)
    back = lambda rot, v: turn(rot * jnp.array([1, -1, -1, -1]), v)  # noqa: E731
    local = back(frame.rot, back(state.x.rot, state.xd.ang))
    spin = turn(state.x.rot, turn(frame.rot, moments * local))
    linear = mass * vel
    angular = jnp.cross(state.x.pos + arm, linear) + spin
    kinetic = jnp.sum(linear * vel) + jnp.sum(spin * state.xd.ang)
    rotors = jnp.sum(sys.dof.armature * state.qd**2)
    return linear.sum(0), angular.sum(0), 0.5 * (kinetic + rotors)


@functools.partial(jax.jit, static_argnames="pipeline", compiler_options=FAST_COMPILE)
def float_on(sys, q, qd, acts, steps, pipeline):
    """Return the conserved quantities at the start and after `steps`, for a batch."""

    def one(qd, acts):
        start = pipeline.init(sys, q, qd)
        end = jax.lax.fori_loop(
            0,
            steps,
            lambda i, s: pipeline.step(sys, s, acts[jnp.minimum(i, acts.shape[0] - 1)]),
            start,
        )
        return conserved(sys, start), conserved(sys, end)

    return jax.vmap(one)(qd, acts)


def at(sys, dt):
    return sys.replace(opt=sys.opt.replace(timestep=jnp.asarray(dt)))


def mujoco_runs(peer, dt, qd, acts, steps):
    """Momentum and energy at the end of MuJoCo's runs, and energy at the start."""
    model, out = peer.model, []
    model.opt.timestep = dt
    for rates, controls in zip(qd, acts, strict=True):
        data = mujoco.MjData(model)
        data.qvel[:] = rates
        ends = []
        mujoco.mj_forward(model, data)
        for k in range(steps + 1):
            if k in (0, steps):
                mujoco.mj_forward(model, data)
                mujoco.mj_energyVel(model, data)
                mujoco.mj_subtreeVel(model, data)
                linear = model.body_mass.sum() * data.subtree_linvel[0]
                spin = data.subtree_angmom[0] + np.cross(data.subtree_com[0], linear)
                ends.append((linear, spin, data.energy[1]))
            data.ctrl[:] = controls[min(k, len(controls) - 1)]
            mujoco.mj_step(model, data)
        out.append(ends)
    starts, last = zip(*out, strict=True)
    return [np.array(x) for x in zip(*starts, strict=True)], [
        np.array(x) for x in zip(*last, strict=True)
    ]


@pytest.fixture(scope="module")
def astronaut():
    with jax.enable_x64(True):
        return floating()


def mean_length(v):
    return np.linalg.norm(np.asarray(v), axis=-1).mean()


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("dt", [0.01, 0.001])
def test_internal_torques_of_an_astronaut_conserve_momentum(astronaut, pipeline, dt):
    # T59: from rest, torques redrawn every step, one second. Spring and positional 1e-14 kg m/s;
    # MuJoCo and generalized, alike to 13 digits, 3.0e-2 and 1.9e-4.
    steps, sys = round(1 / dt), astronaut.sys
    rng = np.random.default_rng(0)
    acts = 0.5 * rng.uniform(-1, 1, (SEEDS, 1000, sys.act_size()))
    qd = np.zeros((SEEDS, sys.qd_size()))
    _, ours = float_on(at(sys, dt), sys.init_q, qd, acts, steps, pipeline)
    _, theirs = mujoco_runs(astronaut, dt, qd, acts, steps)
    for mine, bar in zip(ours[:2], theirs[:2], strict=True):
        assert mean_length(mine) <= NO_WORSE * mean_length(bar)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("dt", [0.01, 0.001])
def test_a_kicked_astronaut_keeps_its_energy(astronaut, pipeline, dt):
    # T60: 1 m/s in any direction, joints at N(0, 1) rad/s, no torque, one second. Spring and
    # positional 1.9e-4 and 1.7e-5; MuJoCo and generalized, alike to 12 digits, 6.9e-3 and 6.4e-4.
    steps, sys = round(1 / dt), astronaut.sys
    rng = np.random.default_rng(1)
    qd = rng.normal(size=(SEEDS, sys.qd_size()))
    qd[:, :3] /= np.linalg.norm(qd[:, :3], axis=1, keepdims=True)
    qd[:, 3:6] = 0
    acts = np.zeros((SEEDS, 1000, sys.act_size()))
    ours = float_on(at(sys, dt), sys.init_q, qd, acts, steps, pipeline)
    theirs = mujoco_runs(astronaut, dt, qd, acts, steps)
    lost, wanted = (np.abs(end[2] / start[2] - 1).mean() for start, end in (ours, theirs))
    assert lost <= NO_WORSE * wanted


@pytest.mark.parametrize(
    "pipeline",
    [
        PIPELINES[0],
        pytest.param(POSITIONAL, id="positional", marks=pytest.mark.long),
        pytest.param(GENERALIZED, id="generalized", marks=pytest.mark.long),
    ],
)
def test_a_ball_that_hits_an_ant_hands_its_momentum_over(pipeline):
    # T62: 10 kg at 5 m/s, no gravity, three seconds; nothing is touched after the second.
    # Spring and positional change the 50 kg m/s by 4e-12; MuJoCo's Euler and generalized by .562.
    ball = '<body pos="-1.5 .05 3"><freejoint/><geom size=".2" mass="10"/></body></worldbody>'
    floor = '<geom name="floor" type="plane" size="9 9 1"/>'
    xml = MODELS["ant"].replace(floor, "").replace("</worldbody>", ball)
    xml = xml.replace('pos="0 0 .6"', 'pos="0 0 3"')
    peer = both(xml.replace('timestep="0.004"', 'timestep="0.001" gravity="0 0 0"'))
    sys, qd, acts = peer.sys, np.zeros((1, peer.sys.qd_size())), np.zeros((1, 1, 0))
    qd[0, -6] = 5.0
    start, end = float_on(sys, sys.init_q, qd, acts, 3000, pipeline)
    change = mean_length(end[0] - start[0])
    assert np.abs(start[2] - end[2]) > 1.0  # it was hit
    if pipeline is GENERALIZED:
        _, theirs = mujoco_runs(peer, 1e-3, qd, acts, 3000)
        assert change <= (1 + 1e-6) * mean_length(theirs[0] - start[0])
    else:
        assert change <= 1e-8
