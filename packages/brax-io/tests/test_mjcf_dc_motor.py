"""DC motors, step by step beside MuJoCo."""

import mujoco
import pytest
from steps_lab import check_steps

from brax.errors import ModelError
from brax.io import mjcf

pytestmark = pytest.mark.skipif(
    int(mujoco.__version__.split(".")[0]) < 4, reason="DC motors are new in MuJoCo 4"
)

CONTROLLED = 'motorconst="1.5" resistance=".8" cogging=".4 3 .2" controller="4 0 2 0 0 1.2" '


def motors(*attributes, integrator="Euler"):
    """Return a model with a hinge for each motor, which a link couples to a slide."""
    bodies = "".join(
        f"""<body pos="0 {k} 0"><joint name="j{k}" axis="0 1 0" damping=".1"/>
        <geom size=".1" pos=".3 0 0" mass="1"/></body>"""
        for k in range(len(attributes))
    )
    made = "".join(f'<dcmotor joint="j{k}" gear="2" {a}/>' for k, a in enumerate(attributes))
    return f"""<mujoco><option timestep="0.01" integrator="{integrator}"/>
    <worldbody>{bodies}</worldbody><actuator>{made}</actuator></mujoco>"""


@pytest.mark.parametrize(
    "integrator",
    [
        pytest.param("Euler", marks=pytest.mark.slow),
        pytest.param("implicitfast", marks=[pytest.mark.slow, pytest.mark.long]),
    ],
)
def test_steps_are_those_of_mujoco(integrator):
    text = motors(
        'motorconst="2" resistance="0.5" damping=".1" armature=".02"',
        'nominal="12 3 400" ctrlrange="-.5 .5" saturation=".04 0 0" cogging=".1 6 .2"',
        f'{CONTROLLED} input="pos"',
        f'{CONTROLLED} input="vel"',
        'motorconst="1.5" resistance=".8" controller="4 0 2" input="ff"',
        'motorconst="2" resistance="0.5" inductance="0 0.02"',
        f'{CONTROLLED} input="pos" inductance=".03 0" saturation="1 0 20"',
        integrator=integrator,
    )
    check_steps(text)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ('thermal="1 2 0 .004 25 30"', "thermal of a DC motor is not supported; leave it out"),
        ('lugre="1e2 1 .05 .08 .1"', "lugre of a DC motor is not supported"),
        ('input="pos" controller="1 2 0"', "the integral gain .ki. of a DC motor"),
        ('input="pos" controller="1 0 0 2"', "slewmax of a DC motor is not supported"),
        ('input="pos vel" controller="1 0 1"', "a DC motor with several inputs or none"),
        ('input="none"', "a DC motor with several inputs or none is not supported; give it one"),
    ],
)
def test_what_is_refused_of_dc_motors(attributes, reason):
    with pytest.raises(ModelError, match=reason):
        mjcf.loads(motors(f'motorconst="2" resistance=".5" {attributes}'))


def test_a_dc_motor_between_sites_is_refused():
    text = motors('motorconst="2" resistance=".5"').replace(
        '<joint name="j0" axis="0 1 0" damping=".1"/>', '<joint name="j0" type="ball"/>'
    )
    with pytest.raises(ModelError, match="only supported on hinges, slides, tendons"):
        mjcf.loads(text)
