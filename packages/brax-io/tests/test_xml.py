"""XML that MuJoCo's reader accepts loads; other XML raises one error with a line."""

import mujoco
import pytest

from brax.errors import ModelError
from brax.io import mjcf, urdf

WORLD = '<worldbody><body name="{}"><freejoint/><geom size=".1"/></body></worldbody>'
B = WORLD.format("b")
FORGIVEN = {
    "dashes in a comment": (f"<mujoco><!-- a -- b --- c -->{B}</mujoco>", "b"),
    "a row of dashes": (f"<mujoco><!--------- a ------->{B}</mujoco>", "b"),
    "a comment of tags": (f"<mujoco><!-- <geom size='1' -->{B}</mujoco>", "b"),
    "& in an attribute": (f"<mujoco>{WORLD.format('x & y')}</mujoco>", "x & y"),
    "an unknown entity": (f"<mujoco>{WORLD.format('x&foo;y')}</mujoco>", "x&foo;y"),
    "< and > in an attribute": (f"<mujoco>{WORLD.format('x<y>z')}</mujoco>", "x<y>z"),
    "references": (f"<mujoco>{WORLD.format('&#65;&#x42;&lt;&amp;&quot;')}</mujoco>", 'AB<&"'),
    "no such character": (f"<mujoco>{WORLD.format('&#xFFFFFF;&#zz;')}</mujoco>", "&#xFFFFFF;&#zz;"),
    "white space in a name": (f"<mujoco>{WORLD.format('x y&#10;z')}</mujoco>", "x y\nz"),
    "a line in a value": (f"<mujoco>{B.replace('.1', '.1' + chr(10) + '.2')}</mujoco>", "b"),
    "single quotes": (f"<mujoco>{B}</mujoco>".replace('"', "'"), "b"),
    "spaces around =": (f"<mujoco>{B}</mujoco>".replace("=", " =\n"), "b"),
    "no space between attributes": (
        f"<mujoco>{B.replace('<geom ', '<geom mass=' + chr(34) + '1' + chr(34))}</mujoco>",
        "b",
    ),
    "a space before a name": (f"< mujoco>{B}</mujoco >", "b"),
    "an attribute in an end tag": (f'<mujoco>{B}</mujoco a="1">', "b"),
    "a declaration after blank lines": (f'\n\n  <?xml version="1.0"?>\n<mujoco>{B}</mujoco>', "b"),
    "no declaration": (f"<mujoco>{B}</mujoco>", "b"),
    "an odd declaration": (f"<?xml foo?><mujoco>{B}</mujoco>", "b"),
    "a style sheet": (f'<?xml-stylesheet href="http://a/b"?><mujoco>{B}</mujoco>', "b"),
    "a wrong encoding declared": (
        f'<?xml version="1.0" encoding="UTF-16"?><mujoco>{B}</mujoco>',
        "b",
    ),
    "text before the model": (f'xml version="1.0"?>\n<mujoco>{B}</mujoco>', "b"),
    "text within": (f"<mujoco>hello & > {B}</mujoco>", "b"),
    "CDATA": (f"<mujoco><![CDATA[ <geom> ]]>{B}</mujoco>", "b"),
    "an element declaration": (f"<mujoco><!ELEMENT foo>{B}</mujoco>", "b"),
    "a namespace": (f'<mujoco xmlns:x="http://a" x:b="1">{B}</mujoco>', "b"),
    "an end tag too many": (f"<mujoco>{B}</mujoco></mujoco>", "b"),
    "a control character": (f"<mujoco>\x01{B}</mujoco>", "b"),
    "line ends of old computers": (f"<mujoco>\r{B}\r</mujoco>", "b"),
    "letters of all languages": (f"<mujoco>{WORLD.format('bü漢')}</mujoco>", "bü漢"),
}


@pytest.mark.parametrize("case", FORGIVEN)
def test_what_mujoco_takes_loads(case):
    text, name = FORGIVEN[case]
    assert mujoco.MjModel.from_xml_string(text).body(1).name == name
    assert mjcf.loads(text).link_names == (name,)


REFUSED = {
    "comment": ("<mujoco>\n<!-- a </mujoco>", "2: not well-formed XML: comment has no end: '-->'"),
    "CDATA": ("<mujoco>\n<![CDATA[ a </mujoco>", "2: .*CDATA section has no end"),
    "twice": (
        f"<mujoco>\n{B.replace('size', 'mass={0}1{0} mass={0}2{0} size'.format(chr(34)))}</mujoco>",
        "2: not well-formed XML: <geom> has the attribute 'mass' twice",
    ),
    "no quotes": ("<mujoco>\n<option timestep=1/></mujoco>", "2: .*'timestep' needs quotes"),
    "no value": ("<mujoco>\n<option timestep/></mujoco>", "2: .*'timestep' has no value"),
    "no end quote": ('<mujoco>\n<option timestep="1/></mujoco>', "2: .*has no closing quote"),
    "quote of the next": (
        '<mujoco>\n<option timestep="1/>\n<size nkey="1"/></mujoco>',
        "2: .*is a quote missing at 'timestep'",
    ),
    "end of another": (
        "<mujoco>\n<worldbody><body>\n</worldbody></mujoco>",
        r"3: .*</worldbody> stands where </body> must close <body> \(line 2\)",
    ),
    "no end": ("<mujoco>\n<worldbody>\n", r"3: .*the text ends within <worldbody> \(line 2\)"),
    "text after": (f"<mujoco>{B}</mujoco>\nhello", "2: .*text after the end: 'hello'"),
    "a sign": ("<mujoco>\n a < b </mujoco>", "2: .*'<' must begin a tag, got '< b </mujoco>'|2: "),
    "a number for a name": ('<mujoco>\n<option 1a="1"/></mujoco>', "2: .*must end with '>'"),
    "NUL": ("<mujoco>\n\0</mujoco>", "2: .*a NUL character"),
    "only a comment": ("<!-- a -->", "1: the model has no elements"),
    "entities": (
        '\n<!DOCTYPE m [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><mujoco model="&b;"/>',
        "2: DOCTYPE is not allowed",
    ),
    "an address": ('<!doctype m SYSTEM "http://a/b.dtd"><mujoco/>', "1: DOCTYPE is not allowed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_xml_is_told_with_its_line(case):
    text, said = REFUSED[case]
    with pytest.raises(ModelError, match=rf"^model\.xml:{said}"):
        mjcf.loads(text)


def test_a_second_model_in_a_file_is_told():
    """MuJoCo reads the first, too, and says nothing."""
    text = f"<mujoco>{B}</mujoco>\n<mujoco>{WORLD.format('c')}</mujoco>"
    with pytest.warns(
        UserWarning, match=r"^model\.xml:2: <mujoco> comes after the end of <mujoco>"
    ):
        assert mjcf.loads(text).link_names == ("b",)


def test_robots_are_read_as_forgivingly():
    inertial = (
        '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        "</inertial>"
    )
    text = f"""<!-- made by -- a program -->
<robot name="a & b"><link name="base"/><link name="arm">{inertial}</link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""
    assert urdf.loads(text.replace("\n", "\r\n").encode("utf-16")).link_names == ("arm",)


def test_places_are_those_of_the_file():
    """Whatever stands on a line, and however many lines an element takes."""
    text = f"""<!-- a

--><mujoco>
<option
  timestep="0.01"/>{B}<contact>
<pair geom1="a"
  geom2="b"/></contact></mujoco>"""
    with pytest.raises(ModelError, match=r"^model\.xml:6: <pair>"):
        mjcf.loads(text)
