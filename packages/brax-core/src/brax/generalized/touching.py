"""Contacts as constraints: where they are, what they are like, and their force law.

Source: MuJoCo's documentation, chapter Computation, sections Constraint model and Contact.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.base import System
from brax.colliders.interface import Touch
from brax.colliders.pairs import surfaces
from brax.components import Vec3, rows, tangents
from brax.generalized.jacobians import Ends, Found, jacobian
from brax.generalized.laws import Ellipse, Pyramid, impedance, reference
from brax.generalized.singles import SOFTEST, stacked
from brax.generalized.slots import Family, Plan
from brax.generalized.smooth import Smooth

NEARLY_PARALLEL = 1e-8
"""Squared sine below which a direction says nothing across a normal."""

LEAST_FRICTION = 1e-5
"""MuJoCo's bound from below."""


class Touching(NamedTuple):
    """What contacts are like, constant during a step, (slots, 1 or batch)."""

    friction: jax.Array
    sideways: jax.Array
    """Friction of sliding along the second tangent."""
    turning: tuple[jax.Array, ...]
    """Friction of torsion and, twice, of rolling, as far as they have any."""
    sliding: jax.Array
    """One where there is friction, zero where `condim` is 1."""
    solimp: tuple[jax.Array, ...]
    spring: jax.Array
    """Stiffness and damping of the acceleration asked for."""
    damper: jax.Array
    margin: jax.Array
    weight: jax.Array
    """Inverse weight of the two links."""


def touching_softness(sys: System, family: Family) -> Touching:
    """The parameters of a family of contacts, slot by slot."""
    parts = []
    weights = sys.geom.invweight
    for group, surface in zip(sys.collisions, surfaces(sys), strict=True):
        spring, damper = reference(surface.solref, surface.solimp[1], sys.opt.timestep)
        weight = rows(weights, group.geom1) + rows(weights, group.geom2)
        slide = jnp.full_like(surface.friction, group.condim > 1)
        turning = tuple(jnp.maximum(x, LEAST_FRICTION) for x in surface.turning)
        mine = Touching(
            jnp.maximum(surface.friction, LEAST_FRICTION) * slide,
            jnp.maximum(surface.sideways, LEAST_FRICTION) * slide,
            turning[: family.width - 3],
            slide, surface.solimp, spring, damper, surface.margin, weight,
        )  # fmt: skip
        parts += [mine] * group.collider.n_contacts
    return rows(jax.tree.map(stacked, *parts), family.order)


def touching(
    sys: System,
    plan: Plan,
    family: Family,
    soft: Touching,
    here: Smooth,
    found: Sequence[Touch],
) -> Found:
    """Evaluates a family of contacts; `found` has all of them at a state, by collision group."""
    dist, point, axes = _located(family, found)
    ends = Ends(point, None, axes, axes[: family.width - 3])
    law, normal = _law(sys, soft, dist)
    across = (jnp.zeros_like(normal),) * (family.width - 1)
    return Found(law, jacobian(plan, family, here, ends), (normal, *across), soft.damper, ends)


def _located(
    family: Family, found: Sequence[Touch]
) -> tuple[jax.Array, Vec3, tuple[Vec3, Vec3, Vec3]]:
    """Distances, points and axes, normal first, of a family of contacts."""
    sized = [t._replace(along=_along(t)) for t in found]
    flat = [jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), t) for t in sized]
    touch = rows(jax.tree.map(stacked, *flat), family.order)
    first = _perpendicular(touch.along, touch.normal)
    return touch.dist, touch.pos, (touch.normal, first, touch.normal.cross(first))


def _along(touch: Touch) -> Vec3:
    """What the first tangent lies along; as in MuJoCo y, or z where the normal is near y."""
    if touch.along is not None:
        return touch.along
    sideways = jnp.abs(touch.normal.y) < 0.5
    return Vec3(
        jnp.zeros_like(touch.dist), jnp.where(sideways, 1.0, 0.0), jnp.where(sideways, 0.0, 1.0)
    )


def _perpendicular(v: Vec3, normal: Vec3) -> Vec3:
    """Unit vector of the part of `v` that is across the normal; any where there is none."""
    across = v - normal * normal.dot(v)
    fallback, _ = tangents(normal)
    squared = across.dot(across)
    some = squared > NEARLY_PARALLEL
    scale = jax.lax.rsqrt(jnp.where(some, squared, 1.0))
    return Vec3(*(jnp.where(some, a * scale, f) for a, f in zip(across, fallback, strict=True)))


def _law(sys: System, soft: Touching, dist: jax.Array) -> tuple[Pyramid | Ellipse, jax.Array]:
    """The contacts' force law, and the acceleration along the normal that they ask for at rest."""
    distance = dist - soft.margin
    share = impedance(soft.solimp, distance)
    active = distance < 0
    mu, weight = soft.friction, soft.weight
    if sys.opt.cone == "elliptic":
        compliance = jnp.maximum((1.0 - share) / share * weight, SOFTEST)
        normal = jnp.where(active, 1.0 / compliance, 0.0)
        ratio = sys.opt.impratio
        mu = jnp.maximum(mu, LEAST_FRICTION)
        tangent = normal * ratio * soft.sliding
        ratios = tuple(x / mu for x in soft.turning)
        law: Pyramid | Ellipse = Ellipse(normal, tangent, mu, mu / jnp.sqrt(ratio), ratios)
    else:
        compliance = jnp.maximum((1.0 - share) / share * weight * (1.0 + mu * mu), SOFTEST)
        edge = 2.0 * mu * mu / sys.opt.impratio
        compliance = jnp.where(soft.sliding > 0, compliance * edge, compliance)
        stiffness = jnp.where(active, 1.0 / compliance, 0.0)
        law = Pyramid(stiffness, (mu, soft.sideways, *soft.turning), soft.sliding)
    return law, -soft.spring * share * distance
