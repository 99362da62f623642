"""Bodies without joints (T34): the same numbers as MuJoCo's `fusestatic`, in double precision."""

from typing import Any

import jax
import mujoco
import numpy as np
import pytest

from brax.errors import ModelError
from brax.io import mjcf

SPELLINGS = {
    "quat": 'quat="0.9 0.1 -0.3 0.2"',
    "euler": 'euler="10 -20 30"',
    "axisangle": 'axisangle="1 2 -1 40"',
    "xyaxes": 'xyaxes="0.8 0.6 0 -0.6 0.8 0.1"',
    "zaxis": 'zaxis="0.3 -0.4 0.8"',
}
OFFSETS = {"at the origin": "", "moved": 'pos="1.234567891e-7 -0.3  0.2"'}

MODEL = """
<mujoco>
  <compiler fusestatic="{fuse}"/>
  <worldbody>
    <body name="post" {place}>
      <geom name="ground" type="plane" size="1 1 1"/>
      <body name="carrier" pos="0 0 1" euler="5 6 7">
        <joint name="j1" axis="1 2 3" pos="0.1 0 0"/>
        <geom name="ball" size="0.1" pos="0.05 0 0"/>
        <body name="bracket" {place}>
          <geom name="rod" type="capsule" fromto="0 0 0  0.1  0.2 0.3" size="0.02"/>
          <body name="weight" {place}>
            <inertial pos="0.1 0.2 0.3" euler="40 50 60" mass="7" diaginertia="0.2 0.3 0.4"/>
            <geom name="shell" size="0.03"/>
            <body name="tip" {place}>
              <joint name="j2" axis="0 1 0" pos="0 0.1 0"/>
              <geom name="end" type="capsule" size="0.02 0.1" euler="1 2 3"/>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def load(place: str):
    with jax.enable_x64(True):
        return mjcf.loads(MODEL.format(fuse="false", place=place))


def fused(place: str) -> mujoco.MjModel:
    model = mujoco.MjModel.from_xml_string(MODEL.format(fuse="true", place=place))
    assert model.nbody == 3
    return model


def matrix(quat) -> np.ndarray:
    flat = np.zeros(9)
    mujoco.mju_quat2Mat(flat, np.asarray(quat, float))
    return flat.reshape(3, 3)


def tensor(moments, quat) -> np.ndarray:
    axes = matrix(quat)
    return axes @ np.diag(moments) @ axes.T


@pytest.mark.parametrize("turn", SPELLINGS)
@pytest.mark.parametrize("offset", OFFSETS)
def test_as_mujoco_fuses(turn, offset):
    # T34
    place = f"{OFFSETS[offset]} {SPELLINGS[turn]}"
    ours, theirs = load(place), fused(place)
    close: Any = dict(rtol=0, atol=1e-12)  # measured: 1.5e-14
    assert ours.link_names == ("carrier", "tip")
    inertia = ours.link.inertia
    np.testing.assert_allclose(inertia.mass, theirs.body_mass[1:], **close)
    np.testing.assert_allclose(inertia.transform.pos, theirs.body_ipos[1:], **close)
    for link in range(2):
        np.testing.assert_allclose(
            tensor(inertia.moments[link], inertia.transform.rot[link]),
            tensor(theirs.body_inertia[link + 1], theirs.body_iquat[link + 1]),
            **close,
        )
        frame = ours.link.transform
        np.testing.assert_allclose(frame.pos[link], theirs.body_pos[link + 1], **close)
        np.testing.assert_allclose(
            matrix(frame.rot[link]), matrix(theirs.body_quat[link + 1]), **close
        )
    for name in ("ground", "ball", "rod", "shell", "end"):
        ours_id, theirs_id = ours.geom_names.index(name), theirs.geom(name).id
        assert ours.geom_link[ours_id] == theirs.geom_bodyid[theirs_id] - 1
        np.testing.assert_allclose(
            ours.geom.transform.pos[ours_id], theirs.geom_pos[theirs_id], **close
        )
        np.testing.assert_allclose(
            matrix(ours.geom.transform.rot[ours_id]), matrix(theirs.geom_quat[theirs_id]), **close
        )


def test_a_point_mass_beside_another():
    """Two balls of mass 1 and 3 on a bar of length 4: by hand."""
    system = mjcf.loads(
        """<mujoco><worldbody><body name="b"><joint/>
        <inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>
        <body pos="4 0 0"><inertial pos="0 0 0" mass="3" diaginertia="0.2 0.2 0.2"/></body>
        </body></worldbody></mujoco>"""
    )
    np.testing.assert_allclose(system.link.inertia.mass, [4])
    np.testing.assert_allclose(system.link.inertia.transform.pos, [[3, 0, 0]])
    # about the centre of mass: 0.3 along the bar, and 1 * 3^2 + 3 * 1^2 more across it
    np.testing.assert_allclose(
        np.sort(system.link.inertia.moments[0]), [0.3, 12.3, 12.3], rtol=1e-6
    )


def test_a_carrier_of_no_mass_gets_its_childs():
    system = mjcf.loads(
        """<mujoco><worldbody><body name="b"><joint/><body pos="1 0 0"><geom size="0.1"/></body>
        </body></worldbody></mujoco>"""
    )
    np.testing.assert_allclose(system.link.inertia.mass, [1000 * 4 / 3 * np.pi * 0.001], 1e-6)
    np.testing.assert_allclose(system.link.inertia.transform.pos, [[1, 0, 0]])


def test_names_and_excludes_of_fused_bodies():
    """An exclude names a body; the geoms of others on the same link still collide."""
    system = mjcf.loads(
        """<mujoco><worldbody>
        <geom name="floor" type="plane" size="1 1 1"/>
        <body name="a"><freejoint/><geom name="a" size="1"/>
          <body name="hat"><geom name="hat" size="0.5"/></body></body>
        <body name="c"><freejoint/><geom name="c" size="1"/></body>
        </worldbody><contact><exclude body1="hat" body2="c"/></contact></mujoco>"""
    )
    pairs = {
        frozenset((system.geom_names[i], system.geom_names[j]))
        for group in system.collisions
        for i, j in zip(group.geom1, group.geom2, strict=True)
    }
    floor = {frozenset(("floor", name)) for name in ("a", "hat", "c")}
    assert pairs == floor | {frozenset(("a", "c"))}


def test_fuse_bodies_lets_mujoco_fuse():
    text = """<mujoco><worldbody>
      <body name="base" pos="1 0 0"><geom size=".1"/></body>
      <body name="arm"><joint/><geom size=".1"/>
        <body name="hand" pos="0 0 1"><geom size=".2"/></body>
      </body></worldbody></mujoco>"""
    fused = mujoco.MjModel.from_xml_string(mjcf.fuse_bodies(text))
    assert [fused.body(i).name for i in range(fused.nbody)] == ["world", "arm"]
    assert mjcf.loads(mjcf.fuse_bodies(text)).link_names == ("arm",)


def test_fuse_bodies_reads_what_load_reads():
    """Comments hold `--`, and names hold `<`. A DOCTYPE is an error: it could define entities."""
    text = """<mujoco><!-- a -- b --><worldbody><body name="a<b"><joint/><geom size=".1"/>
<body name="c&amp;d"><geom size=".2"/></body></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(mjcf.fuse_bodies(text))
    assert (model.nbody, model.body(1).name) == (2, "a<b")
    entity = '<!DOCTYPE mujoco [<!ENTITY e "e">]><mujoco model="&e;"/>'
    with pytest.raises(ModelError, match=r"model\.xml:1: DOCTYPE is not allowed"):
        mjcf.fuse_bodies(entity)
    with pytest.raises(ModelError, match="root is <robot>"):
        mjcf.fuse_bodies("<robot/>")
