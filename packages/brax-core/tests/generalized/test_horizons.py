"""Growth of errors with time and with the time step, in all pipelines: T37, T61, T64, T85."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import MODELS, both, run
from physics_lab import chain, settings
from test_astronaut import conserved

from brax.base import Force
from brax.generalized.pipeline import GENERALIZED
from brax.positional.pipeline import POSITIONAL
from brax.spring.pipeline import SPRING

pytestmark = pytest.mark.slow

PIPELINES = [pytest.param(p, id=p.name) for p in (SPRING, POSITIONAL, GENERALIZED)]
STEPS = 150


def test_an_ant_that_is_dropped_follows_mujocos():
    """T37: from .75 m; fifty steps after it lands it is where MuJoCo's is, to a thousandth."""
    # It lands after 54 steps; after 104 the coordinates are the same to 1e-15.
    peer = both(MODELS["ant"])
    data = peer.data
    data.qpos[:] = np.asarray(peer.sys.init_q)
    data.qpos[2] = 0.75
    start, wanted, touched = data.qpos.copy(), [], []
    for _ in range(STEPS):
        mujoco.mj_step(peer.model, data)
        wanted.append(data.qpos.copy())
        touched.append(data.ncon > 0)
    q, _ = run(peer.sys, start, jnp.zeros(peer.model.nv), jnp.zeros(0), STEPS)
    apart = np.abs(np.asarray(q) - wanted).max(axis=1)
    landed = int(np.argmax(touched))
    assert 0 < landed < STEPS - 50
    assert (apart[: landed + 50] < 1e-3).all()


def robot():
    """ANYmal's proportions: a trunk and four legs of three hinges, free of everything else."""
    legs = ""
    for x in (0.28, -0.28):
        for y in (0.12, -0.12):
            side = np.sign(y)
            legs += f"""<body pos="{x} {y} 0"><joint axis="1 0 0"/>
<inertial pos=".02 0 0" mass="1.4" diaginertia=".002 .003 .003"/>
<body pos=".06 {0.1 * side} 0"><joint axis="0 1 0"/>
<inertial pos="0 {0.04 * side} -.12" mass="2" diaginertia=".02 .02 .003"/>
<body pos="0 0 -.25"><joint axis="0 1 0"/>
<inertial pos=".02 0 -.15" mass=".5" diaginertia=".006 .006 .0005"/></body></body></body>"""
    return f"""<mujoco><option timestep=".001"/><worldbody><body pos="0 0 2"><freejoint/>
<inertial pos=".01 0 .02" mass="16" diaginertia=".2 .6 .7"/>{legs}</body></worldbody></mujoco>"""


compiled = functools.partial(jax.jit, static_argnames="pipeline")
"""Thousands of steps: code that is quick to compile is far slower to run."""


def many(sys, pipeline, state, steps, external=None):
    """Return the state after any number of steps, by one program."""
    still = jnp.zeros(0)
    return jax.lax.fori_loop(
        0, steps, lambda _, s: pipeline.step(sys, s, still, external=external), state
    )


@compiled
def lifted(sys, push, pipeline, every):
    """Energy when nothing pushes any more, and 200 times from then, `every` steps apart."""
    none = jnp.zeros((sys.num_links(), 3))

    def energy(state):
        kinetic = conserved(sys, state)[2]
        centre = jax.vmap(lambda x, p: x.do(p))(state.x, sys.link.inertia.transform).pos
        return kinetic - sys.opt.gravity @ (sys.link.inertia.mass @ centre)

    start = pipeline.init(sys, sys.init_q, jnp.zeros(sys.qd_size())).replace(contact=None)
    forces = jnp.where(jnp.arange(300) < 100, push, 0.0)

    def sample(state, force):
        state = many(sys, pipeline, state, every, Force(none, none.at[0, 2].set(force)))
        return state, energy(state)

    return jax.lax.scan(sample, start, forces)[1][99:]


@functools.cache
def their_lift(dt):
    """MuJoCo's Euler: mean square of the error of the energy."""
    peer = both(robot())
    model, data = peer.model, peer.data
    model.opt.timestep = dt
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    push = 2 * 9.81 * model.body_mass.sum()
    data.xfrc_applied[1, 2] = push
    mujoco.mj_step(model, data, round(1 / dt))
    data.xfrc_applied[:] = 0
    energies = []
    for _ in range(201):
        mujoco.mj_forward(model, data)
        energies.append(data.energy.sum())
        mujoco.mj_step(model, data, round(0.01 / dt))
    return push, np.mean((np.array(energies[1:]) - energies[0]) ** 2)


@pytest.mark.parametrize(
    ("pipeline", "dt"),
    [(GENERALIZED, 1e-2), (GENERALIZED, 1e-3), (SPRING, 1e-3), (POSITIONAL, 1e-3)],
    ids=lambda x: getattr(x, "name", str(x)),
)
def test_a_robot_thrown_up_keeps_its_energy(pipeline, dt):
    """T61: twice its weight for a second, then nothing for two.

    At dt .01 spring has 311 J^2 and positional 310, MuJoCo's Euler and generalized 279.
    """
    push, bar = their_lift(dt)
    sys = settings(both(robot()).sys, dt)
    energies = np.asarray(lifted(sys, push, pipeline, round(0.01 / dt)))
    error = np.mean((energies[1:] - energies[0]) ** 2)
    assert error <= (1 + 1e-9) * bar


@compiled
def ends(sys, q, qd, pipeline, steps):
    return many(sys, pipeline, pipeline.init(sys, q, qd).replace(contact=None), steps).x.pos


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_shorter_steps_lead_to_one_motion(pipeline):
    """T64: where the links are after half a second, against where steps of 1/8 ms lead."""
    sys, rng = chain(5, 0.02), np.random.default_rng(0)
    q, qd = 0.5 * rng.normal(size=(2, 5))
    reached = {
        dt: np.asarray(ends(settings(sys, dt), q, qd, pipeline, round(0.512 / dt)))
        for dt in (0.008, 0.004, 0.002, 0.001, 0.000125)
    }
    fine = reached.pop(0.000125)
    errors = [np.abs(x - fine).max() for x in reached.values()]
    # Of 8 ms 3.5e-3, 3.5e-3 and 1.9e-3 m; slopes 1.05, 1.05 and 1.07
    slope = np.polyfit(np.log(list(reached)), np.log(errors), 1)[0]
    assert slope >= 1.0


@compiled
def growth(sys, q, pipeline):
    """Largest singular value of the state's derivative by the initial state, each half second."""
    n = sys.qd_size()

    def states(x):
        def sample(state, _):
            state = many(sys, pipeline, state, 50)
            return state, jnp.concatenate([state.q, state.qd])

        start = pipeline.init(sys, x[:n], x[n:]).replace(contact=None)
        return jax.lax.scan(sample, start, None, length=64)[1]

    slopes = jax.jacfwd(states)(jnp.concatenate([q, jnp.zeros(n)]))
    return jnp.linalg.norm(slopes, ord=2, axis=(1, 2))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_derivatives_of_a_pendulum_grow_with_the_time_and_no_faster(pipeline):
    """T85: its period depends on the swing, so the phase departs in proportion to the time."""
    sys = settings(chain(1, 0.02), 1e-2)
    norms = np.asarray(growth(sys, jnp.array([1.5]), pipeline))
    times = 0.5 * np.arange(1, 65)
    # .99, .98 and .98
    power = np.polyfit(np.log(times[8:]), np.log(norms[8:]), 1)[0]
    assert 0.9 < power < 1.1
