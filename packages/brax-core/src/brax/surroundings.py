"""What acts on links from outside: given wrenches, and a medium."""

from typing import NamedTuple

from brax.base import Force, System
from brax.components import Mat3, rows, vec3
from brax.fluid import Medium, medium, resist
from brax.spatial import Spatial


class Surroundings(NamedTuple):
    """What does not change during a step, links in the layout's order."""

    external: Spatial | None
    medium: Medium | None

    def wrench(self, axes: Mat3, velocity: Spatial) -> Spatial | None:
        """Torque and force on each link about its centre of mass, world axes; None for nothing.

        Args:
            axes: the links' principal axes.
            velocity: angular velocity, and velocity of the centre of mass, world axes.
        """
        if self.medium is None:
            return self.external
        drag = resist(self.medium, axes, velocity)
        return drag if self.external is None else self.external + drag


def surroundings(sys: System, order: tuple[int, ...], external: Force | None) -> Surroundings:
    """Prepares a model's surroundings, leaves with a trailing batch axis."""
    given = None
    if external is not None:
        force = rows(external, order)
        given = Spatial(vec3(force.ang), vec3(force.vel))
    return Surroundings(given, medium(sys, order) if sys.opt.enable_fluid else None)
