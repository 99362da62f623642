"""The conformance checks pass on everything that is registered, and fail on what is wrong."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from physics_lab import PIPELINES

from brax import plugins
from brax.builder import ModelBuilder
from brax.colliders import Collider, Touch
from brax.components import Quat, exp_quat, sine_and_cosine
from brax.errors import PluginError
from brax.integrators import Integrator
from brax.joints import Bound, JointType, Twist
from brax.testing import check_collider, check_integrator, check_joint

SLIDE = plugins.get("joint_type", "slide")
SPHERES = plugins.get("collider", "sphere-sphere")


@pytest.mark.parametrize("name", plugins.names("joint_type"))
def test_joints(name):
    check_joint(plugins.get("joint_type", name))


def slow_but(name):
    """All colliders; those that compile for seconds among the slow tests."""
    slow = plugins.get("collider", name).n_contacts > 1 or "capsule" in name
    return pytest.param(name, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize("name", [slow_but(name) for name in plugins.names("collider")])
def test_colliders(name):
    check_collider(plugins.get("collider", name))


@pytest.mark.parametrize("name", plugins.names("integrator"))
def test_integrators(name):
    check_integrator(plugins.get("integrator", name))


class Turn(JointType):
    """A hinge, right in every way; what is wrong with it is for others to say."""

    name, q_width, qd_width = "turn", 1, 1

    def transform(self, params, q):
        return None, exp_quat(params.axis * q[0])

    def motion_subspace(self, params, q):
        return [Twist(params.axis, None)]

    def coordinates(self, params, pos, rot):
        return (2 * jnp.arctan2(rot.vec.dot(params.axis), rot.w),)


class Wrong(Turn):
    def __init__(self, **functions):
        for name, function in functions.items():
            setattr(self, name, function)


def double(params, q):
    return [Twist(params.axis * 2.0, None)]


WRONG_JOINTS = {
    "no joint": (SPHERES, "must be a brax.joints.JointType, but is SphereSphere"),
    "width": (Wrong(qd_width=7), "qd_width must be a number from 0 to 6, got 7"),
    "axes": (
        Wrong(motion_subspace=lambda p, q: []),
        "motion_subspace must return 1, but returns 0",
    ),
    "one twist": (
        Wrong(motion_subspace=lambda params, q: Twist(params.axis, None)),
        "motion_subspace must return a list or tuple of a twist for each degree of freedom, but "
        "returns a Twist",
    ),
    "rate": (Wrong(motion_subspace=double), "motion_subspace must be the rate of transform: off"),
    "inverse": (
        Wrong(coordinates=lambda p, pos, rot: (rot.w,)),
        r"coordinates must undo transform: off by .* at q = \[.*\], axis \(0.6, 0, 0.8\)",
    ),
    "precision": (
        Wrong(zero=lambda like: (jnp.zeros(like.shape),)),
        r"zero of float32\[3, 2\] returns float64",
    ),
    "rest": (
        Wrong(zero=lambda like: (jnp.ones_like(like),)),
        r"transform at rest \(of zero\) must be the identity",
    ),
    "integral": (
        Wrong(integrate=lambda q, qd, dt: (q[0] + 2 * dt * qd[0],)),
        "difference must undo integrate",
    ),
    "bounds": (
        Wrong(bounds=lambda q: [Bound(q[0] ** 2, (jnp.ones_like(q[0]),))]),
        "bounds must return the rates",
    ),
    "drift": (Wrong(drift=lambda p, q, qd: Twist(p.axis, None)), "drift must be the rate"),
    "gradient": (
        Wrong(coordinates=lambda p, pos, rot: (2 * jnp.arccos(jnp.abs(rot.w)),)),
        "a derivative is not finite at",
    ),
}


def test_the_joint_that_the_wrong_ones_are_made_of_is_right():
    check_joint(Turn())


@pytest.mark.parametrize("case", WRONG_JOINTS)
def test_a_wrong_joint_is_told(case):
    joint, message = WRONG_JOINTS[case]
    with pytest.raises(PluginError, match=message):
        check_joint(joint)


def test_a_wrong_number_of_parameters_is_told():
    with pytest.raises(PluginError, match="user needs 2 numbers, got 1"):
        check_joint(Wrong(user_width=2), user=(0.05,))


def test_the_parameters_of_a_wrong_joint_are_told():
    with pytest.raises(PluginError, match=r"axis \(0.6, 0, 0.8\), user \(0.05, -2\)"):
        check_joint(Wrong(user_width=2, motion_subspace=double), user=(0.05, -2))


class Balls(Collider):
    """Two spheres, with one thing wrong."""

    types, n_contacts = ("sphere", "sphere"), 1

    def __init__(self, wrong, **changes):
        self.wrong = wrong
        for name, value in changes.items():
            setattr(self, name, value)

    def collide(self, a, b):
        return [self.wrong(t, a, b) for t in SPHERES.collide(a, b)]


WRONG_COLLIDERS = {
    "no collider": (SLIDE, "must be a brax.colliders.Collider, but is Slide"),
    "shape": (Balls(lambda t, a, b: t, types=("sphere", "potato")), "no geometry type 'potato'"),
    "points": (Balls(lambda t, a, b: t, n_contacts=2), "n_contacts is 2, but .* returns 1"),
    "length": (
        Balls(lambda t, a, b: t._replace(normal=t.normal * 2.0)),
        "a normal does not have unit length",
    ),
    "backwards": (
        Balls(lambda t, a, b: t._replace(normal=-t.normal)),
        "moving the second shape does not change the depth by the normal",
    ),
    "world": (Balls(lambda t, a, b: t._replace(dist=t.dist + a.pos.x)), "distances do not follow"),
    "place": (Balls(lambda t, a, b: t._replace(pos=-t.pos)), "places do not follow"),
    "nan": (
        Balls(lambda t, a, b: t._replace(dist=t.dist + 0 * jnp.sqrt((a.pos - b.pos).dot(a.pos)))),
        "not finite",
    ),
}


@pytest.mark.parametrize("case", WRONG_COLLIDERS)
def test_a_wrong_collider_is_told(case):
    collider, message = WRONG_COLLIDERS[case]
    with pytest.raises(PluginError, match=message):
        check_collider(collider)


class Sheet(Collider):
    """A ball and a sheet that fills its box's plane z = 0; nothing is deeper than it is thick."""

    types, n_contacts = ("box", "sphere"), 1

    def collide(self, a, b):
        z = a.rot.inv_rotate(b.pos - a.pos).z
        side = jnp.where(z < 0, -1.0, 1.0)
        normal = a.axis_z * side
        dist = jnp.maximum(jnp.abs(z) - a.size.z - b.size.x, -2 * a.size.z)
        return [Touch(dist, b.pos - normal * (b.size.x + 0.5 * dist), normal)]


def test_a_little_is_little_beside_a_thin_shape():
    check_collider(Sheet(), sizes=((1, 1, 0.02), (0.1,)))
    backwards = Balls(lambda t, a, b: t._replace(normal=-t.normal))
    with pytest.raises(PluginError, match="does not change the depth by the normal"):
        check_collider(backwards, sizes=((0.01,), (0.02,)))


class Overstated(Integrator[Any]):
    """Semi-implicit Euler that claims to be of second order."""

    name, order = "overstated", 2

    def step(self, moves, state, dt):
        return moves.drift(moves.kick(state, dt), dt)


def test_a_wrong_integrator_is_told():
    with pytest.raises(PluginError, match=r"order 2, but converges with order (1\.0|0\.9)"):
        check_integrator(Overstated())
    with pytest.raises(PluginError, match=r"must be a brax.integrators.Integrator, but is Slide"):
        check_integrator(SLIDE)


class Door(JointType):
    """A hinge of somebody else's."""

    name, q_width, qd_width = "door", 1, 1

    def transform(self, params, q):
        sine, cosine = sine_and_cosine(0.5 * q[0])
        return None, Quat(cosine, *(params.axis * sine))

    def motion_subspace(self, params, q):
        return [Twist(params.axis, None)]

    def drift(self, params, q, qd):
        return Twist(None, None)

    def coordinates(self, params, pos, rot):
        return plugins.get("joint_type", "hinge").coordinates(params, pos, rot)


def program(pipeline, *joint_types):
    """Return the program that XLA gets for a step of a chain of two links."""
    model = ModelBuilder()
    for name, parent in (("a", "world"), ("b", "a")):
        model.add_body(name, parent, (0, 0, 1), mass=1.0, inertia=(1, 1, 1))
        model.add_joint(name, axis=(0, 1, 0), damping=0.1, range=(-1, 1))
    model.add_geom("b", "sphere", size=(0.1,))
    model.add_geom("world", "plane", size=(1, 1, 1))
    system = model.build().replace(joint_types=joint_types)
    engine = plugins.get("pipeline", pipeline)
    state = jax.eval_shape(engine.init, system, system.init_q, jnp.zeros(2))
    step = jax.jit(engine.step, static_argnums=3)
    return step.lower(system, state, jnp.zeros(0), 2).as_text()


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_joint_of_another_package_is_the_same_program(pipeline):
    hinge, slide = (plugins.get("joint_type", name) for name in ("hinge", "slide"))
    ours = program(pipeline, hinge, hinge)
    door = Door()
    assert program(pipeline, door, door) == ours
    assert program(pipeline, slide, slide) != ours
