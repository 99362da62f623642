"""Numbers of the model file that are honoured, worked out by hand."""

import warnings
from unittest.mock import Mock

import mujoco
import numpy as np
import pytest

from brax import plugins
from brax.errors import ModelError
from brax.io import mjcf

GEOM = '<geom name="g" size=".1"/>'


def load(body: str = '<joint name="j"/>' + GEOM, before: str = "", after: str = ""):
    return mjcf.loads(
        f"<mujoco>{before}<worldbody><geom name='floor' type='plane' size='1 1 1'/>"
        f'<body name="b" pos="1 2 3">{body}</body></worldbody>{after}</mujoco>'
    )


def test_joint():
    system = load(
        '<joint name="j" type="slide" pos="1 2 3" axis="0 3 4" range="-1 2" stiffness="5" '
        'springref="0.5" damping="6" armature="7"/>' + GEOM
    )
    np.testing.assert_allclose(system.joint.pos, [[1, 2, 3]])
    np.testing.assert_allclose(system.joint.axis, [[0, 0.6, 0.8]])
    np.testing.assert_allclose(system.dof.limit, [[-1], [2]])
    np.testing.assert_allclose(system.dof.stiffness, [5])
    np.testing.assert_allclose(system.dof.springref, [0.5])
    np.testing.assert_allclose(system.dof.damping, [6])
    np.testing.assert_allclose(system.dof.armature, [7])


def test_springref_of_a_hinge_is_in_degrees():
    np.testing.assert_allclose(load('<joint springref="90"/>' + GEOM).dof.springref, [np.pi / 2])


def test_stacked_joints_keep_their_order():
    system = load('<joint name="x" axis="1 0 0"/><joint name="s" type="slide"/>' + GEOM)
    assert system.joint_names == ("x", "s")
    assert [t.name for t in system.joint_types] == ["hinge", "slide"]
    assert system.link_types == "2"


def test_option():
    system = load(before='<option timestep="0.004" gravity="1 2 3"/>')
    np.testing.assert_allclose(system.opt.timestep, 0.004)
    np.testing.assert_allclose(system.opt.gravity, [1, 2, 3])
    assert system.integrator.name == "euler"


@pytest.mark.parametrize("name", ["Euler", "RK4", "implicit", "implicitfast"])
def test_every_integrator_of_the_format(name):
    system = load(before=f'<option integrator="{name}"/>')
    assert system.integrator is plugins.get("integrator", name.lower())


def test_start_is_where_the_model_is_drawn():
    np.testing.assert_allclose(load("<freejoint/>" + GEOM).init_q, [1, 2, 3, 1, 0, 0, 0])


def test_start_by_custom_number_has_a_unit_quaternion():
    numeric = '<custom><numeric name="init_qpos" data="4 5 6 0 3 0 4"/></custom>'
    system = load("<freejoint/>" + GEOM, after=numeric)
    np.testing.assert_allclose(system.init_q, [4, 5, 6, 0, 0.6, 0, 0.8])


def test_actuators():
    system = load(
        after="""<actuator>
        <motor joint="j" gear="3" ctrlrange="-1 2"/>
        <position joint="j" kp="5" kv="2" forcerange="-4 4"/>
        <velocity joint="j" kv="7"/>
        <general joint="j" gainprm="2" biastype="none" biasprm="9 9 9"/>
        </actuator>"""
    )
    act = system.actuator
    np.testing.assert_allclose(act.gear, [3, 1, 1, 1])
    np.testing.assert_allclose(act.gainprm[:, 0], [1, 5, 7, 2])
    np.testing.assert_allclose(act.biasprm[:, :3], [[0, 0, 0], [0, -5, -2], [0, 0, -7], [0, 0, 0]])
    np.testing.assert_allclose(act.ctrl_range, np.array([[-1, 2], *[[-np.inf, np.inf]] * 3]))
    np.testing.assert_allclose(act.force_range[1], [-4, 4])
    assert np.isinf(act.force_range[np.array([0, 2, 3])]).all()


def test_laws_of_actuators():
    system = load(
        before='<option actuatorgroupdisable="2"/>',
        after="""<actuator>
        <general joint="j" gaintype="affine" gainprm="2 3 4" actearly="false"/>
        <general joint="j" dyntype="filter" dynprm=".5" gainprm="2 3 4" actearly="true"/>
        <intvelocity joint="j" kp="7" actrange="-1 2"/>
        <position joint="j" kp="7" timeconst=".1"/>
        <muscle joint="j" lengthrange="-1 2" force="9" timeconst=".1 .2"/>
        <muscle joint="j" lengthrange="-1 2" scale="30"/>
        <motor joint="j" group="2" forcerange="-1 1"/>
        </actuator>""",
    )
    act = system.actuator
    names = ("general", "filter", "integral", "filterexact", "muscle", "muscle", "affine")
    assert tuple(t.name for t in system.actuator_types) == names
    assert system.actuator_early == (False, True, *[False] * 5)
    assert system.stateful_actuators() == (1, 2, 3, 4, 5)
    np.testing.assert_allclose(act.gainprm[:2, :3], [[2, 3, 4], [2, 0, 0]])
    np.testing.assert_allclose(act.activation_range[2], [-1, 2])
    np.testing.assert_allclose(act.dynprm[1:5, 0], [0.5, 1, 0.1, 0.1])
    np.testing.assert_allclose(act.length_range[4:6], [[-1, 2]] * 2)
    # The peak force is the file's, or its scale by the inertia: 30 / (1 / inertia) here.
    inertia = 0.4 * 1000 * 4 / 3 * np.pi * 0.1**5
    np.testing.assert_allclose(act.gainprm[4:6, 2], [9, 30 * inertia], rtol=1e-5)
    np.testing.assert_allclose(act.biasprm[4:6, 2], [9, 30 * inertia], rtol=1e-5)
    np.testing.assert_array_equal(act.force_range[6], [0, 0])  # its group is off


def test_sites_and_actuators_on_them():
    system = load(
        f'<joint name="j" actuatorfrcrange="-1 2"/>{GEOM}<body pos="1 0 0" quat="0 1 0 0">'
        '<site name="s" pos="0 2 3" size=".1 .2 .3" type="box"/></body>'
        '<site name="t" pos="4 5 6"/>',
        after='<actuator><motor site="s" gear="1 2 3 4 5 6"/>'
        '<position site="s" refsite="t" kp="3"/><motor joint="j" gear="2"/></actuator>',
    )
    assert system.site_names == ("t", "s") and system.site_link == (0, 0)
    assert [t.name for t in system.site_types] == ["sphere", "box"]
    np.testing.assert_allclose(system.site.transform.pos, [[4, 5, 6], [1, -2, -3]], atol=1e-6)
    np.testing.assert_allclose(system.site_size[1], [0.1, 0.2, 0.3], rtol=1e-6)
    assert system.actuator_site == (1, 1, -1) and system.actuator_refsite == (-1, 0, -1)
    assert (system.actuator_joint, system.joint_actuator_limited) == ((-1, -1, 0), (True,))
    np.testing.assert_allclose(system.actuator.gear, [1, 1, 2])
    wrench = [[1, 2, 3, 4, 5, 6], [1, 0, 0, 0, 0, 0], [0] * 6]
    np.testing.assert_allclose(system.actuator.wrench, wrench)
    np.testing.assert_allclose(system.jnt_actfrcrange, [[-1, 2]])


def test_custom_dampings():
    names = {"vel_damping": -0.1, "ang_damping": -0.2, "baumgarte_erp": 0.3}
    fields = "".join(f'<numeric name="{k}" data="{v}"/>' for k, v in names.items())
    system = load(after=f"<custom>{fields}</custom>")
    for name, value in names.items():
        np.testing.assert_allclose(getattr(system, name), value, rtol=1e-6)


def test_elasticity_of_all_and_of_one():
    system = load(
        after='<custom><numeric name="elasticity" data="0.25"/><tuple name="elasticity">'
        '<element objtype="geom" objname="g" prm="0.75"/></tuple></custom>'
    )
    np.testing.assert_allclose(system.geom.elasticity, [0.25, 0.75])


def test_colour_of_a_material_unless_the_geom_has_its_own():
    system = load(
        '<joint/><geom name="own" size=".1" material="m" rgba="1 0 0 1"/>'
        '<geom name="its" size=".1" material="m"/>',
        before='<asset><material name="m" rgba="0 1 0 0.5"/></asset>',
    )
    want = np.array([[1, 0, 0, 1], [0, 1, 0, 0.5]])
    np.testing.assert_allclose(system.geom.rgba[1:], want)


def test_geoms():
    system = load('<joint/><geom type="capsule" fromto="0 0 0  0 0 2" size=".1" friction=".5"/>')
    np.testing.assert_allclose(system.geom.size[1], [0.1, 1, 0], rtol=1e-6)
    np.testing.assert_allclose(system.geom.transform.pos[1], [0, 0, 1])
    np.testing.assert_allclose(system.geom.friction[1], [0.5, 0.005, 0.0001])
    assert system.geom_link == (-1, 0)


def test_a_pair_has_the_larger_condim():
    for condims, pair in (((1, 1), 1), ((1, 3), 3), ((4, 3), 4), ((4, 6), 6)):
        geoms = "<geom size='.1' condim='{}' friction='1 0 0'/>".format
        system = mjcf.loads(
            "<mujoco><worldbody>"
            + "".join(f"<body><freejoint/>{geoms(condim)}</body>" for condim in condims)
            + "</worldbody></mujoco>"
        )
        assert [group.condim for group in system.collisions] == [pair]


def test_softness_of_contacts():
    system = load(
        '<joint/><geom size=".1" solref=".01 .5" solimp=".8 .9 .01 .4 3" solmix="2" margin=".1" '
        'priority="3" condim="1"/>'
    )
    np.testing.assert_allclose(system.geom_solref, [[0.02, 1], [0.01, 0.5]])
    np.testing.assert_allclose(system.geom_solimp[1], [0.8, 0.9, 0.01, 0.4, 3])
    np.testing.assert_allclose(system.geom_solmix, [1, 2])
    np.testing.assert_allclose(system.geom_margin, [0, 0.1], rtol=1e-6)
    assert system.geom_priority == (0, 3)
    assert [group.condim for group in system.collisions] == [1]


def test_softness_of_limits_and_dry_friction():
    system = load(
        '<joint type="slide" range="0 1" margin=".1" frictionloss="2" ref=".5" springref=".7" '
        'solreflimit=".03 .8" solimplimit=".7 .8 .02 .5 2" solreffriction=".04 .9" '
        'solimpfriction=".6 .7 .03 .5 2"/>' + GEOM
    )
    np.testing.assert_allclose(system.jnt_margin, [0.1], rtol=1e-6)
    np.testing.assert_allclose(system.jnt_solref, [[0.03, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(system.jnt_solimp, [[0.7, 0.8, 0.02, 0.5, 2]], rtol=1e-6)
    np.testing.assert_allclose(system.dof_frictionloss, [2])
    np.testing.assert_allclose(system.dof_solref, [[0.04, 0.9]], rtol=1e-6)
    np.testing.assert_allclose(system.dof_solimp, [[0.6, 0.7, 0.03, 0.5, 2]], rtol=1e-6)
    np.testing.assert_allclose(system.ref, [0.5])
    np.testing.assert_allclose(system.init_q, [0.5])
    np.testing.assert_allclose(system.dof.springref, [0.7], rtol=1e-6)


def test_a_joint_of_a_type_that_mujoco_does_not_know():
    # A stand-in for another package's type: 'ball' has more coordinates than the slide it replaces.
    tuples = (
        '<custom><tuple name="joint_type:ball"><element objtype="joint" objname="j"/></tuple>'
        '<numeric name="init_qpos" data="0 3 0 4"/></custom>'
    )
    system = load('<joint name="j" type="slide" user="1 2" damping="3"/>' + GEOM, after=tuples)
    assert [t.name for t in system.joint_types] == ["ball"]
    np.testing.assert_allclose(system.joint.user, [[1, 2]])
    np.testing.assert_allclose(system.dof.damping, [3, 3, 3])
    np.testing.assert_allclose(system.init_q, [0, 0.6, 0, 0.8])


def test_a_medium():
    assert not load().opt.enable_fluid
    system = load(before='<option density="1000" viscosity=".1" wind="1 2 3"/>')
    assert system.opt.enable_fluid
    np.testing.assert_allclose(system.opt.density, 1000)
    np.testing.assert_allclose(system.opt.viscosity, 0.1, rtol=1e-6)
    np.testing.assert_allclose(system.opt.wind, [1, 2, 3])


def test_solver_steps_are_the_files_own_if_it_has_any():
    asked = load(before='<option iterations="7" ls_iterations="9" cone="elliptic" impratio="5"/>')
    assert (asked.opt.iterations, asked.opt.ls_iterations) == (7, 9)
    assert (asked.opt.cone, float(asked.opt.impratio)) == ("elliptic", 5)
    assert load().opt.iterations < 10, "not MuJoCo's bound of 100"


@pytest.mark.parametrize(
    ("flag", "read", "value"),
    [
        ("gravity", lambda s: s.opt.gravity, 0),
        ("contact", lambda s: len(s.collisions), 0),
        ("constraint", lambda s: len(s.collisions), 0),
        ("limit", lambda s: s.dof.limit[1], np.inf),
        ("constraint", lambda s: s.dof.limit[1], np.inf),
        ("spring", lambda s: s.dof.stiffness, 0),
        ("damper", lambda s: s.dof.damping, 0),
        ("clampctrl", lambda s: s.actuator.ctrl_range[:, 1], np.inf),
    ],
)
def test_flags_that_switch_something_off(flag, read, value):
    def system(before):
        return load(
            f'<joint name="j" range="-1 1" stiffness="1" damping="1"/>{GEOM}',
            before,
            '<actuator><motor joint="j" ctrlrange="-1 1"/></actuator>',
        )

    off = system(f'<option><flag {flag}="disable"/></option>')
    np.testing.assert_array_equal(read(off), value)
    assert (np.asarray(read(system(""))) != value).any()


def test_frames_replicas_and_defaults_are_mujocos():
    system = load(
        '<frame pos="0 0 1"><joint class="k"/></frame><replicate count="3" offset="1 0 0">'
        '<geom name="r" size=".1"/></replicate>',
        before='<default><default class="k"><joint damping="2"/></default></default>',
    )
    np.testing.assert_allclose(system.joint.pos, [[0, 0, 1]])
    np.testing.assert_allclose(system.dof.damping, [2])
    np.testing.assert_allclose(system.geom.transform.pos[1:, 0], [0, 1, 2])


def test_elements_without_names_get_one_that_is_free():
    system = load('<joint/><geom name="geom_2" size=".1"/><geom size=".1"/><geom size=".1"/>')
    assert system.geom_names == ("floor", "geom_2", "geom_2_", "geom_3")


def test_the_same_from_text_file_and_compiled_model(tmp_path):
    xml = f'<mujoco><worldbody><body name="b"><joint name="j"/>{GEOM}</body></worldbody></mujoco>'
    (tmp_path / "m.xml").write_text(xml)
    systems = [
        mjcf.loads(xml),
        mjcf.loads(xml.encode()),
        mjcf.load(tmp_path / "m.xml"),
        mjcf.load(str(tmp_path / "m.xml")),
        mjcf.load_model(mujoco.MjModel.from_xml_string(xml)),
        mjcf.load_model(mjcf.load_mjmodel(tmp_path / "m.xml")),
    ]
    for system in systems[1:]:
        assert system.geom_names == systems[0].geom_names
        np.testing.assert_array_equal(system.link.inertia.moments, systems[0].link.inertia.moments)


def test_a_texture_tints_its_material():
    """By the mean of its pixels: of a checker what is between its two colours."""
    sys = mjcf.loads("""<mujoco><asset>
    <texture name="flat" type="2d" builtin="flat" rgb1="1 .4 .2" width="8" height="8"/>
    <texture name="checker" type="2d" builtin="checker" rgb1="1 .4 .2" rgb2="0 .4 .6" width="8"
    height="8"/><material name="flat" texture="flat" rgba=".5 1 1 .25"/>
    <material name="checker" texture="checker"/></asset><worldbody>
    <geom type="plane" size="1 1 1" material="checker"/><body><freejoint/>
    <geom size=".1" material="flat"/><geom size=".1" material="flat" rgba="0 1 0 1"/></body>
    </worldbody></mujoco>""")
    wanted = [(0.5, 0.4, 0.4, 1), (0.5, 0.4, 0.2, 0.25), (0, 1, 0, 1)]
    np.testing.assert_allclose(sys.geom.rgba, wanted, atol=1 / 255)


def test_masses_are_scaled_to_a_total_without_a_warning_of_mujoco():
    """MuJoCo 4 deprecates `settotalmass`: bodies of 2 and 5 kg become 4 and 10 of 14 kg."""
    text = """<mujoco><compiler settotalmass="14"/><worldbody>
        <body><freejoint/><geom size=".1" mass="2"/></body>
        <body pos="1 0 0"><freejoint/><geom size=".2" mass="5"/></body>
    </worldbody></mujoco>"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sys = mjcf.loads(text)
    np.testing.assert_allclose(sys.link.inertia.mass, [4, 10], rtol=1e-6)
    # A solid sphere's moment of inertia is 2/5 m r^2.
    spheres = [0.4 * 4 * 0.1**2, 0.4 * 10 * 0.2**2]
    np.testing.assert_allclose(sys.body_inertia[1:, 0], spheres, rtol=1e-6)


def test_a_total_mass_comes_before_what_depends_on_mass():
    """`springdamper` and `dampratio` are those of the scaled mass, here 10 kg in place of 1.

    A time constant t of .1 s at a damping ratio of 1 has the stiffness m / t^2 = 1000 N/m and the
    damping 2 m / t = 200 N s/m. A servo of 10 N/m is critically damped by 2 sqrt(10 m) = 20 N s/m.
    """
    sys = mjcf.loads("""<mujoco><compiler settotalmass="10"/><worldbody>
        <body><joint name="x" type="slide" springdamper=".1 1"/><geom size=".1" mass="1"/></body>
    </worldbody><actuator><position joint="x" kp="10" dampratio="1"/></actuator></mujoco>""")
    np.testing.assert_allclose(sys.jnt_stiffness, [1000], rtol=1e-6)
    np.testing.assert_allclose(sys.dof_damping, [200], rtol=1e-6)
    np.testing.assert_allclose(sys.actuator_biasprm[0, :3], [0, -10, -20], rtol=1e-6)


def test_the_names_of_a_kind_are_found_once(monkeypatch):
    """Otherwise the time to load a model grows with the square of its elements."""
    lookup = Mock(wraps=mujoco.mj_id2name)
    monkeypatch.setattr(mujoco, "mj_id2name", lookup)
    n = range(100)
    elements = {
        "site": "".join(f'<site name="s{i}" pos="{i} 0 0"/>' for i in n),
        "sensor": "".join(f'<framepos objtype="site" objname="s{i}"/>' for i in n),
        "tendon": "".join(f'<site site="s{i}"/>' for i in n),
        "equality": '<joint joint1="j"/>' * len(n),
        "actuator": '<motor joint="j" delay="1" nsample="2"/>' * len(n),
    }
    text = """<mujoco><worldbody><body><joint name="j"/><geom size="1"/>{site}</body></worldbody>
<sensor>{sensor}</sensor><tendon><spatial>{tendon}</spatial></tendon>
<equality>{equality}</equality>{motors}</mujoco>"""
    assert len(mjcf.loads(text.format(**elements, motors="")).sensor_names) == len(n)
    motors = f"<actuator>{elements['actuator']}</actuator>"
    with pytest.raises(ModelError, match="delay is not supported"):
        mjcf.loads(text.format(**elements, motors=motors))
    # 1640. Elements of one kind that looked all names up would add 10 000.
    assert lookup.call_count < 5000
