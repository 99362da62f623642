"""Geoms: from checked elements to the arrays of a `System`."""

from collections.abc import Sequence

import numpy as np

from brax.base import Geom
from brax.builder.arrays.columns import array, column, transform
from brax.builder.arrays.fluid import fluid_numbers
from brax.builder.elements import Element


def geom_numbers(geoms: Sequence[Element], types: Sequence[object]) -> Geom:
    """Return the numbers of all geoms."""
    return Geom(
        transform=transform(geoms),
        size=column(geoms, "size", 3),
        friction=column(geoms, "friction", 3),
        elasticity=column(geoms, "elasticity", 1)[:, 0],
        solref=column(geoms, "solref", 2),
        solimp=column(geoms, "solimp", 5),
        solmix=column(geoms, "solmix", 1)[:, 0],
        margin=column(geoms, "margin", 1)[:, 0],
        gap=column(geoms, "gap", 1)[:, 0],
        adhesion=column(geoms, "adhesion", 1)[:, 0],
        surface_velocity=column(geoms, "surface_velocity", 6),
        invweight=array(np.zeros(len(geoms)), (-1,)),
        fluid=array([fluid_numbers(g, t) for g, t in zip(geoms, types, strict=True)], (-1, 11)),
        rgba=column(geoms, "rgba", 4),
    )
