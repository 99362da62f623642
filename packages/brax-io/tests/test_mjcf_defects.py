"""Faults of earlier loaders, one test each: none may come back."""

import copy
import warnings

import jax
import mujoco
import numpy as np
import pytest

from brax.errors import ModelError
from brax.io import mjcf

GEOM = '<geom size=".1"/>'


def world(inside: str, before: str = "", after: str = "") -> str:
    return f"<mujoco>{before}<worldbody>{inside}</worldbody>{after}</mujoco>"


def static_child(child: str) -> str:
    return world(f'<body name="b"><joint/>{GEOM}{child}</body>')


def test_a_fused_body_that_is_only_turned_keeps_its_turn():
    """A capsule along z in a body turned by 90 degrees about y lies along x."""
    system = mjcf.loads(
        static_child('<body euler="0 90 0"><geom type="capsule" size=".1 .5"/></body>')
    )
    turned = [np.sqrt(0.5), 0, np.sqrt(0.5), 0]
    np.testing.assert_allclose(system.geom.transform.rot[1], turned, atol=1e-7)


def test_two_blanks_in_fromto():
    system = mjcf.loads(
        static_child('<body><geom type="capsule" fromto="0 0 0  0  0 2" size=".1"/></body>')
    )
    np.testing.assert_allclose(system.geom.transform.pos[1], [0, 0, 1])


def test_a_small_offset_survives():
    """Seven digits, not the six decimals of a text."""
    system = mjcf.loads(static_child(f'<body pos="1.234567e-7 0 0">{GEOM}</body>'))
    np.testing.assert_allclose(system.geom.transform.pos[1, 0], 1.234567e-7, rtol=1e-6)


def test_explicit_inertia_of_a_fused_body_adds_up():
    system = mjcf.loads(
        world(
            '<body><joint/><inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>'
            '<body><inertial pos="0 0 0" mass="3" diaginertia="1 1 1"/></body></body>'
        )
    )
    np.testing.assert_allclose(system.link.inertia.mass, [5])
    np.testing.assert_allclose(system.link.inertia.moments, [[2, 2, 2]])


def test_childclass_of_a_fused_body_counts():
    system = mjcf.loads(
        world(
            f'<body><joint/>{GEOM}<body childclass="k">{GEOM}</body></body>',
            '<default><default class="k"><geom friction="0.3"/></default></default>',
        )
    )
    np.testing.assert_allclose(system.geom.friction[:, 0], [1, 0.3])


def test_sensors_may_refer_to_a_fused_body():
    sensor = '<sensor><framepos objtype="body" objname="s"/></sensor>'
    system = mjcf.loads(
        world(f'<body><joint/>{GEOM}<body name="s">{GEOM}</body></body>', "", sensor)
    )
    assert len(system.geom_names) == 2


def test_the_order_of_children_stays():
    children = "".join(f'<body name="{n}"><joint/>{GEOM}</body>' for n in "xyz")
    fixed = f'<body name="s">{GEOM}<body name="t"><joint/>{GEOM}</body></body>'
    system = mjcf.loads(
        world(f'<body name="r"><joint/>{GEOM}{children[:45]}{children[45:]}{fixed}</body>')
    )
    assert system.link_names == ("r", "x", "y", "z", "t")
    assert system.link_parents == (-1, 0, 0, 0, 0)


def test_the_callers_model_is_not_changed():
    model = mujoco.MjModel.from_xml_string(
        world(
            f'<body><joint name="j" range="-1 1"/>{GEOM}<body euler="1 2 3">{GEOM}</body></body>',
            after='<actuator><motor joint="j"/></actuator>',
        )
    )
    before = copy.deepcopy(model)
    mjcf.load_model(model)
    mjcf.report(model)
    mjcf.validate_model(model)
    for name in (n for n in dir(model) if isinstance(getattr(model, n), np.ndarray)):
        np.testing.assert_array_equal(getattr(model, name), getattr(before, name), err_msg=name)


def test_the_system_does_not_see_later_changes_of_the_model():
    model = mujoco.MjModel.from_xml_string(world(f"<body><joint/>{GEOM}</body>"))
    system = mjcf.load_model(model)
    model.geom_size[:] = 9
    model.opt.gravity[:] = 9
    np.testing.assert_allclose(system.geom.size[0], [0.1, 0, 0])
    np.testing.assert_allclose(system.opt.gravity, [0, 0, -9.81])


def test_a_model_that_was_not_fused_is_consistent():
    system = mjcf.load_model(
        mujoco.MjModel.from_xml_string(world(f"<body><joint/>{GEOM}<body>{GEOM}</body></body>"))
    )
    assert system.num_links() == 1
    assert {len(x) for x in jax.tree.leaves(system.link)} == {1}


@pytest.mark.parametrize("bits", ['contype="0"', 'conaffinity="0"'])
def test_a_cylinder_that_collides_by_one_half_of_its_bits(bits):
    system = mjcf.loads(
        world(
            f"<body><freejoint/>{GEOM}</body>"
            f'<body><freejoint/><geom type="cylinder" size=".1 .1" {bits}/></body>'
        )
    )
    assert [group.collider.types for group in system.collisions] == [("sphere", "cylinder")]


def test_a_ball_joint_is_read_as_one():
    system = mjcf.loads(world(f'<body><joint type="ball"/>{GEOM}</body>'))
    assert [t.name for t in system.joint_types] == ["ball"]
    np.testing.assert_allclose(system.init_q, [1, 0, 0, 0])
    np.testing.assert_allclose(system.ref, [0, 0, 0, 0])


def test_a_model_without_joints():
    with pytest.raises(ModelError, match="nothing to simulate"):
        mjcf.loads(world(GEOM))


def test_a_model_without_geoms():
    system = mjcf.loads(
        world('<body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>')
    )
    assert system.geom_names == () and system.geom.size.shape == (0, 3)


def test_the_leaves_do_not_depend_on_limits():
    free, limited = (
        mjcf.loads(world(f"<body><joint {limit}/>{GEOM}</body>")) for limit in ("", 'range="-1 1"')
    )
    paths = [[p for p, _ in jax.tree.leaves_with_path(system)] for system in (free, limited)]
    assert paths[0] == paths[1]
    np.testing.assert_array_equal(free.dof.limit, [[-np.inf], [np.inf]])


def test_no_warning_on_load():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mjcf.loads(world(f"<body><joint/>{GEOM}</body>"))


@pytest.mark.parametrize("name", ["constraint_stifness", "elastcity", "my_own_number"])
def test_unknown_custom_numbers_are_told(name):
    numeric = f'<custom><numeric name="{name}" data="1"/></custom>'
    with pytest.warns(UserWarning, match=f"numeric '{name}'.*unknown custom field"):
        mjcf.loads(world(f"<body><joint/>{GEOM}</body>", after=numeric))
