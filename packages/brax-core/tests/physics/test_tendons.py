"""Fixed tendons over two slides of masses 2 and 5 in every pipeline: one step's forces by hand.

The tendon is `L = 3 q0 - q1` long.
"""

import numpy as np
import physics_lab
import pytest
from physics_lab import PIPELINES, record, settings

from brax import plugins
from brax.builder import ModelBuilder
from brax.errors import ModelError

DT, MASSES, WEIGHTS = 0.001, np.array([2.0, 5.0]), {"slide0": 3.0, "slide1": -1.0}


@pytest.fixture(params=PIPELINES)
def pipeline(request, monkeypatch):
    monkeypatch.setattr(physics_lab, "PIPELINE", plugins.get("pipeline", request.param))


def described(actuator=None, joints=WEIGHTS, **tendon):
    model = ModelBuilder()
    for i, mass in enumerate(MASSES):
        model.add_body(f"cart{i}", pos=(0, i, 0), mass=mass, inertia=(1, 1, 1))
        model.add_joint(f"cart{i}", "slide", name=f"slide{i}", axis=(1, 0, 0))
    model.add_tendon(joints, "band", **tendon)
    if actuator is not None:
        model.add_actuator(tendon="band", **actuator)
    model.set_option(gravity=(0, 0, 0))
    return model


def forces(q, qd, act=(), **model):
    """Return forces on the two slides, from the change of their rates in one step."""
    sys = settings(described(**model).build(), DT)
    after = record(sys, q=q, qd=qd, act=act, steps=1).qd[0]
    return (after - np.asarray(qd)) / DT * MASSES


@pytest.mark.parametrize(
    ("want", "q", "qd", "act", "model"),
    [
        # 4 times the control, shared by the weights
        ([24.0, -8.0], [0.3, 0.1], [0, 0], [2.0], dict(actuator=dict(gear=4.0))),
        # a servo: L = .8, so 10 (.5 - .8) = -3
        (
            [-9.0, 3.0],
            [0.3, 0.1],
            [0, 0],
            [0.5],
            dict(actuator=dict(gainprm=(10.0,), biasprm=(0.0, -10.0))),
        ),
        # it resists the rate of length, 3 .2 + 1 .4 = 1, by 2
        ([-6.0, 2.0], [0, 0], [0.2, -0.4], [0.0], dict(actuator=dict(biasprm=(0, 0, -2.0)))),
        # slack between .5 and .7: 10 (.7 - .8) = -1
        ([-3.0, 1.0], [0.3, 0.1], [0, 0], [], dict(stiffness=10.0, lengthspring=(0.5, 0.7))),
        ([0.0, 0.0], [0.2, 0.0], [0, 0], [], dict(stiffness=10.0, lengthspring=(0.5, 0.7))),
        # 10 (.5 - .2) = 3
        ([9.0, -3.0], [0.1, 0.1], [0, 0], [], dict(stiffness=10.0, lengthspring=(0.5, 0.7))),
        # at rest where the joints are, at zero
        ([-24.0, 8.0], [0.3, 0.1], [0, 0], [], dict(stiffness=10.0)),
        ([-1.5, 0.5], [0.3, 0.1], [0.2, 0.1], [], dict(damping=1.0)),
    ],
    ids=["motor", "position", "velocity", "long", "slack", "short", "rest", "damping"],
)
def test_a_tendon_pulls_by_its_weights(f64, pipeline, want, q, qd, act, model):
    assert forces(q, qd, act, **model) == pytest.approx(np.array(want), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("message", "model"),
    [
        ("tendon 'band': it needs joints or a path", dict(joints={})),
        ("tendon 'band': it runs over joints or along", dict(path=["a", "b"])),
        ("tendon 'band': there is no site 'a'", dict(joints={}, path=["a", "b"])),
        ("tendon 'band': its path needs two sites", dict(joints={}, path=["a", 2.0, "b"])),
        ("geom 'g' needs a site before and after it", dict(joints={}, path=["a", ("g", "")])),
        ("tendon 'band': there is no joint 'slide2'. Did you mean", dict(joints={"slide2": 1.0})),
        ("tendon 'band': the weight of joint 'slide0' is not", dict(joints={"slide0": np.nan})),
        ("tendon 'band': stiffness must be finite and >= 0, got -1.0", dict(stiffness=-1)),
        ("tendon 'band': lengthspring needs a lower and a larger", dict(lengthspring=(1, 0))),
        ("a site to act on or a body that adheres, one of", dict(actuator=dict(joint="slide0"))),
    ],
)
def test_a_bad_tendon_is_refused(message, model):
    with pytest.raises(ModelError, match=message):
        described(**model).build()
