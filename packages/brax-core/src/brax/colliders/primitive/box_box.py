"""Two boxes."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.colliders.convex.contact_manifold import (
    Parallelogram,
    clip_parallelogram,
    reduce_manifold,
)
from brax.colliders.interface import Collider, Shape, Touch
from brax.components import Vec3

_MIN_EDGE_SINE_SQUARED = 1e-6
"""Squared sine of the angle below which two edges count as parallel."""

_PREFER_FACES = (1e-5, 0.01)
"""Shares of the sizes, and of the depth on a face, by which two edges must overlap less than any
face, for they touch in one point only."""


class OrientedBox(NamedTuple):
    """A box: three axes at a leading axis, components (3, pairs, batch)."""

    pos: Vec3
    axes: Vec3
    half: jax.Array
    """Half-sizes, (3, pairs, batch)."""


def _oriented_box(shape: Shape) -> OrientedBox:
    axes = Vec3(*(jnp.stack(c) for c in zip(*shape.rot.matrix(), strict=True)))
    return OrientedBox(shape.pos, axes, jnp.stack(jnp.broadcast_arrays(*shape.size)))


def _take(chosen: jax.Array, of: jax.Array) -> jax.Array:
    """The entry of the first axis that `chosen`, 1 in one place and else 0, points to."""
    return jnp.sum(chosen * of, axis=0)


def _turn(a: jax.Array, k: int, axis: int = 0) -> jax.Array:
    """The entries of the axes that follow in the cycle x, y, z by k."""
    return jnp.roll(a, -k, axis)


def _one_hot(index: jax.Array, n: int, like: jax.Array) -> jax.Array:
    places = jnp.arange(n).reshape((n,) + (1,) * index.ndim)
    return (places == index).astype(like.dtype)


class AxisSeparations(NamedTuple):
    """Separations along all axes on which two boxes may be apart; negative where they overlap."""

    faces: jax.Array
    """Along normals of the first box, then of the second, (6, pairs, batch)."""
    edges: jax.Array
    """Along products of an edge of the first and one of the second, (9, pairs, batch)."""
    cosines: jax.Array
    """Between axes of the first and of the second, (3, 3, pairs, batch)."""


def _separations(a: OrientedBox, b: OrientedBox) -> AxisSeparations:
    """Source: Gottschalk, Lin, Manocha (1996), OBBTree, section 5."""
    apart = b.pos - a.pos
    on_a, on_b = a.axes.dot(apart), b.axes.dot(apart)
    cosines = Vec3(*(c[:, None] for c in a.axes)).dot(Vec3(*(c[None] for c in b.axes)))
    share = jnp.abs(cosines)
    face_a = jnp.abs(on_a) - a.half - jnp.sum(share * b.half[None], axis=1)
    face_b = jnp.abs(on_b) - b.half - jnp.sum(share * a.half[:, None], axis=0)
    half_a, half_b, on = a.half[:, None], b.half[None], on_a[:, None]
    across = _turn(on, 2) * _turn(cosines, 1) - _turn(on, 1) * _turn(cosines, 2)
    reach = _turn(half_a, 1) * _turn(share, 2) + _turn(half_a, 2) * _turn(share, 1)
    reach += _turn(half_b, 1, 1) * _turn(share, 2, 1) + _turn(half_b, 2, 1) * _turn(share, 1, 1)
    sine2 = 1.0 - cosines * cosines
    crossed = sine2 > _MIN_EDGE_SINE_SQUARED
    sine = jnp.sqrt(jnp.where(crossed, sine2, 1.0))
    edges = jnp.where(crossed, (jnp.abs(across) - reach) / sine, -jnp.inf)
    return AxisSeparations(
        jnp.concatenate([face_a, face_b]), edges.reshape((9, *edges.shape[2:])), cosines
    )


def _on_faces(a: OrientedBox, b: OrientedBox, chosen: jax.Array) -> list[Touch]:
    """Up to four points of one box's face over the other's, whose normal was chosen of six."""
    of_a = jnp.sum(chosen[:3], axis=0) > 0.5
    axis = chosen[:3] + chosen[3:]

    def sides(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.where(of_a, x, y), jnp.where(of_a, y, x)

    (ref_half, other_half) = sides(a.half, b.half)
    ref_axes, other_axes = (Vec3(*parts) for parts in zip(*map(sides, a.axes, b.axes), strict=True))
    ref_pos, other_pos = (Vec3(*parts) for parts in zip(*map(sides, a.pos, b.pos), strict=True))

    def face(axes: Vec3, half: jax.Array, axis: jax.Array) -> list[tuple[Vec3, jax.Array]]:
        """Normal and two edges of a face, with the half-sizes along them."""
        picks = [_turn(axis, -k) for k in range(3)]
        return [(Vec3(*(_take(p, c) for c in axes)), _take(p, half)) for p in picks]

    (normal, height), (u, half_u), (v, half_v) = face(ref_axes, ref_half, axis)
    apart = other_pos - ref_pos
    normal = normal * jnp.where(apart.dot(normal) < 0, -1.0, 1.0)
    towards = other_axes.dot(Vec3(*(c[None] for c in normal)))
    nearest = _one_hot(jnp.argmax(jnp.abs(towards), axis=0), 3, towards)
    (out, depth), (e, half_e), (f, half_f) = face(other_axes, other_half, nearest)
    out = out * (depth * jnp.where(out.dot(normal) > 0, -1.0, 1.0))

    def local(w: Vec3) -> Vec3:
        return Vec3(u.dot(w), v.dot(w), normal.dot(w))

    middle = local(apart + out)
    middle = middle._replace(z=middle.z - height)
    quad = Parallelogram(middle, local(e * half_e), local(f * half_f))
    out_of_a = normal * jnp.where(of_a, 1.0, -1.0)
    points = reduce_manifold(*clip_parallelogram(quad, half_u, half_v), half_u + half_v)
    return [
        Touch(p.z, ref_pos + u * p.x + v * p.y + normal * (height + 0.5 * p.z), out_of_a)
        for p in points
    ]


def _on_edges(
    a: OrientedBox, b: OrientedBox, dist: jax.Array, chosen: jax.Array, cosines: jax.Array
) -> Touch:
    """The point between two crossing edges, chosen of nine pairs."""
    grid = chosen.reshape((3, 3, *chosen.shape[1:]))
    of_a, of_b = jnp.sum(grid, axis=1), jnp.sum(grid, axis=0)
    along_a = Vec3(*(_take(of_a, c) for c in a.axes))
    along_b = Vec3(*(_take(of_b, c) for c in b.axes))
    cosine = _take(chosen, cosines.reshape(chosen.shape))
    sine2 = jnp.maximum(1.0 - cosine * cosine, _MIN_EDGE_SINE_SQUARED)
    apart = b.pos - a.pos
    normal = along_a.cross(along_b) * jax.lax.rsqrt(sine2)
    normal = normal * jnp.where(apart.dot(normal) < 0, -1.0, 1.0)

    def edge(box: OrientedBox, of: jax.Array, out: Vec3) -> Vec3:
        """The middle of the box's edge that is farthest out."""
        sign = jnp.where(box.axes.dot(Vec3(*(c[None] for c in out))) < 0, -1.0, 1.0)
        reach = sign * box.half * (1.0 - of)
        return box.pos + Vec3(*(jnp.sum(reach * c, axis=0) for c in box.axes))

    on_a, on_b = edge(a, of_a, normal), edge(b, of_b, -normal)
    between = on_b - on_a
    s, t = along_a.dot(between), along_b.dot(between)
    nearest_a = on_a + along_a * ((s - cosine * t) / sine2)
    return Touch(dist, nearest_a + normal * (0.5 * dist), normal)


class BoxBox(Collider):
    """Four points of two faces, or one point of two edges; the others then are far apart."""

    types = ("box", "box")
    n_contacts = 4

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """On the axis along which the boxes overlap least."""
        first, second = _oriented_box(a), _oriented_box(b)
        found = _separations(first, second)
        face, edge = jnp.max(found.faces, axis=0), jnp.max(found.edges, axis=0)
        size = jnp.sum(first.half + second.half, axis=0)
        on_edges = edge > face + _PREFER_FACES[0] * size + _PREFER_FACES[1] * jnp.abs(face)
        best_face = _one_hot(jnp.argmax(found.faces, axis=0), 6, face)
        best_edge = _one_hot(jnp.argmax(found.edges, axis=0), 9, face)
        dist = jnp.where(on_edges, edge, 0.0)
        crossing = _on_edges(first, second, dist, best_edge, found.cosines)
        far = crossing._replace(dist=size)
        return [
            jax.tree.map(lambda x, y: jnp.where(on_edges, x, y), edges, faces)
            for edges, faces in zip(
                (crossing, far, far, far), _on_faces(first, second, best_face), strict=True
            )
        ]


BOX_BOX = BoxBox()
