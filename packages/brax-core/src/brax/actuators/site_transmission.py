"""Transmissions to sites: a force and a torque on a link, along the axes of a frame.

An actuator with a reference site acts between the two, along the reference's axes. Its length is
the product of its wrench with the site's displacement and rotation from the reference, so motion
that both sites share does not change it. An actuator without a reference has no length, and acts
along the site's own axes.

Source: MuJoCo's documentation, chapter XML reference, attributes `site` and `refsite` of actuators.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.base import System, Transform
from brax.components import log_quat, quat, rows, vec3
from brax.kinematics import Frames
from brax.spatial import Spatial
from brax.tree import join, sum_rows


class LinkTransmission(NamedTuple):
    """Wrenches of actuators or tendons on links, one row for each link that one of them acts on."""

    owner: tuple[int, ...]
    """The actuator or tendon."""
    link: tuple[int, ...]
    push: Spatial
    """Torque and force about the link's frame, world axes, per unit of the owner's force."""
    length: jax.Array
    """Lengths of all owners, zero for those without a row, (owners, batch)."""
    velocity: jax.Array

    def joined(self, other: "LinkTransmission") -> "LinkTransmission":
        """Return the transmission of the owners of both."""
        # Forces along the world's axes have no batch, so that the wrenches are broadcast.
        push = join((self.push, other.push))
        length, velocity = self.length + other.length, self.velocity + other.velocity
        owner, link = self.owner + other.owner, self.link + other.link
        return LinkTransmission(owner, link, push, length, velocity)

    def on_links(self, force: jax.Array, n_links: int) -> Spatial:
        """Return torque and force on each link about its frame, world axes, (n_links, batch)."""
        pushed = self.push * rows(force, self.owner)
        return jax.tree.map(lambda x: sum_rows(x, self.link, n_links), pushed)


def on_sites(sys: System) -> tuple[int, ...]:
    """Return the actuators that push a site."""
    cranks = zip(sys.actuator_site, sys.actuator_crank, strict=True)
    return tuple(a for a, (site, crank) in enumerate(cranks) if site >= 0 and not crank)


def site_frames(sys: System, sites: Sequence[int], links: Frames) -> Frames:
    """Return frames of some sites in the world, and their velocities, from those of all links."""
    on = [sys.site_link[s] for s in sites]
    return attached(sys, on, rows(sys.site.transform, sites), links)


def attached(sys: System, on: Sequence[int], local: Transform, links: Frames) -> Frames:
    """Return world frames and velocities of elements fixed to links, or to the world (-1)."""
    still = jax.tree.map(lambda x: jnp.zeros_like(x[:1]), links)
    still = still._replace(rot=still.rot._replace(w=jnp.ones_like(still.rot.w)))
    with_world = jax.tree.map(lambda *x: jnp.concatenate(x), links, still)
    # The world's frame is the last row, where index -1 finds it.
    base = rows(with_world, [link % (sys.num_links() + 1) for link in on])
    arm, rot = base.rot.rotate(vec3(local.pos)), base.rot.mul(quat(local.rot))
    return Frames(base.pos + arm, rot, base.ang, base.vel + base.ang.cross(arm))


def site_transmission(sys: System, links: Frames) -> LinkTransmission:
    """Return the transmission of the actuators on sites, at given frames of the links.

    Args:
        sys: the model, with an actuator on a site, its leaves with a trailing batch axis.
        links: frames of the links in the world, and their velocities, in the model's order.
    """
    acting = on_sites(sys)
    site = [sys.actuator_site[a] for a in acting]
    ref = [sys.actuator_refsite[a] for a in acting]
    frame = site_frames(sys, site, links)
    reference = site_frames(sys, [s if r < 0 else r for s, r in zip(site, ref, strict=True)], links)
    gear = rows(sys.actuator.gear[:, None] * sys.actuator.wrench, acting)
    lin, ang = vec3(gear[:, :3]), vec3(gear[:, 3:])
    # Length and force are work-conjugate: wrench · (displacement, rotation vector) in the
    # reference's axes.
    length = lin.dot(reference.rot.inv_rotate(frame.pos - reference.pos))
    length = length + ang.dot(log_quat(reference.rot.inv_mul(frame.rot)))
    wrench = Spatial(reference.rot.rotate(ang), reference.rot.rotate(lin))
    entries = [(k, *each) for k, a in enumerate(acting) for each in _acted_on(sys, a)]
    columns = zip(*entries, strict=True) if entries else ((),) * 4  # none: all are on the world
    row, link, at_ref, sign = (tuple(column) for column in columns)
    points = jax.tree.map(lambda *x: jnp.concatenate(x), frame.pos, reference.pos)
    moved = rows(links, link)
    arm = rows(points, [k + len(acting) * r for k, r in zip(row, at_ref, strict=True)]) - moved.pos
    push = rows(wrench, row) * jnp.array(sign, length.dtype)[:, None]
    # The wrench acts at the site; about the link's frame its force has an arm.
    push = push._replace(ang=push.ang + arm.cross(push.lin))
    owner, nu = tuple(acting[k] for k in row), sys.act_size()
    # By virtual work, the velocity of the length is the power of a unit force.
    velocity = sum_rows(push.dot(Spatial(moved.ang, moved.vel)), owner, nu)
    return LinkTransmission(owner, link, push, sum_rows(length, acting, nu), velocity)


def _acted_on(sys: System, actuator: int) -> Iterator[tuple[int, bool, float]]:
    """Yield the links that an actuator acts on, whether at its reference, and the sign.

    The nearest link that carries both sites gets the opposite of both wrenches. They cancel for it
    and for the links that carry it, since their motion does not change the actuator's length.
    """
    link = sys.site_link[sys.actuator_site[actuator]]
    found = [(link, False, 1.0)]
    if sys.actuator_refsite[actuator] >= 0:
        ref = sys.site_link[sys.actuator_refsite[actuator]]
        common = next(x for x in _carriers(sys, link) if x in _carriers(sys, ref))
        found += [(ref, True, -1.0), (common, False, -1.0), (common, True, 1.0)]
    yield from (each for each in found if each[0] >= 0)


def _carriers(sys: System, link: int) -> list[int]:
    """Return a link and those that carry it, down to the world."""
    return [link] if link < 0 else [link, *_carriers(sys, sys.link_parents[link])]
