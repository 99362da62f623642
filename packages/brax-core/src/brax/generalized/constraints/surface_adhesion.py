"""Adhesive surfaces: contacts that pull with a constant force, and hold until it is overcome.

A contact of adhesive surfaces pulls the two geoms together along its normal, and the friction cone
is shifted by the pull: the contact bears a tension up to it, and resists sliding by friction times
pressure plus pull. The reference acceleration is shifted too, so that bodies at rest penetrate as
deep as without adhesion. Within the gap beyond the margin the contact pulls without friction.

Source: MuJoCo's documentation, XML reference, body/geom/adhesion.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.generalized.constraints.constraint_laws import (
    Along,
    EllipticCone,
    LineDerivatives,
    Matrix,
    PyramidalCone,
)


class AdhesiveLaw(NamedTuple):
    """Law of contacts (contacts, batch) with a constant pull along their normals."""

    cone: PyramidalCone | EllipticCone
    """The law of the pressure and its friction."""
    pull: jax.Array
    """Force of adhesion [N], zero where surfaces are out of reach."""

    def inactive(self) -> "AdhesiveLaw":
        """Return the law of contacts that are not active."""
        return AdhesiveLaw(self.cone.inactive(), jnp.zeros_like(self.pull))

    def response(self, residual: Along) -> tuple[Along, Matrix]:
        """Return the net force and D in the contact frame, normal first."""
        (normal, *across), matrix = self.cone.response(residual)
        return (normal - self.pull, *across), matrix

    def along(self, residual: Along, change: Along, size: jax.Array) -> LineDerivatives:
        """Return power and curvature, as `ScalarLaw.along` does."""
        line = self.cone.along(residual, change, size)
        return LineDerivatives(line.power - self.pull * change[0], line.curvature)
