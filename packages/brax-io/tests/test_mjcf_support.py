"""Unsupported elements that would change the motion are rejected by name, others accepted."""

import re
from pathlib import Path

import mujoco
import numpy as np
import pytest

from brax import math
from brax.errors import ModelError
from brax.io import mjcf
from brax.io.mjcf import custom_elements

pytestmark = [  # MuJoCo's own remarks on two of the models
    pytest.mark.filterwarnings("ignore:Inertia matrix is too close"),
    pytest.mark.filterwarnings("ignore:flex 'x' is not rigid"),
]

GEOM = '<geom name="g" size=".1"/>'
HINGE = '<joint name="j"/>'
BALL = '<body name="c" pos="0 0 1"><freejoint name="f"/><geom name="h" size=".1"/></body>'


def model(body: str = HINGE + GEOM, before: str = "", after: str = "") -> str:
    return (
        f'<mujoco>{before}<worldbody>{BALL}<body name="b">{body}</body></worldbody>{after}</mujoco>'
    )


def option(attributes: str) -> str:
    return model(before=f"<option {attributes}/>")


def flag(attributes: str) -> str:
    return model(before=f"<option><flag {attributes}/></option>")


def actuator(element: str) -> str:
    return model(after=f"<actuator>{element}</actuator>")


def joint(attributes: str) -> str:
    return model(f'<joint name="j" {attributes}/>' + GEOM)


def geom(attributes: str) -> str:
    return model(HINGE + f'<geom name="g" size=".1" {attributes}/>')


def mujoco_model(xml: str) -> mujoco.MjModel:
    return mujoco.MjSpec.from_string(xml).compile()


TENDON = '<tendon><fixed name="t" {}><joint joint="j" coef="1"/></fixed></tendon>'


ADHESION = (
    '<actuator><adhesion name="a" body="b" ctrlrange="0 1"/></actuator>'
    '<sensor><actuatorvel name="rate" actuator="a"/></sensor>'
)


def spatial(after: str = "") -> str:
    sites = '<site name="s" pos=".1 0 0"/><site name="p"/>'
    path = '<tendon><spatial name="t"><site site="s"/><site site="p"/></spatial></tendon>'
    return model(HINGE + GEOM + sites, after=path + after)


REFUSED = {
    "negative damping": (joint('damping="-1"'), r"joint 'j'.*damping must be one number.*-1"),
    "negative armature": (joint('armature="-1"'), r"joint 'j'.*armature must be"),
    "negative stiffness": (joint('stiffness="-1"'), r"joint 'j'.*stiffness must be"),
    "tendon that yields": (
        model(after=TENDON.format('stiffness="1" springyield="1"')),
        r"tendon 't'.*springyield",
    ),
    "adhesion by a rate": (
        actuator('<general body="b" ctrlrange="0 1" biastype="affine" biasprm="0 0 -1"/>'),
        r"actuator 'actuator_0'.*adhesion whose force depends on its rate is not supported",
    ),
    "adhesion without bounds": (
        actuator('<general name="a" body="b"/>'),
        r"actuator 'a'.*it only pulls, so its ctrl_range needs bounds that are not negative",
    ),
    "activation": (
        actuator('<general name="m" joint="j" dyntype="user"/>'),
        r"actuator 'm' \(model.xml:1\): dyntype 'user' is not supported; allowed: none, integr",
    ),
    "gain": (actuator('<general joint="j" gaintype="user"/>'), r"gaintype 'user' is not sup"),
    "half a muscle": (
        actuator('<general joint="j" dyntype="muscle"/>'),
        r"dyntype 'muscle' with gaintype 'fixed' and biastype 'none' is not supported",
    ),
    "override": (flag('override="enable"'), r"option \(.*:1\): override='enable' is not supported"),
    "exact diagonal": (flag('diagexact="enable"'), r"diagexact='enable' is not supported"),
    "speculative": (flag('speculative="enable"'), r"speculative='enable' is not supported"),
    "hard solref": (flag('refsafe="disable"'), r"option \(model.xml:1\): refsafe='disable' is not"),
    "flex": (
        model().replace(
            "<worldbody>",
            '<worldbody><flexcomp name="x" type="grid" dim="1" count="3 1 1" spacing="1 1 1" '
            'mass="1" radius="0.01"/>',
        ),
        r"flex 'x'.*deformable bodies are not supported",
    ),
    "rate that grows": (
        model(after='<custom><numeric name="vel_damping" data="1"/></custom>'),
        r"vel_damping is a rate of growth and must be <= 0",
    ),
    "two dampings": (
        model(after='<custom><numeric name="ang_damping" data="-1 -2"/></custom>'),
        r"numeric 'ang_damping'.*needs one number, got 2",
    ),
    "elasticity of a body": (
        model(
            after='<custom><tuple name="elasticity"><element objtype="body" objname="b" prm="1"/>'
            "</tuple></custom>"
        ),
        r"tuple 'elasticity'.*belongs to geoms",
    ),
    "unknown joint type": (
        model(
            after='<custom><tuple name="joint_type:srcew"><element objtype="joint" objname="j"/>'
            "</tuple></custom>"
        ),
        r"joint 'j' .*unknown joint type 'srcew'",
    ),
    "joint type of a geom": (
        model(
            after='<custom><tuple name="joint_type:hinge"><element objtype="geom" objname="g"/>'
            "</tuple></custom>"
        ),
        r"tuple 'joint_type:hinge' .*a joint type belongs to joints",
    ),
    "too elastic": (
        model(after='<custom><numeric name="elasticity" data="2"/></custom>'),
        r"geom 'g'.*elasticity must lie in \[0, 1\], got 2",
    ),
}


if int(mujoco.__version__.split(".")[0]) < 4:  # which does not know these attributes itself
    del REFUSED["tendon that yields"], REFUSED["speculative"]


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    xml, message = REFUSED[what]
    with pytest.raises(ModelError) as error:
        mjcf.loads(xml)
    assert re.search(message, str(error.value), re.S), str(error.value)


@pytest.mark.parametrize("what", REFUSED)
def test_report_says_what_load_says(what):
    """A model is refused exactly if its report has a refusal, for the same reasons."""
    xml = REFUSED[what][0]
    compiled = mujoco_model(xml)
    with pytest.raises(ModelError) as error:
        mjcf.validate_model(compiled)
    refused = [f for f in mjcf.report(compiled) if f.status == "refused"]
    assert len(refused) == len(error.value.problems)
    for finding, problem in zip(refused, error.value.problems, strict=True):
        assert finding.name in problem and finding.reason in problem


def test_all_at_once():
    xml = model(
        '<joint name="j" damping="-1"/><geom name="g" size=".1" adhesion="-1"/>',
        before='<option><flag override="enable"/></option>',
        after=TENDON.format('frictionloss="-1"'),
    )
    with pytest.raises(ModelError) as error:
        mjcf.loads(xml)
    said = str(error.value)
    for word in ("override", "adhesion", "frictionloss", "damping"):
        assert word in said
    assert said.startswith("the model has 4 problems:\n")


ACCEPTED = {
    **{name: option(f'integrator="{name}"') for name in ("RK4", "implicit", "implicitfast")},
    "solver": option('solver="CG" iterations="3" tolerance="1e-3" cone="elliptic" impratio="10"'),
    "solref": geom('solref="0.01 1" solimp="0.8 0.9 0.01"'),
    "solmix": geom('solmix="3"'),
    "priority": geom('priority="1"'),
    "condim 1 among 3": geom('condim="1" friction="2"'),
    "adhesion": model(HINGE + '<geom name="g" size=".1" gap=".02"/>', after=ADHESION),
    "margin and gap": geom('margin="0.01" gap="0.02"'),
    "frictionloss": joint('frictionloss="1"'),
    "ref": joint('ref="0.1"'),
    "ball": joint('type="ball" range="0 1" stiffness="1" damping="1" frictionloss="1"'),
    "ball that is always at its bound": joint('type="ball" range="0 0" limited="true"'),
    "plugin of a sensor": model(
        before='<extension><plugin plugin="mujoco.sensor.touch_grid"/></extension>',
        body=HINGE + GEOM + '<site name="s"/>',
        after="""<sensor><plugin plugin="mujoco.sensor.touch_grid" objtype="site" objname="s">
<config key="size" value="2 2"/><config key="fov" value="90 90"/><config key="gamma" value="0"/>
<config key="nchannel" value="1"/></plugin></sensor>""",
    ),
    "margin of a limit": joint('range="-1 1" margin="0.1"'),
    "medium": option('density="1.2" viscosity="0.1" wind="1 0 0"'),
    "ellipsoid in no fluid": geom('fluidshape="ellipsoid"'),
    "magnetic field": option('magnetic="1 2 3"'),
    "visual": model(before='<visual><global offwidth="100"/></visual><statistic extent="2"/>'),
    "decoration": model(
        HINGE + GEOM + '<camera/><light/><site name="s"/>',
        after="<sensor><clock/></sensor><keyframe><key/></keyframe>",
    ),
    "ellipsoid against sphere": geom('type="ellipsoid"').replace('".1"', '".1 .1 .1"'),
    "box against sphere": geom('type="box"').replace('size=".1" t', 'size=".1 .1 .1" t'),
    "margin of a ghost": geom('margin="1" contype="0" conaffinity="0"'),
    "box that is only seen": geom('type="box" contype="0" conaffinity="0"').replace(
        'size=".1" t', 'size=".1 .2 .3" t'
    ),
    "condim 4": geom('condim="4"'),
    "condim 6": geom('condim="6"'),
    "weld": model(after='<equality><weld name="w" body1="b" body2="c"/></equality>'),
    "connect": model(after='<equality><connect body1="b" anchor="0 0 0"/></equality>'),
    "joint equality": model(after='<equality><joint joint1="j" polycoef="0 0 0 0 0"/></equality>'),
    "condim 1 throughout": geom('condim="1" friction="2"').replace(
        'name="h" size', 'name="h" condim="1" size'
    ),
    "tendon without force": model(after=TENDON.format("")),
    "tendon limit and friction": model(after=TENDON.format('range="-1 1" frictionloss="1"')),
    "spatial tendon": spatial('<actuator><motor name="m" tendon="t"/></actuator>'),
    "inactive equality": model(
        after='<equality><weld body1="b" body2="c" active="false"/></equality>'
    ),
    "earlier tuning": model(
        after='<custom><numeric name="spring_mass_scale" data="1"/>'
        '<numeric name="constraint_stiffness" data="1 2 3"/></custom>'
    ),
    "flags": flag(
        'energy="enable" nativeccd="disable" autoreset="disable" eulerdamp="disable" '
        'sensor="disable"'
    ).replace("</mujoco>", '<sensor><jointpos joint="j"/></sensor></mujoco>'),
    "unregistered sensor": model(after='<sensor><user name="u" dim="1"/></sensor>'),
    "other settings": model(
        HINGE + GEOM + '<camera name="plain"/><camera name="o" projection="orthographic"/>'
        '<camera name="p" focal="1 1" principal=".1 0" sensorsize="1 1" resolution="9 9"/>',
        '<option magnetic="1 0 0" noslip_tolerance="1e-3" ccd_iterations="9"/>',
        '<keyframe><key name="k" time="1.5"/><key name="plain"/></keyframe>',
    ),
    "friction of a pair": model(
        after='<contact><pair geom1="g" geom2="h" solreffriction=".1 1"/></contact>'
    ),
    "sleep": flag('sleep="enable"'),
    "explicit damping": joint('damping="1"').replace(
        "<mujoco>", '<mujoco><option><flag eulerdamp="disable"/></option>'
    ),
    "resisted free joint": model().replace(
        '<freejoint name="f"/>',
        '<joint type="free" name="f" damping="1" armature="1" frictionloss="1"/>',
    ),
    "explicit damping elsewhere": joint('damping="1"').replace(
        "<mujoco>", '<mujoco><option integrator="implicit"><flag eulerdamp="disable"/></option>'
    ),
}


@pytest.mark.parametrize("what", ACCEPTED)
def test_accepted(what):
    compiled = mujoco_model(ACCEPTED[what])
    system = mjcf.load_model(compiled)
    assert np.isfinite(system.init_q).all()
    assert not [f for f in mjcf.report(compiled) if f.status == "refused"]


@pytest.mark.parametrize(
    ("xml", "line"),
    [
        (ACCEPTED["solver"], ("option", "", "tolerance")),
        (ACCEPTED["flags"], ("option", "", "energy='enable': only observes")),
        (ACCEPTED["flags"], ("option", "", "nativeccd='disable'")),
        (ACCEPTED["flags"], ("option", "", "autoreset='disable'")),
        (ACCEPTED["flags"], ("option", "", "sensor='disable': no sensor is read")),
        (ACCEPTED["flags"], ("sensor", "sensor_0", "sensors are disabled")),
        (ACCEPTED["sleep"], ("option", "", "sleep='enable': bodies at rest are simulated")),
        (ACCEPTED["margin and gap"], ("geom", "g", "gap")),
        (
            ACCEPTED["decoration"],
            ("sensor", "sensor_0", "type 'clock' is not supp"),
        ),
        (ACCEPTED["decoration"], ("light", "light_0", "viewer")),
        (ACCEPTED["earlier tuning"], ("numeric", "spring_mass_scale", "true masses")),
        (ACCEPTED["inactive equality"], ("equality", "equality_0", "not active")),
        (
            ACCEPTED["unregistered sensor"],
            (
                "sensor",
                "u",
                "type 'user' is not supported; a plugin's type needs a tuple 'sensor:N",
            ),
        ),
        (ACCEPTED["other settings"], ("option", "", "magnetic: only a magnetometer reads it")),
        (ACCEPTED["other settings"], ("option", "", "noslip_tolerance: a pipeline has its own")),
        (ACCEPTED["other settings"], ("option", "", "ccd_iterations: a pipeline has its own")),
        (ACCEPTED["other settings"], ("camera", "o", "projection: it is drawn in perspective")),
        (ACCEPTED["other settings"], ("camera", "p", "focal and principal: it is drawn centred")),
        (ACCEPTED["other settings"], ("key", "k", "its time: a state has none")),
    ],
)
def test_ignored_things_are_listed(xml, line):
    findings = mjcf.report(mujoco_model(xml))
    ignored = [f for f in findings if f.status == "ignored"]
    assert any(f[:2] == line[:2] and line[2] in f.reason for f in ignored), ignored


def test_cameras_and_keyframes_of_which_nothing_is_ignored_are_supported():
    findings = mjcf.report(mujoco_model(ACCEPTED["other settings"]))
    plain = [f[:3] for f in findings if f.name == "plain"]
    assert plain == [("camera", "plain", "supported"), ("key", "plain", "supported")]


def test_a_geom_of_which_a_part_is_ignored_is_supported():
    findings = mjcf.report(mujoco_model(ACCEPTED["margin and gap"]))
    assert [f.status for f in findings if f[:2] == ("geom", "g")] == ["supported", "ignored"]


def test_a_gap_counts_where_something_adheres():
    findings = mjcf.report(mujoco_model(ACCEPTED["adhesion"]))
    assert [f.status for f in findings if f[:2] == ("geom", "g")] == ["supported"]
    assert mjcf.loads(ACCEPTED["adhesion"]).geom_gap[1] == np.float32(0.02)
    left = {f.name: f.reason for f in findings if f.status == "ignored"}
    assert left == {"rate": "only observes; the rate of adhesion is not computed"}


def test_report_of_a_model_without_joints():
    findings = mjcf.report(mujoco_model(f"<mujoco><worldbody>{GEOM}</worldbody></mujoco>"))
    assert findings[-1][:3] == ("model", "", "refused")


def test_each_element_has_a_line():
    findings = mjcf.report(mujoco_model(actuator('<motor name="m" joint="j"/>')))
    assert {(f.element, f.name) for f in findings if f.status == "supported"} == {
        *(("body", name) for name in ("world", "b", "c")),
        *(("joint", name) for name in "jf"),
        *(("geom", name) for name in "gh"),
        ("actuator", "m"),
    }


MESH = model(
    HINGE + '<geom name="g" type="mesh" mesh="m"/>',
    '<asset><mesh name="m" vertex="0 0 0  1 0 0  0 1 0  0 0 1  .1 .1 .1"/></asset>',
)


def test_a_mesh_is_its_convex_hull():
    system = mjcf.load_model(mujoco_model(MESH))
    (mesh,) = [i for i, kind in enumerate(system.geom_types) if kind.name == "mesh"]
    assert system.geom_points[mesh] == 4
    np.testing.assert_allclose(system.link.inertia.mass[1], 1000 / 6, rtol=1e-5)
    # Its corners stand where the file has them, though MuJoCo moves the frame to the middle.
    frame = system.geom.transform.take(mesh)
    corners = [math.rotate(p, frame.rot) + frame.pos for p in system.points]
    assert sorted(np.round(corners, 5).tolist()) == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]


FLAGS = """
    actuation autoreset clampctrl constraint contact damper diagexact energy equality
    eulerdamp filterparent frictionloss fwdinv gravity invdiscrete ipc island limit midphase
    multiccd nativeccd override passive refsafe sensor sleep speculative spring warmstart
"""
"""Flags of MuJoCo's options that were looked at: read, refused, or without effect on motion."""


def test_every_flag_of_mujoco_was_looked_at():
    known = [*mujoco.mjtDisableBit.__members__, *mujoco.mjtEnableBit.__members__]
    assert {name.split("_")[1].lower() for name in known if "_" in name} <= set(FLAGS.split())


def test_switched_off_sensors_are_not_read():
    assert mjcf.loads(ACCEPTED["flags"]).sensor_names == ()
    assert mjcf.loads(ACCEPTED["flags"].replace('sensor="disable"', "")).sensor_names != ()


def test_the_page_names_every_custom_number_and_limit():
    page = (Path(__file__).parents[3] / "docs" / "models.md").read_text()
    tuned = {n for n in custom_elements.IGNORED_NUMERICS if not n.startswith("constraint_")}
    for name in (*custom_elements.HONOURED_NUMERICS, *tuned, f"{mjcf.MAX_ELEMENTS} geoms"):
        assert name in page


def test_a_fixed_tendon_is_read():
    drive = '<actuator><motor name="m" tendon="t" gear="3"/></actuator>'
    tendon = TENDON.format('stiffness="2" damping=".5" springlength=".1 .4"').replace(
        '"1"/', '"-4"/'
    )
    sys = mjcf.loads(model(after=tendon + drive))
    assert (sys.tendon_names, sys.tendon_joints) == (("t",), ((1,),))
    assert (sys.actuator_joint, sys.actuator_tendon) == ((-1,), (0,))
    assert sys.wrap_prm == -4 and sys.actuator_gear == 3
    numbers = [*sys.tendon_stiffness, *sys.tendon_damping, *sys.tendon_lengthspring[0]]
    np.testing.assert_allclose(numbers, [2, 0.5, 0.1, 0.4], rtol=1e-6)
    # Without a length of its own the spring is at rest where the joints' springs are.
    resting = model('<joint name="j" springref="90"/>' + GEOM, after=TENDON.format('stiffness="2"'))
    rest = mjcf.loads(resting).tendon_lengthspring
    np.testing.assert_allclose(rest, [[np.pi / 2, np.pi / 2]], rtol=1e-6)


def test_a_refusal_is_a_record_of_its_parts():
    text = actuator('<general name="m" joint="j" dyntype="user"/>').replace(
        "<worldbody>", '<option><flag override="enable"/></option><worldbody>', 1
    )
    with pytest.raises(ModelError) as caught:
        mjcf.loads(text)
    option, motor = caught.value.problems
    assert (option.kind, option.remedy, option.allowed) == ("option", "leave it out", ())
    assert option.reason == "override='enable' is not supported; leave it out"
    assert (motor.kind, motor.name, motor.place) == ("actuator", "m", "model.xml:1")
    assert motor.allowed[:2] == ("none", "integrator") and motor.remedy == ""
