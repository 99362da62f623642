"""External forces, a medium and compensated weight, in every pipeline, against MuJoCo."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import both, generic
from physics_lab import FAST_COMPILE, free_body, settings

from brax import plugins
from brax.base import Force
from brax.builder import ModelBuilder
from brax.errors import ModelError, ShapeError
from brax.forces.fluid_ellipsoid import added_mass

FLIER = """<mujoco><option timestep="{}" density="1.2" viscosity=".5" wind="1 2 -1"
integrator="{}"/><worldbody><body><freejoint/>
<inertial pos=".1 0 .05" mass="1" diaginertia=".1 .12 .15"/><body pos=".3 0 0">
<joint axis="0 1 0.3" pos="-.05 0 0" damping=".2"/>
<inertial pos=".2 .1 0" quat=".3 .4 .5 .6" mass=".5" diaginertia=".01 .02 .025"/>
</body></body></worldbody></mujoco>"""
STREAMED = FLIER.replace(
    "<body pos",
    """<geom type="ellipsoid" size=".1 .2 .3" pos=".05 .1 0" quat="1 .2 .3 0"
fluidshape="ellipsoid" fluidcoef=".4 .2 1.2 .8 .7"/><geom type="capsule" size=".1 .2" mass="0"
fluidshape="ellipsoid"/><body name="tail" quat="1 0 .2 .1"><geom type="box" size=".2 .05 .1"
pos="0 .1 0" mass="1e-12" fluidshape="ellipsoid"/></body><body pos""",
)
WELDED = FLIER.replace(
    "<body pos",
    """<body quat="1 .2 0 .1" pos="0 .3 0"><inertial pos=".1 0 .2" quat="1 .3 .4 .1" mass=".3"
diaginertia=".02 .01 .025"/><body pos="0 0 .2" euler="20 30 40"><geom type="box" size=".1 .3 .02"
mass=".2"/></body></body><body pos="-.4 0 .1"><geom type="box" size=".1 .2 .3" mass=".7"/></body>
<body pos="0 -.2 .1"><geom type="ellipsoid" size=".1 .2 .3" mass=".4" fluidshape="ellipsoid"/>
</body><body pos="0 0 .1"/><body pos""",
).replace(
    "</body></body></w",
    """<body pos=".1 0 .1" euler="50 0 10"><geom type="capsule" size=".05 .1" mass=".1"/></body>
</body></body></w""",
)
"""Bodies welded in two levels, and side by side; one is an ellipsoid to the medium."""
XMLS = pytest.mark.parametrize(
    "xml", [FLIER, STREAMED, WELDED], ids=["boxes", "ellipsoids", "welded"]
)
PIPELINES = ["spring", "positional", "generalized"]


BORNE = """<mujoco><option timestep="1e-3"/><worldbody><body gravcomp=".7"><freejoint/>
<inertial pos=".1 0 .05" mass="1" diaginertia=".1 .12 .15"/><body pos=".3 0 0" quat="1 .2 .3 .1"
gravcomp="1.2"><joint axis="0 1 0.3" pos="-.05 0 0"/>
<inertial pos=".2 .1 0" quat=".3 .4 .5 .6" mass=".5" diaginertia=".01 .02 .025"/>
<body pos="0 .1 .2" quat="1 .1 0 .3" gravcomp="-.4"><inertial pos=".2 .1 0" mass=".3"
diaginertia=".01 .02 .025"/></body></body></body></worldbody></mujoco>"""


@functools.partial(jax.jit, static_argnames="pipeline", compiler_options=FAST_COMPILE)
def one_step(pipeline, sys, q, qd, external):
    run = plugins.get("pipeline", pipeline)
    state = run.step(sys, run.init(sys, q, qd), jnp.zeros(0), external=external)
    return state.q, state.qd


def pushed(dt, integrator="Euler", xml=FLIER):
    """Two links that tumble in the wind, each pushed: ours, and MuJoCo's, before a step."""
    rng = np.random.default_rng(0)
    peer = both(xml.format(dt, integrator))
    q, qd = generic(peer, rng)
    external = Force(*(jnp.array(rng.normal(size=(2, 3))) for _ in range(2)))
    data = peer.data
    data.qpos[:], data.qvel[:] = q, 3 * qd
    moving = np.flatnonzero(peer.model.body_jntnum)
    # MuJoCo pushes a body at its own centre of mass, not at that of all that is welded to it.
    mujoco.mj_kinematics(peer.model, data)
    for link, force, torque in zip(moving, external.vel, external.ang, strict=True):
        parts = np.flatnonzero(peer.model.body_weldid == link)
        centre = np.average(data.xipos[parts], axis=0, weights=peer.model.body_mass[parts])
        torque = torque + np.cross(centre - data.xipos[link], force)
        data.xfrc_applied[link] = *force, *torque
    return peer, (q, 3 * qd, external)


@pytest.mark.slow
@pytest.mark.parametrize(
    "integrator", ["Euler", pytest.param("implicitfast", marks=pytest.mark.slow)]
)
@XMLS
def test_a_step_is_mujocos(integrator, xml):
    peer, start = pushed(0.01, integrator, xml)
    q, qd = one_step("generalized", peer.sys, *start)
    mujoco.mj_step(peer.model, peer.data)
    # Measured 4e-16, and 9e-16 where the drag is implicit.
    np.testing.assert_allclose(qd, peer.data.qvel, atol=1e-12)
    np.testing.assert_allclose(q, peer.data.qpos, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", ["spring", pytest.param("positional", marks=pytest.mark.slow)])
@XMLS
def test_what_external_forces_add_to_a_short_step_is_mujocos(pipeline, xml):
    """Pipelines differ in what they do within a step, but not in what a force adds to it."""
    dt = 1e-6
    peer, (q, qd, external) = pushed(dt, xml=xml)
    vacuum = peer.sys.replace(opt=peer.sys.opt.replace(density=0.0, viscosity=0.0))
    _, ours = one_step(pipeline, peer.sys, q, qd, external)
    _, alone = one_step(pipeline, vacuum, q, qd, external * 0.0)
    start = peer.data.qvel.copy()
    mujoco.mj_step(peer.model, peer.data)
    theirs = peer.data.qvel.copy()
    peer.data.qpos[:], peer.data.qvel[:] = q, start
    peer.data.xfrc_applied[:] = peer.model.opt.density = peer.model.opt.viscosity = 0
    mujoco.mj_step(peer.model, peer.data)
    change = (theirs - peer.data.qvel) / dt
    assert np.abs(change).max() > 10
    # Measured 3e-4: the step's own length, and rounding.
    np.testing.assert_allclose((ours - alone) / dt, change, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_what_a_push_changes_has_a_derivative(pipeline):
    """The derivative of a push is dt / m and dt / I, for several bodies at once."""
    dt, mass, moments = 0.01, 2.0, np.array([0.1, 0.2, 0.25])
    sys = settings(free_body(mass, tuple(moments)), dt=dt, gravity=(0, 0, 0))

    def rates(push):
        force = Force(push[None, :3], push[None, 3:])
        return one_step(pipeline, sys, sys.init_q, jnp.zeros(6), force)[1]

    change = jax.vmap(jax.jacfwd(rates))(jnp.zeros((3, 6)))
    wanted = np.zeros((6, 6))
    wanted[:3, 3:], wanted[3:, :3] = np.eye(3) * dt / mass, np.diag(dt / moments)
    np.testing.assert_allclose(change, np.broadcast_to(wanted, (3, 6, 6)), atol=1e-12)


def test_a_push_for_other_links_is_refused():
    sys, run = free_body(), plugins.get("pipeline", "spring")
    state = run.init(sys, sys.init_q, jnp.zeros(6))
    with pytest.raises(ShapeError, match=r"external.vel has shape \(2, 3\); the model has 1 links"):
        run.step(
            sys, state, jnp.zeros(0), external=Force(ang=jnp.zeros((1, 3)), vel=jnp.zeros((2, 3)))
        )


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_compensated_weight_is_mujocos(pipeline):
    """Links, and a body fused into one with a share of its own, are compensated as in MuJoCo."""
    peer = both(BORNE)
    sys, model, data = peer
    q, _ = generic(peer, np.random.default_rng(1))
    still = np.zeros(model.nv)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    nothing = Force(*jnp.zeros((2, 2, 3)))
    qd = one_step(pipeline, sys, q, still, nothing)[1]
    # Measured 2e-15; in maximal coordinates 2.4e-6, what the step's own length does.
    bound = 1e-9 if pipeline == "generalized" else 1e-5
    np.testing.assert_allclose(qd / 1e-3, data.qacc, rtol=0, atol=bound)
    assert np.abs(data.qfrc_gravcomp[2:]).min() > 0.1
    # Gravity is as it was, and nothing else falls otherwise.
    alone = sys.replace(body_gravcomp=jnp.zeros(3))
    alone = alone.tree_replace({"link.gravcomp_arm": jnp.zeros((2, 3))})
    fall = one_step(pipeline, alone, q, still, nothing)[1] / 1e-3
    np.testing.assert_allclose(fall[:3], [0, 0, -9.81], atol=1e-9)


def test_a_share_of_weight_in_a_model_without_compensation_is_refused():
    sys, run = free_body(), plugins.get("pipeline", "generalized")
    link = sys.link.replace(gravcomp=jnp.ones(1))
    with pytest.raises(ModelError, match=r"leaf .link.gravcomp. has a value without effect"):
        run.init(dataclasses.replace(sys, link=link), sys.init_q, jnp.zeros(6))


@pytest.mark.parametrize("name", ["density", "viscosity"])
def test_a_medium_put_past_replace_in_a_model_without_one_is_refused(name):
    sys, run = free_body(), plugins.get("pipeline", "generalized")
    opt = sys.opt.replace(**{name: jnp.float32(1.0)})
    with pytest.raises(ModelError, match=rf"leaf .opt.{name}. has a value without effect"):
        run.init(dataclasses.replace(sys, opt=opt), sys.init_q, jnp.zeros(6))


def in_water(**geom):
    """Return a body with another fixed to it, in water."""
    model = ModelBuilder()
    model.set_option(density=1000.0)
    model.add_body("hull", mass=1, inertia=(1, 1, 1))
    model.add_joint("hull", "free")
    model.add_geom("hull", "ellipsoid", size=(0.1, 0.2, 0.3), fluidcoef=(0.5, 0.25, 1.5, 1, 1))
    model.add_body("keel", "hull", mass=1, inertia=(1, 1, 1))
    model.add_geom("keel", **geom)
    return model


def test_what_an_ellipsoid_takes_along_is_mujocos_as_far_as_that_is_exact():
    sys = in_water(type="box", size=(0.1, 0.1, 0.2), fluidcoef=(0.5, 0.25, 1.5, 1, 1)).build()
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><geom type="ellipsoid" size=".1 .2 .3" fluidshape="ellipsoid"/>
<geom type="box" size=".1 .1 .2" fluidshape="ellipsoid"/></worldbody></mujoco>"""
    )
    # MuJoCo's quadrature is a short one: a ball of radius .1 has half its volume to 6e-7 there.
    np.testing.assert_allclose(sys.geom.fluid, model.geom_fluid[:, 1:], rtol=2e-6, atol=1e-12)
    ball = added_mass(np.full(3, 0.1))
    np.testing.assert_allclose(ball, [2 / 3 * np.pi * 1e-3] * 3 + [0] * 3, rtol=1e-12, atol=1e-18)


def test_a_geom_that_is_no_ellipsoid_to_a_medium_is_refused():
    with pytest.raises(ModelError, match="a plane has no ellipsoid model in a fluid"):
        in_water(type="plane", fluidcoef=(0.5, 0.25, 1.5, 1, 1)).build()
    corners = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    with pytest.raises(ModelError, match="needs three semi-axes as its size"):
        in_water(type="mesh", points=corners, fluidcoef=(0.5, 0.25, 1.5, 1, 1)).build()


PADDLE = """<mujoco><option gravity="0 0 0" density="1000" viscosity=".1"/><worldbody><body>
<freejoint/><geom type="box" size=".2 .1 .1" mass="3"/><body pos=".5 0 0"><geom type="box"
size=".1 .3 .02" mass="1"/></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    "pipeline", [*(pytest.param(p, marks=pytest.mark.slow) for p in PIPELINES[:2]), *PIPELINES[2:]]
)
def test_each_of_two_welded_bodies_is_a_box_to_the_medium(pipeline):
    sys, start = both(PADDLE).sys, np.array([0.5, -0.2, 0.3, 0.4, 0.6, -0.5])
    _, qd = one_step(pipeline, sys, sys.init_q, start, Force(*jnp.zeros((2, 1, 3))))
    wanted = [0.496023695, -0.198903761, 0.297644499, 0.397439516, 0.595457582, -0.49893384]
    # MuJoCo 4.0.0's. Measured 5e-10; in maximal coordinates 5e-6, what the step's length does.
    np.testing.assert_allclose(qd, wanted, atol=1e-9 if pipeline == "generalized" else 1e-5)


@pytest.mark.slow
def test_boxes_keep_their_size_where_mass_and_inertia_are_replaced_alike():
    """Under `vmap`, as domain randomization does it: what is twice as dense is as large."""
    sys, model, data = both(PADDLE)
    start = np.array([0.5, -0.2, 0.3, 0.4, 0.6, -0.5])

    def step(scale):
        mine = sys.replace(body_mass=scale * sys.body_mass, body_inertia=scale * sys.body_inertia)
        return one_step("generalized", mine, sys.init_q, start, Force(*jnp.zeros((2, 1, 3))))[1]

    found = jax.vmap(step)(jnp.array([0.5, 2.0]))
    for scale, qd in zip((0.5, 2.0), found, strict=True):
        heavier = mujoco.MjModel.from_xml_string(PADDLE)
        heavier.body_mass[:], heavier.body_inertia[:] = (
            scale * model.body_mass,
            scale * model.body_inertia,
        )
        mujoco.mj_setConst(heavier, data)
        data.qvel[:] = start
        mujoco.mj_step(heavier, data)
        np.testing.assert_allclose(qd, data.qvel, atol=1e-12)
        mujoco.mj_resetData(heavier, data)


@pytest.mark.slow
def test_what_streams_around_a_still_ellipsoid_has_a_finite_derivative():
    sys = in_water(type="box", size=(0.1, 0.1, 0.2), fluidcoef=(0.5, 0.25, 1.5, 1, 1)).build()
    run = plugins.get("pipeline", "generalized")

    def rates(qd):
        return run.step(sys, run.init(sys, sys.init_q, qd), jnp.zeros(0)).qd

    found = jax.jit(jax.jacrev(rates), compiler_options=FAST_COMPILE)(jnp.zeros(6))
    assert np.isfinite(found).all()
