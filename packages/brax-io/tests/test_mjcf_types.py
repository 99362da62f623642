"""Types of other packages in MJCF, named by tuples and, for an integrator, by a text."""

import types
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from brax import plugins, sensors
from brax.actuators import ActuatorType
from brax.colliders import GeometryType
from brax.errors import ModelError
from brax.integrators import Integrator
from brax.io import mjcf
from brax.plugins import Spec, hookimpl
from brax.sensors import SensorType


class Egg(GeometryType):
    """Twice as high as its size says."""

    name, size_names, corners = "acme-egg", ("radius",), 1

    def support(self, shape, direction):
        return direction * shape.size.x


class Square(ActuatorType):
    name = "acme-square"

    def force(self, params, signal, length, velocity):
        return params.gainprm[0] * signal * jnp.abs(signal) + params.gainprm[1]


class Double(SensorType):
    name, objects = "acme-double", ("joint",)

    def read(self, here, asked):
        return jnp.stack([2 * here.q[j][None] for _, j in asked.objects])


class Half(Integrator[Any]):
    name, order = "acme-half", 1

    def step(self, moves, state, dt):
        return moves.drift(moves.kick(state, dt), dt)


@pytest.fixture(scope="module", autouse=True)
def acme():
    made: Any = types.ModuleType("acme")
    made.BRAX_PLUGIN_API = 1
    values: dict[str, Any] = {
        "geometry_type": Egg(),
        "actuator": Square(),
        "sensor": Double(),
        "integrator": Half(),
    }
    for kind, value in values.items():
        spec = Spec(value.name, value)
        setattr(made, f"brax_{kind}s", hookimpl(lambda spec=spec: [spec]))
    plugins.register(made, "acme")
    yield
    plugins.unregister("acme")


def model(custom, sensor='<user name="s" objtype="joint" objname="j" dim="1"/>'):
    return f"""<mujoco>
  <worldbody>
    <body name="b" pos="0 0 1">
      <joint name="j" type="slide" axis="0 0 1"/>
      <geom name="g" type="sphere" size=".2" mass="1"/>
    </body>
    <geom name="box" type="box" size="1 1 .1"/>
  </worldbody>
  <actuator><general name="m" joint="j" gainprm="3 0.5" dyntype="user"/></actuator>
  <sensor>{sensor}</sensor>
  <custom>{custom}</custom>
</mujoco>"""


def listing(name, element, of):
    return f'<tuple name="{name}"><element objtype="{element}" objname="{of}"/></tuple>'


ALL = (
    listing("geometry_type:acme-egg", "geom", "g")
    + listing("actuator:acme-square", "actuator", "m")
    + listing("sensor:acme-double", "sensor", "s")
    + '<text name="integrator" data="acme-half"/>'
)


def test_every_kind_is_named_by_one_mechanism():
    system = mjcf.loads(model(ALL))
    assert [t.name for t in system.geom_types] == ["box", "acme-egg"]
    assert [t.name for t in system.actuator_types] == ["acme-square"]
    assert [t.name for t in system.sensor_types] == ["acme-double"]
    assert system.integrator.name == "acme-half"
    np.testing.assert_allclose(system.actuator.gainprm[0, :2], [3, 0.5])
    state = plugins.get("pipeline", "spring").init(system, jnp.array([0.3]), jnp.zeros(1))
    read = sensors.sensors(system, state, jnp.zeros(1))
    np.testing.assert_allclose(read, [0.6], rtol=1e-6)


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("actuator:", "actuatr:", r"tuple 'actuatr:acme-square' .*no kind 'actuatr' of"),
        ("acme-egg", "acme-eg", r"geom 'g' .*Did you mean 'acme-egg'"),
        ('"geom" objname="g"', '"joint" objname="j"', r"a geometry type belongs to geoms; use obj"),
        ("acme-square", "acme-squar", r"actuator 'm' .*Did you mean 'acme-square'"),
        ("acme-double", "acme-doubl", r"sensor 's' .* type 'acme-doubl' is not supported. Did"),
        (
            'dim="1"',
            'dim="2"',
            r"sensor 's' \(model.xml:10\): its dim is 2, but the width of sensor 'acme-double' of",
        ),
        ("acme-half", "acme-hal", r"option: unknown integrator 'acme-hal'"),
        ("integrator", "integrater", r"text 'integrater'.*Did you mean 'integrator'"),
    ],
)
def test_what_is_misspelt_is_an_error(right, wrong, told):
    with pytest.raises(ModelError, match=told):
        mjcf.loads(model(ALL).replace(right, wrong))


def test_a_user_s_own_text_is_left_alone():
    mjcf.loads(model(ALL + '<text name="author" data="nobody"/>'))
