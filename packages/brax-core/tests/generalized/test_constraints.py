"""Limits, dry friction and contacts against closed forms and MuJoCo (T19 to T21, T36 to T43)."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import MODELS, both, record, run
from physics_lab import FAST_COMPILE, G, ball_on_plane, settings, slope

from brax import contact, dynamics
from brax.builder import ModelBuilder
from brax.generalized.pipeline import GENERALIZED

NONE = jnp.zeros(0)


def with_options(sys, **changes):
    return sys.replace(opt=sys.opt.replace(**changes))


@functools.partial(jax.jit, compiler_options=FAST_COMPILE)
def one_step(sys, q, qd, warm):
    def step(q, qd, warm):
        state = GENERALIZED.init(sys, q, qd).replace(warmstart=warm)
        after = GENERALIZED.step(sys, state, NONE)
        return after.qd, after.warmstart

    return jax.vmap(step)(q, qd, warm)


def states(peer, rng, n=200):
    """States on a run of MuJoCo's that falls and is kicked, and what its next step gives."""
    model, data = peer.model, peer.data
    data.qpos[:] = peer.sys.init_q
    rows: list[Any] = []
    while len(rows) < n:
        data.qvel[:] += 0.2 * rng.normal(size=model.nv)
        for _ in range(3):
            mujoco.mj_step(model, data)
        before = [data.qpos.copy(), data.qvel.copy(), data.qacc_warmstart.copy()]
        mujoco.mj_step(model, data)
        if data.nefc:
            rows.append([*before, data.qvel.copy()])
    return [np.array(x) for x in zip(*rows, strict=True)]


def cost(peer, q, qd, acceleration):
    """MuJoCo's cost of an acceleration, and of its own solution."""
    model, data = peer.model, peer.data
    data.qpos[:], data.qvel[:] = q, qd
    mujoco.mj_forward(model, data)
    jacobian = data.efc_J.reshape(data.nefc, model.nv)
    mass = np.zeros((model.nv, model.nv))
    mujoco.mju_sym2dense(mass, data.M, model.M_rownnz, model.M_rowadr, model.M_colind)

    def total(a):
        out, away = np.zeros(1), a - data.qacc_smooth
        mujoco.mj_constraintUpdate(model, data, jacobian @ a - data.efc_aref, out, 0)
        return out[0] + 0.5 * away @ mass @ away

    return total(acceleration), total(data.qacc.copy())


LONG = {
    case: [pytest.mark.long]
    for case in [
        *(("humanoid", "pyramidal"), ("walker", "pyramidal")),
        *(("humanoid", "elliptic"), ("ant", "elliptic")),
    ]
}
CASES = [
    pytest.param(name, cone, marks=[pytest.mark.slow, *LONG.get((name, cone), [])])
    for name in MODELS
    for cone in ("pyramidal", "elliptic")
    if cone == "pyramidal" or name in ("ant", "hopper", "humanoid")
]


@pytest.mark.parametrize(("name", "cone"), CASES)
def test_a_step_with_contact_is_mujocos(name, cone):
    """T36: each state's velocity to a thousandth, or a cost at most a hundredth above."""
    peer = both(MODELS[name], cone=int(cone == "elliptic"), jacobian=0)
    q, qd, warm, wanted = states(peer, np.random.default_rng(1))
    found, acceleration = one_step(with_options(peer.sys, cone=cone), q, qd, warm)
    error = np.abs(found - wanted).max(1) / (1e-3 + np.abs(wanted).max(1))
    for i in np.flatnonzero(error > 1e-3):
        ours, least = cost(peer, q[i], qd[i], np.asarray(acceleration[i]))
        assert ours <= 1.01 * least + 1e-9, (i, error[i], ours, least)
    assert np.median(error) < 1e-9


MEETING = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 .09"><freejoint/><geom type="sphere" size=".1"/></body>
<body pos=".15 0.05 .12"><freejoint/><geom type="sphere" size=".1"/><body pos="0 0 .3">
<joint axis="0 1 0" range="-5 5" limited="true" frictionloss=".3"/>
<geom type="capsule" fromto="0 0 0 0 0 .2" size=".04"/></body></body></worldbody></mujoco>"""
"""Two trees that meet on the floor, a limit and dry friction."""


@pytest.mark.slow
def test_solver_goes_to_mujocos_solution_with_more_steps():
    """Two trees that meet, a limit and dry friction: what couples branches fills in."""
    peer = both(MEETING)
    q, qd, warm, wanted = states(peer, np.random.default_rng(2), 50)
    sys = with_options(peer.sys, iterations=15, ls_iterations=10)
    found, _ = one_step(sys, q, qd, warm)
    # Measured 2e-15.
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())
    # A start that is far off leads there too.
    for far in (1e4, -2e4):
        found, _ = one_step(sys, q, qd, warm + far)
        np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())


SMOOTH = """<mujoco><option cone="elliptic"/><worldbody><geom type="plane" size="1 1 1" condim="1"/>
<body pos="0 0 .1"><freejoint/><geom type="capsule" size=".1 .2" euler="90 0 0" condim="1"/></body>
</worldbody></mujoco>"""
"""A contact without friction under the round cone."""


def test_a_contact_without_friction_does_not_mind_how_fast_it_slides():
    """A friction of 1e-5, MuJoCo's least, would take a share of that of the normal force."""
    peer = both(SMOOTH)
    rng = np.random.default_rng(0)
    q = np.tile(peer.sys.init_q, (8, 1)) - 1e-3 * np.eye(7)[2]
    qd = rng.normal(size=(8, 6)) * [100, 100, 0.1, 0.1, 0.1, 100]
    found, _ = one_step(peer.sys, q, qd, np.zeros((8, 6)))
    wanted = []
    for before, rates in zip(q, qd, strict=True):
        peer.data.qpos[:], peer.data.qvel[:], peer.data.qacc_warmstart[:] = before, rates, 0.0
        mujoco.mj_step(peer.model, peer.data)
        wanted.append(peer.data.qvel.copy())
    np.testing.assert_allclose(found, np.array(wanted), rtol=1e-10, atol=1e-10)


@functools.partial(jax.jit, compiler_options=FAST_COMPILE)
def forces_at(sys, q, qd, warm):
    state = GENERALIZED.init(sys, q, qd).replace(warmstart=warm)
    found = contact.get(sys, state.x)
    assert found is not None
    return *dynamics.constraint_forces(sys, state, NONE), found.link_idx


@pytest.mark.slow
def test_forces_of_constraints_are_mujocos():
    """Along the joints, and what all contacts together do to each link."""
    peer = both(MEETING)
    model, data = peer.model, peer.data
    q, qd, warm, _ = states(peer, np.random.default_rng(2), 50)

    def touching(i):
        data.qpos[:], data.qvel[:] = q[i], qd[i]
        mujoco.mj_forward(model, data)
        return data.ncon

    most = max(range(50), key=touching)
    assert touching(most) >= 2
    sys = with_options(peer.sys, iterations=15, ls_iterations=10)
    along, force, (first, second) = forces_at(sys, q[most], qd[most], warm[most])
    scale = 1e-8 * np.abs(data.qfrc_constraint).max()
    np.testing.assert_allclose(along, data.qfrc_constraint, atol=scale)
    ours, wanted = np.zeros((4, 3)), np.zeros((4, 3))
    np.add.at(ours, np.asarray(second) + 1, force)
    np.add.at(ours, np.asarray(first) + 1, -force)
    for i, found in enumerate(data.contact):
        local = np.zeros(6)
        mujoco.mj_contactForce(model, data, i, local)
        world = found.frame.reshape(3, 3).T @ local[:3]
        wanted[model.geom_bodyid[found.geom2]] += world
        wanted[model.geom_bodyid[found.geom1]] -= world
    np.testing.assert_allclose(ours, wanted, atol=scale)


@pytest.mark.slow
def test_a_ball_rests_at_the_depth_of_its_softness(bound_slow):
    """T21: g (1 - d) / stiffness, of every impedance d."""
    sys = settings(ball_on_plane(mass=1.0, radius=0.1), dt=0.002)
    cases = [(s, d) for s in ((-100.0, -10.0), (0.1, 0.8)) for d in (0.3, 0.9, 0.99)]

    def rest(solref, impedance):
        softer = sys.replace(
            geom_solref=jnp.broadcast_to(solref, (2, 2)),
            geom_solimp=jnp.broadcast_to(
                jnp.array([0.0, 0.0, 0.001, 0.5, 2.0]).at[:2].set(impedance), (2, 5)
            ),
        )
        return record(softer, sys.init_q, jnp.zeros(6), NONE, 1, 10_000)[0][-1, 2]

    heights = jax.jit(jax.vmap(rest), compiler_options=FAST_COMPILE)(
        jnp.array([s for s, _ in cases]), jnp.array([d for _, d in cases])
    )
    for height, ((first, second), d) in zip(heights, cases, strict=True):
        stiffness = -first if first < 0 else 1 / (first * second) ** 2
        wanted = G * (1 - d) / stiffness
        np.testing.assert_allclose(0.1 - height, wanted, rtol=bound_slow(1e-6, 1e-3))


@pytest.mark.slow
def test_balls_roll_and_slip_on_a_slope():
    """T41 and T43: 5/7 g sin, and g (sin - mu cos), under the elliptic cone."""
    sys = with_options(settings(ball_on_plane(), dt=0.002), cone="elliptic")
    tilt = jnp.array(slope(15))

    def speed(friction, heading):
        c, s = jnp.cos(heading), jnp.sin(heading)
        turned = jnp.array([c * tilt[0], s * tilt[0], tilt[2]])
        slippery = sys.replace(geom_friction=jnp.full((2, 3), 1.0) * friction, opt_gravity=turned)
        return jnp.hypot(*record(slippery, sys.init_q, jnp.zeros(6), NONE, 1, 500)[1][-1, :2])

    each = jax.jit(jax.vmap(speed), compiler_options=FAST_COMPILE)
    rolling = each(jnp.ones(2), jnp.array([0.0, np.pi / 4]))
    np.testing.assert_allclose(rolling, 5 / 7 * G * np.sin(np.radians(15)), rtol=2e-3)
    slipping = each(jnp.full(2, 0.05), jnp.array([0.0, 1.0]))
    np.testing.assert_allclose(slipping, 2.065228, rtol=1e-3)


def box_on_plane(friction):
    """Return a box of 1 kg, 0.2 x 0.2 x 0.1 m, under the elliptic cone at dt 0.001."""
    builder = ModelBuilder()
    builder.add_body("box", pos=(0, 0, 0.05), mass=1.0, inertia=(1 / 240, 1 / 240, 1 / 150))
    builder.add_joint("box", "free")
    surface: dict[str, Any] = dict(friction=(friction, 0, 0))
    builder.add_geom(type="plane", name="floor", size=(0, 0, 1), **surface)
    builder.add_geom("box", "box", name="skin", size=(0.1, 0.1, 0.05), **surface)
    # Four corners share one weight in many ways, so that the solver needs more steps.
    return with_options(settings(builder.build(), dt=0.001), cone="elliptic", iterations=10)


@pytest.mark.slow
def test_a_box_slides_and_rests_by_the_laws_of_friction(bound_slow):
    """T40: g (sin - mu cos); T58: the floor bears the weight and nothing else."""
    sys = box_on_plane(0.2)
    rates = run(settings(sys, gravity=slope(20)), sys.init_q, jnp.zeros(6), NONE, 2, 500)[1]
    sped = (rates[1] - rates[0]) / 0.5
    np.testing.assert_allclose(jnp.hypot(sped[0], sped[1]), 1.511541, rtol=1e-2)
    q, qd = run(sys, sys.init_q, jnp.zeros(6), NONE, 1, 3000)
    _, force, _ = forces_at(sys, q[-1], qd[-1], jnp.zeros(6))
    total = np.abs(np.asarray(force)).sum(0) * np.sign(np.asarray(force).sum(0))
    np.testing.assert_allclose(total, [0, 0, G], atol=1e-4 * G)


@pytest.mark.slow
def test_a_box_sticks_and_slips_on_a_slope_in_every_heading(bound_slow):
    """T39 with the elliptic cone: friction tan 20 degrees, slopes of 19 and 21."""
    sys = box_on_plane(np.tan(np.radians(20)))

    def speed(degrees, heading):
        tilt, c, s = jnp.radians(degrees), jnp.cos(heading), jnp.sin(heading)
        down = G * jnp.sin(tilt)
        tilted = sys.replace(opt_gravity=jnp.stack([down * c, down * s, -G * jnp.cos(tilt)]))
        # The box faces down the slope, so that only the cone's heading differs.
        half = heading / 2
        q = sys.init_q.at[3].set(jnp.cos(half)).at[6].set(jnp.sin(half))
        return jnp.hypot(*record(tilted, q, jnp.zeros(6), NONE, 1, 1000)[1][-1, :2])

    each = jax.jit(jax.vmap(speed), compiler_options=FAST_COMPILE)
    speeds = each(jnp.array([19.0, 19, 21, 21]), jnp.array([0.0, np.pi / 4] * 2))
    assert (np.asarray(speeds[:2]) < 5e-3).all()
    np.testing.assert_allclose(speeds[2:], 0.182196, rtol=1e-2)


@pytest.mark.slow
def test_limits_give_way_as_mujocos():
    """T19 and T20: a slide and a hinge pushed against their limits, at rest."""
    xml = """<mujoco><worldbody><body><joint name="rail" type="slide" axis="1 0 0" range="0 .1"
limited="true"/><geom size=".1" mass="1"/></body><body pos="0 0 1"><joint axis="0 1 0"
range="-30 30" limited="true" damping=".1"/><geom type="capsule" fromto="0 0 0 .5 0 0"
size=".05"/></body></worldbody><actuator><motor joint="rail"/></actuator></mujoco>"""
    peer = both(xml)
    q, qd = run(peer.sys, jnp.zeros(2), jnp.zeros(2), jnp.array([10.0]), 1, 4000)
    peer.data.ctrl[:] = 10.0
    mujoco.mj_step(peer.model, peer.data, 4000)
    np.testing.assert_allclose(q[-1], peer.data.qpos, atol=1e-9)
    assert np.abs(qd[-1]).max() < 1e-9 and q[-1, 0] > 0.1


NARROW = """<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>
<body><joint name="j" axis="0 1 0" range="-.05 .06" margin=".2"/><geom size=".05" pos=".2 0 0"/>
<site name="tip" pos=".2 0 .1"/><body pos=".3 0 0"><joint name="k" type="slide" axis="0 1 0"
range="-.03 .05" margin=".1"/><geom size=".05"/></body></body>
<site name="far" pos="1 0 0"/></worldbody><tendon><fixed range="-.05 .04" margin=".3">
<joint joint="k" coef="1.3"/></fixed><spatial range=".7 .9" margin=".3"><site site="tip"/>
<site site="far"/></spatial><fixed range="-.01 .03"><joint joint="j" coef="1"/></fixed></tendon>
</mujoco>"""
"""Limits of a hinge, a slide and tendons whose two sides are within the margin, and one without."""


def test_both_sides_of_a_limit_push_within_its_margin():
    peer = both(NARROW)
    sys = with_options(peer.sys, iterations=15, ls_iterations=10)
    q = np.array([[0.0, 0.0], [0.01, 0.0], [-0.02, 0.03], [0.04, -0.04]])
    qd = np.array([[0.0, 0.0], [0.0, 0.0], [0.1, -0.2], [-0.1, 0.1]])
    found, _ = one_step(sys, q, qd, np.zeros((4, 2)))
    for ours, before, rates in zip(found, q, qd, strict=True):
        peer.data.qpos[:], peer.data.qvel[:], peer.data.qacc_warmstart[:] = before, rates, 0.0
        mujoco.mj_step(peer.model, peer.data)
        assert peer.data.nefc >= 8
        np.testing.assert_allclose(ours, peer.data.qvel, rtol=1e-10, atol=1e-12)


@pytest.mark.long
@pytest.mark.slow
def test_a_thousand_ants_stay_near_the_floor():
    """A line search that trusts what it has not looked at threw one of these away in 109 steps."""
    with jax.enable_x64(False):
        sys = both(MODELS["ant"]).sys
        rng = np.random.default_rng(0)
        q = sys.init_q + 0.05 * rng.normal(size=(1024, sys.q_size())).astype(np.float32)
        qd = rng.normal(size=(1024, sys.qd_size())).astype(np.float32)

        def height(q, qd):
            return record(sys, q, qd, NONE, 1, 400)[0][-1, 2]

        heights = jax.jit(jax.vmap(height))(q, qd)
        assert ((heights > 0.0) & (heights < 1.5)).all()
