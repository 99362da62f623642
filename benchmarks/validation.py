"""Validation of a benchmark's result: the speed of a wrong simulation means nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

HOPPERS = 0.02
"""At most this share may be higher than the model's `hop`."""

LEARNS = 200_000
"""Environment steps after which a policy should earn more than at first."""


def problems(
    check: Mapping[str, Any], limits: Mapping[str, Any], flight: Mapping[str, Any] | None = None
) -> list[str]:
    """Everything that is wrong with a side's result; nothing if it may count.

    Args:
        check: `not_finite`, names of arrays, `heights` of the torsos [m], and `left_out`, how many
            had more contacts than were followed, if any.
        limits: of heights [m]: `low` and `high` that none may leave, `hop` that few may exceed,
            and `mean`, bounds of the mean; of flights `drift`, the errors of linear and angular
            momentum that are allowed, as shares of what there is.
        flight: `dt` [s], `weight` [N], `linear` and `angular` momentum, each (steps, bodies,
            axes), of bodies on which only gravity acts, and `turning`, the most that the links
            of one had of angular momentum, without direction; None where that was not asked.
    """
    found = [f"{name} is not finite" for name in check["not_finite"]]
    if check.get("left_out"):
        found.append(f"{check['left_out']} have more contacts than were followed")
    heights, low, high = np.asarray(check["heights"]), limits["low"], limits["high"]
    sane = (heights >= low) & (heights <= high)
    if not sane.all():
        found.append(
            f"{(~sane).sum()} of {len(heights)} torsos are outside {low} to {high} m, "
            f"one at {heights[~sane][0]:.3g} m"
        )
    if (share := (heights > limits["hop"]).mean()) > HOPPERS:
        found.append(f"{share:.0%} of the torsos are above {limits['hop']} m")
    least, most = limits["mean"]
    # The height of one alone says nothing of a mean.
    if len(heights) > 1 and not least <= heights.mean() <= most:
        found.append(f"mean height of the torsos is {heights.mean():.3g} m, not {least} to {most}")
    return found + (momentum_problems(flight, limits["drift"]) if flight else [])


def untaught(reports: Sequence[Mapping[str, float]]) -> str:
    """Return what is wrong with a training, or an empty string.

    Args:
        reports: `steps` and `return` of each evaluation.
    """
    returns = [report["return"] for report in reports]
    if not np.isfinite(returns).all():
        return f"returns are {returns}"
    if reports[-1]["steps"] >= LEARNS and returns[-1] <= returns[0]:
        return f"it learned nothing: {returns[0]:.1f} at first, {returns[-1]:.1f} at last"
    return ""


def momentum_problems(flight: Mapping[str, Any], drift: Sequence[float]) -> list[str]:
    """Departures from Newton's law: weight changes linear momentum, nothing the angular one."""
    linear, angular = np.asarray(flight["linear"]), np.asarray(flight["angular"])
    time = flight["dt"] * np.arange(len(linear))[:, None, None]
    expected = linear[:1] + np.asarray(flight["weight"]) * time
    errors = {
        "linear": np.abs(linear - expected).max() / np.abs(expected).max(),
        "angular": np.abs(angular - angular[:1]).max() / flight["turning"],
    }
    return [
        f"{name} momentum in free flight is off by {error:.2g} of what there is"
        for (name, error), allowed in zip(errors.items(), drift, strict=True)
        if not error <= allowed
    ]
