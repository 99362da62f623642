"""Attributes of MuJoCo's format that change a step: the step is MuJoCo's."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from steps_lab import check_steps

from brax import dynamics, plugins, sensors
from brax.errors import ModelError
from brax.io import mjcf

ARM = """<body><joint name="j" axis="0 1 0" damping=".1"/><geom size=".05" pos=".2 0 0" mass="1"/>
<body pos=".3 0 0"><joint name="k" axis="0 1 0"/><geom size=".05" pos=".2 0 0" mass="1"/></body>
</body>"""
TENDON = """<tendon><fixed name="t"><joint joint="j" coef="1"/><joint joint="k" coef="-.5"/></fixed>
</tendon>"""


def arm(actuators: str, option: str = "", body: str = ARM, after: str = TENDON) -> str:
    return f"""<mujoco>{option}<worldbody>{body}</worldbody>{after}
<actuator>{actuators}</actuator></mujoco>"""


STATEFUL = """<motor joint="j" group="1"/>
<general joint="k" group="2" dyntype="filter" dynprm=".1" gainprm="3"/>
<intvelocity joint="j" kp="3" group="3" actrange="-9 9"/>"""


@pytest.mark.parametrize(
    "option",
    [
        '<option actuatorgroupdisable="2"/>',
        pytest.param('<option><flag actuation="disable"/></option>', marks=pytest.mark.slow),
    ],
    ids=["a group", "all"],
)
def test_disabled_actuators_keep_their_activations(option):
    check_steps(arm(STATEFUL, option))


REFLECTED = """<motor joint="j" damping=".3" armature=".02" gear="3"/>
<position joint="k" kp="3" damping=".2"/><motor tendon="t" gear="-2" damping=".4"/>"""


@pytest.mark.skipif(int(mujoco.__version__.split(".")[0]) < 4, reason="new in MuJoCo 4")
@pytest.mark.parametrize(
    "option",
    [
        "",
        *(
            pytest.param(f"<option{text}</option>", marks=pytest.mark.slow)
            for text in (
                '><flag eulerdamp="disable"/>',
                '><flag damper="disable"/>',
                '><flag actuation="disable"/>',
                ' integrator="implicitfast">',
            )
        ),
    ],
)
def test_dampers_and_rotors_of_actuators_act_with_the_square_of_the_gear(option):
    check_steps(arm(REFLECTED, option))


def test_a_link_and_its_parent_collide_where_the_file_says_so():
    arms = """<mujoco>{}<worldbody><body pos="0 0 1"><joint axis="0 1 0"/><geom size=".2"/>
<body pos=".3 0 0"><joint axis="0 1 0"/><geom size=".15"/></body></body></worldbody></mujoco>"""
    flag = '<option><flag filterparent="disable"/></option>'
    assert [len(mjcf.loads(arms.format(text)).collisions) for text in ("", flag)] == [0, 1]
    check_steps(arms.format(flag), states=2)


BODIES = """<body pos="0 0 2"><joint name="h" axis="0 1 0"/><geom size=".05" pos=".2 0 0"/>
<body pos=".3 0 0" euler="10 20 30"><joint name="b" type="ball" pos=".05 0 0" damping=".1"/>
<geom type="box" size=".05 .1 .15" pos=".2 0 0"/></body></body>
<body pos="2 0 1" euler="10 20 30"><joint name="f" type="free"/>
<geom type="box" size=".05 .1 .15" pos=".1 0 0"/><body pos=".3 0 0"><joint axis="0 1 0"/>
<geom size=".05" pos=".2 0 0"/></body></body>"""
ROTATING = """<motor joint="b" gear="1 2 3"/><motor jointinparent="b" gear=".3 -1 2"/>
<position joint="b" gear="0 2 1" kp="3" kv=".2"/><position jointinparent="b" gear="1 0 0" kp="2"/>
<general joint="b" gear="0 0 1" biastype="affine" biasprm="0 1 -.3"/>
<motor joint="f" gear="1 2 3 4 5 6"/><motor jointinparent="f" gear="1 2 3 4 5 6"/>
<velocity joint="f" gear="1 0 0 0 1 0" kv="2"/><motor joint="h"/>"""


@pytest.mark.parametrize(
    "integrator",
    ["Euler", *(pytest.param(i, marks=pytest.mark.slow) for i in ("implicitfast", "RK4"))],
)
def test_actuators_on_ball_and_free_joints(integrator):
    """Along axes of the link and of the frame before; servos take the nearest turn."""
    check_steps(arm(ROTATING, f'<option integrator="{integrator}"/>', BODIES, ""))


@pytest.mark.parametrize("pipeline", ["spring", "positional"])
def test_actuators_on_ball_and_free_joints_push_in_every_pipeline(pipeline):
    """A force of 3 N on 1 kg, and torques of 2 N m on 0.004 kg m^2, after one step of 2 ms."""
    ball = '<geom size=".1" mass="1"/>'
    text = f"""<mujoco><option gravity="0 0 0"/><worldbody>
<body euler="0 0 90"><joint name="f" type="free"/>{ball}</body>
<body pos="1 0 0" euler="0 0 90"><joint name="b" type="ball"/>{ball}</body></worldbody><actuator>
<motor joint="f" gear="0 3 0 2 0 0"/><motor jointinparent="f" gear="0 0 0 0 2 0"/>
<motor joint="b" gear="2 0 0"/></actuator></mujoco>"""
    sys, engine = mjcf.loads(text), plugins.get("pipeline", pipeline)
    state = engine.step(sys, engine.init(sys, sys.init_q, jnp.zeros(9)), jnp.ones(3))
    # The world's y is the free body's x, so both of its torques are about the same axis.
    found = [0, 0.006, 0, 2, 0, 0, 1, 0, 0]
    np.testing.assert_allclose(state.qd, found, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_actuators_on_ball_and_free_joints_push_a_batch_that_xla_compiles(monkeypatch):
    """A force of 3 N on 1 kg, and a torque of 2 N m on 0.004 kg m^2, after one step of 2 ms."""
    monkeypatch.setenv("BRAX_NATIVE", "0")
    ball = '<geom size=".1" mass="1"/>'
    text = f"""<mujoco><option gravity="0 0 0"/><worldbody>
<body><joint name="f" type="free"/>{ball}</body>
<body pos="1 0 0"><joint name="b" type="ball"/>{ball}</body></worldbody><actuator>
<motor joint="f" gear="0 3 0 0 0 0"/><motor joint="b" gear="2 0 0"/></actuator></mujoco>"""
    sys, engine = mjcf.loads(text), plugins.get("pipeline", "generalized")
    state = engine.init(sys, sys.init_q, jnp.zeros(9))
    after = jax.vmap(lambda ctrl: engine.step(sys, state, ctrl))(jnp.array([[1.0, 0], [0, 1]]))
    found = np.zeros((2, 9))
    found[0, 1], found[1, 6] = 0.006, 1
    np.testing.assert_allclose(after.qd, found, rtol=1e-4, atol=1e-6)


GEARED = f"""{ARM}<body pos="0 1 0"><joint name="s" type="slide" axis="1 0 0" range="-.1 .1"
limited="true"/><geom size=".1" mass="1"/></body>"""
GEARS = """<tendon><fixed name="t" armature=".3" damping=".2"><joint joint="j" coef="1"/>
<joint joint="k" coef="-.5"/></fixed><fixed name="u" armature=".1" range="-.1 .1" limited="true">
<joint joint="k" coef="2"/><joint joint="s" coef="-.7"/></fixed></tendon>"""


@pytest.mark.parametrize("integrator", ["Euler", pytest.param("RK4", marks=pytest.mark.slow)])
def test_the_armature_of_a_fixed_tendon_adds_to_the_mass_matrix(integrator):
    """Between joints of one chain; between those of two trees only to the diagonal."""
    actuators, gears = '<motor tendon="t" gear="2" armature=".2"/><motor joint="s"/>', GEARS
    if int(mujoco.__version__.split(".")[0]) < 4:
        # It has no armature of motors, and adds a tendon's to the joints of one of its trees only.
        actuators = actuators.replace(' armature=".2"', "")
        gears = gears.replace('<joint joint="s" coef="-.7"/>', "")
    text = arm(actuators, f'<option integrator="{integrator}"/>', GEARED, gears)
    check_steps(text)
    sys, model = mjcf.loads(text), mujoco.MjModel.from_xml_string(text)
    np.testing.assert_allclose(sys.dof_invweight0, model.dof_invweight0, rtol=1e-5)
    np.testing.assert_allclose(sys.tendon_invweight0, model.tendon_invweight0, rtol=1e-5)
    data = mujoco.MjData(model)
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data.qpos[:], data.qvel[:] = (0.1, 0.2, 0.3), (1, 2, -1)
    mujoco.mj_forward(model, data)
    found = dynamics.energy(sys, jnp.array(data.qpos), jnp.array(data.qvel))
    np.testing.assert_allclose(found, data.energy[::-1], rtol=1e-5)


CABLES = """<site name="w" pos="0 0 1"/>
<body><joint axis="0 1 0"/><geom size=".05" pos=".2 0 0"/><site name="a" pos=".1 .05 .1"/>
<body pos=".3 0 0"><joint axis="0 1 .3"/><geom size=".05" pos=".2 0 0"/>
<site name="b" pos=".2 .1 0"/></body></body>
<body pos="0 1 0"><joint type="slide" axis="1 0 0"/><geom size=".1"/><site name="c"/></body>"""
CABLE = """<tendon><spatial name="t" armature=".7" damping=".2"><site site="w"/><site site="a"/>
<site site="b"/><pulley divisor="2"/><site site="b"/><site site="c"/></spatial></tendon>"""


@pytest.mark.parametrize(
    "integrator",
    ["Euler", *(pytest.param(i, marks=pytest.mark.slow) for i in ("implicit", "RK4"))],
)
def test_the_armature_of_a_spatial_tendon_has_a_bias_force(integrator):
    """Its moment arms change; the tendon joins two trees by a pulley."""
    text = arm('<motor tendon="t"/>', f'<option integrator="{integrator}"/>', CABLES, CABLE)
    check_steps(text)
    sys, model = mjcf.loads(text), mujoco.MjModel.from_xml_string(text)
    np.testing.assert_allclose(sys.dof_invweight0, model.dof_invweight0, rtol=1e-5)
    np.testing.assert_allclose(sys.tendon_invweight0, model.tendon_invweight0, rtol=1e-5)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = (0.1, 0.2, 0.3), (1, 2, -1)
    mujoco.mj_forward(model, data)
    found = dynamics.bias_force(sys, jnp.array(data.qpos), jnp.array(data.qvel))
    np.testing.assert_allclose(found, data.qfrc_bias, rtol=1e-4)


@pytest.mark.slow
def test_the_variational_integrator_keeps_the_energy_of_a_tendons_armature():
    """To 1e-4 in a quarter of a second without gravity; most of the energy is the armature's."""
    text = arm("", '<option gravity="0 0 0"/>', ARM.replace('damping=".1"', ""), GEARS)
    text = text.replace('damping=".2"', "").split('<fixed name="u"')[0]
    text += "</tendon><custom><text name='integrator' data='variational'/></custom></mujoco>"
    with jax.enable_x64(True):
        sys, engine = mjcf.loads(text), plugins.get("pipeline", "generalized")
        state = engine.init(sys, jnp.array([0.1, 0.2]), jnp.array([2.0, -3.0]))
        before = dynamics.energy(sys, state.q, state.qd)[0]
        state = engine.step(sys, state, None, 125)
        np.testing.assert_allclose(dynamics.energy(sys, state.q, state.qd)[0], before, rtol=1e-4)


BOUNDED_TENDON = TENDON.replace('name="t"', 'name="t" actuatorfrcrange="-1 .5"')
BORNE = ARM.replace("<body>", '<body gravcomp=".7">', 1).replace(
    'damping=".1"', 'damping=".1" actuatorfrcrange="-.8 1.1" actuatorgravcomp="true"'
)
INTEGRATORS = ["Euler", pytest.param("implicitfast", marks=pytest.mark.slow)]


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_the_forces_of_the_actuators_on_a_tendon_are_bounded(integrator):
    """Their sum is, before the gears; the integrators see no damping where it is."""
    pulls = """<motor tendon="t" gear="2"/><motor joint="k"/>
<position tendon="t" kp="2" kv=".5" gear="-3"/>"""
    check_steps(arm(pulls, f'<option integrator="{integrator}"/>', after=BOUNDED_TENDON))


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_gravity_compensation_by_actuators_is_bounded_with_them(integrator):
    servo = '<position joint="j" kp="2" kv=".5"/>'
    check_steps(arm(servo, f'<option integrator="{integrator}"/>', BORNE, ""))


@pytest.mark.parametrize(
    ("actuators", "option"),
    [("", ""), ('<motor joint="j"/>', '<option><flag actuation="disable"/></option>')],
)
def test_gravity_compensation_by_actuators_is_lost_with_them(actuators, option):
    check_steps(arm(actuators, option, BORNE, ""), states=2)


def test_sensors_measure_gravity_compensation_by_actuators():
    """At rest, 0.7 of the weight of 1 kg at 0.2 m, of which the bounds leave 0.8 N m."""
    after = '<sensor><jointactuatorfrc joint="j"/></sensor>'
    for bounds, force in (('actuatorfrcrange="-.8 1.1" ', -0.8), ("", -0.7 * 9.81 * 0.2)):
        body = BORNE.replace('actuatorfrcrange="-.8 1.1" ', bounds)
        sys = mjcf.loads(arm('<motor joint="k"/>', "", body, after))
        state = plugins.get("pipeline", "generalized").init(sys, sys.init_q, jnp.zeros(2))
        np.testing.assert_allclose(sensors.sensors(sys, state, jnp.zeros(1)), [force], rtol=1e-6)


@pytest.mark.parametrize("pipeline", ["spring", "positional"])
def test_pipelines_that_cannot_bound_gravity_compensation_say_so(pipeline):
    sys = mjcf.loads(arm('<motor joint="j"/>', "", BORNE, ""))
    with pytest.raises(ModelError, match="bear gravity compensation, which this pipeline"):
        plugins.get("pipeline", pipeline).init(sys, sys.init_q, jnp.zeros(2))


def belts(option: str = "", geom: str = "", more: str = "") -> str:
    return f"""<mujoco><option {option}/><default><geom {geom}/></default><worldbody>
<geom type="plane" size="5 5 .1" surfacevel="1 .5 0 0 0 2"/>
<body pos=".3 .2 .095"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body pos="-1 .5 .195"><freejoint/><geom size=".2" surfacevel=".1 .2 .3 1 -2 3"/></body>
{more}</worldbody></mujoco>"""


LISTED = "".join(
    f'<body pos="{2 + k} 0 .09"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    for k in range(4)
)
SURFACES = {
    "pyramid, rolling": belts("", 'condim="6" friction=".3 .1 .1"'),
    "pyramid": belts(),
    "ellipse": belts('cone="elliptic" impratio="3"', 'condim="4"'),
    "listed contacts": belts(more=LISTED),
}


@pytest.mark.skipif(int(mujoco.__version__.split(".")[0]) < 4, reason="new in MuJoCo 4")
@pytest.mark.parametrize(
    "what",
    ["pyramid, rolling", *(pytest.param(w, marks=pytest.mark.slow) for w in [*SURFACES][1:])],
)
def test_moving_surfaces_drag_what_touches_them(what):
    """A belt that turns under a box, and a sphere whose surface moves, too."""
    check_steps(SURFACES[what], states=3, tolerance=1e-7, spread=(0.003, 0.3))


SLIDING = """<mujoco><option cone="{}"/><worldbody><geom name="f" type="plane" size="5 5 .1"/>
<body pos=".3 .2 .095"><freejoint/><geom name="b" type="box" size=".1 .1 .1"/></body></worldbody>
<contact><pair geom1="f" geom2="b" condim="6" solref=".05 1" {}/></contact></mujoco>"""


@pytest.mark.parametrize(
    ("cone", "numbers"),
    [
        ("elliptic", ".1 1"),
        pytest.param("elliptic", "0 -20", marks=pytest.mark.slow),
        pytest.param("elliptic", ".2 0", marks=pytest.mark.slow),
        pytest.param("pyramidal", ".1 1", marks=pytest.mark.slow),
    ],
)
def test_the_friction_of_a_pair_has_a_solref_of_its_own(cone, numbers):
    """Under the elliptic cone; MuJoCo ignores one whose numbers have unlike signs."""
    text = SLIDING.format(cone, f'solreffriction="{numbers}"')
    check_steps(text, states=3, tolerance=1e-8, spread=(0.0003, 0.02))


@pytest.mark.parametrize("numbers", ["-100 1", pytest.param(".02 -1", marks=pytest.mark.slow)])
def test_a_solref_of_unlike_signs_is_mujocos_default(numbers):
    """This holds for limits, dry friction, equalities and contacts."""
    text = f"""<mujoco><worldbody><geom type="plane" size="5 5 .1" solref="{numbers}"/>
<body pos="0 0 .095"><freejoint/><geom size=".1"/></body>
<body pos="0 1 1"><joint axis="0 1 0" range="-.0001 .0001" limited="true"
solreflimit="{numbers}"/><geom size=".1" pos=".2 0 0"/></body>
<body pos="0 2 1"><joint name="j" axis="0 1 0" frictionloss=".1" solreffriction="{numbers}"/>
<geom size=".1" pos=".2 0 0"/></body></worldbody>
<equality><joint joint1="j" solref="{numbers}"/></equality></mujoco>"""
    check_steps(text, states=3, tolerance=1e-8, spread=(0.0003, 0.02))


STICKY = """<mujoco><option cone="{cone}"/><worldbody>
<geom name="floor" type="plane" size="5 5 .1" adhesion="3" gap=".02"/>
<body pos="0 0 .095"><freejoint/><geom size=".1" adhesion="20" condim="{condim}"/></body>
<body pos="1 0 .112"><freejoint/><geom size=".1" adhesion="9" gap=".01"/></body>
<body pos="2 0 .14"><freejoint/><geom size=".1" adhesion="9"/></body>
<body pos="3 0 .1"><freejoint/><geom size=".1" priority="1" adhesion="4" condim="1"/></body>
<body pos="4 0 .098"><freejoint/><geom name="own" size=".1"/></body></worldbody>
<contact><pair geom1="floor" geom2="own" adhesion="7" gap=".01"/></contact></mujoco>"""


@pytest.mark.skipif(int(mujoco.__version__.split(".")[0]) < 4, reason="new in MuJoCo 4")
@pytest.mark.parametrize(
    ("cone", "condim"),
    [
        ("pyramidal", 3),
        pytest.param("elliptic", 3, marks=pytest.mark.slow),
        pytest.param("pyramidal", 6, marks=pytest.mark.slow),
    ],
)
def test_surfaces_that_adhere(cone, condim):
    """Touching, within the gap, and out of reach; of two geoms, of one of priority, and a pair."""
    check_steps(STICKY.format(cone=cone, condim=condim), spread=(0.003, 0.3))


POLYNOMIAL = """<mujoco><option integrator="{}"/><worldbody>
<body><joint name="j" axis="0 1 0" stiffness="3 -2 5" springref="20" damping=".1 .2 .3"/>
<geom size=".05" pos=".2 0 0" mass="1"/><site name="s" pos=".2 0 .1"/><body pos=".3 0 0">
<joint name="b" type="ball" stiffness="0 1 3" damping="0 .1 .2"/><geom type="box" size=".1 .2 .3"/>
<body pos="0 0 .4"><joint name="k" type="slide" axis="1 0 1"/><geom size=".1" mass="1"/></body>
</body></body><site name="r" pos="0 .5 0"/></worldbody><tendon>
<fixed name="t" stiffness="0 0 9" damping="0 1" springlength="-.1 .1"><joint joint="k" coef="2"/>
<joint joint="j" coef="1"/></fixed><spatial stiffness="2 3 -1" damping=".2 0 .5" springlength=".3">
<site site="s"/><site site="r"/></spatial></tendon><actuator><motor joint="k" gear="2"
damping=".1 .2 .3"/><motor tendon="t" gear="-2" damping="0 .2"/></actuator></mujoco>"""


@pytest.mark.skipif(int(mujoco.__version__.split(".")[0]) < 4, reason="new in MuJoCo 4")
@pytest.mark.parametrize(
    "integrator",
    ["Euler", *(pytest.param(i, marks=pytest.mark.slow) for i in ("implicitfast", "RK4"))],
)
def test_polynomial_springs_and_dampers(integrator):
    check_steps(POLYNOMIAL.format(integrator))


def test_the_energy_of_a_polynomial_spring():
    """At x = 0.5: 3 x^2 / 2 - 2 x^3 / 3 + 5 x^4 / 4."""
    text = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint type="slide" axis="1 0 0"
stiffness="3 -2 5"/><geom size=".1"/></body></worldbody></mujoco>"""
    sys = mjcf.loads(text)
    _, potential = dynamics.energy(sys, jnp.array([0.5]), jnp.zeros(1))
    np.testing.assert_allclose(potential, 0.375 - 0.25 / 3 + 0.3125 / 4, rtol=1e-6)


@pytest.mark.slow
def test_a_mesh_in_a_fluid_is_the_ellipsoid_of_its_inertia():
    wedge = "0 0 0 .5 0 0 0 .3 0 0 0 .2 .4 .2 0"
    check_steps(f"""<mujoco><option density="500" viscosity=".2" wind="1 0 2"/>
<asset><mesh name="m" vertex="{wedge}"/></asset><worldbody><body><freejoint/>
<geom type="mesh" mesh="m" fluidshape="ellipsoid"/></body></worldbody></mujoco>""")


CRANKED = """<body name="wheel" pos=".1 .2 0" euler="10 0 20"><joint axis="0 1 0"/>
<geom size=".05" pos=".2 0 0" mass="1"/><site name="crank" pos="{} .05 .02"/></body>
<body pos="0 0 .3" euler="20 0 5"><joint axis="1 0 0"/><geom size=".05" pos="0 .2 0" mass="1"/>
<site name="slider" pos="0 .1 .1" euler="5 20 0"/><body pos="0 .2 0"><joint axis="0 0 1"/>
<geom size=".05" pos=".1 .1 0" mass="1"/><site name="next" pos=".1 0 0"/></body></body>
<site name="fixed" euler="0 70 0"/>"""
CRANKS = """
<position cranksite="crank" slidersite="slider" cranklength=".5" gear="1.5" kp="9" kv="1"/>
<motor cranksite="crank" slidersite="fixed" cranklength=".4" gear="-2"/>
<motor cranksite="next" slidersite="slider" cranklength=".4"/>"""


@pytest.mark.parametrize("reach", [".2", pytest.param("2", marks=pytest.mark.slow)])
def test_slider_cranks(reach):
    """A crank beyond the rod's reach moves the slider along with it."""
    check_steps(arm(CRANKS, "", CRANKED.format(reach), ""))


@pytest.mark.parametrize("pipeline", ["spring", "positional"])
def test_slider_cranks_push_in_every_pipeline(pipeline):
    """A crank that moves along the slider's axis: the rod pushes it with the whole 3 N, on 2 kg."""
    text = """<mujoco><option gravity="0 0 0"/><worldbody><site name="s" euler="0 90 0"/>
<body pos="1 0 .3"><joint type="slide" axis="1 0 0"/><geom size=".1" mass="2"/><site name="c"/>
</body></worldbody><actuator><motor cranksite="c" slidersite="s" cranklength=".5"/></actuator>
</mujoco>"""
    sys, engine = mjcf.loads(text), plugins.get("pipeline", pipeline)
    state = engine.step(sys, engine.init(sys, sys.init_q, jnp.zeros(1)), jnp.array([3.0]))
    np.testing.assert_allclose(state.qd, [0.003], rtol=1e-4)
