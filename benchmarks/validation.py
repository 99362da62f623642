"""Whether a result may count: speed of a simulation that is wrong means nothing."""

import numpy as np

LOWEST, HIGHEST = -0.5, 4.0
"""Heights that a torso can have [m]; only feet touch the floor, so an ant on its back is low."""

HOP, HOPPERS = 1.5, 0.02
"""At most this share of torsos is higher than that [m].

MuJoCo 4.0.0, with 600 of the same ants for 100 steps of random actions, has 1 % of all heights
above 1.30 m, 0.1 % above 1.82 m, and none above 2.24 m.
"""

MEAN = (0.2, 1.0)
"""Bounds of the mean height of all torsos [m], those of a healthy ant."""

MOMENTUM = 1e-3
"""Error of momentum in free flight that is allowed, as a share of what there is."""


def problems(check, flight=None):
    """Everything that is wrong with a side's result; nothing if it may count.

    Args:
        check: `not_finite`, names of arrays, and `heights` of the torsos [m].
        flight: `dt` [s], `weight` [N], `linear` and `angular` momentum, each (steps, ants, 3), of
            ants on which only gravity acts; None where that was not asked.
    """
    found = [f"{name} is not finite" for name in check["not_finite"]]
    heights = np.asarray(check["heights"])
    sane = (heights >= LOWEST) & (heights <= HIGHEST)
    if not sane.all():
        worst = heights[~sane][0]
        found.append(
            f"{(~sane).sum()} of {len(heights)} torsos are outside {LOWEST} to {HIGHEST} m, "
            f"one at {worst:.3g} m"
        )
    if (share := (heights > HOP).mean()) > HOPPERS:
        found.append(f"{share:.0%} of the torsos are above {HOP} m")
    if not MEAN[0] <= heights.mean() <= MEAN[1]:
        found.append(f"the mean height of the torsos is {heights.mean():.3g} m, not {MEAN}")
    return found + (momentum_problems(flight) if flight else [])


def momentum_problems(flight):
    """Departures from Newton's law: weight changes linear momentum, nothing the angular one."""
    linear, angular = np.asarray(flight["linear"]), np.asarray(flight["angular"])
    time = flight["dt"] * np.arange(len(linear))[:, None, None]
    expected = linear[:1] + np.asarray(flight["weight"]) * time
    errors = {
        "linear": np.abs(linear - expected).max() / np.abs(expected).max(),
        "angular": np.abs(angular - angular[:1]).max() / np.abs(angular).max(),
    }
    return [
        f"{name} momentum in free flight is off by {error:.2g} of what there is"
        for name, error in errors.items()
        if not error <= MOMENTUM
    ]
