"""Meshes of robots in COLLADA's format: their triangles are placed by the file's scene."""

import re

import numpy as np
import pytest

from brax.errors import ModelError
from brax.io import urdf
from brax.io.urdf import collada

ROBOT = """<robot name="r"><link name="base"/>
<link name="arm"><collision><geometry><mesh filename="{}" {}/></geometry></collision></link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
</joint></robot>"""
CORNERS = [(x, y, z) for x in (0, 20) for y in (0, 40) for z in (0, 60)]
SIDES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
"""A box of 20, 40 and 60 cm with a corner at the origin, its sides seen from outside."""
HALVES = [half for a, b, c, d in SIDES for half in ((a, b, c), (a, c, d))]
SCENE = """<library_visual_scenes><visual_scene id="s"><node>{}
<instance_geometry url="#box"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene>"""


def with_normals(faces) -> str:
    """Return corners as pairs of a vertex and a normal, which is not read."""
    return " ".join(f"{v} 0" for face in faces for v in face)


POLYGONS = {
    "triangles": f"<triangles {{}}<p>{with_normals(HALVES)}</p></triangles>",
    "polylist": f"<polylist {{}}<vcount>{'4 ' * 6}</vcount><p>{with_normals(SIDES)}</p></polylist>",
    "polygons": "<polygons {}"
    + "".join(f"<p>{with_normals([side])}</p>" for side in SIDES)
    + "</polygons>",
}


def box(polygons: str = "triangles", scene: str = "", numbers: str = "") -> str:
    inputs = """count="1"><input semantic="VERTEX" source="#v" offset="0"/>
<input semantic="NORMAL" source="#n" offset="1"/>"""
    numbers = numbers or " ".join(str(x) for corner in CORNERS for x in corner)
    return f"""<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="0.01"/><up_axis>Y_UP</up_axis></asset>
<library_geometries><geometry id="box"><mesh><source id="p"><float_array count="24">{numbers}
</float_array><technique_common><accessor source="#f" count="8" stride="3">
<param name="X"/><param name="Y"/><param name="Z"/></accessor></technique_common>
</source><source id="n"><float_array count="3">0 0 1</float_array><technique_common>
<accessor source="#g" count="1" stride="3"><param name="X"/><param name="Y"/><param name="Z"/>
</accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
{POLYGONS[polygons].format(inputs)}</mesh></geometry></library_geometries>{scene}</COLLADA>"""


def load(folder, text: str, scale: str = ""):
    (folder / "part.dae").write_text(text)
    (folder / "robot.urdf").write_text(ROBOT.format("part.dae", scale))
    with pytest.warns(UserWarning, match="no <inertial>"):
        return urdf.load(folder / "robot.urdf").link.inertia


PLACES = {
    "": [0.1, 0.2, 0.3],
    "<translate>100 0 0</translate>": [1.1, 0.2, 0.3],
    "<translate>100 0 0</translate><rotate>0 0 1 90</rotate>": [0.8, 0.1, 0.3],
    "<rotate>0 0 1 90</rotate><translate>100 0 0</translate>": [-0.2, 1.1, 0.3],
    "<matrix>0 -1 0 0 1 0 0 100 0 0 1 0 0 0 0 1</matrix>": [-0.2, 1.1, 0.3],
    "<scale>1 -1 1</scale>": [0.1, -0.2, 0.3],
}


@pytest.mark.parametrize("polygons", POLYGONS)
def test_a_box_has_the_mass_of_its_volume(tmp_path, polygons):
    """48 litres at 1000 kg/m^3; the axis that the file calls up has no effect."""
    inertia = load(tmp_path, box(polygons))
    np.testing.assert_allclose(inertia.mass, [48], rtol=1e-5)
    np.testing.assert_allclose(inertia.transform.pos, [[0.1, 0.2, 0.3]], rtol=1e-5)


@pytest.mark.parametrize("place", PLACES)
def test_the_scene_places_it(tmp_path, place):
    inertia = load(tmp_path, box(scene=SCENE.format(place)))
    np.testing.assert_allclose(inertia.mass, [48], rtol=1e-5)
    np.testing.assert_allclose(inertia.transform.pos, [PLACES[place]], rtol=1e-5, atol=1e-6)


def test_vertices_that_no_triangle_has_do_not_count():
    """They would be part of the convex hull that collides."""
    numbers = " ".join(str(x) for corner in [*CORNERS, (900, 900, 900)] for x in corner)
    text = box(numbers=numbers).replace('count="24"', 'count="27"').replace('t="8"', 't="9"')
    points, faces = collada.read_triangles(text.encode())
    assert (len(points), len(faces)) == (8, 12)
    np.testing.assert_allclose(points.max(axis=0), [0.2, 0.4, 0.6])


def test_the_robots_scale_applies_too(tmp_path):
    """A scale of which one factor is negative mirrors the mesh."""
    inertia = load(tmp_path, box(), 'scale="2 1 -1"')
    np.testing.assert_allclose(inertia.mass, [96], rtol=1e-5)
    np.testing.assert_allclose(inertia.transform.pos, [[0.2, 0.2, -0.3]], rtol=1e-5)


NODE = '<instance_node url="#s"/>'


def copies(doublings: int) -> str:
    """Return a scene of nodes that have two copies each of the one before."""
    nodes = "".join(
        f'<node id="n{i}">' + 2 * f'<instance_node url="#n{i - 1}"/>' + "</node>"
        for i in range(1, doublings)
    )
    nodes = f'<library_nodes><node id="n0"/>{nodes}</library_nodes>'
    return nodes + SCENE.format(f'<instance_node url="#n{doublings - 1}"/>')


WRONG = {
    "a doctype": (box().replace("<COLLADA", "<!DOCTYPE x><COLLADA"), "it has a DOCTYPE"),
    "no XML": ("solid", "it is not XML"),
    "another format": ("<mujoco/>", "its root is <mujoco>, not <COLLADA>"),
    "nothing": ('<COLLADA version="1"/>', "it has no triangles"),
    "words": (box(numbers="x"), "it is damaged: "),
    "no number": (box(numbers="nan " * 24), "<float_array> has numbers that are not finite"),
    "too few": (box(numbers="1 2 3"), "it is damaged: "),
    "infinite": (box(numbers="1e999 " * 24), "it has coordinates that are not finite"),
    "a loop": (box(scene=SCENE.format(NODE)), "it is damaged: "),
    "many copies": (box(scene=copies(20)), "its scene has more than 16384 nodes"),
    "a wrong matrix": (box(scene=SCENE.format("<matrix>1 0</matrix>")), "it is damaged: "),
    "no source": (box().replace('id="p"', 'id="q"'), "it is damaged: "),
    "a wrong count": (box("polylist").replace("<vcount>4", "<vcount>5"), "it is damaged: "),
    "half a corner": (box().replace("</p>", " 1</p>"), "it is damaged: "),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_file_is_named(tmp_path, what):
    text, said = WRONG[what]
    (tmp_path / "part.dae").write_text(text)
    (tmp_path / "robot.urdf").write_text(ROBOT.format("part.dae", ""))
    with pytest.raises(ModelError) as error:
        urdf.load(tmp_path / "robot.urdf")
    assert re.match(r"robot.urdf:2: <mesh>: cannot read .*part.dae: ", str(error.value))
    assert said in str(error.value)


def test_damaged_files_give_triangles_or_a_sentence():
    data = box("polylist", SCENE.format("<rotate>0 0 1 90</rotate>")).encode()
    rng = np.random.default_rng(0)
    for _ in range(300):
        text = bytearray(data)
        for place in rng.integers(0, len(text), 3):
            text[place] = rng.integers(32, 127)
        try:
            assert np.isfinite(collada.read_triangles(bytes(text)).points).all()
        except ValueError as error:
            assert str(error)
