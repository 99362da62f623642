"""Closed forms for spheres and capsules on the triangles of a height field.

Both shapes are all points within a radius of a core, which is a point or a segment. The nearest
point to an end of the core is a point of the triangle, or of a side of the prism below it. The
nearest point to the inside of a segment is a point of one of the triangle's edges. A segment that
runs through the ground crosses below an edge, as seen from above. Its depth there is that along the
common normal of both lines.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from brax.colliders.convex.support_search import where
from brax.colliders.interface import Touch
from brax.colliders.shapes.height_field import Triangles
from brax.components import Vec3, normalize

_MIN_LINE_SINE_SQUARED = 1e-6
"""Squared sine of the angle below which two lines count as parallel."""

_MAX_BACKWARD_SINE = 1e-2
"""Sine by which an edge's normal may lean back over its own triangle."""


def sphere_on_triangles(
    near: Triangles, centre: Vec3, radius: jax.Array, bottom: jax.Array
) -> Touch:
    """Return the contact of a ball with the prism below each triangle.

    Args:
        near: the triangles.
        centre: centre of the ball, in the field's frame [m].
        radius: radius of the ball [m].
        bottom: height of the flat bottom of the prisms [m].
    """
    height = near.normal.dot(centre - near.corners[0])
    # The centre is over the triangle if it is inside of all three edges.
    over, nearest, far2 = height < jnp.inf, centre, jnp.full_like(height, jnp.inf)
    for k, corner in enumerate(near.corners):
        over &= near.out[k].dot(centre - corner) <= 0
        point = _on_side(corner, near.corners[(k + 1) % 3], centre, bottom)
        apart2 = (centre - point).dot(centre - point)
        nearest = where(apart2 < far2, point, nearest)
        far2 = jnp.minimum(far2, apart2)
    outward, far = normalize(centre - nearest, near.normal)
    # A centre over the triangle's plane has the triangle's normal, at any depth. One below the
    # prism leaves it downwards. Else the nearest point is on a side.
    under = over & (centre.z < bottom)
    down = Vec3(height * 0.0, height * 0.0, height * 0.0 - 1.0)
    normal = where(under, down, where(over, near.normal, outward))
    dist = jnp.where(under, bottom - centre.z, jnp.where(over, height, far)) - radius
    return _touch(dist, centre, normal, radius)


def segment_on_triangles(near: Triangles, middle: Vec3, arm: Vec3, radius: jax.Array) -> Touch:
    """Return the contact of a capsule's segment with the nearest edge of each triangle.

    Args:
        near: the triangles.
        middle: midpoint of the segment, in the field's frame [m].
        arm: vector from the midpoint to one of its ends [m].
        radius: radius of the capsule [m].
    """
    edges = [
        _edge(corner, near.corners[(k + 1) % 3], middle, arm, near.normal, radius)
        for k, corner in enumerate(near.corners)
    ]
    # If the normal leans back over the triangle, then a point of the triangle's inside is nearer
    # than the edge, which therefore counts as far apart.
    edges = [
        touch._replace(
            dist=jnp.where(
                touch.normal.dot(out) < -_MAX_BACKWARD_SINE,
                jnp.abs(touch.dist) + radius,
                touch.dist,
            )
        )
        for touch, out in zip(edges, near.out, strict=True)
    ]
    return _nearest(edges)


def _nearest(touches: Sequence[Touch]) -> Touch:
    """Return the contact of least distance."""
    best = touches[0]
    for other in touches[1:]:
        nearer = other.dist < best.dist
        best = jax.tree.map(lambda x, y, n=nearer: jnp.where(n, x, y), other, best)
    return best


def _touch(dist: jax.Array, core: Vec3, normal: Vec3, radius: jax.Array) -> Touch:
    """Return the contact of a ball around a point of the core, at a distance along a normal."""
    return Touch(dist, core - normal * (radius + 0.5 * dist), normal)


def _on_side(begin: Vec3, end: Vec3, point: Vec3, bottom: jax.Array) -> Vec3:
    """Return the point of the vertical side below an edge that is nearest to an outside point."""
    edge, away = end - begin, point - begin
    flat2 = edge.x * edge.x + edge.y * edge.y
    along = jnp.clip((away.x * edge.x + away.y * edge.y) / flat2, 0.0, 1.0)
    # Beside the vertical side only the horizontal distance counts; above its upper edge the edge is
    # nearest.
    below = point.z < begin.z + edge.z * along
    along = jnp.where(below, along, jnp.clip(away.dot(edge) / edge.dot(edge), 0.0, 1.0))
    on_edge = begin + edge * along
    return on_edge._replace(z=jnp.where(below, jnp.maximum(point.z, bottom), on_edge.z))


def _edge(begin: Vec3, end: Vec3, middle: Vec3, arm: Vec3, own: Vec3, radius: jax.Array) -> Touch:
    """Return the contact of a segment and an edge, nearest to each other or one below the other."""
    edge = (end - begin) * 0.5
    apart = middle - (begin + edge)
    s, t = _nearest_shares(arm, edge, apart)
    outward, far = normalize(apart + arm * s - edge * t, own)
    under, i, drop = _crossed_below(arm, edge, apart)
    # Below the edge the depth is along the common normal of both lines, taken upwards.
    across, _ = normalize(arm.cross(edge))
    across = where(across.z < 0, -across, across)
    normal = where(under, across, outward)
    dist = jnp.where(under, across.z * drop, far) - radius
    return _touch(dist, middle + arm * jnp.where(under, i, s), normal, radius)


def _nearest_shares(arm: Vec3, edge: Vec3, apart: Vec3) -> tuple[jax.Array, jax.Array]:
    """Return the parameters of the nearest points of two segments, from -1 to 1 along each.

    Args:
        arm: vector from the first one's midpoint to its end [m].
        edge: the same of the second one.
        apart: vector from the second midpoint to the first [m].

    Source: Ericson (2005), Real-Time Collision Detection, section 5.1.9.
    """
    a2, e2, ae = arm.dot(arm), edge.dot(edge), arm.dot(edge)
    on_arm, on_edge = arm.dot(apart), edge.dot(apart)
    # The determinant is the squared product of the lengths and the sine between the segments.
    det = a2 * e2 - ae * ae
    parallel = det < _MIN_LINE_SINE_SQUARED * a2 * e2
    crossing = (ae * on_edge - e2 * on_arm) / jnp.where(parallel, 1.0, det)
    s = jnp.clip(jnp.where(parallel, 0.0, crossing), -1.0, 1.0)
    t = jnp.clip((on_edge + ae * s) / e2, -1.0, 1.0)
    return jnp.clip((ae * t - on_arm) / a2, -1.0, 1.0), t


def _crossed_below(arm: Vec3, edge: Vec3, apart: Vec3) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return whether a segment crosses below an edge, seen from above, where, and how far above it.

    The second result is the segment's parameter. The third is negative below the edge [m].
    """
    det = edge.x * arm.y - edge.y * arm.x
    crosses = jnp.abs(det) > _MIN_LINE_SINE_SQUARED * (edge.x * edge.x + edge.y * edge.y)
    scale = 1.0 / jnp.where(crosses, det, 1.0)
    # Solve apart + arm s = edge t for the horizontal components, by Cramer's rule.
    s = (edge.y * apart.x - edge.x * apart.y) * scale
    t = (arm.y * apart.x - arm.x * apart.y) * scale
    drop = apart.z + arm.z * s - edge.z * t
    return crosses & (jnp.maximum(jnp.abs(s), jnp.abs(t)) <= 1.0) & (drop < 0), s, drop
