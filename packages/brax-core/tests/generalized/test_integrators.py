"""Integrators in joint coordinates: order, what they keep, and MuJoCo's steps (T65, T66)."""

import functools
import itertools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import MODELS, both, generic
from physics_lab import BOX, FAST_COMPILE, free_body, settings

from brax import dynamics, plugins
from brax.errors import ModelError
from brax.generalized.pipeline import GENERALIZED
from brax.io import mjcf

TREE = """<mujoco><option timestep=".01" {}/><worldbody><body><freejoint/>
<inertial pos=".1 0 .05" mass="1" diaginertia=".1 .12 .15"/><body pos=".3 0 0">
<joint name="a" axis="0 1 0.3" pos="-.05 0 0" damping="{damping}"/>
<inertial pos=".2 .1 0" mass=".5" diaginertia=".01 .02 .025"/>
{}</body></body></worldbody>{}</mujoco>"""
BALL = """<body pos=".3 0 0"><joint type="ball" damping="{damping}" armature=".01"/>
<inertial pos=".1 .1 0" mass=".5" diaginertia=".01 .02 .025"/></body>"""
DRIVES = """<actuator><velocity joint="a" kv="2"/><motor joint="a" gear="2"/>
<general joint="a" biastype="affine" biasprm="0 -1 -3" forcerange="-.1 .1"/></actuator>"""
FLOATING = 'gravity="0 0 0"'


def tree(option="", end="", drives="", damping=0.0):
    return TREE.format(option, end, drives, damping=damping)


@functools.partial(jax.jit, compiler_options=FAST_COMPILE)
def move(sys, q, qd, act, n):
    state = GENERALIZED.init(sys, q, qd)
    state = jax.lax.fori_loop(0, n, lambda _, s: GENERALIZED.step(sys, s, act), state)
    return state.q, state.qd


def moved(sys, name, start, seconds, n):
    system = sys.replace(
        integrator=plugins.get("integrator", name), opt_timestep=jnp.asarray(seconds / n)
    )
    return move(system, *map(jnp.asarray, start), jnp.zeros(0), n)


def order(sys, name, start):
    """Return the order: log2 of the factor by which halving the step reduces the error."""
    ends = [np.concatenate(moved(sys, name, start, 0.4, n)) for n in (20, 40, 80)]
    first, second = (np.linalg.norm(a - b) for a, b in itertools.pairwise(ends))
    return np.log2(first / second)


def kept(sys, start, end):
    """Return the change of momentum, and the relative change of energy."""
    p, q = (dynamics.momentum(sys, *map(jnp.asarray, s)) for s in (start, end))
    e, f = (dynamics.energy(sys, *map(jnp.asarray, s)) for s in (start, end))
    change = jnp.concatenate([q.ang - p.ang, q.vel - p.vel])
    return np.abs(change).max(), abs(float(sum(f) / sum(e)) - 1)


NAMES = [
    pytest.param("euler", marks=pytest.mark.slow),
    pytest.param("implicit", marks=pytest.mark.slow),
    pytest.param("implicitfast", marks=pytest.mark.slow),
    "rk4",
    pytest.param("variational", marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_order_is_the_declared_one(name):
    """T65, with a free joint, where rates of a quaternion are not those of its components."""
    peer = both(tree())
    start = generic(peer, np.random.default_rng(0))
    wanted = plugins.get("integrator", name).order
    # Measured 1.00, 1.00, 1.00, 4.00 and 2.00.
    assert order(peer.sys, name, start) == pytest.approx(wanted, abs=0.1)


@pytest.mark.slow
def test_the_variational_integrator_keeps_momentum():
    """To round-off; its energy, as T66 asks, is nearer than Euler's."""
    peer = both(tree(FLOATING))
    start = generic(peer, np.random.default_rng(0))
    momentum, energy = kept(peer.sys, start, moved(peer.sys, "variational", start, 0.4, 20))
    assert momentum < 1e-11  # measured 4e-13
    assert energy < 1e-4  # measured 1e-5


@pytest.mark.slow
def test_a_tumble_drifts_least_under_rk4_and_most_under_euler():
    """T66, 500 steps; what the variational integrator keeps comes before all."""
    start = free_body().init_q, jnp.array([0.0, 0, 0, 1, 2, 3])
    sys = settings(free_body(), gravity=(0, 0, 0))
    drift = [
        kept(sys, start, moved(sys, name, start, 5.0, 500))[1]
        for name in ("variational", "rk4", "implicit", "euler")
    ]
    # Measured 8e-15, 3e-10, .074, .087.
    assert np.all(np.diff(drift) > 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["euler", "implicit", "implicitfast", "rk4"])
def test_energy_drifts_as_mujocos(name):
    """A tree that floats; the implicit integrators drift more than Euler's here, in MuJoCo too."""
    peer = both(tree(FLOATING))
    start = generic(peer, np.random.default_rng(0))
    _, drift = kept(peer.sys, start, moved(peer.sys, name, start, 2.0, 400))
    model, data = peer.model, peer.data
    model.opt.timestep = 2.0 / 400
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{name.upper()}")
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    energy = []
    for steps in (0, 400):
        data.qpos[:], data.qvel[:] = start if steps == 0 else (data.qpos, data.qvel)
        for _ in range(steps):
            mujoco.mj_step(model, data)
        mujoco.mj_forward(model, data)
        energy.append(data.energy.sum())
    theirs = abs(energy[1] / energy[0] - 1)
    # Measured to 1e-12 where it is not round-off, which is what RK4's 1.4e-11 nearly is.
    np.testing.assert_allclose(drift, theirs, rtol=1e-9, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["implicit", "variational"])
@pytest.mark.parametrize("omega", [(0.05, 5, 0.05), (20, 0.05, 0.05)])
def test_a_gyroscope_gains_no_energy_in_100_seconds(name, omega):
    """T10. Euler, as MuJoCo's does, gains .73 of the first and overflows on the second."""
    sys = settings(free_body(), gravity=(0, 0, 0))
    start = free_body().init_q, jnp.array([0.0, 0, 0, *omega])
    most = 0.0
    for _ in range(20):
        last = moved(sys, name, start, 5.0, 1000)
        most = max(most, sum(map(float, dynamics.energy(sys, *last))))
        start = last
    first = 0.5 * np.sum(np.array(BOX) * np.square(omega))
    assert most < 1.01 * first  # measured 1 + 2e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("implicit", marks=pytest.mark.slow), "implicitfast"])
def test_an_implicit_step_is_mujocos(name):
    """With dampers, a velocity servo, one that is at its bound, and spins of several rad/s."""
    peer = both(tree(f'integrator="{name}"', BALL.format(damping=0.1), DRIVES, damping=0.2))
    q, qd = generic(peer, np.random.default_rng(0))
    peer.data.qpos[:], peer.data.qvel[:], peer.data.ctrl[:] = q, 3 * qd, [0.3, 0.4, 0.5]
    found, rates = move(peer.sys, q, 3 * qd, jnp.array([0.3, 0.4, 0.5]), 1)
    mujoco.mj_step(peer.model, peer.data)
    # Measured 1e-15.
    np.testing.assert_allclose(rates, peer.data.qvel, atol=1e-12)
    np.testing.assert_allclose(found, peer.data.qpos, atol=1e-12)


ALONE = """<mujoco><option timestep=".01" integrator="implicitfast" {}/><worldbody>
<body><freejoint/><site name="a" pos=".1 0 .2"/>
<inertial pos=".1 .05 0" mass="1" diaginertia=".1 .12 .15"/></body>
<body pos="1 0 0"><freejoint/><site name="b" pos="-.1 .2 .1"/>
<inertial pos="0 .1 0" mass="2" diaginertia=".2 .12 .15"/></body>
<body pos="0 1 0"><freejoint/><inertial pos=".1 0 .05" mass="1" diaginertia=".1 .12 .15"/>
<body pos=".3 0 0"><joint axis="0 1 .3" damping=".1"/>
<inertial pos=".2 .1 0" mass=".5" diaginertia=".01 .02 .025"/></body></body>
</worldbody>{}</mujoco>"""
WITH_TENDON = """<tendon><spatial damping="3"><site site="a"/><site site="b"/></spatial></tendon>"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "more"), [("", ""), ('density="100" viscosity=".5"', ""), ("", WITH_TENDON)]
)
def test_a_fast_implicit_step_of_bodies_that_carry_nothing_is_mujocos(option, more):
    """It is implicit in their gyroscopic torque; not in that of the body that carries a hinge."""
    peer = both(ALONE.format(option, more))
    q, qd = generic(peer, np.random.default_rng(0))
    peer.data.qpos[:], peer.data.qvel[:] = q, 3 * qd
    found, rates = move(peer.sys, q, 3 * qd, jnp.zeros(0), 1)
    mujoco.mj_step(peer.model, peer.data)
    np.testing.assert_allclose(rates, peer.data.qvel, atol=1e-12)
    np.testing.assert_allclose(found, peer.data.qpos, atol=1e-12)


@pytest.mark.slow
def test_rk4_of_hinges_is_mujocos():
    """In models with hinges only, both take the same steps, dampers included."""
    links = ""
    for axis in ("0 0 1", "0 1 0", "1 0 .5"):
        links += f"""<body pos=".2 0 .1"><joint axis="{axis}" damping=".1"/>
<inertial pos=".1 .1 0" mass=".5" diaginertia=".01 .02 .025"/>"""
    world = f"<worldbody>{links}{'</body>' * 3}</worldbody>"
    peer = both(f'<mujoco><option integrator="RK4" timestep=".01"/>{world}</mujoco>')
    q, qd = generic(peer, np.random.default_rng(1))
    peer.data.qpos[:], peer.data.qvel[:] = q, 3 * qd
    mujoco.mj_step(peer.model, peer.data, 10)
    found, rates = move(peer.sys, q, 3 * qd, jnp.zeros(0), 10)
    np.testing.assert_allclose(rates, peer.data.qvel, atol=1e-11)
    np.testing.assert_allclose(found, peer.data.qpos, atol=1e-11)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("implicit", marks=pytest.mark.slow),
        pytest.param("implicitfast", marks=pytest.mark.slow),
    ],
)
def test_a_step_waits_for_no_thread(name):
    """A batch of LAPACK's factorizations stops a CPU's program for ever where two run at a time.

    As these two would: of all rates, in a medium, and of the bodies that carry nothing.
    """
    sys = mjcf.loads(ALONE.format('density="1.2"', "")).replace(
        integrator=plugins.get("integrator", name)
    )
    start = GENERALIZED.init(sys, sys.init_q, jnp.zeros(sys.qd_size()))
    states = jax.tree.map(lambda x: jnp.stack([x] * 2), start)
    step = jax.jit(jax.vmap(lambda s: GENERALIZED.step(sys, s, jnp.zeros(sys.act_size()))))
    assert "lapack" not in step.lower(states).as_text()


def test_forces_of_a_runge_kutta_step_are_mujocos_at_its_start(f64):
    """A ball that the ground decelerates."""
    sys, model, data = both(
        '<mujoco><option integrator="RK4" timestep=".001" iterations="50"/><worldbody><geom '
        'type="plane" size="9 9 1"/><body pos="0 0 .1999"><joint type="slide" axis="0 0 1"/>'
        '<geom size=".2" mass="2"/></body></worldbody></mujoco>'
    )
    start = GENERALIZED.init(sys, sys.init_q, jnp.full(1, -0.01))
    got = jax.jit(GENERALIZED.step)(sys, GENERALIZED.with_forces(sys, start), jnp.zeros(0))
    data.qvel[:] = -0.01
    mujoco.mj_forward(model, data)
    force = data.qfrc_constraint[0]
    mujoco.mj_step(model, data)
    assert force > 10
    np.testing.assert_allclose(got.qd, data.qvel, rtol=1e-9)
    np.testing.assert_allclose(got.forces.acceleration, (data.qvel + 0.01) / 0.001, rtol=1e-7)
    np.testing.assert_allclose(got.forces.contact, [[0, 0, force]], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("pipeline", ["spring", "positional"])
@pytest.mark.parametrize("name", ["rk4", "implicit", "implicitfast"])
def test_who_has_no_accelerations_refuses_by_name(pipeline, name):
    able = both(tree()).sys
    sys = able.replace(integrator=plugins.get("integrator", name))
    run = plugins.get("pipeline", pipeline)
    message = f"{pipeline}.{{}}: this pipeline cannot run the integrator '{name}'.*'variational'"
    with pytest.raises(ModelError, match=message.format("init")):
        run.init(sys, sys.init_q, jnp.zeros(7))
    with pytest.raises(ModelError, match=message.format("step")):
        run.step(sys, run.init(able, sys.init_q, jnp.zeros(7)), jnp.zeros(0))


def astronaut():
    """Return the humanoid without limits, dampers or contacts, a motor on each hinge."""
    spec = mujoco.MjSpec.from_string(MODELS["humanoid"])
    for i, joint in enumerate(spec.joints):
        joint.damping[:], joint.limited, joint.armature = 0, 0, 0
        if joint.type != mujoco.mjtJoint.mjJNT_FREE:
            joint.name, joint.armature = f"hinge{i}", 0.01
            motor = spec.add_actuator(name=f"motor{i}", target=joint.name)
            motor.trntype = mujoco.mjtTrn.mjTRN_JOINT
    for geom in spec.geoms:
        geom.contype = geom.conaffinity = 0
    spec.option.gravity[:], spec.option.timestep = 0, 0.01
    return spec.compile()


@functools.partial(jax.jit, compiler_options=FAST_COMPILE)
def floated(sys, q, qd, controls):
    """Sizes of momenta, and energies, of several runs."""

    def one(qd, controls):
        start = GENERALIZED.init(sys, q, qd)
        state, _ = jax.lax.scan(lambda s, a: (GENERALIZED.step(sys, s, a), None), start, controls)
        return balance(sys, state.q, state.qd)

    return jax.vmap(one)(qd, controls)


def balance(sys, q, qd):
    momentum = dynamics.momentum(sys, q, qd)
    return jnp.stack(
        [
            jnp.linalg.norm(momentum.vel),
            jnp.linalg.norm(momentum.ang),
            sum(dynamics.energy(sys, q, qd)),
        ]
    )


def theirs(model, q, qd, controls):
    """Return the ends of several runs of MuJoCo's RK4."""
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    ends = []
    for rates, run in zip(qd, controls, strict=True):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = q, rates
        for control in run:
            data.ctrl[:] = control
            mujoco.mj_step(model, data)
        ends.append((data.qpos, data.qvel))
    return [np.array(x) for x in zip(*ends, strict=True)]


@pytest.mark.long
@pytest.mark.slow
def test_the_astronaut_keeps_momentum_and_energy():
    """T59 and T60, four runs of each, at dt .01."""
    model, rng, runs = astronaut(), np.random.default_rng(0), 4
    sys = mjcf.load_model(model)
    push = rng.normal(size=(runs, 3))
    kicked = np.zeros((runs, model.nv))
    kicked[:, :3] = push / np.linalg.norm(push, axis=1, keepdims=True)
    kicked[:, 6:] = rng.normal(size=(runs, model.nu))
    rates = np.concatenate([0 * kicked, kicked])
    controls = np.zeros((2 * runs, 100, model.nu))
    controls[:runs] = 0.5 * rng.uniform(-1, 1, size=controls[:runs].shape)
    measure = jax.jit(jax.vmap(balance, in_axes=(None, 0, 0)), compiler_options=FAST_COMPILE)
    before = np.array(measure(sys, np.tile(sys.init_q, (2 * runs, 1)), rates))[runs:, 2]

    def errors(balances):
        (p, angular, _), energy = balances[:runs].mean(0), balances[runs:, 2]
        return np.array([p, angular, np.abs(energy / before - 1).mean()])

    measured = np.array(measure(sys, *theirs(model, sys.init_q, rates, controls)))
    found = {
        name: errors(
            np.array(
                floated(
                    sys.replace(integrator=plugins.get("integrator", name)),
                    sys.init_q, rates, controls,
                )
            )
        )
        for name in ("rk4", "variational")
    }  # fmt: skip
    # Measured 2.4e-7, 1.0e-7 and 1.3e-8, the same as MuJoCo's to three digits.
    assert (found["rk4"] < 10 * errors(measured)).all(), (found, errors(measured))
    # Measured 8e-12 and 6e-13, and an energy of 4e-7.
    assert (found["variational"] < [1e-10, 1e-10, 1e-5]).all(), found


@pytest.mark.slow
@pytest.mark.parametrize("double", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_tumbling_box_keeps_its_angular_momentum_under_variational(double):
    """T08: to 1e-10, and to 1e-5 in single precision, where positions are differences."""
    with jax.enable_x64(double):
        for steps in (100, 1000):
            sys = settings(free_body(), gravity=(0, 0, 0))
            spin = jnp.array([0.0, 0, 0, 1, 2, 3])
            q, qd = moved(sys, "variational", (sys.init_q, spin), 1.0, steps)
            start, end = (dynamics.momentum(sys, *s).ang for s in ((sys.init_q, spin), (q, qd)))
            # Measured 2e-15 and 1e-14; 1.8e-6 and 7.9e-6 in single precision.
            lost = jnp.linalg.norm(end - start) / jnp.linalg.norm(start)
            assert lost < (1e-10 if double else 1e-5)
