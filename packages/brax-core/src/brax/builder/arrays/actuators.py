"""Actuators: from checked elements to the arrays of a `System`."""

from collections.abc import Sequence

from brax.base import Actuator
from brax.builder.arrays.columns import bounds, column
from brax.builder.elements import Element


def actuator_numbers(actuators: Sequence[Element]) -> Actuator:
    """Return the numbers of all actuators."""
    ranges = [bounds(actuators, key) for key in ("ctrl_range", "activation_range", "force_range")]
    return Actuator(
        column(actuators, "gear", 1)[:, 0],
        column(actuators, "wrench", 6),
        column(actuators, "crank_length", 1)[:, 0],
        column(actuators, "gainprm", 10),
        column(actuators, "biasprm", 10),
        column(actuators, "dynprm", 10),
        column(actuators, "length_range", 2),
        *ranges,
    )
