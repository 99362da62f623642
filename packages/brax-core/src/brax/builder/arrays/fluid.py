"""Fluid forces on geoms: coefficients and added mass of the ellipsoid model."""

from typing import Any

import numpy as np

from brax.builder.elements import Element
from brax.components import Vec3
from brax.forces.fluid_ellipsoid import added_mass


def fluid_numbers(geom: Element, kind: Any) -> list[float]:
    """Return the ellipsoid's coefficients and added mass, (11,); zeros if the model is not used."""
    if not geom.streamed:
        return [0.0] * 11
    added = geom.fluid_added
    if added is None:
        added = added_mass(np.array(kind.semi_axes(Vec3(*geom.size)), float))
    return [*geom.fluidcoef, *added]
