"""The contacts of a whole model: its shapes placed in the world and tested pair by pair."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from brax.base import System
from brax.colliders.interface import CollisionGroup, Shape, Touch
from brax.components import Quat, Vec3, quat, rows, vec3

Frame = TypeVar("Frame", Vec3, Quat)


class Contacts(NamedTuple):
    """The contacts of one collision group: every point of every pair, (points, pairs, batch)."""

    touch: Touch
    friction: jax.Array
    """Sliding friction, the larger of the two geoms', (pairs, batch)."""
    elasticity: jax.Array
    """Restitution, the mean of the two, (pairs, batch)."""


def contact_links(sys: System) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Links of the first and the second geom of each pair, -1 for the world, by group."""
    return [
        (tuple(sys.geom_link[g] for g in first), tuple(sys.geom_link[g] for g in second))
        for first, second in map(_geoms, sys.collisions)
    ]


def contacts(sys: System, frames: Callable[[Sequence[int]], tuple[Vec3, Quat]]) -> list[Contacts]:
    """Tests all pairs.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        frames: gives the frames in the world of the links that it is asked for, components
            (links, batch); of link -1, the world's own.

    Returns:
        The contacts of each collision group.
    """
    out = []
    for group in sys.collisions:
        points = group.collider.collide(
            _shapes(sys, group.geom1, frames), _shapes(sys, group.geom2, frames)
        )
        friction = jnp.maximum(*(rows(sys.geom.friction[:, 0], g) for g in _geoms(group)))
        first, second = (rows(sys.geom.elasticity, g) for g in _geoms(group))
        touch = jax.tree.map(lambda *x: jnp.stack(jnp.broadcast_arrays(*x)), *points)
        out.append(Contacts(touch, friction, 0.5 * (first + second)))
    return out


def _geoms(group: CollisionGroup) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return group.geom1, group.geom2


def _shapes(
    sys: System, geoms: tuple[int, ...], frames: Callable[[Sequence[int]], tuple[Vec3, Quat]]
) -> Shape:
    """Geoms in the world; those of the world itself are where they are."""
    pos, rot = (
        vec3(rows(sys.geom.transform.pos, geoms)),
        quat(rows(sys.geom.transform.rot, geoms)),
    )
    size = vec3(rows(sys.geom.size, geoms))
    links = [sys.geom_link[g] for g in geoms]
    if all(link < 0 for link in links):
        return Shape(pos, rot, size)
    frame_pos, frame_rot = frames(links)
    return Shape(frame_pos + frame_rot.rotate(pos), frame_rot.mul(rot), size)


def frames_of(link_pos: Vec3, link_rot: Quat) -> Callable[[Sequence[int]], tuple[Vec3, Quat]]:
    """Gives link frames kept in the model's order, components (n_links, batch)."""

    def frames(links: Sequence[int]) -> tuple[Vec3, Quat]:
        if min(links) >= 0:
            return rows(link_pos, links), rows(link_rot, links)
        index = [link + 1 for link in links]
        return (
            rows(_with_world(link_pos, (0.0, 0.0, 0.0)), index),
            rows(_with_world(link_rot, (1.0, 0.0, 0.0, 0.0)), index),
        )

    return frames


def _with_world(frame: Frame, world: tuple[float, ...]) -> Frame:
    """Puts the world's row before the links' rows."""
    return type(frame)(
        *(
            jnp.concatenate([jnp.full_like(a[:1], w), a], axis=0)
            for a, w in zip(frame, world, strict=True)
        )
    )
