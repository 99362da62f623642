"""Height fields of model files: read, written, drawn."""

import chex
import jax
import mujoco
import numpy as np
import pytest

from brax import contact
from brax.base import Transform
from brax.errors import ModelError
from brax.io import json, mjcf
from brax.io.viewer.scene import describe

XML = """
<mujoco>
  <asset>
    <hfield name="small" nrow="2" ncol="2" size="1 1 1 .1"/>
    <hfield name="large" nrow="2" ncol="3" size="1.5 1 .5 .2" elevation="0 .2 .4  1 0 0"/>
  </asset>
  <worldbody>
    <geom name="aside" type="hfield" hfield="small" pos="9 0 0"/>
    <geom name="ground" type="hfield" hfield="large" pos="0 0 1"/>
    <body pos="-.75 .5 1.2"><freejoint/><geom size=".1" mass="1" margin="1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def system():
    return mjcf.loads(XML)


def test_heights_are_in_metres_row_by_row_from_the_near_one(system):
    assert system.geom_grid == ((2, 2), (2, 3), (0, 0))
    np.testing.assert_allclose(system.heights[4:], [0.5, 0, 0, 0, 0.1, 0.2], atol=1e-7)
    np.testing.assert_allclose(system.geom.size[1], [1.5, 1, 0.2], atol=1e-7)


def test_a_system_with_fields_comes_back_from_json(system):
    again = json.loads(json.dumps(system))
    chex.assert_trees_all_equal_structs(again, system.replace(file_model=None))
    assert again.collisions == system.collisions
    assert all(map(np.array_equal, jax.tree.leaves(again), jax.tree.leaves(system)))


def test_json_of_too_few_heights_is_refused(system):
    with pytest.raises(ModelError, match=r"system.heights: expected shape \(10,\), got \(9,\)"):
        json.loads(json.dumps(system.replace(heights=system.heights[:9])))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"window": [1, 1]', '"window": [1, 2]', "no such collider follows"),
        ('"kind": {"geometry_type": "sphere"}', '"kind": {"geometry_type": "plane"}', "no such"),
        ('"grid": [2, 2]', '"grid": [2, 5]', "geom 0 is not a height field of"),
    ],
)
def test_json_of_a_wrong_collider_is_refused(system, old, new, told):
    text = json.dumps(system)
    assert old in text
    with pytest.raises(ModelError, match=told):
        json.loads(text.replace(old, new))


def test_a_field_is_drawn_by_its_triangles(system):
    mesh = describe(system)["geoms"][1]["mesh"]
    expected = [[x, y] for y in (-1, 1) for x in (-1.5, 0, 1.5)]
    np.testing.assert_allclose(np.array(mesh["vertices"])[:, :2], expected)
    np.testing.assert_allclose(np.array(mesh["vertices"])[:, 2], system.heights[4:])
    assert sorted(map(sorted, mesh["faces"])) == [[0, 1, 4], [0, 3, 4], [1, 2, 5], [1, 4, 5]]


@pytest.mark.slow
def test_the_nearest_point_is_where_mujoco_has_it(system):
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    x = Transform.create(pos=data.xpos[1:], rot=data.xquat[1:])
    ours, nearest = contact.get(system, x), data.contact.dist.argmin()
    assert ours is not None
    least = np.argmin(ours.dist)
    np.testing.assert_allclose(ours.dist[least], data.contact.dist[nearest], atol=1e-5)
    np.testing.assert_allclose(ours.frame[least, 0], data.contact.frame[nearest, :3], atol=1e-4)
    np.testing.assert_allclose(ours.pos[least], data.contact.pos[nearest], atol=1e-4)
