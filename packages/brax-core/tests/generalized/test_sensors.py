"""Sensors of a robot that flies, and of one that stands: MuJoCo's `sensordata`, one by one."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import both, generic
from physics_lab import FAST_COMPILE

from brax import contact, plugins
from brax.builder import ModelBuilder
from brax.components import Vec3
from brax.dynamics import constraint_forces
from brax.generalized.pipeline import GENERALIZED
from brax.kernels.batch_last import batch_last
from brax.sensors import EvaluationContext, sensors, slices

ROBOT = """<mujoco><option timestep=".002" iterations="60" ls_iterations="50"/>
<compiler angle="radian"/>
<default><joint damping=".02" armature=".01"/><geom friction="1 0 0" density="500"/></default>
<worldbody><geom name="floor" type="plane" size="5 5 1"/>
<site name="w" pos=".3 .2 .5" quat="1 .3 .2 -.1"/>
<body name="hull" pos="0 0 1"><freejoint/><geom name="ball" size=".2" pos=".02 .1 0"/>
<site name="r1" pos=".2 .1 .05" quat="1 .1 0 0"/>
<site name="zone" pos="0 .1 -.3" type="capsule" size=".2 .1"/><site name="eye" pos="-.1 0 .3"
quat="1 0 -.1 .2"/><site name="eye2" pos=".3 .3 .3" quat=".2 1 0 .1"/>
<body name="arm" pos=".2 0 0"><joint name="b" axis="0 1 0" actuatorfrcrange="-.05 .04"/>
<geom type="capsule" size=".05 .1" pos=".1 0 0" name="rod" quat="1 0 1 0"/>
<site name="elbow" pos=".02 .03 .04" quat=".9 .2 .3 .1"/>
<body name="hand" pos=".2 0 0"><joint name="c" axis="1 0 1"/><geom size=".08"/>
<body name="nail" pos="0 .05 .1" euler=".2 .3 .4"><geom size=".03"/>
<site name="tip" pos=".1 .02 0" quat=".9 .2 .3 .1"/>
<site name="skin" type="ellipsoid" size=".1 .2 .3" quat="1 .1 .2 .3"/></body></body></body>
<body name="head" pos="-.2 0 0.1"><joint name="d" type="ball"/><geom size=".07" pos=".1 0 0"/>
<site name="other" pos=".15 0 .1"/></body>
</body></worldbody>
<tendon><fixed name="t"><joint joint="b" coef="2"/><joint joint="c" coef="-1"/></fixed></tendon>
<actuator><motor name="m0" joint="b"/><position name="m1" tendon="t" kp="3" timeconst=".1"/>
<position name="m2" site="tip" refsite="r1" gear="1 0 0 0 0 1" kp="2"/></actuator>
<sensor>
<jointpos name="s1" joint="b"/><jointvel name="s2" joint="c"/><ballquat name="s3" joint="d"/>
<ballangvel name="s4" joint="d"/>
<tendonpos name="s5" tendon="t"/><tendonvel name="s6" tendon="t"/>
<actuatorpos name="s7" actuator="m1"/><actuatorvel name="s8" actuator="m2"/>
<actuatorfrc name="s9" actuator="m1"/><actuatorfrc name="s9b" actuator="m2"/>
<jointactuatorfrc name="s10" joint="b"/>
<framepos name="f1" objtype="site" objname="tip"/>
<framepos name="f2" objtype="xbody" objname="nail" reftype="site" refname="w"/>
<framepos name="f3" objtype="body" objname="arm" reftype="geom" refname="ball"/>
<framequat name="f4" objtype="geom" objname="rod"/>
<framequat name="f5" objtype="site" objname="tip" reftype="xbody" refname="head"/>
<framexaxis name="f6" objtype="site" objname="tip"/>
<frameyaxis name="f7" objtype="site" objname="tip" reftype="site" refname="other"/>
<framezaxis name="f8" objtype="body" objname="arm"/>
<framelinvel name="f9" objtype="site" objname="tip"/>
<framelinvel name="f10" objtype="site" objname="tip" reftype="site" refname="other"/>
<framelinvel name="f10b" objtype="body" objname="arm" />
<frameangvel name="f11" objtype="site" objname="tip"/>
<frameangvel name="f12" objtype="site" objname="tip" reftype="site" refname="other"/>
<framelinacc name="f13" objtype="site" objname="tip"/>
<frameangacc name="f14" objtype="xbody" objname="hand"/>
<framelinacc name="f15" objtype="body" objname="arm"/>
<gyro name="i1" site="tip"/><velocimeter name="i2" site="tip"/>
<accelerometer name="i3" site="other"/><accelerometer name="i4" site="w"/>
<accelerometer name="i5" site="tip" cutoff="3"/>
<force name="l1" site="elbow"/><torque name="l2" site="elbow"/><force name="l3" site="other"/>
<torque name="l4" site="r1"/><force name="l5" site="r1"/>
<subtreecom name="u1" body="hull"/><subtreecom name="u2" body="arm"/>
<subtreelinvel name="u3" body="arm"/><subtreeangmom name="u4" body="arm"/>
<subtreeangmom name="u5" body="hull"/><subtreecom name="u6" body="world"/>
<touch name="n1" site="r1"/><rangefinder name="n2" site="r1"/><force name="n3" site="tip"/>
<touch name="n6" site="zone"/><touch name="n7" site="skin"/><rangefinder name="n8" site="eye"/>
<rangefinder name="n9" site="eye2"/><rangefinder name="n10" site="w"/>
<rangefinder name="n11" site="elbow" cutoff=".1"/><clock name="n4"/>
<framepos name="n5" objtype="body" objname="hand"/>
</sensor></mujoco>"""
COUPLED = ROBOT.replace('friction="1 0 0"', 'friction="1 .1 .05" condim="6"').replace(
    "<tendon>", '<equality><weld body1="hand" body2="head"/></equality><tendon>'
)
OURS = jax.jit(sensors, compiler_options=FAST_COMPILE)
LEFT_OUT = ("n3", "n4", "n5")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("height", "xml"),
    [
        pytest.param(1.0, ROBOT, id="flying"),
        pytest.param(0.15, ROBOT, id="touching"),
        pytest.param(0.15, COUPLED, id="coupled and twisted", marks=pytest.mark.long),
    ],
)
def test_sensors_are_mujocos(f64, height, xml):
    peer = both(xml)
    sys, model, data = peer
    q, qd = generic(peer, np.random.default_rng(0))
    q[2] = height
    data.qpos, data.qvel, data.ctrl, data.act = q, qd, [0.3, -0.5, 0.7], 0.3
    mujoco.mj_forward(model, data)
    assert (data.ncon > 0) == (height < 1)
    state = GENERALIZED.init(sys, jnp.array(q), jnp.array(qd))
    state = state.replace(activation=jnp.array(data.act))
    got, places = OURS(sys, state, jnp.array(data.ctrl)), slices(sys)
    assert set(places) == {model.sensor(i).name for i in range(model.nsensor)} - {*LEFT_OUT}
    assert data.sensor("n9").data > 0 and np.ptp([data.sensor(f"n{i}").data for i in (2, 8, 9)]) > 0
    assert (data.sensor("n6").data > 0) == (height < 1)
    for name, place in places.items():
        want = data.sensor(name).data
        scale = max(1.0, np.abs(want).max())
        # 1e-13 flying
        np.testing.assert_allclose(got[place] / scale, want / scale, atol=1e-9, err_msg=name)


PULLED = """<mujoco><worldbody><site name="anchor" pos="-.3 .6 .9"/>
<body name="upper" pos="-.5 .3 .7"><joint type="ball"/><geom size=".1" mass="1" pos="0 .1 .1"/>
<site name="hub"/><site name="on" pos="0 0 .05"/><site name="side" pos="0 .3 .1"/>
<body name="lower" pos=".3 0 0"><joint axis="0 1 .3"/>
<geom name="post" type="cylinder" size=".04 .2" mass=".6" pos=".1 .1 0"/>
<site name="end" pos=".2 0 .1" euler="30 20 10"/></body></body></worldbody>
<tendon>
<spatial name="bent" frictionloss="5" limited="true" range="0 .1" stiffness="40" damping="3"
springlength=".1 .2"><site site="anchor"/><site site="on"/><geom geom="post" sidesite="side"/>
<site site="end"/></spatial>
<spatial name="straight" armature="3"><site site="anchor"/><site site="end"/></spatial>
</tendon>
<equality><tendon tendon1="bent" tendon2="straight" polycoef=".1 .7 .2"/></equality>
<actuator><motor tendon="bent" gear="10"/><position tendon="straight" kp="10"/></actuator>
<sensor><force name="hub" site="hub"/><torque name="hub turned" site="hub"/>
<force name="end" site="end"/><torque name="end turned" site="end"/></sensor></mujoco>"""


@pytest.mark.slow
def test_forces_count_the_pull_of_spatial_tendons(f64):
    """Each kind of pull acts: actuators, spring, damper, armature, limit, friction, equality."""
    peer = both(PULLED)
    sys, model, data = peer
    data.qpos, data.qvel = generic(peer, np.random.default_rng(1))
    data.ctrl = [0.3, -0.5]
    mujoco.mj_forward(model, data)
    assert data.nefc == 3 and (np.abs(data.efc_force) > 1e-3).all()
    state = GENERALIZED.init(sys, jnp.array(data.qpos), jnp.array(data.qvel))
    got, want = OURS(sys, state, jnp.array(data.ctrl)), data.sensordata
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * np.abs(want).max())


def test_sensors_of_a_model_without_any_are_nothing():
    sys = both('<mujoco><worldbody><body><joint/><geom size=".1"/></body></worldbody></mujoco>').sys
    state = GENERALIZED.init(sys, jnp.zeros(1), jnp.zeros(1))
    assert sensors(sys, state, jnp.zeros(0)).shape == (0,) and slices(sys) == {}


def pendulum():
    """Return a body on a hinge, without any geom, with a site on the hinge."""
    model = ModelBuilder()
    model.add_body("arm", mass=2.0, inertia=(1, 1, 1), ipos=(0.5, 0, 0))
    model.add_joint("arm", axis=(0, 1, 0))
    model.add_site("arm", "hub", size=(0.1, 0.1, 0.1))
    for kind in ("touch", "rangefinder", "accelerometer", "force"):
        model.add_sensor(kind, ("site", "hub"), kind)
    return model.build()


def test_sensors_of_a_model_without_geoms(f64):
    sys = pendulum()
    state = GENERALIZED.init(sys, jnp.zeros(1), jnp.zeros(1))
    got = sensors(sys, state, jnp.zeros(0))
    # The hub stays where it is. The arm falls about it, so the hub carries the part of its weight
    # that its centre of mass, half a metre away, does not fall by.
    falls = 9.81 * 2.0 * 0.5 / (1.0 + 2.0 * 0.5**2) * 0.5
    want = [0.0, -1.0, 0.0, 0.0, 9.81, 0.0, 0.0, 2.0 * (9.81 - falls)]
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    assert contact.get(sys, state.x) is None
    assert constraint_forces(sys, state, jnp.zeros(0))[1].shape == (0, 3)


def test_a_model_without_geoms_has_contacts_of_no_rows():
    @batch_last
    def numbers(sys, state):
        problem = GENERALIZED.problem(sys, jnp.zeros((0, 1)), None)
        here = EvaluationContext(problem, GENERALIZED.enter(problem, state))
        assert [geoms.shape for geoms in here.contact_geoms] == [(0, 1), (0, 1)]
        return *here.contact_lines, here.contact_forces

    state = GENERALIZED.init(pendulum(), jnp.zeros(1), jnp.zeros(1))
    assert {x.shape for x in jax.tree.leaves(numbers(pendulum(), state))} == {(0,)}


@pytest.mark.parametrize("shape", ["plane", "sphere", "capsule", "box", "cylinder", "ellipsoid"])
def test_rays_find_shapes_as_mujocos_do(f64, shape):
    """From within and without, towards them and away; where they do, the distance has a slope."""
    rng = np.random.default_rng(0)
    kind, number = (
        plugins.get("geometry_type", shape),
        getattr(mujoco.mjtGeom, f"mjGEOM_{shape.upper()}"),
    )
    size = np.array([0.3, 0.5, 0.4])
    points, ways = rng.normal(size=(2, 500, 3)) * 0.6
    ways[::2] -= 3 * points[::2]
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)

    def found(points):
        at, way = (Vec3(*jnp.moveaxis(v, 1, 0)) for v in (points, jnp.array(ways)))
        return kind.ray(Vec3(*size[:, None]), at, way)

    got = found(jnp.array(points))
    want = [
        mujoco.mju_rayGeom(np.zeros(3), np.eye(3).ravel(), size, p, v, number)
        for p, v in zip(points, ways, strict=True)
    ]
    np.testing.assert_allclose(np.where(np.isfinite(got), got, -1), want, rtol=0, atol=1e-12)
    assert 50 < np.isfinite(got).sum() < 490
    slope = jax.grad(lambda p: jnp.where(jnp.isfinite(found(p)), found(p), 0.0).sum())
    along = (slope(jnp.array(points)) * ways).sum(axis=1)
    np.testing.assert_allclose(along, np.where(np.isfinite(got), -1.0, 0.0), atol=1e-9)
