"""The contacts of a whole model: its shapes placed in the world and tested pair by pair."""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from brax.base import System
from brax.colliders.interface import CollisionGroup, Shape, Touch
from brax.components import Quat, Vec3, quat, rows, vec3
from brax.tree import join

Frame = TypeVar("Frame", Vec3, Quat)


class Contacts(NamedTuple):
    """The contact points of a model, components (points, batch)."""

    touch: Touch
    friction: jax.Array
    """Sliding friction, the larger of the two geoms'."""
    elasticity: jax.Array
    """Restitution, the mean of the two."""


def contact_links(sys: System) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Links of the first and the second geom of each contact point, -1 for the world."""
    sides: list[tuple[int, ...]] = [(), ()]
    for group in sys.collisions:
        for side, geoms in enumerate(_geoms(group)):
            sides[side] += tuple(sys.geom_link[g] for g in geoms) * group.collider.n_contacts
    return sides[0], sides[1]


def contacts(sys: System, link_pos: Vec3, link_rot: Quat) -> Contacts:
    """Tests all pairs.

    Args:
        sys: the model, its leaves with a trailing batch axis; it must have collisions.
        link_pos: link frames in the world, components (n_links, batch).
        link_rot: their orientations.

    Returns:
        All points, in the order of `contact_links`.
    """
    out = []
    for group in sys.collisions:
        points = group.collider.collide(
            _shapes(sys, group.geom1, link_pos, link_rot),
            _shapes(sys, group.geom2, link_pos, link_rot),
        )
        friction = jnp.maximum(*(rows(sys.geom.friction[:, 0], g) for g in _geoms(group)))
        first, second = (rows(sys.geom.elasticity, g) for g in _geoms(group))
        out += [Contacts(point, friction, 0.5 * (first + second)) for point in points]
    return join(out)


def _geoms(group: CollisionGroup) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return group.geom1, group.geom2


def _shapes(sys: System, geoms: tuple[int, ...], link_pos: Vec3, link_rot: Quat) -> Shape:
    """Geoms in the world; those of the world itself are where they are."""
    pos, rot = (
        vec3(rows(sys.geom.transform.pos, geoms)),
        quat(rows(sys.geom.transform.rot, geoms)),
    )
    size = vec3(rows(sys.geom.size, geoms))
    links = [sys.geom_link[g] for g in geoms]
    if all(link < 0 for link in links):
        return Shape(pos, rot, size)
    if any(link < 0 for link in links):
        link_pos = _with_world(link_pos, (0.0, 0.0, 0.0))
        link_rot = _with_world(link_rot, (1.0, 0.0, 0.0, 0.0))
        links = [link + 1 for link in links]
    frame_pos, frame_rot = rows(link_pos, links), rows(link_rot, links)
    return Shape(frame_pos + frame_rot.rotate(pos), frame_rot.mul(rot), size)


def _with_world(frames: Frame, world: tuple[float, ...]) -> Frame:
    """Puts the world's row before the links' rows."""
    return type(frames)(
        *(
            jnp.concatenate([jnp.full_like(a[:1], w), a], axis=0)
            for a, w in zip(frames, world, strict=True)
        )
    )
