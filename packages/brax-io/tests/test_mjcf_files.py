"""Files that a model names: found, missing, circular, outside its directory."""

import re
import struct
import zlib
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
    """Write files, with a double underscore for a slash; return the path of 'main.xml'."""
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


CUBE = "".join(f"v {x} {y} {z}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1)) + "".join(
    f"f {face}\n" for face in ("1 2 4 3", "5 7 8 6", "1 5 6 2", "3 4 8 7", "1 3 7 5", "2 6 8 4")
)
"""A cube of 1 m: 1000 kg."""


def chunk(kind: bytes, data: bytes) -> bytes:
    """Return a part of a PNG file."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PIXELS = zlib.compress((b"\0" + b"abcdef") * 2)
PICTURE = b"\x89PNG\r\n\x1a\n" + b"".join(
    chunk(*part)
    for part in (
        (b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)),
        (b"IDAT", PIXELS),
        (b"IEND", b""),
    )
)
"""A picture of 2 x 2 pixels."""


def shop(folder):
    """Files for a model to name."""
    inner = folder / "parts" / "small"
    inner.mkdir(parents=True)
    for place in (folder / "parts", inner):
        (place / "cube.obj").write_text(CUBE)
        (place / "leg.xml").write_text(f"<mujocoinclude>{BODY}</mujocoinclude>")
    return folder / "main.xml"


@pytest.mark.parametrize(
    ("file", "compiler"),
    [
        (r"parts\cube.obj", ""),
        (r".\parts\cube.obj", ""),
        (r"parts\small\..\cube.obj", ""),
        (r"parts\small/cube.obj", ""),
        ("cube.obj", r'meshdir="parts\small"'),
        ("cube.obj", r'meshdir=".\parts\"'),
        (r"small\cube.obj", r'assetdir="parts"'),
        (r"C:\shop\cube.obj", r'strippath="true" meshdir="parts"'),
    ],
)
def test_paths_from_windows(tmp_path, file, compiler):
    """As MuJoCo reads them on every system; the mesh is named after its file."""
    path = shop(tmp_path)
    text = world('<body><freejoint/><geom type="mesh" mesh="cube"/></body>')
    assets = f'<compiler {compiler}/><asset><mesh file="{file}"/></asset><worldbody>'
    path.write_bytes(text.replace("<worldbody>", assets).replace("\n", "\r\n").encode())
    assert mjcf.load(path).link.inertia.mass[0] == pytest.approx(1000, rel=1e-5)
    loaded = mjcf.loads(path.read_bytes(), tmp_path)
    assert loaded.link.inertia.mass[0] == pytest.approx(1000, rel=1e-5)
    assert mujoco.MjModel.from_xml_path(str(path)).body_mass[1] == pytest.approx(1000)


@pytest.mark.parametrize(
    "compilers",
    [
        '<compiler meshdir="parts"/><compiler assetdir="parts/small"/>',
        '<compiler assetdir="parts"/><compiler meshdir="parts/small"/>',
        '<compiler meshdir="parts" assetdir="parts/small"/>',
        '<compiler meshdir="parts"/><compiler texturedir="parts/small"/>',
        '<compiler meshdir="parts"/><compiler assetdir=""/>',
    ],
)
def test_several_compilers_name_the_directory_of_meshes_as_in_mujoco(tmp_path, compilers):
    """Tetrahedra of three sizes have one file name."""
    (tmp_path / "parts" / "small").mkdir(parents=True)
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    for folder, size in (("parts", 1), ("parts/small", 2), ("", 3)):
        lines = [f"v {x} {y} {z}" for x, y, z in size * points]
        lines += ["f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"]
        (tmp_path / folder / "t.obj").write_text("\n".join(lines))
    asset = f'{compilers}<asset><mesh name="m" file="t.obj"/></asset>'
    solid = '<body><joint/><geom type="mesh" mesh="m"/></body>'
    path = write(tmp_path, main=world(solid, asset))
    truth = mujoco.MjModel.from_xml_path(str(path)).body_mass[1]
    np.testing.assert_allclose(mjcf.load(path).link.inertia.mass[0], truth, rtol=1e-6)


def test_every_kind_of_file_may_have_a_path_from_windows(tmp_path):
    path = shop(tmp_path)
    (tmp_path / "parts" / "grey.png").write_bytes(PICTURE)
    sides = " ".join(f'file{s}="parts\\grey.png"' for s in ("right", "left", "up", "down"))
    assets = (
        r'<asset><texture name="a" type="2d" file="parts\grey.png"/>'
        f'<texture name="b" type="cube" {sides} filefront="parts/grey.png" '
        r'fileback=".\parts\grey.png"/><hfield name="h" file="parts\grey.png" size="1 1 1 1"/>'
        "</asset>"
    )
    path.write_text(world(r'<include file="parts\leg.xml"/>', assets))
    assert mjcf.load(path).link_names == ("b",)


def test_what_no_path_of_this_computer_is(tmp_path):
    path = shop(tmp_path)

    def said(file, compiler=""):
        asset = f'<compiler {compiler}/><asset><mesh name="c" file="{file}"/></asset>'
        path.write_text(world(BODY, asset))
        return refused(path)

    assert "'C:/shop/cube.obj' is a path of a Windows computer, on its drive C:" in said(
        r"C:\shop\cube.obj"
    )
    assert "on its drive D:" in said("cube.obj", r'meshdir="D:\shop"')
    assert r"'//server/shop/cube.obj' leaves the model directory" in said(r"\\server\shop\cube.obj")
    assert "leaves the model directory" in said(r"..\cube.obj")
    assert said(r"parts\CUBE.obj").endswith("parts/CUBE.obj. Did you mean 'cube.obj'?")
    for scheme in ("http", "file", "package"):
        assert f"is an address with the scheme '{scheme}'; give a path" in said(
            f"{scheme}://a/b.obj"
        )


def test_an_asset_of_an_included_file_may_lie_beside_it(tmp_path):
    """After the model's own directory, as MuJoCo looks for it; `meshdir` is of the model's only."""
    path = shop(tmp_path)
    include = '<mujocoinclude><asset><mesh name="c" file="cube.obj"/></asset></mujocoinclude>'
    (tmp_path / "parts" / "assets.xml").write_text(include)
    body = '<body><freejoint/><geom type="mesh" mesh="c"/></body>'
    for compiler in ("", '<compiler meshdir="nowhere"/>'):
        path.write_text(world(body, compiler + '<include file="parts/assets.xml"/>'))
        assert mjcf.load(path).link.inertia.mass[0] == pytest.approx(1000, rel=1e-5)
    bigger = re.sub("1", "2", CUBE.split("f")[0]) + CUBE[CUBE.index("f") :]
    (tmp_path / "cube.obj").write_text(bigger)
    path.write_text(world(body, '<include file="parts/assets.xml"/>'))
    assert mjcf.load(path).link.inertia.mass[0] == pytest.approx(8000, rel=1e-5)
    assert mujoco.MjModel.from_xml_path(str(path)).body_mass[1] == pytest.approx(8000)


@pytest.mark.parametrize(
    ("include", "said"),
    [
        ("", "file 'leg.xml' has no elements to include"),
        ("<mujocoinclude/>", "file 'leg.xml' has no elements to include"),
        (
            "<mujocoinclude><body></mujocoinclude>",
            "leg.xml:1: not well-formed XML: </mujocoinclude>",
        ),
    ],
)
def test_bad_includes(tmp_path, include, said):
    (tmp_path / "leg.xml").write_text(include)
    assert said in refused(write(tmp_path, main=world('<include file="leg.xml"/>')))


def test_an_include_holds_nothing(tmp_path):
    path = write(tmp_path, main=world('<include file="leg.xml"><geom/></include>'))
    assert refused(path) == "main.xml:4: <include> must hold no elements"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_encodings_of_unicode(tmp_path, encoding):
    """With a byte order mark, or as their first character tells; the declaration is passed over."""
    text = world(BODY.replace('name="b"', 'name="bü漢"'))
    (tmp_path / "main.xml").write_bytes(text.encode(encoding))
    assert mjcf.load(tmp_path / "main.xml").link_names == ("bü漢",)


def test_other_encodings(tmp_path):
    """A declared one is honoured; of others, comments may hold anything, names may not."""
    path = tmp_path / "main.xml"
    text = world("<!-- Müller -->" + BODY.replace('name="b"', 'name="bü"'))
    for encoding in ("latin-1", "ISO-8859-1", "windows-1252"):
        told = f'<?xml version="1.0" encoding="{encoding}"?>\n{text}'
        path.write_bytes(told.encode(encoding))
        assert mjcf.load(path).link_names == ("bü",)
    path.write_bytes(text.encode("latin-1"))
    assert refused(path).startswith(
        "main.xml: not UTF-8 text in line 4: attribute 'name' of <body>; save the file as UTF-8"
    )
    path.write_bytes(world("<!-- Müller -->" + BODY).encode("latin-1"))
    assert mjcf.load(path).link_names == ("b",)
    path.write_bytes(world(BODY).encode("utf-16")[:-1])
    assert refused(path).startswith("main.xml: not text in UTF-16")


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


LIMB = """<mujoco model="limb"><compiler angle="radian" meshdir="../shapes"/>
<default><default class="thin"><geom size=".2"/></default></default>
<asset><mesh name="m" file="t.stl"/></asset>
<worldbody>
<body name="arm" pos="0 0 1">
<joint name="j" axis="0 1 0" range="-1 1"/>
<geom class="thin"/><geom type="mesh" mesh="m"/>
</body>
<body name="leg"><freejoint/><geom size=".1"/></body>
</worldbody>
<actuator><motor name="m" joint="j"/></actuator>
</mujoco>"""
ATTACHED = """<asset><model name="limb" file="parts/limb.xml"/></asset>"""
TRUNK = f"""<body name="a"><freejoint/>{GEOM}
<attach model="limb" body="arm" prefix="left_"/>
</body><attach model="limb" prefix="right_"/>
<body name="s"><joint/>{GEOM}</body><attach body="s" prefix="copy_"/>"""


def limbs(folder: Path, limb: str = LIMB, trunk: str = TRUNK, asset: str = ATTACHED) -> Path:
    (folder / "shapes").mkdir()
    (folder / "shapes" / "t.stl").write_bytes(STL)
    return write(folder, main=world(trunk, asset), parts__limb=limb)


def test_models_are_attached_as_mujoco_attaches_them(tmp_path):
    """Bodies, or all of a model, with its own files, defaults and units."""
    path = limbs(tmp_path)
    system, model = mjcf.load(path), mujoco.MjModel.from_xml_path(str(path))
    names = [model.body(i).name for i in range(1, model.nbody)]
    assert list(system.link_names) == names
    assert names == ["a", "left_arm", "right_arm", "right_leg", "s", "copy_s"]
    assert system.actuator_names == ("left_m", "right_m")
    np.testing.assert_allclose(system.link.inertia.mass, model.body_mass[1:], rtol=1e-6)
    np.testing.assert_allclose(system.jnt_range[1:3], [[-1, 1]] * 2)


WRONG_LIMBS = {
    "unknown attribute": ({"limb": LIMB.replace("<geom class", '<geom clas="" class')}, "'clas'"),
    "refused": ({"limb": LIMB.replace('name="j"', 'name="j" damping="-1"')}, "left_j.*limb.xml:6"),
    "a mesh outside": (
        {"limb": LIMB.replace("../shapes", "../../shapes")},
        r"limb.xml:3: <mesh name='m'>: file 't.stl' leaves the model directory",
    ),
    "no such file": ({"asset": ATTACHED.replace("limb.x", "lim.x")}, "main.xml:2: .* no such file"),
    "outside": ({"asset": ATTACHED.replace("parts", "..")}, "main.xml:2: .*leaves the model dir"),
    "no such model": ({"trunk": TRUNK.replace('l="limb"', 'l="limp"')}, "Did you mean 'limb'"),
    "no such body": (
        {"trunk": TRUNK.replace('body="arm"', 'body="foot"')},
        "main.xml:5: <attach>: no body 'foot' in limb.xml",
    ),
    "nothing": ({"trunk": f'{BODY}<attach prefix="x"/>'}, "give it a model, a body or a frame"),
    "a model in itself": (
        {"limb": LIMB.replace("<asset>", '<asset><model name="x" file="limb.xml"/>')},
        "limb.xml:3: <model name='x'>: a model attaches itself: limb.xml -> limb.xml",
    ),
    "a body in itself": (
        {"trunk": f'<body name="s"><joint/>{GEOM}<attach body="s" prefix="x"/></body>'},
        "main.xml:4: <attach>: <body name='s'> attaches itself",
    ),
    "too many": (
        {
            "trunk": f'<body name="b0"><joint/>{GEOM}</body>'
            + "".join(
                f'<body name="b{k + 1}"><attach body="b{k}" prefix="x{k}"/>'
                f'<attach body="b{k}" prefix="y{k}"/></body>'
                for k in range(40)
            )
        },
        r"main.xml: model has \d+ geoms \(limit 4096\)",
    ),
}


@pytest.mark.parametrize("what", WRONG_LIMBS)
def test_models_that_cannot_be_attached(tmp_path, what):
    texts, said = WRONG_LIMBS[what]
    assert re.search(said, refused(limbs(tmp_path, **texts)), re.S)


def test_files_that_attach_one_another_twice_over_are_too_many(tmp_path):
    """MuJoCo would read the last of 20 files half a million times."""
    both = '<asset><model name="a" file="{0}.xml"/><model name="b" file="{0}.xml"/></asset>'
    texts = {f"f{k}": world(BODY, both.format(f"f{k + 1}")) for k in range(19)}
    path = write(tmp_path, main=world(BODY, both.format("f0")), f19=world(BODY), **texts)
    assert re.search(r"\d+ attached models \(limit 4096\)", refused(path))


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


@pytest.mark.parametrize("element", ["texture", "hfield"])
def test_pixels_of_png_files_are_limited(tmp_path, element):
    """The file has no more than its head, which says that there are 9000 * 8000 of them."""
    head = struct.pack(">I4sIIBBBBB", 13, b"IHDR", 9000, 8000, 8, 0, 0, 0, 0)
    checksum = struct.pack(">I", zlib.crc32(head[4:]))
    (tmp_path / "p.dat").write_bytes(b"\x89PNG\r\n\x1a\n" + head + checksum)
    assets = f'<{element} name="t" file="p.dat" content_type="image/png" size="1 1 1 1"/>'
    assets = assets.replace(' size="1 1 1 1"', ' type="2d"') if element == "texture" else assets
    text = f"<mujoco><asset>{assets}</asset></mujoco>"
    said = rf"<{element} name='t'> has 72000000 pixels \(limit 67108864\)"
    with pytest.raises(ModelError, match=said):
        mjcf.loads(text, tmp_path)
