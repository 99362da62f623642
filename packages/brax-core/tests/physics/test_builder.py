"""What `ModelBuilder` refuses, in words that name the element, what came and what is allowed."""

import numpy as np
import pytest

from brax.builder import ModelBuilder
from brax.errors import ModelError


def body(model, name="a", **changes):
    model.add_body(name, **{"mass": 1.0, "inertia": (1, 1, 1), **changes})


def arm(model, **changes):
    body(model)
    model.add_joint("a", **{"type": "hinge", "name": "j", **changes})


def with_geom(model, **changes):
    arm(model)
    model.add_geom(**{"body": "a", "type": "sphere", "name": "g", "size": (0.1,), **changes})


def with_actuator(model, joint="j", kind="hinge", **changes):
    arm(model, type=kind)
    model.add_actuator(joint, name="m", **changes)


def two_joints(model, *types):
    body(model)
    for i, kind in enumerate(types):
        model.add_joint("a", kind, f"j{i}")


def free_child(model):
    arm(model)
    body(model, "b", parent="a")
    model.add_joint("b", "free", "f")


def option(**options):
    def describe(model):
        arm(model)
        model.set_option(**options)

    return describe


def boxes(model):
    for name in "ab":
        body(model, name)
        model.add_joint(name, "free", f"f{name}")
        model.add_geom(name, "ellipsoid", f"g{name}", size=(1, 1, 1))


REFUSED = {
    "nothing": (lambda m: None, "no moving body"),
    "zero mass": (lambda m: body(m, mass=0.0), "body 'a': mass must be > 0 .* got 0.0"),
    "nan mass": (lambda m: body(m, mass=np.nan), "body 'a': mass must be > 0 .* got nan"),
    "moments": (lambda m: body(m, inertia=(1, 1, 3)), "body 'a': principal moments .* no body's"),
    "two moments": (lambda m: body(m, inertia=(1, 1)), "body 'a': inertia needs 3 numbers"),
    "no joint": (body, "body 'a' has no joint: give its mass and geoms to 'world'"),
    "parent": (lambda m: body(m, parent="torso"), "body 'a'.*'torso'"),
    "same body": (lambda m: (arm(m), body(m)), "body 'a': there is another body of that name"),
    "joint type": (
        lambda m: arm(m, type="slider"),
        "joint 'j'.*'slider'.*free, hinge, slide.*Did you mean 'slide'",
    ),
    "zero axis": (lambda m: arm(m, axis=(0, 0, 0)), "joint 'j': axis is zero"),
    "range": (lambda m: arm(m, range=(1, -1)), r"joint 'j': range needs a lower .*\[1.0, -1.0\]"),
    "damping": (lambda m: arm(m, damping=-1.0), "joint 'j': damping .*>= 0, got -1.0"),
    "stacked free": (
        lambda m: two_joints(m, "free", "hinge"),
        "body 'a': a joint with six degrees of freedom must be alone",
    ),
    "free child": (free_child, "body 'b': a free joint is only allowed on a child of the world"),
    "limited free": (
        lambda m: arm(m, type="free", range=(-1, 1)),
        "joint 'j': a joint of type 'free' cannot be limited",
    ),
    "damped free": (
        lambda m: arm(m, type="free", damping=1.0),
        "joint 'j': damping is not supported on a joint of type 'free'",
    ),
    "geom size": (lambda m: with_geom(m, size=(0,)), "geom 'g': radius must be > 0, got 0"),
    "geom type": (lambda m: with_geom(m, type="shpere"), "geom 'g'.*Did you mean 'sphere'"),
    "geom body": (lambda m: with_geom(m, body="b"), "geom 'g': there is no body 'b'"),
    "friction": (lambda m: with_geom(m, friction=(-1, 0, 0)), "geom 'g': friction must be >= 0"),
    "elasticity": (
        lambda m: with_geom(m, elasticity=1.5),
        r"geom 'g': elasticity must lie in \[0, 1\], got 1.5",
    ),
    "moving plane": (
        lambda m: with_geom(m, type="plane"),
        "geom 'g': a plane is only allowed on the world, not on 'a'",
    ),
    "no collider": (boxes, "geom 'ga' and geom 'gb' can touch, but no collider"),
    "actuated joint": (
        lambda m: with_actuator(m, "jj"),
        "actuator 'm': there is no joint 'jj'. Did you mean 'j'",
    ),
    "actuated free": (
        lambda m: with_actuator(m, kind="free"),
        "actuator 'm': joint 'j' has 6 degrees of freedom",
    ),
    "gear": (lambda m: with_actuator(m, gear=np.inf), "actuator 'm': its gear .* not finite"),
    "timestep": (option(timestep=0.0), "option timestep must be > 0, got 0.0"),
    "growth": (option(vel_damping=0.5), "vel_damping is a rate of growth .* <= 0 .* got 0.5"),
    "erp": (option(baumgarte_erp=2), r"baumgarte_erp must lie in \[0, 1\], got 2"),
    "integrator": (option(integrator="rk5"), "integrator 'rk5'"),
    "init_q": (lambda m: (arm(m), m.set_init_q([0, 0])), "init_q has 2 numbers.* 1 coordinates"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_model_is_refused(case):
    describe, message = REFUSED[case]
    model = ModelBuilder()
    describe(model)
    with pytest.raises(ModelError, match=f"(?s){message}"):
        model.build()


def test_all_problems_come_at_once():
    model = ModelBuilder()
    body(model, mass=-1.0)
    model.add_joint("a", "slider", "j", line=" (ant.xml:41)")
    model.add_geom("nowhere", "sphere", "g", size=(-1,))
    with pytest.raises(ModelError, match="the model has 4 problems") as caught:
        model.build()
    text = str(caught.value)
    for part in ("mass must be > 0", "joint 'j' (ant.xml:41)", "no body 'nowhere'", "radius"):
        assert part in text
    assert len(caught.value.problems) == 4


def test_an_unknown_option_is_named():
    with pytest.raises(ModelError, match=r"'timestpe'.*Did you mean 'timestep'"):
        ModelBuilder().set_option(timestpe=0.1)
