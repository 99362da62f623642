"""A wrong simulation is found out: made-up results, each wrong in one way."""

from types import SimpleNamespace

import numpy as np
import pytest
from momentum import momenta
from validation import problems, untaught

SANE = {"not_finite": [], "heights": [0.6, 0.5, 1.3, -0.2]}
LIMITS = {"low": -0.5, "high": 4.0, "hop": 1.5, "mean": (0.2, 1.0), "drift": (1e-3, 1e-3)}


def flight(gravity=-9.81, spin_up=0.0):
    """Two bodies of 2 kg thrown for a second, with some spin."""
    dt, mass, steps = 0.05, 2.0, 20
    time = dt * np.arange(steps)[:, None, None]
    linear = np.array([[[1.0, 0.0, 3.0], [0.0, -1.0, 0.5]]]) + mass * time * [0, 0, gravity]
    angular = np.array([[[0.1, 0.0, 0.2], [0.0, 0.3, 0.0]]]) * (1 + spin_up * time)
    momenta = {"linear": linear, "angular": angular, "turning": 0.4}
    return {"dt": dt, "weight": [0, 0, mass * -9.81], **momenta}


def test_the_height_of_one_is_no_mean():
    assert not problems(SANE | {"heights": [0.05]}, LIMITS)


def test_a_sane_result_counts():
    assert problems(SANE, LIMITS) == []
    assert problems(SANE, LIMITS, flight()) == []


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"not_finite": [".obs"]}, ".obs is not finite"),
        ({"heights": [0.5] * 99 + [50.0]}, "1 of 100 torsos are outside -0.5 to 4.0 m, one at 50"),
        ({"heights": [0.5] * 99 + [-0.9]}, "1 of 100 torsos"),
        ({"heights": [0.5] * 97 + [1.6] * 3}, "3% of the torsos are above 1.5 m"),
        ({"heights": [0.5, float("nan")]}, "1 of 2 torsos"),
        ({"left_out": 3}, "3 have more contacts than were followed"),
        ({"heights": [0.0, 0.1]}, "mean height of the torsos is 0.05 m, not 0.2"),
    ],
)
def test_a_wrong_end_is_refused(check, message):
    assert any(message in problem for problem in problems({**SANE, **check}, LIMITS))


@pytest.mark.parametrize(
    ("thrown", "message"),
    [
        (flight(gravity=-9.0), "linear momentum in free flight is off by 0.08"),
        (flight(spin_up=0.1), "angular momentum"),
        (flight(spin_up=float("nan")), "angular momentum"),
    ],
)
def test_a_flight_against_newton_is_refused(thrown, message):
    (problem,) = problems(SANE, LIMITS, thrown)
    assert message in problem


def test_momenta_of_a_dumbbell():
    """Two balls at x = 1 and 3 m that turn about their middle as it moves along y.

    About the middle: 2 m r^2 w + 2 I w. The balls' frames are 0.5 m off their centres.
    """
    m, own, w, v = 2.0, 0.05, 3.0, 0.7
    turn = np.array([np.cos(np.pi / 4), 0, 0, np.sin(np.pi / 4)])  # frames turned by 90 degrees
    inertia = SimpleNamespace(
        mass=np.array([m, m]),
        moments=np.full((2, 3), own),
        transform=SimpleNamespace(pos=np.array([[0.5, 0, 0]] * 2), rot=np.array([turn] * 2)),
    )
    # a turned frame's x axis is the world's y: the centres are at y = 0.5
    x = SimpleNamespace(pos=np.array([[1.0, -0.5, 0], [3.0, -0.5, 0]]), rot=np.array([turn] * 2))
    ang = np.array([[0, 0, w]] * 2)
    centres = np.array([[1.0, 0, 0], [3.0, 0, 0]])
    vel_centre = np.array([0, v, 0]) + np.cross(ang, centres - [2.0, 0, 0])
    xd = SimpleNamespace(ang=ang, vel=vel_centre - np.cross(ang, centres - x.pos))
    linear, angular, turning = momenta(inertia, x, xd)
    np.testing.assert_allclose(linear, [0, 2 * m * v, 0], atol=1e-12)
    np.testing.assert_allclose(angular, [0, 0, 2 * m * w + 2 * own * w], atol=1e-12)
    np.testing.assert_allclose(turning, angular[2], atol=1e-12)


def test_momenta_use_the_principal_axes():
    """A rod whose principal z axis lies along x of its link: it turns about the link's x."""
    onto_x = np.array([np.cos(np.pi / 4), 0, np.sin(np.pi / 4), 0])
    inertia = SimpleNamespace(
        mass=np.ones(1),
        moments=np.array([[1.0, 2.0, 3.0]]),
        transform=SimpleNamespace(pos=np.zeros((1, 3)), rot=onto_x[None]),
    )
    x = SimpleNamespace(pos=np.zeros((1, 3)), rot=np.array([[1.0, 0, 0, 0]]))
    xd = SimpleNamespace(ang=np.array([[2.0, 0, 0]]), vel=np.zeros((1, 3)))
    np.testing.assert_allclose(momenta(inertia, x, xd)[1], [6.0, 0, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("steps", "returns", "message"),
    [
        (300_000, (10.0, 90.0), ""),
        (300_000, (10.0, 9.0), "it learned nothing: 10.0 at first, 9.0 at last"),
        (1000, (10.0, 9.0), ""),
        (1000, (10.0, float("nan")), "returns are [10.0, nan]"),
    ],
)
def test_a_training_that_learns_nothing_is_found_out(steps, returns, message):
    reports = [{"steps": s, "return": r} for s, r in zip((0, steps), returns, strict=True)]
    assert untaught(reports) == message
