"""Attributes of MuJoCo's format that change a step: the step is MuJoCo's."""

import mujoco
import pytest
from steps_lab import check_steps

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
