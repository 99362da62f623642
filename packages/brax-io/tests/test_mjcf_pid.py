"""PID controllers, MuJoCo's own and those of its plugin, step by step beside MuJoCo."""

import pytest
from steps_lab import check_steps

from brax.errors import ModelError
from brax.io import mjcf

BODY = (
    '<worldbody><body><joint name="j" type="slide"/><geom size=".1" mass="1"/></body></worldbody>'
)


def plugin(options="", **gains):
    config = "".join(f'<config key="{key}" value="{value}"/>' for key, value in gains.items())
    return f"""<mujoco><option timestep="0.01"/><extension><plugin plugin="mujoco.pid">
    <instance name="pid">{config}</instance></plugin></extension>{BODY}
    <actuator><plugin joint="j" plugin="mujoco.pid" instance="pid" gear="2" {options}/></actuator>
    </mujoco>"""


def native(gains, integrator="Euler"):
    return f"""<mujoco><option timestep="0.01" integrator="{integrator}"/>{BODY}
    <actuator><pid joint="j" gear="2" {gains}/></actuator></mujoco>"""


@pytest.mark.parametrize(
    "text",
    [
        plugin(kp=4, kd=0.4),
        plugin('actdim="1" ctrlrange="-.5 .5" forcerange="-3 3"', kp=4, ki=3, kd=0.4, imax=0.9),
        native('kp="4" kv=".5" input="pos"'),
        native('kp="4" ki="3" kv="5" imax=".3" input="pos"', "implicitfast"),
    ],
    ids=["plugin PD", "plugin PID", "PD", "PID"],
)
def test_steps_are_those_of_mujoco(text):
    check_steps(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (plugin('actdim="1"', kp=1, slewmax=1), "slewmax of a PID controller is not supported"),
        (native('kp="1" ki="1" slewmax="1" input="pos"'), "slewmax of a PID controller"),
        (native('kp="1"'), r'with other inputs is not supported; write input="pos"'),
        (
            plugin(kp=1).replace("<option", '<option integrator="implicit"'),
            "a PID plugin under an implicit integrator is not supported",
        ),
    ],
)
def test_what_is_refused_of_pid_controllers(text, reason):
    with pytest.raises(ModelError, match=reason):
        mjcf.loads(text)
