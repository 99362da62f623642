"""Files that a model names: found, missing, circular, outside its directory."""

import re
import struct
from pathlib import Path

import mujoco
import numpy as np
import pytest

from brax.errors import ModelError
from brax.io import mjcf

GEOM = '<geom size=".1"/>'
BODY = f'<body name="b"><joint name="j"/>{GEOM}</body>'
FACES = np.array(
    [
        [[0, 0, 0], [0, 1, 0], [1, 0, 0]],
        [[0, 0, 0], [1, 0, 0], [0, 0, 1]],
        [[0, 0, 0], [0, 0, 1], [0, 1, 0]],
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    ],
    "<f4",
)
STL = b" " * 80 + struct.pack("<I", 4) + b"".join(bytes(12) + f.tobytes() + bytes(2) for f in FACES)
"""A tetrahedron of volume 1/6."""


def world(inside: str, before: str = "") -> str:
    return f"<mujoco>\n{before}\n<worldbody>\n{inside}\n</worldbody>\n</mujoco>"


def write(folder: Path, **files: str) -> Path:
    """Writes files; a double underscore stands for a slash. Returns the path of 'main.xml'."""
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".xml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "main.xml"


def refused(path, **kwargs) -> str:
    with pytest.raises(ModelError) as error:
        mjcf.load(path, **kwargs)
    return str(error.value)


def test_missing_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = refused("nofile.xml")
    assert said == f"no such model file: {tmp_path}/nofile.xml (cwd {tmp_path})"


def test_a_directory_is_no_file(tmp_path):
    assert refused(tmp_path) == f"{tmp_path} is a folder: give the model file in it"


def test_names_that_no_file_can_have(tmp_path):
    assert refused("x" * 5000).startswith("no such model file")
    path = write(tmp_path, main=world(f'<include file="{"x" * 5000}"/>'))
    assert "no such file" in refused(path)


def test_not_utf8(tmp_path):
    path = tmp_path / "main.xml"
    path.write_bytes(b'<mujoco model="\xff"/>')
    assert re.match(r"main.xml(:1)?: not (UTF-8|well-formed)", refused(path))


def test_a_byte_order_mark_is_passed_over(tmp_path):
    path = tmp_path / "main.xml"
    path.write_bytes(b"\xef\xbb\xbf" + world(BODY).encode())
    assert mjcf.load(path).link_names == ("b",)


def test_included_files(tmp_path):
    path = write(
        tmp_path,
        main=world('<include file="parts/leg.xml"/>'),
        parts__leg=f'<mujocoinclude>\n{BODY}\n<include file="parts/toe.xml"/></mujocoinclude>',
        parts__toe='<mujocoinclude><body name="c"><joint name="k"/><geom size="1"/></body>'
        "</mujocoinclude>",
    )
    assert mjcf.load(path).link_names == ("b", "c")
    assert mjcf.loads(path.read_text(), tmp_path).link_names == ("b", "c")
    assert mjcf.loads(path.read_text(), path).link_names == ("b", "c")


def test_an_included_file_is_beside_the_model_or_what_includes_it(tmp_path):
    """In this order, as MuJoCo 4 looks for it."""
    toe = '<mujocoinclude><body name="{}"><joint/><geom size="1"/></body></mujocoinclude>'
    path = write(
        tmp_path,
        main=world('<include file="parts/leg.xml"/>'),
        parts__leg='<mujocoinclude><include file="toes/toe.xml"/></mujocoinclude>',
        parts__toes__toe='<mujocoinclude><include file="nail.xml"/></mujocoinclude>',
        parts__toes__nail=toe.format("beside"),
    )
    for name in ("beside", "on top"):
        assert mjcf.load(path).link_names == (name,)
        assert mujoco.MjModel.from_xml_path(str(path)).body(1).name == name
        write(tmp_path, nail=toe.format("on top"))


def test_two_included_files_of_one_name(tmp_path):
    path = write(
        tmp_path,
        main=world('<include file="a/x.xml"/><include file="b/x.xml"/>'),
        a__x=f"<mujocoinclude>{BODY}</mujocoinclude>",
        b__x='<mujocoinclude><body name="c"><joint/><geom size="1"/></body></mujocoinclude>',
    )
    assert mjcf.load(path).link_names == ("b", "c")


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ('<geom siz="1"/>', r"^parts/leg.xml:2: <geom>: .*unrecognized attribute: 'siz'"),
        ('<geom name="g" size="-1"/>', r"^parts/leg.xml:2: <geom name='g'>: size 0 must be pos"),
        ('<geom size="nan"/>', r"^parts/leg.xml:2: <geom> size: nan is not finite$"),
        ('<joint name="j" damping="-1"/>', r"^joint 'j' \(parts/leg.xml:2\): damping"),
    ],
)
def test_errors_in_included_files(tmp_path, inside, message):
    path = write(
        tmp_path,
        main=world(f'<body>{GEOM}<include file="parts/leg.xml"/></body>'),
        parts__leg=f"<mujocoinclude>\n{inside}\n</mujocoinclude>",
    )
    assert re.search(message, refused(path), re.S), refused(path)


def test_include_of_nothing(tmp_path):
    path = write(tmp_path, main=world('<include file="leg.xml"/>'))
    assert refused(path) == f"main.xml:4: <include>: no such file: {tmp_path / 'leg.xml'}"


def test_include_cycle_shows_the_chain(tmp_path):
    path = write(
        tmp_path,
        main=world('<include file="a.xml"/>'),
        a='<mujocoinclude>\n<include file="b.xml"/></mujocoinclude>',
        b='<mujocoinclude>\n\n<include file="a.xml"/></mujocoinclude>',
    )
    assert refused(path) == "b.xml:3: include cycle: main.xml -> a.xml -> b.xml -> a.xml"


def test_include_of_itself(tmp_path):
    path = write(tmp_path, main=world('<include file="main.xml"/>'))
    assert refused(path) == "main.xml:4: include cycle: main.xml -> main.xml"


def test_included_twice(tmp_path):
    path = write(
        tmp_path,
        main=world('<include file="a.xml"/><include file="a.xml"/>'),
        a=f"<mujocoinclude>{BODY}</mujocoinclude>",
    )
    assert refused(path).startswith("main.xml:4: file 'a.xml' is already included")


def test_doctype_in_an_included_file(tmp_path):
    path = write(
        tmp_path,
        main=world('<include file="a.xml"/>'),
        a='<!DOCTYPE m [<!ENTITY x SYSTEM "file:///etc/passwd">]><mujocoinclude/>',
    )
    assert refused(path).startswith("a.xml:1: DOCTYPE is not allowed")


OUTSIDE = {
    "mesh above": '<mesh name="m" file="../secret.stl"/>',
    "mesh absolute": '<mesh name="m" file="/etc/passwd"/>',
    "mesh by meshdir": '<mesh name="m" file="secret.stl"/>',
    "mesh by way of a folder": '<mesh name="m" file="a/../../secret.stl"/>',
    "mesh by a character reference": '<mesh name="m" file="&#46;&#46;/secret.stl"/>',
    "texture": '<texture name="t" type="2d" file="../secret.png"/>',
    "texture side": '<texture name="t" type="cube" fileright="../secret.png"/>',
    "height field": '<hfield name="h" size="1 1 1 1" file="../secret.png"/>',
    "skin": '<skin name="s" file="../secret.skn"/>',
}


@pytest.mark.parametrize("what", OUTSIDE)
def test_assets_outside(tmp_path, what):
    compiler = '<compiler meshdir=".."/>' if what == "mesh by meshdir" else ""
    path = write(tmp_path, model__main=world(BODY, f"{compiler}<asset>{OUTSIDE[what]}</asset>"))
    for name in ("secret.stl", "secret.png", "secret.skn"):
        (tmp_path / name).write_bytes(STL)
    said = refused(path.parent / "model" / "main.xml")
    assert re.match(r"main.xml:2: <.*>: file '.*' leaves the model directory .*allow_extern", said)


def test_include_outside(tmp_path):
    write(tmp_path, model__main=world('<include file="../secret.xml"/>'), secret="<m/>")
    said = refused(tmp_path / "model" / "main.xml")
    assert said.startswith("main.xml:4: <include>: file '../secret.xml' leaves the model directory")


def test_a_link_that_leads_outside(tmp_path):
    write(tmp_path, model__main=world('<include file="in.xml"/>'), secret="<m/>")
    (tmp_path / "model" / "in.xml").symlink_to(tmp_path / "secret.xml")
    assert "leaves the model directory" in refused(tmp_path / "model" / "main.xml")


def test_assets_outside_with_permission(tmp_path):
    asset = '<asset><mesh name="m" file="../t.stl"/></asset>'
    geom = '<geom type="mesh" mesh="m" contype="0" conaffinity="0"/>'
    write(tmp_path, model__main=world(f"<body><joint/>{geom}</body>", asset))
    (tmp_path / "t.stl").write_bytes(STL)
    system = mjcf.load(tmp_path / "model" / "main.xml", allow_external_assets=True)
    np.testing.assert_allclose(system.link.inertia.mass, [1000 / 6], rtol=1e-5)


def test_mesh_in_its_folder(tmp_path):
    asset = '<compiler meshdir="meshes"/><asset><mesh name="m" file="t.stl"/></asset>'
    geom = '<geom type="mesh" mesh="m" contype="0" conaffinity="0"/>'
    path = write(tmp_path, main=world(f"<body><joint/>{geom}</body>", asset))
    assert refused(path) == (
        f"main.xml:2: <mesh name='m'>: no such file: {tmp_path / 'meshes' / 't.stl'}"
    )
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "t.stl").write_bytes(STL)
    np.testing.assert_allclose(mjcf.load(path).link.inertia.mass, [1000 / 6], rtol=1e-5)
    np.testing.assert_allclose(
        mjcf.loads(path.read_text(), tmp_path).link.inertia.mass, [1000 / 6], rtol=1e-5
    )


BAD_MESHES = {
    "not a number": (STL.replace(FACES[0, 1].tobytes(), np.full(3, np.nan, "<f4").tobytes()), ""),
    "broken off": (STL[:-30], ""),
    "empty": (b"", ""),
    "inside out": (
        b" " * 80
        + struct.pack("<I", 4)
        + b"".join(bytes(12) + f[::-1].tobytes() + bytes(2) for f in FACES),
        'inertia="exact"',
    ),
}
SAID = {
    "not a number": "vertex coordinate .* is not finite",
    "broken off": "has wrong size",
    "empty": "is empty",
    "inside out": "mesh volume is negative",
}


@pytest.mark.parametrize("what", BAD_MESHES)
def test_bad_mesh_files(tmp_path, what):
    content, attributes = BAD_MESHES[what]
    (tmp_path / "t.stl").write_bytes(content)
    asset = f'<asset><mesh name="m" file="t.stl" {attributes}/></asset>'
    path = write(tmp_path, main=world('<body><joint/><geom type="mesh" mesh="m"/></body>', asset))
    assert re.match(f"main.xml:2: <mesh name='m'>: .*{SAID[what]}", refused(path))


def test_mesh_of_an_unknown_kind(tmp_path):
    path = write(tmp_path, main=world(BODY, '<asset><mesh name="m" file="t.xyz"/></asset>'))
    (tmp_path / "t.xyz").write_bytes(STL)
    assert re.match(r"main.xml:2: <mesh name='m'>: .*mesh file", refused(path))


def test_other_models_are_not_attached(tmp_path):
    asset = '<asset><model name="x" file="other.xml"/></asset>'
    path = write(tmp_path, main=world(BODY, asset), other=world(BODY))
    assert refused(path).startswith("main.xml:2: <model name='x'>: other models cannot be attached")


def test_format_plugin(tmp_path):
    from brax import plugins

    path = write(tmp_path, main=world(BODY))
    reader = plugins.get("model_format", "mjcf")
    assert ".xml" in reader.suffixes
    assert reader.load(path).link_names == ("b",)


def test_load_mjmodel_is_checked_too(tmp_path):
    path = write(tmp_path, main=world(BODY))
    assert isinstance(mjcf.load_mjmodel(path), mujoco.MjModel)
    path = write(tmp_path, main="<!DOCTYPE m><mujoco/>")
    with pytest.raises(ModelError, match="DOCTYPE"):
        mjcf.load_mjmodel(path)
