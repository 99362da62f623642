"""Sensors as they are described: what each may measure, and where its numbers are."""

import pytest

from brax.builder import ModelBuilder
from brax.errors import ModelError
from brax.sensors import slices


def described():
    model = ModelBuilder()
    model.add_body("arm", mass=1.0, inertia=(1, 1, 1))
    model.add_body("tip", "arm", mass=1.0, inertia=(1, 1, 1))
    model.add_joint("arm", name="elbow")
    model.add_body("head", mass=1.0, inertia=(1, 1, 1))
    model.add_joint("head", "ball", name="neck")
    model.add_site("tip", "finger")
    return model


def test_each_sensor_has_its_place():
    model = described()
    model.add_sensor("jointpos", ("joint", "elbow"), "angle")
    model.add_sensor("framequat", ("body", "tip"), reference=("body", "world"))
    model.add_sensor("gyro", ("site", "finger"), cutoff=3.0)
    model.add_sensor("subtreecom", ("body", "world"), "all")
    sys = model.build()
    assert slices(sys) == {
        "angle": slice(0, 1),
        "tip_framequat": slice(1, 5),
        "finger_gyro": slice(5, 8),
        "all": slice(8, 11),
    }
    assert sys.sensor_object == (("joint", 0), ("fixed", 0), ("site", 0), ("world", -1))
    assert sys.sensor_reference == (None, ("world", -1), None, None)
    assert sys.sensor_cutoff.tolist() == [float("inf"), float("inf"), 3.0, float("inf")]


@pytest.mark.parametrize(
    ("message", "sensor"),
    [
        (
            "type 'gyro' cannot measure a body; allowed: site",
            dict(type="gyro", object=("body", "arm")),
        ),
        ("there is no joint 'elbo'. Did you", dict(type="jointpos", object=("joint", "elbo"))),
        ("joint 'neck' has 4 coordinates", dict(type="jointpos", object=("joint", "neck"))),
        ("joint 'elbow' has 1 coordinates", dict(type="ballquat", object=("joint", "elbow"))),
        ("body 'tip' has no joints", dict(type="force", object=("site", "finger"))),
        ("body 'tip' has no joints", dict(type="subtreecom", object=("body", "tip"))),
        ("of body 'arm' is not its own", dict(type="framepos", object=("inertia", "arm"))),
        (
            "cannot measure in another frame",
            dict(type="gyro", object=("site", "finger"), reference=("body", "arm")),
        ),
        (
            "there is no site 'toe'",
            dict(type="framepos", object=("body", "arm"), reference=("site", "toe")),
        ),
        ("unknown sensor 'giro'.*Did you mean 'gyro'", dict(type="giro", object=("body", "arm"))),
    ],
)
def test_a_bad_sensor_is_refused(message, sensor):
    model = described()
    model.add_sensor(**sensor)
    with pytest.raises(ModelError, match=message):
        model.build()
