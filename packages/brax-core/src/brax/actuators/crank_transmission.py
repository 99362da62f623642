"""Slider-crank transmissions: a rod between a crank site and a slider on the z axis of a site.

The rod has a fixed length. Its one end is the crank's site, the other slides along the axis, and
the actuator's length is how far along the axis it is. Where the crank is farther from the axis than
the rod is long, the length is that of the crank's site along the axis.

Source: MuJoCo's documentation, chapter XML reference, attributes `cranksite`, `slidersite` and
`cranklength` of actuators.
"""

import jax
import jax.numpy as jnp
import numpy as np

from brax.actuators.site_transmission import LinkTransmission, site_frames
from brax.base import System
from brax.components import Vec3, rows, sqrt
from brax.kinematics import Frames
from brax.spatial import Spatial
from brax.tree import sum_rows


def on_cranks(sys: System) -> tuple[int, ...]:
    """Return the actuators that move a slider by a crank."""
    return tuple(a for a, crank in enumerate(sys.actuator_crank) if crank)


def crank_transmission(sys: System, links: Frames) -> LinkTransmission:
    """Return the transmission of the slider-cranks, at given frames of the links.

    Args:
        sys: the model, with such an actuator, its leaves with a trailing batch axis.
        links: frames of the links in the world, and their velocities, in the model's order.
    """
    acting, nu = on_cranks(sys), sys.act_size()
    sites = [[place[a] for a in acting] for place in (sys.actuator_site, sys.actuator_refsite)]
    crank, slider = (site_frames(sys, mine, links) for mine in sites)
    gear, rod = (rows(x, acting) for x in (sys.actuator.gear, sys.actuator.crank_length))
    zero = jnp.zeros_like(gear)
    axis, reach = slider.rot.rotate(Vec3(zero, zero, zero + 1.0)), crank.pos - slider.pos
    along = axis.dot(reach)
    # The slider is at s on the axis where |reach - s axis| = rod; the near one of both solutions.
    square = along * along + rod * rod - reach.dot(reach)
    touches = square > 0
    root = sqrt(jnp.where(touches, square, 1.0))
    length = gear * (along - jnp.where(touches, root, 0.0))
    # The derivatives of the length by the crank's place and by the axis.
    share = jnp.where(touches, 1.0 - along / root, 1.0)
    by_place = axis * share + reach * jnp.where(touches, 1.0 / root, 0.0)
    push = by_place * gear
    turn = axis.cross(reach * (share * gear))
    owned = [(k, at_slider) for k in range(len(acting)) for at_slider in (False, True)]
    places = [(k, at, sys.site_link[sites[int(at)][k]]) for k, at in owned]
    places = [place for place in places if place[2] >= 0]
    row = [k for k, _, _ in places]
    link = tuple(on for _, _, on in places)
    # Without places, where both sites are on the world, it has no rows.
    at_slider = jnp.array(np.reshape([float(at) for _, at, _ in places], (-1, 1)))
    points = jax.tree.map(lambda *x: jnp.concatenate(x), crank.pos, slider.pos)
    moved = rows(links, link)
    arm = rows(points, [k + len(acting) * at for k, at, _ in places]) - moved.pos
    force = rows(push, row) * (1.0 - 2.0 * at_slider)
    wrench = Spatial(rows(turn, row) * at_slider + arm.cross(force), force)
    owner = tuple(acting[k] for k in row)
    # By virtual work, the velocity of the length is the power of a unit force.
    velocity = sum_rows(wrench.dot(Spatial(moved.ang, moved.vel)), owner, nu)
    return LinkTransmission(owner, link, wrench, sum_rows(length, acting, nu), velocity)
