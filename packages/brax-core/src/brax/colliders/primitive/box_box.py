"""The collider of two boxes: separating axes, then clipping of faces or the contact of two edges.

`BoxBox.collide` returns the contact points. It takes the axis of least penetration among fifteen
(`_separations`). If that is the normal of a face, the incident face of the other box is clipped by
this reference face (`_face_contacts`). If it is the product of two edges, the only point is where
these are nearest (`_edge_contact`).

Arrays are batch last: (axes, pairs, batch) for the three axes of a box, (9, pairs, batch) for pairs
of axes.

Source: Ericson (2005), Real-Time Collision Detection, section 4.4.1 for the separating axes and
section 5.1.9 for the edges.
"""

import functools
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
"""Squared sine of the angle below which two edges count as parallel and give no axis."""

_PREFER_FACES = 1e-5, 0.05
"""Shares of the sizes, and of the penetration on the best face, by which two edges must overlap
less than every face. A face contact has up to four points and an edge contact one. Without the
second share, edges that are almost parallel would often win by a few micrometres of a penetration
of .1 mm, and the boxes would stand on one end of an edge. MuJoCo 4.0 goes over from a face to two
edges at this second share and at the next, as 10,000 random pairs of boxes showed."""

_PREFER_A_CORNER = 0.01
"""Share of its depth by which two edges must overlap less than the only corner below a face."""


class OrientedBox(NamedTuple):
    """Boxes with their axes and half-sizes on a leading array axis."""

    pos: Vec3
    """Centres, world axes [m], components (pairs, batch)."""
    axes: Vec3
    """Unit axes in the world, components (3, pairs, batch)."""
    half: jax.Array
    """Half-sizes [m], (3, pairs, batch)."""


def _oriented_box(shape: Shape) -> OrientedBox:
    """Stack the axes and half-sizes of boxes."""
    axes = Vec3(*(jnp.stack(c) for c in zip(*shape.rot.matrix(), strict=True)))
    return OrientedBox(shape.pos, axes, jnp.stack(jnp.broadcast_arrays(*shape.size)))


def _take(chosen: jax.Array, of: jax.Array) -> jax.Array:
    """Return the entry along the first axis that a one-hot vector selects."""
    return jnp.sum(chosen * of, axis=0)


def _cycle(a: jax.Array, k: int, axis: int = 0) -> jax.Array:
    """Shift an axis of length three cyclically, so that entry i becomes entry i + k."""
    return jnp.roll(a, -k, axis)


def _one_hot(index: jax.Array, n: int, like: jax.Array) -> jax.Array:
    """Return one-hot vectors (n, pairs, batch) of indices (pairs, batch)."""
    places = jnp.arange(n).reshape((n,) + (1,) * index.ndim)
    return (places == index).astype(like.dtype)


class AxisSeparations(NamedTuple):
    """Separations along the fifteen separating axes [m], negative where the boxes overlap."""

    faces: jax.Array
    """Separations along face normals, the first box's and then the second's, (6, pairs, batch)."""
    edges: jax.Array
    """Separations along the cross products of two edges, one of each box, (9, pairs, batch)."""
    cosines: jax.Array
    """Cosines between the axes of the first and of the second box, (3, 3, pairs, batch)."""


def _separations(a: OrientedBox, b: OrientedBox) -> AxisSeparations:
    """Project both boxes onto the fifteen separating axes.

    Source: Gottschalk, Lin, Manocha (1996), OBBTree, section 5; Ericson (2005), table 4.1.
    """
    apart = b.pos - a.pos
    on_a, on_b = a.axes.dot(apart), b.axes.dot(apart)
    cosines = Vec3(*(c[:, None] for c in a.axes)).dot(Vec3(*(c[None] for c in b.axes)))
    # The radius of a box along an axis is the sum of its half-sizes times the absolute cosines.
    share = jnp.abs(cosines)
    face_a = jnp.abs(on_a) - a.half - jnp.sum(share * b.half[None], axis=1)
    face_b = jnp.abs(on_b) - b.half - jnp.sum(share * a.half[:, None], axis=0)
    # The nine cross products of axes i of the first and j of the second. The vector between the
    # centres has the product on_a[i+2] c[i+1, j] - on_a[i+1] c[i+2, j] with each, and the radii are
    # sums over the two other axes of both boxes.
    half_a, half_b, on = a.half[:, None], b.half[None], on_a[:, None]
    across = _cycle(on, 2) * _cycle(cosines, 1) - _cycle(on, 1) * _cycle(cosines, 2)
    reach = _cycle(half_a, 1) * _cycle(share, 2) + _cycle(half_a, 2) * _cycle(share, 1)
    reach += _cycle(half_b, 1, 1) * _cycle(share, 2, 1) + _cycle(half_b, 2, 1) * _cycle(share, 1, 1)
    # The product of two unit edges has the length of their sine, by which separations are divided.
    sine2 = 1.0 - cosines * cosines
    crossed = sine2 > _MIN_EDGE_SINE_SQUARED
    sine = jnp.sqrt(jnp.where(crossed, sine2, 1.0))
    edges = jnp.where(crossed, (jnp.abs(across) - reach) / sine, -jnp.inf)
    return AxisSeparations(
        jnp.concatenate([face_a, face_b]), edges.reshape((9, *edges.shape[2:])), cosines
    )


def _face_contacts(a: OrientedBox, b: OrientedBox, chosen: jax.Array) -> list[Touch]:
    """Return up to four contact points between a reference face and the incident face.

    Args:
        a: the first boxes.
        b: the second boxes.
        chosen: one-hot vector of the reference face's normal, among the three axes of the first
            box and the three of the second, (6, pairs, batch).
    """
    of_a = jnp.sum(chosen[:3], axis=0) > 0.5
    axis = chosen[:3] + chosen[3:]

    def sides(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the reference box's value and the incident box's."""
        return jnp.where(of_a, x, y), jnp.where(of_a, y, x)

    (ref_half, inc_half) = sides(a.half, b.half)
    ref_axes, inc_axes = (Vec3(*parts) for parts in zip(*map(sides, a.axes, b.axes), strict=True))
    ref_pos, inc_pos = (Vec3(*parts) for parts in zip(*map(sides, a.pos, b.pos), strict=True))

    def face(axes: Vec3, half: jax.Array, axis: jax.Array) -> list[tuple[Vec3, jax.Array]]:
        """Return the normal and two edge directions of a face, with the half-sizes along them."""
        # The edges of a face are along the two axes that follow its normal's in cyclic order.
        picks = [_cycle(axis, -k) for k in range(3)]
        return [(Vec3(*(_take(p, c) for c in axes)), _take(p, half)) for p in picks]

    # The reference normal points to the other box.
    (normal, height), (u, half_u), (v, half_v) = face(ref_axes, ref_half, axis)
    apart = inc_pos - ref_pos
    normal = normal * jnp.where(apart.dot(normal) < 0, -1.0, 1.0)
    towards = inc_axes.dot(Vec3(*(c[None] for c in normal)))
    # The incident face is the one whose normal is most nearly opposite to the reference normal.
    nearest = _one_hot(jnp.argmax(jnp.abs(towards), axis=0), 3, towards)
    (out, depth), (e, half_e), (f, half_f) = face(inc_axes, inc_half, nearest)
    out = out * (depth * jnp.where(out.dot(normal) > 0, -1.0, 1.0))

    def local(w: Vec3) -> Vec3:
        """Return a vector in the frame of the reference face."""
        return Vec3(u.dot(w), v.dot(w), normal.dot(w))

    middle = local(apart + out)
    # Heights over the reference face's plane are the signed distances of the contact points.
    middle = middle._replace(z=middle.z - height)
    incident = Parallelogram(middle, local(e * half_e), local(f * half_f))
    out_of_a = normal * jnp.where(of_a, 1.0, -1.0)
    clipped, there = clip_parallelogram(incident, half_u, half_v)
    points = reduce_manifold(clipped, there, half_u + half_v, clipped.z < 0)
    return [
        Touch(p.z, ref_pos + u * p.x + v * p.y + normal * (height + 0.5 * p.z), out_of_a)
        for p in points
    ]


def _edge_contact(
    a: OrientedBox, b: OrientedBox, dist: jax.Array, chosen: jax.Array, cosines: jax.Array
) -> Touch:
    """Return the contact point of two crossing edges.

    Args:
        a: the first boxes.
        b: the second boxes.
        dist: separation along the product of the edges [m].
        chosen: one-hot vector of the pair of edges, (9, pairs, batch).
        cosines: cosines between the axes, (3, 3, pairs, batch).
    """
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
        """Return the midpoint of the box's edge along axis `of` that is farthest out."""
        sign = jnp.where(box.axes.dot(Vec3(*(c[None] for c in out))) < 0, -1.0, 1.0)
        # Edges along an axis differ by the signs along the two others.
        reach = sign * box.half * (1.0 - of)
        return box.pos + Vec3(*(jnp.sum(reach * c, axis=0) for c in box.axes))

    on_a, on_b = edge(a, of_a, normal), edge(b, of_b, -normal)
    # The nearest point of two lines (Ericson, section 5.1.8): both edges' lines, because the axis
    # of least penetration has the nearest points within the edges.
    between = on_b - on_a
    s, t = along_a.dot(between), along_b.dot(between)
    nearest_a = on_a + along_a * ((s - cosine * t) / sine2)
    return Touch(dist, nearest_a + normal * (0.5 * dist), normal)


def _crosses(edge: jax.Array, face: jax.Array, points: list[jax.Array]) -> jax.Array:
    """Return whether two boxes touch with crossing edges rather than with a face.

    Args:
        edge: separation along the best product of two edges [m].
        face: separation along the best normal of a face [m].
        points: distances of the points on that face [m].
    """
    deepest = functools.reduce(jnp.minimum, points)
    below = sum((p < 0).astype(deepest.dtype) for p in points)
    # Larger is less penetration, or more separation.
    against_faces = edge > face + _PREFER_FACES[1] * jnp.abs(face)
    against_corner = (below == 1) & (edge > deepest + _PREFER_A_CORNER * jnp.abs(deepest))
    return against_faces | against_corner


class BoxBox(Collider):
    """Collider with up to four points of two faces, or one point of two edges.

    The points that a contact lacks are far apart.
    """

    types = ("box", "box")
    n_contacts = 4

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Return the contact points along the axis of least penetration."""
        first, second = _oriented_box(a), _oriented_box(b)
        found = _separations(first, second)
        face, edge = jnp.max(found.faces, axis=0), jnp.max(found.edges, axis=0)
        size = jnp.sum(first.half + second.half, axis=0)
        best_face = _one_hot(jnp.argmax(found.faces, axis=0), 6, face)
        best_edge = _one_hot(jnp.argmax(found.edges, axis=0), 9, face)
        on_faces = _face_contacts(first, second, best_face)
        on_edges = _crosses(edge - _PREFER_FACES[0] * size, face, [p.dist for p in on_faces])
        dist = jnp.where(on_edges, edge, 0.0)
        # Both kinds of contact are computed for every pair and one is selected: lanes of a batch
        # run the same operations.
        crossing = _edge_contact(first, second, dist, best_edge, found.cosines)
        far = crossing._replace(dist=size)
        return [
            jax.tree.map(lambda x, y: jnp.where(on_edges, x, y), edges, faces)
            for edges, faces in zip((crossing, far, far, far), on_faces, strict=True)
        ]


BOX_BOX = BoxBox()
