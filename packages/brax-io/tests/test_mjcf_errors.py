"""Every row of the catalogue of bad models: one clear sentence, with file and line."""

import re
from pathlib import Path

import mujoco
import pytest

from brax.errors import ModelError
from brax.io import mjcf, urdf
from brax.io.mjcf.limits import LIMITS

GEOM = '<geom size=".1"/>'
SOLID = 'vertex="0 0 0  1 0 0  0 1 0  0 0 1"'
HINGE = '<joint name="a"/>'


def model(body: str = HINGE + GEOM, before: str = "", after: str = "") -> str:
    """Return a model of one body 'b'. Its children stand on line 4, what follows on line 6."""
    return (
        f'<mujoco>{before}\n<worldbody>\n<body name="b">\n{body}\n</body></worldbody>\n'
        f"{after}</mujoco>"
    )


def drive(attributes: str) -> str:
    return model(after=f"<actuator><motor {attributes}/></actuator>")


def mesh(attributes: str) -> str:
    asset = f'<asset><mesh name="m" {attributes}/></asset>'
    return model(HINGE + '<geom type="mesh" mesh="m"/>', asset)


ROWS = {
    "B01 empty": ("", r"^model.xml: model is empty: expected an MJCF <mujoco>"),
    "B01 blank": (" \n ", r"^model.xml: model is empty"),
    "B02 not XML": ("hello", r"^model.xml:1: not XML \(starts with 'hello'\)"),
    "B02 a path": ("models/ant.xml", r"starts with 'models/ant.xml'\). Did you mean load\(path\)"),
    "B02 broken off": ("<mujoco>\n<worldbody>", r"^model.xml:2: not well-formed XML"),
    "B02 not text": ("<mujoco model='\ud800'/>", r"^model.xml: not UTF-8 text"),
    "B02 another encoding": (
        '<?xml version="1.0" encoding="klingon"?><mujoco/>',
        r"^the model has no moving body",
    ),
    "B02 nul": ("<mujoco>\0</mujoco>", r"^model.xml:1: not well-formed XML"),
    "B04 root": ("<sdf/>", r"^model.xml:1: root is <sdf>; supported: <mujoco>$"),
    "B06 element": (
        model("<wheel/>"),
        r"^model.xml:4: <wheel>: Schema violation: unrecognized element",
    ),
    "B06 near": (model("<joins/>"), r"unrecognized element\. Did you mean 'joint'\?$"),
    "B06 attribute": (
        model('<geom siz="1"/>'),
        r"^model.xml:4: <geom>: .*unrecognized attribute: 'siz'. Allowed: .*Did you mean 'size'\?$",
    ),
    "B08 text": (
        model('<geom name="g" size="big"/>'),
        r"^model.xml:4: <geom name='g'>: bad format in attribute 'size': "
        r"expected numbers separated by spaces, got 'big'$",
    ),
    "B08 commas": (model('<geom size="1,2"/>'), r"^model.xml:4: .*'size'.*got '1,2'$"),
    "B09 too many": (
        model('<geom size="1" pos="0 0 0 1"/>'),
        r"^model.xml:4: <geom>: attribute 'pos' has too much data: expected 3 numbers, got 4$",
    ),
    "B09 too few": (model('<geom size="1" pos="0 0"/>'), r"'pos'.*expected 3 numbers, got 2$"),
    "B09 box": (
        model(HINGE + '<geom type="box" size="1"/>'),
        r"^model.xml:4: <geom>: size 1 must be positive in geom; size is '1'$",
    ),
    "B10 too large": (
        model('<geom name="g" size="1e999"/>'),
        r"^model.xml:4: <geom name='g'> size: 1e999 is not finite$",
    ),
    "B10 for float32": (model('<geom size="1e39"/>'), r"size: 1e39 is not finite$"),
    "B12 inf": (model('<geom size="1" pos="inf 0 0"/>'), r"^model.xml:4: .*pos: inf is not finite"),
    "B12 nan": (model(HINGE + '<geom size="1" mass="NaN"/>'), r"mass: NaN is not finite$"),
    "B13 negative": (
        model('<geom name="g" size="-1"/>'),
        r"^model.xml:4: <geom name='g'>: size 0 must be positive in geom; size is '-1'$",
    ),
    "B13 zero": (model('<geom size="0"/>'), r"size 0 must be positive in geom; size is '0'$"),
    "B14 mass": (
        model('<geom size="1" mass="-2"/>'),
        r"^model.xml:4: <geom>: mass, inertia or density are negative in geom; found mass='-2'$",
    ),
    "B14 density": (model('<geom size="1" density="-2"/>'), r"found density='-2'$"),
    "B14 too much": (
        model(HINGE + '<geom size="1e30"/>'),
        r"body 'b' \(model.xml:3\): mass must be >= 0 and finite in single precision, got 4",
    ),
    "B14 no mass": (model(HINGE), r"^model.xml:3: <body name='b'>: mass .*give it a geom"),
    "B16 inertia": (
        model(HINGE + '<inertial pos="0 0 0" mass="1" diaginertia="1 1 5"/>'),
        r"^model.xml:3: <body name='b'>: inertia must satisfy.*diaginertia='1 1 5'$",
    ),
    "B17 quaternion": (
        model('<geom size="1" quat="0 0 0 0"/>'),
        r"^model.xml:4: <geom>: zero quaternion is not allowed$",
    ),
    "B18 two turns": (
        model('<geom size="1" quat="1 0 0 0" euler="0 0 0"/>'),
        r"^model.xml:4: <geom>: multiple orientation.*not allowed: found quat, euler$",
    ),
    "B20 twice": (
        model(HINGE + "\n" + HINGE + GEOM),
        r"^model.xml:5: <joint name='a'>: repeated name 'a' in joint; the first is at model.xml:4$",
    ),
    "B21 range": (
        model('<joint name="a" limited="true" range="1 -1"/>' + GEOM),
        r"^model.xml:4: <joint name='a'> range: .*got 1 -1; .*degrees unless <compiler angle",
    ),
    "B21 unlimited": (model('<joint range="1 -1"/>' + GEOM), r"range: the first number must be sm"),
    "B21 equal": (
        model('<joint limited="true" range="1 1"/>' + GEOM),
        r"^model.xml:4: <joint>: range\[0\] should be smaller than range\[1\].*got '1 1'.*degrees",
    ),
    "B22 nested free": (
        model(HINGE + GEOM + f'<body name="c"><freejoint/>{GEOM}</body>'),
        r"^model.xml:4: <body name='c'>: free joint can only be used on top level$",
    ),
    "B22 free and hinge": (
        model("<freejoint/>" + HINGE + GEOM),
        r"^model.xml:3: <body name='b'>: more than 6 dofs in body 'b'$",
    ),
    "B24 no joints": (model(GEOM), r"^the model has no moving body: nothing to simulate$"),
    "B24 empty": ("<mujoco/>", r"nothing to simulate$"),
    "B25 unknown joint": (
        drive('name="m" joint="aa"'),
        r"^model.xml:6: <motor name='m'>: unknown transmission target 'aa'.*Did you mean 'a'\?$",
    ),
    "B25 no target": (drive(""), r"^model.xml:6: <motor>: missing transmission target"),
    "B26 ctrlrange": (
        drive('name="m" joint="a" ctrlrange="1 -1"'),
        r"^model.xml:6: <motor name='m'> ctrlrange: the first number must be.*, got 1 -1$",
    ),
    "B28 zero": (model(before='<option timestep="0"/>'), r"timestep must be > 0, got 0"),
    "B28 negative": (model(before='<option timestep="-1"/>'), r"timestep must be > 0, got -1"),
    "B29 keyword": (
        model(before='<option integrator="Euer"/>'),
        r"^model.xml:1: <option>: invalid keyword: 'Euer' in attribute 'integrator'. Allowed: .*"
        r"Did you mean 'euler'\?$",
    ),
    "B29 joint type": (
        model('<joint type="slider"/>' + GEOM),
        r"invalid keyword: 'slider' in attribute 'type'. Allowed: free, ball, slide, hinge."
        r" Did you mean 'slide'\?$",
    ),
    "B30 class": (
        model(
            '<geom class="whel" size="1"/>',
            '<default><default class="wheel"><geom/></default></default>',
        ),
        r"^model.xml:4: <geom>: unknown default class name 'whel'. Classes: main, wheel. "
        r"Did you mean 'wheel'\?$",
    ),
    "B32 plane": (
        model(HINGE + GEOM + '<geom type="plane" size="1 1 1"/>'),
        r"^model.xml:4: <geom>: plane only allowed in static bodies$",
    ),
    "B33 no directory": (
        mesh('file="m.stl"'),
        r"^model.xml:1: <mesh name='m'>: file 'm.stl' needs a directory; pass asset_path",
    ),
    "B33 no such mesh": (
        model(
            HINGE + '<geom type="mesh" mesh="wheal"/>',
            f'<asset><mesh name="wheel" {SOLID}/></asset>',
        ),
        r"^model.xml:4: <geom>: mesh 'wheal' not found in geom 0. Did you mean 'wheel'\?$",
    ),
    "B34 flat": (
        mesh('vertex="0 0 0 1 0 0 0 1 0 1 1 0"'),
        r"^model.xml:1: <mesh name='m'>: mesh 'm' has coplanar vertices",
    ),
    "B34 nan": (mesh('vertex="0 0 0 1 0 0 0 1 0 0 0 nan"'), r"vertex: nan is not finite$"),
    "B36 init_qpos": (
        model(after='<custom><numeric name="init_qpos" data="1 2 3"/></custom>'),
        r"^numeric 'init_qpos' \(model.xml:6\): has 3 numbers; the joints have 1 coordinates$",
    ),
    "B41 external entity": (
        '<!DOCTYPE m [<!ENTITY x SYSTEM "file:///etc/passwd">]>\n' + model(),
        r"^model.xml:1: DOCTYPE is not allowed",
    ),
    "B42 bomb": (
        '<!DOCTYPE m [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>\n<mujoco>&b;</mujoco>',
        r"^model.xml:1: DOCTYPE is not allowed",
    ),
    "B44 geoms": (
        f"<mujoco><worldbody>{GEOM * 5000}</worldbody></mujoco>",
        r"^model.xml: model has 5000 geoms \(limit 4096\); pass max_elements",
    ),
    "B44 replicated": (
        f'<mujoco><worldbody><replicate count="1000"><replicate count="1000">{GEOM}'
        "</replicate></replicate></worldbody></mujoco>",
        r"^model.xml: model has 1000000 geoms \(limit 4096\)",
    ),
    "B44 bodies": (
        f'<mujoco><worldbody><replicate count="5000"><body>{GEOM}</body></replicate></worldbody>'
        "</mujoco>",
        r"model has 5000 geoms \(limit 4096\).*model has 5000 bodies \(limit 4096\)",
    ),
    "B44 texture": (
        model(
            before='<asset><texture name="t" type="2d" builtin="flat" width="40000" '
            'height="40000"/></asset>'
        ),
        r"^model.xml:1: <texture name='t'> has 1600000000 pixels \(limit 67108864\)$",
    ),
    "B44 cube": (
        model(before='<asset><texture name="t" builtin="flat" width="8192" height="1"/></asset>'),
        r"^model.xml:1: <texture name='t'> has 402653184 pixels \(limit 67108864\)$",
    ),
    "B44 sky": (
        model(before='<asset><texture type="skybox" builtin="flat" width="4000"/></asset>'),
        r"^model.xml:1: <texture> has 96000000 pixels",
    ),
    "B44 camera": (
        model(
            HINGE + GEOM + '<camera name="c" resolution="30000 30000"/>',
            after='<sensor><rangefinder camera="c"/></sensor>',
        ),
        r"^model.xml:4: <camera name='c'> has 900000000 pixels \(limit 4194304\)$",
    ),
    "a camera that is measured often": (
        model(
            HINGE + GEOM + '<camera name="c" resolution="1000 1000"/>',
            after='<sensor><rangefinder camera="c" nsample="7"/><rangefinder camera="c"/></sensor>',
        ),
        r"^model.xml:4: <camera name='c'> has 1000000 pixels \(limit 524288\)$",
    ),
    "a camera that is measured no number of times": (
        model(
            HINGE + GEOM + '<camera name="c" resolution="10 10"/>',
            after='<sensor><rangefinder camera="c" nsample="nan"/></sensor>',
        ),
        r"^model.xml:6: <rangefinder> nsample: nan is not finite$",
    ),
    "B44 user numbers": (
        model(before='<size nuser_geom="1000000" nuser_jnt="10001"/>'),
        r"<size> nuser_jnt is 10001 \(limit 10000\).*model.xml:1: <size> nuser_geom is 1000000",
    ),
    "B44 keys": (model(before='<size nkey="1000000"/>'), r"^model.xml:1: <size> nkey is 1000000"),
    "B44 constraints": (model(before='<size njmax="99999"/>'), r"njmax is 99999 \(limit 16384\)$"),
    "B44 contacts": (model(before='<size nconmax="1048577"/>'), r"nconmax is 1048577 \(limit 10"),
    "B44 user data": (model(before='<size nuserdata="1048577"/>'), r"nuserdata is 1048577"),
    "B44 stack": (model(before='<size nstack="2147483649"/>'), r"nstack is 2147483649 \(limit 21"),
    "B44 memory": (
        model(before='<size memory="17g"/>'),
        r"^model.xml:1: <size> memory is 17g \(limit 17179869184\)$",
    ),
    "B44 sensor": (
        model(after='<sensor><user dim="1000000000"/></sensor>'),
        r"^model.xml:6: <user> dim is 1000000000 \(limit 1048576\)$",
    ),
    "B44 sensor of contacts": (
        model(after='<sensor><contact name="s" num="1000000000"/></sensor>'),
        r"^model.xml:6: <contact name='s'> num is 1000000000 \(limit 1048576\)$",
    ),
    "B44 replicated sites": (
        model(HINGE + GEOM + '<replicate count="100000"><site/></replicate>'),
        r"^model.xml: model has 100000 sites \(limit 4096\); pass max_elements",
    ),
    "B44 replicated nothing": (
        model(HINGE + GEOM + '<replicate count="100000000"/>'),
        r"^model.xml: model has 100000000 replicates \(limit 4096\)",
    ),
    "length range of many steps": (
        model(before='<compiler><lengthrange timestep="1e-9" inttotal="1e9"/></compiler>'),
        r"^model.xml:1: <lengthrange> takes 1000000000000000000 steps.*\(limit 100000\)$",
    ),
    "length range in parts": (
        model(
            before='<compiler><lengthrange timestep="1e-5"/></compiler>\n'
            '<compiler><lengthrange inttotal="100"/></compiler>'
        ),
        r"  model.xml:2: <lengthrange> takes 10000000 steps",
    ),
    "length range without time": (
        model(before='<compiler><lengthrange timestep="0"/></compiler>'),
        r"^model.xml:1: <lengthrange> timestep and inttotal must be positive.*, got 0 and 10$",
    ),
    "B44 height field": (
        model(before='<asset><hfield name="t" nrow="40000" ncol="40000" size="1 1 1 1"/></asset>'),
        r"<hfield name='t'> has 1600000000 pixels",
    ),
    "images in all": (
        model(
            before="<asset>" + '<texture builtin="flat" width="3000" type="cube"/>' * 2 + "</asset>"
        ),
        r"^model.xml: model has 108000000 pixels in all, copies counted \(limit 67108864\)$",
    ),
    "built-in mesh": (
        model(before='<asset><mesh name="m" builtin="plate" params="20000 30000"/></asset>'),
        r"^model.xml:1: <mesh name='m'> has 600000000 vertices \(limit 262144\)$",
    ),
    "built-in mesh in hexadecimal": (
        model(before='<asset><mesh name="m" builtin="plate" params="0x4e20 0X7530"/></asset>'),
        r"^model.xml:1: <mesh name='m'> has 600000000 vertices \(limit 262144\)$",
    ),
    "hexadecimal beyond single precision": (
        model(HINGE + '<geom size="0x1p200"/>'),
        r"^model.xml:4: <geom> size: 0x1p200 is not finite$",
    ),
    "built-in mesh of one resolution": (
        model(before='<asset><mesh name="m" builtin="supersphere" params="999 1 1"/></asset>'),
        r"^model.xml:1: <mesh name='m'> has 998001 vertices \(limit 262144\)$",
    ),
    "built-in meshes in all": (
        model(
            before="<asset>" + '<mesh builtin="wedge" params="400 500 30 30 0"/>' * 5 + "</asset>"
        ),
        r"^model.xml: model has 1000000 vertices in all, copies counted \(limit 262144\)$",
    ),
    "keyframes": (
        model(
            HINGE + GEOM + '<replicate count="300"><body/></replicate>',
            after=f"<keyframe>{'<key/>' * 10_000}</keyframe>",
        ),
        # 13 numbers of each of the 301 bodies
        r"^model.xml: model has 39130000 numbers of keyframes and user data in all, "
        r"copies counted \(limit 33554432\)$",
    ),
    "keyframes asked for": (
        model(HINGE + GEOM + '<replicate count="300"><body/></replicate>', '<size nkey="10000"/>'),
        r"^model.xml: model has 39130000 numbers of keyframes and user data in all",
    ),
    "names of copies": (
        model(HINGE + GEOM + f'<replicate count="4000" sep="{"s" * 2000}"><site/></replicate>'),
        # and the names of the body and its joint, of one character each
        r"^model.xml: model has 8000002 characters of names in all, copies counted "
        r"\(limit 4194304\)$",
    ),
    "names in nested copies": (
        model(
            HINGE
            + GEOM
            + f'<replicate count="1" sep="{"s" * 1000}">' * 20
            + f'<replicate count="4000"><site name="{"n" * 500}"/></replicate>'
            + "</replicate>" * 20
        ),
        r"^model.xml: model has \d{8} characters of names in all",
    ),
    "data of the user": (
        model(HINGE + GEOM + f'<site user="{"1 " * 9000}"/>' + "<site/>" * 5000),
        r"^model.xml: model has \d{8} numbers of keyframes and user data in all",
    ),
    "history": (
        model(after='<actuator><motor joint="j" nsample="10000000"/></actuator>'),
        r"^model.xml:6: <motor> nsample is 10000000 \(limit 1024\)$",
    ),
    "history by default": (
        model(before='<default><general nsample="10000000"/></default>'),
        r"^model.xml:1: <general> nsample is 10000000 \(limit 1024\)$",
    ),
    "history of a wide sensor": (
        model(after='<sensor><user dim="1000000" nsample="1000"/></sensor>'),
        r"^model.xml:6: <user> has 1000000000 numbers \(limit 1048576\)$",
    ),
    "sensors in all": (
        model(after="<sensor>" + '<user dim="1000000"/>' * 3 + "</sensor>"),
        r"^model.xml: model has 3000000 numbers in all, copies counted \(limit 1048576\)$",
    ),
    "sensors of what is replicated": (
        model(
            HINGE + GEOM + '<replicate count="2000"><site name="s"/></replicate>',
            after='<sensor><user objtype="site" objname="s" dim="1000"/></sensor>',
        ),
        r"^model.xml: model has 2000000 numbers in all, copies counted \(limit 1048576\)$",
    ),
    "grid of touch sensors": (
        model(
            after='<sensor><plugin plugin="mujoco.sensor.touch_grid" objtype="site" objname="s">'
            '<config key="size" value="9000 9000"/><config key="nchannel" value="3"/></plugin>'
            "</sensor>"
        ),
        r"^model.xml:6: <plugin> has 243000000 numbers \(limit 1048576\)$",
    ),
    "B44 deep": ("<mujoco>" + "<body>" * 600, r"^model.xml:1: elements are nested deeper than 500"),
}


@pytest.mark.parametrize("row", ROWS)
def test_bad_model(row):
    xml, message = ROWS[row]
    with pytest.raises(ModelError) as error:
        mjcf.loads(xml)
    assert re.search(message, str(error.value), re.S), str(error.value)


@pytest.mark.parametrize("text", [None, 5, Path("ant.xml")])
def test_what_is_no_text_is_told(text):
    said = rf"a model's text must be str or bytes, got {type(text).__name__}; a file is read by"
    with pytest.raises(ModelError, match=f"^model.xml: {said}"):
        mjcf.loads(text)
    with pytest.raises(ModelError, match=f"^robot.urdf: {said}"):
        urdf.loads(text)


def test_bad_text_is_reported_at_once():
    xml = model('<joint range="2 1"/><geom size="nan" pos="0 inf 0"/>')
    with pytest.raises(ModelError) as error:
        mjcf.loads(xml)
    assert len(error.value.problems) == 3
    assert str(error.value).startswith("the model has 3 problems:\n  model.xml:4: ")


def test_the_limit_of_geoms_can_be_raised():
    """Geoms of `<default>` are none."""
    xml = f"<mujoco><default><geom/></default><worldbody>{GEOM * 20}</worldbody></mujoco>"
    with pytest.raises(ModelError, match="nothing to simulate"):
        mjcf.loads(xml, max_elements=20)
    with pytest.raises(ModelError, match="limit 19"):
        mjcf.loads(xml, max_elements=19)


def test_what_real_models_ask_for_is_within_the_limits():
    before = (
        '<compiler><lengthrange timestep="1e-3" inttotal="20"/></compiler><size nuser_geom="9" '
        'nkey="5" njmax="8000" nconmax="4000" nuserdata="100" nstack="30000000"/>'
        '<asset><texture builtin="gradient" type="skybox" width="512" height="3072"/></asset>'
    )
    sites = "<site/>" * 5000 + '<camera resolution="9000 9000"/>'  # seen by nothing
    assert mjcf.loads(model(HINGE + GEOM + sites, before)).num_links() == 1


def test_the_page_tells_every_limit():
    page = (Path(__file__).parents[3] / "docs" / "models.md").read_text("utf-8")
    for limits in LIMITS.values():
        for key, limit in limits.items():
            word = "nuser_*" if key.startswith("nuser_") else key
            told = f"{limit}" if limit == 10_000 else f"2**{limit.bit_length() - 1}"
            assert re.search(rf"`{re.escape(word)}`[^;.]* {re.escape(told)}\b", page), key


def test_names_that_look_like_numbers_are_names():
    xml = model(
        HINGE + '<geom name="inf" size=".1"/>', after='<custom><text name="t" data="nan"/></custom>'
    )
    assert mjcf.loads(xml).geom_names == ("inf",)


def test_a_misspelt_custom_field_is_a_warning_that_names_the_nearest():
    text = model(after='<custom><numeric name="baumgarte_epr" data="1"/></custom>')
    with pytest.warns(UserWarning) as told:
        assert mjcf.loads(text).baumgarte_erp == mjcf.loads(model()).baumgarte_erp
    assert re.match(
        r"numeric 'baumgarte_epr' \(model.xml:6\): unknown custom field, which has no effect. "
        r"Known: .*Did you mean 'baumgarte_erp'\?$",
        str(told[0].message),
    )
    assert len(told) == 1


@pytest.mark.parametrize(
    ("field", "value"), [("actuator_trntype", 77), ("geom_type", -3), ("jnt_bodyid", 99)]
)
def test_a_damaged_compiled_model_is_an_error_of_one_sentence(field, value):
    damaged = mujoco.MjModel.from_xml_string(drive('joint="a"'))
    getattr(damaged, field)[0] = value
    with pytest.raises(ModelError, match=r"^mj has a type or an index .*: it is damaged"):
        mjcf.load_model(damaged)


def test_the_report_of_a_damaged_compiled_model_is_that_error():
    damaged = mujoco.MjModel.from_xml_string(drive('joint="a"'))
    damaged.actuator_trntype[0] = 77
    with pytest.raises(ModelError, match="it is damaged"):
        mjcf.report(damaged)
