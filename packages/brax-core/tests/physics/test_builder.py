"""Errors of `ModelBuilder`: they name the element, what it was and what is allowed."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import kinematics, plugins
from brax.builder import ModelBuilder
from brax.errors import ModelError


def body(model, name="a", **changes):
    model.add_body(name, **{"mass": 1.0, "inertia": (1, 1, 1), **changes})


def arm(model, **changes):
    body(model)
    model.add_joint("a", **{"type": "hinge", "name": "j", **changes})


def massless(model):
    body(model, mass=0.0)
    model.add_joint("a")


def pointlike(model):
    body(model, inertia=(0, 0, 0))
    model.add_joint("a")


SQUARE = np.array([(1, 1, 0), (-1, 1, 0), (-1, -1, 0), (1, -1, 0)], float)
FLAT: dict[str, Any] = {
    "small": 1e-4 * SQUARE,
    "turned and large": np.array(
        [*(1e3 * SQUARE @ np.linalg.qr(np.ones((3, 3)) + np.eye(3))[0]), (0, 0, 0)], np.float32
    ),
    "line": [(0, 0, x) for x in range(5)],
    "one place": np.ones((4, 3)),
    "three": SQUARE[:3],
}


def with_flat_pair(model):
    with_geom(model, type="mesh", points=SQUARE, contype=0, conaffinity=0)
    model.add_geom("world", "sphere", "ball", size=(1,))
    model.add_pair("g", "ball")


def cycle(model):
    body(model, "a", parent="b")
    body(model, "b", parent="a")


def late(model):
    body(model, "b", parent="a")
    body(model, "a")


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


def coupled_sites(model):
    arm(model)
    for name in ("s", "t"):
        model.add_site("a", name)
    model.add_coupling("s", "t", "c", of="site")


def option(**options):
    def describe(model):
        arm(model)
        model.set_option(**options)

    return describe


def eggs(model):
    for name in "ab":
        body(model, name)
        model.add_joint(name, "free", f"f{name}")
        model.add_geom(name, "ellipsoid", f"g{name}", size=(1, 1, 1))


REFUSED = {
    "nothing": (lambda m: None, "no moving body"),
    "negative mass": (lambda m: body(m, mass=-1.0), "body 'a': mass must be >= 0 .* got -1.0"),
    "nan mass": (lambda m: body(m, mass=np.nan), "body 'a': mass must be >= 0 .* got nan"),
    "no mass": (massless, "body 'a': mass must be > 0, for it has joints"),
    "no inertia": (pointlike, "body 'a': principal moments must be > 0, for it has joints"),
    "nan inertia": (lambda m: body(m, inertia=(1, 1, np.nan)), "body 'a': inertia is not finite"),
    "moments": (lambda m: body(m, inertia=(1, 1, 3)), "body 'a': principal moments .* no body's"),
    "two moments": (lambda m: body(m, inertia=(1, 1)), "body 'a': inertia needs 3 numbers"),
    "no joint": (body, "the model has no moving body: nothing to simulate"),
    "cycle": (cycle, "body 'a': it carries itself: a on b on a.*body 'b': it carries itself"),
    "late parent": (late, "body 'b': its parent 'a' comes after it"),
    "joint of the world": (
        lambda m: (arm(m), m.add_joint("world", "hinge", "w")),
        "joint 'w': the world does not move",
    ),
    "too deep a stack": (
        lambda m: two_joints(m, *["hinge"] * 7),
        "body 'a': it has 7 degrees of freedom; at most 6",
    ),
    "quaternion": (lambda m: body(m, quat=(0, 0, 0, 0)), "body 'a': quat is zero"),
    "position": (lambda m: body(m, pos=(0, 0)), "body 'a': pos needs 3 numbers"),
    "stiffness": (lambda m: arm(m, stiffness=(1, 2)), "joint 'j': stiffness must be one number"),
    "frictionloss": (lambda m: arm(m, frictionloss=np.nan), "joint 'j': frictionloss must be"),
    "margin of a limit": (lambda m: arm(m, margin=np.inf), "joint 'j': margin is not finite"),
    "solref": (lambda m: arm(m, solref_limit=(1,)), "joint 'j': solref_limit needs 2 numbers"),
    "nan range": (lambda m: arm(m, range=(0, np.nan)), "joint 'j': range needs a lower"),
    "parent": (lambda m: body(m, parent="torso"), "body 'a'.*'torso'"),
    "body without a name": (lambda m: body(m, ""), "body: it needs a name"),
    "same body": (lambda m: (arm(m), body(m)), "body 'a': there is another body of that name"),
    "joint type": (
        lambda m: arm(m, type="slider"),
        "joint 'j'.*'slider'.*ball, free, hinge, slide.*Did you mean 'slide'",
    ),
    "zero axis": (lambda m: arm(m, axis=(0, 0, 0)), "joint 'j': axis is zero"),
    "range": (lambda m: arm(m, range=(1, -1)), r"joint 'j': range needs a lower .*\[1.0, -1.0\]"),
    "damping": (lambda m: arm(m, damping=-1.0), "joint 'j': damping .*>= 0, got -1.0"),
    "stacked free": (
        lambda m: two_joints(m, "free", "hinge"),
        "body 'a': a joint with six degrees of freedom must be its only joint",
    ),
    "free child": (free_child, "body 'b': a free joint is only allowed on a child of the world"),
    "limited free": (
        lambda m: arm(m, type="free", range=(-1, 1)),
        "joint 'j': a joint of type 'free' cannot be limited",
    ),
    "range of a ball": (
        lambda m: arm(m, type="ball", range=(-1, 1)),
        "joint 'j': the range of a 'ball' bounds its whole angle, so it must begin at 0",
    ),
    "ref of a ball": (
        lambda m: arm(m, type="ball", ref=1.0),
        "joint 'j': ref is not supported on a joint of type 'ball'",
    ),
    "geom size": (lambda m: with_geom(m, size=(0,)), "geom 'g': radius must be > 0, got 0"),
    "geom type": (lambda m: with_geom(m, type="shpere"), "geom 'g'.*Did you mean 'sphere'"),
    "geom body": (lambda m: with_geom(m, body="b"), "geom 'g': there is no body 'b'"),
    "friction": (lambda m: with_geom(m, friction=(-1, 0, 0)), "geom 'g': friction must be >= 0"),
    "condim": (lambda m: with_geom(m, condim=5), "geom 'g': condim must be 1, 3, 4 or 6, got 5"),
    "solimp": (lambda m: with_geom(m, solimp=(0.9, 0.9)), "geom 'g': solimp needs 5 numbers"),
    "solmix": (lambda m: with_geom(m, solmix=-1), "geom 'g': solmix must be >= 0, got -1"),
    "margin": (lambda m: with_geom(m, margin=np.nan), "geom 'g': margin is not finite"),
    "elasticity": (
        lambda m: with_geom(m, elasticity=1.5),
        r"geom 'g': elasticity must lie in \[0, 1\], got 1.5",
    ),
    "moving plane": (
        lambda m: with_geom(m, type="plane"),
        "geom 'g': a plane is only allowed on the world, not on 'a'",
    ),
    "flat mesh": (
        lambda m: with_geom(m, type="mesh", points=FLAT["turned and large"]),
        "geom 'g': a mesh that can touch .* not all in one plane, got 5.*contype",
    ),
    "flat mesh in a pair": (
        lambda m: with_flat_pair(m),
        "geom 'g': a mesh that can touch .* not all in one plane, got 4",
    ),
    "actuated joint": (
        lambda m: with_actuator(m, "jj"),
        "actuator 'm': there is no joint 'jj'. Did you mean 'j'",
    ),
    "actuated free": (
        lambda m: with_actuator(m, kind="free"),
        "actuator 'm': on a joint of 6 degrees of freedom it needs a wrench",
    ),
    "actuated hinge in space": (
        lambda m: with_actuator(m, wrench=(0, 0, 0, 0, 0, 1)),
        "actuator 'm': only a site, a ball joint or a free joint has a wrench",
    ),
    "pushed ball": (
        lambda m: with_actuator(m, kind="ball", wrench=(1, 0, 0, 0, 0, 1)),
        "actuator 'm': the force of its wrench must be 0: a ball joint only has a torque",
    ),
    "coupled sites": (coupled_sites, "equality 'c': it couples 'joint' or 'tendon', not 'site'"),
    "gear": (lambda m: with_actuator(m, gear=np.inf), "actuator 'm': its gear .* not finite"),
    "timestep": (option(timestep=0.0), "option: timestep must be > 0, got 0.0"),
    "cone": (option(cone="eliptic"), "option: cone is 'eliptic'.*Did you mean 'elliptic'"),
    "impratio": (option(impratio=0.0), "option: impratio must be > 0, got 0.0"),
    "density": (option(density=-1.0), "option: density must be >= 0, got -1.0"),
    "iterations": (option(iterations=0), "option: iterations must be a number of steps, got 0"),
    "wind": (option(wind=(1, 2)), "option: wind needs 3 numbers"),
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


def test_a_pair_that_no_collider_tests_is_refused(monkeypatch):
    monkeypatch.setattr(plugins.get("geometry_type", "ellipsoid"), "corners", 0, raising=False)
    model = ModelBuilder()
    eggs(model)
    with pytest.raises(ModelError, match="geom 'ga': it can touch geom 'gb', but no collider"):
        model.build()


def test_a_pair_in_either_order_is_one_group():
    model = ModelBuilder()
    eggs(model)
    model.add_geom("a", "cylinder", "ca", size=(1, 1))
    model.add_geom("b", "cylinder", "cb", size=(1, 1))
    types = {g.collider.types: (g.geom1, g.geom2) for g in model.build().collisions}
    assert types == {
        ("ellipsoid", "ellipsoid"): ((0,), (1,)),
        ("ellipsoid", "cylinder"): ((0, 1), (3, 2)),
        ("cylinder", "cylinder"): ((2,), (3,)),
    }


def test_all_problems_come_at_once():
    model = ModelBuilder()
    body(model, mass=-1.0)
    model.add_joint("a", "slider", "j", line=" (ant.xml:41)")
    model.add_geom("nowhere", "sphere", "g", size=(-1,))
    with pytest.raises(ModelError, match="the model has 4 problems") as caught:
        model.build()
    text = str(caught.value)
    for part in ("mass must be >= 0", "joint 'j' (ant.xml:41)", "no body 'nowhere'", "radius"):
        assert part in text
    assert len(caught.value.problems) == 4
    (of_joint,) = [p for p in caught.value.problems if p.kind == "joint"]
    assert of_joint == f"joint 'j' (ant.xml:41): {of_joint.reason}"
    assert (of_joint.name, of_joint.place) == ("j", "ant.xml:41")


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, (5, 3)),
        ({"cone": "elliptic"}, (5, 3)),
        ({"impratio": 10.0}, (5, 3)),
        ({"cone": "elliptic", "impratio": 10.0}, (10, 10)),
        ({"cone": "elliptic", "impratio": 10.0, "iterations": 4}, (4, 10)),
        ({"iterations": None, "ls_iterations": 7}, (5, 7)),
    ],
)
def test_solver_steps_fit_the_cone_unless_they_are_set(options, steps):
    model = ModelBuilder()
    model.set_option(**options)
    model.add_body("ball", mass=1.0, inertia=(1.0, 1.0, 1.0))
    model.add_joint("ball", "free")
    opt = model.build().opt
    assert (opt.iterations, opt.ls_iterations) == steps


def test_an_unknown_option_is_named():
    with pytest.raises(ModelError, match=r"'timestpe'.*Did you mean 'timestep'"):
        ModelBuilder().set_option(timestpe=0.1)


def test_a_body_without_joints_is_part_of_what_carries_it():
    # A rod of two halves of 1 kg and length 1, the second turned about x and fixed to the first.
    model = ModelBuilder()
    thin: dict[str, Any] = dict(mass=1.0, inertia=(1 / 12, 1 / 12, 1e-9), ipos=(0, 0, 0.5))
    model.add_body("stand", pos=(0, 0, 2))
    model.add_geom("stand", "plane", "shelf", pos=(0, 0, 1))
    model.add_body("lower", "stand", pos=(1, 0, 0), **thin)
    model.add_joint("lower", "hinge", axis=(1, 0, 0))
    model.add_body("upper", "lower", (0, 0, 1), (0, 1, 0, 0), **thin)  # half a turn: back down
    model.add_body("tip", "upper", pos=(0, 0.3, 1))
    model.add_geom("upper", "sphere", "ball", pos=(0, 0, 0.25), size=(0.1,))
    sys = model.build()
    assert (sys.link_names, sys.link_parents, sys.geom_link) == (("lower",), (-1,), (-1, 0))
    np.testing.assert_allclose(sys.link.transform.pos, [[1, 0, 2]])
    np.testing.assert_allclose(
        sys.geom.transform.pos, np.array([[0, 0, 3], [0, 0, 0.75]]), atol=1e-7
    )
    np.testing.assert_allclose(sys.link.inertia.mass, [2])
    np.testing.assert_allclose(sys.link.inertia.transform.pos, [[0, 0, 0.5]], atol=1e-7)
    np.testing.assert_allclose(
        np.sort(sys.link.inertia.moments[0]), [2e-9, 1 / 6, 1 / 6], rtol=1e-6
    )
    x, _ = kinematics.forward(sys, jnp.array([np.pi / 2]), jnp.zeros(1))
    np.testing.assert_allclose(kinematics.frame(sys, x, "stand").pos, [0, 0, 2], atol=1e-6)
    # The hinge has turned z to -y: the joint of the halves is at y = -1, the tip back at the hinge.
    np.testing.assert_allclose(kinematics.frame(sys, x, "upper").pos, [1, -1, 2], atol=1e-6)
    np.testing.assert_allclose(kinematics.frame(sys, x, "tip").pos, [1, 0, 1.7], atol=1e-6)
    with pytest.raises(ModelError, match=r"no body 'tpi'.*Did you mean 'tip'"):
        kinematics.frame(sys, x, "tpi")


def test_a_model_may_be_built_in_a_function_that_jax_traces():
    """As by a user whose compiled function makes its environment."""

    def build():
        model = ModelBuilder()
        model.add_body("ball", mass=2.0, inertia=(1.0, 1.0, 1.0))
        model.add_joint("ball", "free")
        return model.build()

    built = []

    @jax.jit
    def traced(x):
        built.append(build())
        return x

    traced(0.0)
    jax.tree.map(np.testing.assert_array_equal, built[0], build())


def test_an_infinite_inertia_of_a_part_is_named():
    """Two bodies become one link, whose axes cannot be found."""
    made = ModelBuilder()
    made.add_body("arm", mass=1.0, inertia=(1, 1, 1))
    made.add_joint("arm")
    made.add_body("hand", "arm", mass=1.0, inertia=(np.inf, 1, 1))
    with pytest.raises(ModelError, match="body 'hand': inertia is not finite"):
        made.build()


def test_a_keyframe_has_what_it_is_given_and_starts_at_rest_else():
    model = ModelBuilder()
    body(model)
    model.add_joint("a", "ball")
    model.add_actuator("a_ball0", "filter", name="wrong")
    model.add_keyframe("bad", [1, 0, 0], qd=[0, np.nan, 0], ctrl=[1, 2])
    model.add_keyframe("bad")
    with pytest.raises(ModelError) as caught:
        model.build()
    told = str(caught.value)
    assert "keyframe 'bad': q needs 4 numbers, got 3" in told
    assert "keyframe 'bad': qd is not finite: [0.0, nan, 0.0]" in told
    assert "keyframe 'bad': ctrl needs 1 numbers, got 2" in told
    assert "keyframe 'bad': there is another keyframe of that name" in told
    model = ModelBuilder()
    body(model)
    model.add_joint("a", "ball")
    model.add_joint("a", "hinge", "j")
    model.add_actuator("j", "filter")
    model.set_init_q([0, 1, 0, 0, 0.3])
    model.add_keyframe("given", [0, 0, 2, 0, 0.1], qd=[1, 2, 3, 4], activation=[5], ctrl=[6])
    model.add_keyframe("rest")
    sys = model.build()
    got = [leaf.tolist() for leaf in jax.tree.leaves(sys.keyframe("given"))]
    assert got == [pytest.approx([0, 0, 1, 0, 0.1]), [1, 2, 3, 4], [5], [6]]
    assert sys.keyframe("rest").q.tolist() == pytest.approx([0, 1, 0, 0, 0.3])
    assert not sys.keyframe("rest").qd.any() and not sys.keyframe("rest").ctrl.any()


@pytest.mark.parametrize("kind", [tuple, list, np.array])
def test_vectors_of_any_kind(kind):
    model = ModelBuilder()
    body(model)
    model.add_joint("a", "slide", "j", springref=kind([0.1]))
    model.add_tendon({"j": 3}, "t", stiffness=1.0)
    model.add_geom("a", "sphere", size=(0.1,), fluidcoef=kind([0.5, 0.25, 1.5, 1.0, 0.8]))
    sys = model.build()
    assert sys.tendon.lengthspring.tolist() == [pytest.approx([0.3, 0.3])]
    assert sys.geom.fluid[0, :5].tolist() == pytest.approx([0.5, 0.25, 1.5, 1.0, 0.8])


@pytest.mark.parametrize("name", FLAT)
def test_a_flat_mesh_may_be_shown(name):
    """It is drawn, from both sides, where it has an area."""
    model = ModelBuilder()
    arm(model)
    model.add_geom("a", "mesh", "g", points=FLAT[name], contype=0, conaffinity=0)
    model.add_geom("world", "sphere", size=(1,))
    sys = model.build()
    assert not any("g" in (sys.geom_names[a] for a in c.geom1) for c in sys.collisions)
    _, triangles = plugins.get("geometry_type", "mesh").mesh(np.ones(3), np.asarray(FLAT[name]))
    sides = {"small": 4, "turned and large": 4, "three": 2}.get(name, 0)
    assert len(triangles) == sides
