"""Frames that links carry: their velocities, and wrenches on them."""

from collections.abc import Sequence
from typing import NamedTuple

import jax

from brax.base import System, Transform
from brax.components import Quat, Vec3, quat, rows, vec3
from brax.spatial import Spatial
from brax.tree import sum_rows


class AttachedFrames(NamedTuple):
    """Frames in the principal frames of the links that carry them, components (frames, 1)."""

    link: tuple[int, ...]
    """The link of each frame, in the layout's order."""
    pos: Vec3
    """Origin of each frame."""
    rot: Quat
    """Orientation of each frame."""

    def velocity(self, velocity: Spatial) -> Spatial:
        """Return the velocity of each frame, along its own axes.

        Args:
            velocity: of all links: angular, and of the centre of mass, along the principal axes.
        """
        ang, lin = rows(velocity, self.link)
        # From the centre of mass to the frame's origin: v + w x r.
        lin = lin + ang.cross(self.pos)
        return Spatial(self.rot.inv_rotate(ang), self.rot.inv_rotate(lin))

    def on_links(self, wrench: Spatial, n_links: int) -> Spatial:
        """Return torque and force on each link about its centre of mass, along principal axes.

        Args:
            wrench: on each frame, about its origin and along its axes.
            n_links: number of all links.
        """
        torque, force = (self.rot.rotate(part) for part in wrench)
        # The moment about the centre of mass: torque + r x force.
        about = Spatial(torque + self.pos.cross(force), force)
        return jax.tree.map(lambda x: sum_rows(x, self.link, n_links), about)


def attach_frames(
    sys: System, order: Sequence[int], frame: Transform, links: Sequence[int]
) -> AttachedFrames:
    """Return frames, given in the frames of links, in the principal frames.

    Args:
        sys: the model, whose leaves have a trailing batch axis.
        order: links in the layout's order.
        frame: the frames.
        links: the link that carries each.
    """
    principal = rows(sys.link.inertia.transform, links)
    turn = quat(principal.rot)
    return AttachedFrames(
        tuple(order.index(link) for link in links),
        turn.inv_rotate(vec3(frame.pos) - vec3(principal.pos)),
        turn.inv_mul(quat(frame.rot)),
    )
