"""External forces of a step: the user's wrenches, the fluid, and gravity compensation."""

from typing import NamedTuple

import jax

from brax.base import Force, System
from brax.components import Mat3, Vec3, quat, rows, vec3
from brax.forces.fluid_box import Medium, medium, resist
from brax.spatial import Spatial


class GravityCompensation(NamedTuple):
    """Gravity compensation of each link, constant."""

    force: Vec3
    """The link's weight with its sign changed, world axes [N]."""
    share: jax.Array
    """The share of the weight that is compensated, MuJoCo's `gravcomp`."""
    arm: Vec3
    """From the centre of mass of the link to the point at which it is compensated, along the
    principal axes, times the share."""

    def wrench(self, axes: Mat3) -> Spatial:
        """Return torque and force on each link about its centre of mass, world axes."""
        # Bodies fused into a link may be compensated differently: then the force acts beside the
        # centre of mass.
        return Spatial(axes.rotate(self.arm).cross(self.force), self.force * self.share)


class ExternalForces(NamedTuple):
    """External forces, as far as they do not change during a step; links in the layout's order."""

    external: Spatial | None
    """The user's wrenches, MuJoCo's `xfrc_applied`; None for none."""
    medium: Medium | None
    """The fluid; None for none."""
    bearing: GravityCompensation | None
    """Gravity compensation; None for none."""

    def wrench(self, axes: Mat3, velocity: Spatial) -> Spatial | None:
        """Return torque and force on each link about its centre of mass, world axes; None for none.

        Args:
            axes: the links' principal axes.
            velocity: angular velocity, and velocity of the centre of mass, world axes.
        """
        found = self.external
        if self.medium is not None:
            drag = resist(self.medium, axes, velocity)
            found = drag if found is None else found + drag
        if self.bearing is not None:
            borne = self.bearing.wrench(axes)
            found = borne if found is None else found + borne
        return found


def external_forces(sys: System, order: tuple[int, ...], external: Force | None) -> ExternalForces:
    """Return the external forces of a model whose leaves have a trailing batch axis."""
    given = None
    if external is not None:
        force = rows(external, order)
        given = Spatial(vec3(force.ang), vec3(force.vel))
    return ExternalForces(
        given,
        medium(sys, order) if sys.opt.enable_fluid else None,
        _gravity_compensation(sys, order) if sys.opt.enable_gravcomp else None,
    )


def _gravity_compensation(sys: System, order: tuple[int, ...]) -> GravityCompensation:
    """Return the gravity compensation of all links.

    Source: MuJoCo's documentation, XML reference, attribute `gravcomp` of bodies.
    """
    link = rows(sys.link, order)
    up = Vec3(*(-sys.opt.gravity[k : k + 1] for k in range(3)))
    arm = quat(link.inertia.transform.rot).inv_rotate(vec3(link.gravcomp_arm))
    return GravityCompensation(up * link.inertia.mass, link.gravcomp, arm)
