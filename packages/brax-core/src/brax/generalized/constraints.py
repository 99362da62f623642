"""The constraints of a model at a state: limits, dry friction and contacts.

Source: MuJoCo's documentation, chapter Computation, section Constraint model.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.base import System
from brax.colliders.interface import Touch
from brax.colliders.pairs import contact_links, contacts, frames_of, surfaces
from brax.components import Vec3, rows, tangents, total
from brax.generalized.fronts import on_paths, to_blocks
from brax.generalized.laws import Ellipse, Pyramid, Rows, impedance, reference
from brax.generalized.newton import Constraints, contact_rates
from brax.generalized.slots import Plan, Slots
from brax.generalized.smooth import Smooth
from brax.tree import Layout

SOFTEST = 1e-15
"""The least compliance of a constraint."""

NEARLY_PARALLEL = 1e-8
"""Squared sine below which a direction says nothing across a normal."""

LEAST_FRICTION = 1e-5
"""MuJoCo's bound from below."""


class Touching(NamedTuple):
    """What contacts are like, constant during a step, (slots, 1 or batch)."""

    friction: jax.Array
    sliding: jax.Array
    """One where there is friction, zero where `condim` is 1."""
    solimp: tuple[jax.Array, ...]
    spring: jax.Array
    """Stiffness and damping of the acceleration asked for."""
    damper: jax.Array
    margin: jax.Array
    weight: jax.Array
    """Inverse weight of the two links."""


class Single(NamedTuple):
    """What scalar constraints are like, constant during a step, (rows, 1 or batch)."""

    solimp: tuple[jax.Array, ...]
    spring: jax.Array
    damper: jax.Array
    weight: jax.Array


class Softness(NamedTuple):
    """All that does not change during a step."""

    limits: Single | None
    dry: Single | None
    contacts: Touching | None


def softness(sys: System, plan: Plan) -> Softness:
    """The parameters of all constraints."""
    joint = sys.dof_joint()
    of_limits = [joint[d] for d in plan.limited]
    limits = dry = touching = None
    if plan.limited:
        solref, solimp = rows((sys.joint.solref, sys.joint.solimp), of_limits)
        limits = _single(sys, solref, solimp, plan.limited)
    if plan.dry:
        dry = _single(sys, *rows((sys.dof.solref, sys.dof.solimp), plan.dry), plan.dry)
    if plan.order:
        touching = _touching(sys, plan)
    return Softness(limits, dry, touching)


def _single(sys: System, solref: jax.Array, solimp: jax.Array, dofs: tuple[int, ...]) -> Single:
    numbers = _columns(solimp)
    return Single(
        numbers,
        *reference(_columns(solref), numbers[1], sys.opt.timestep),
        rows(sys.dof.invweight, dofs),
    )


def _columns(table: jax.Array) -> tuple[jax.Array, ...]:
    return tuple(table[:, i] for i in range(table.shape[1]))


def _touching(sys: System, plan: Plan) -> Touching:
    parts = []
    weights = sys.link.invweight[:, 0]
    weights = jnp.concatenate([weights, jnp.zeros_like(weights[:1])])
    for group, surface, sides in zip(
        sys.collisions, surfaces(sys), contact_links(sys), strict=True
    ):
        spring, damper = reference(surface.solref, surface.solimp[1], sys.opt.timestep)
        weight = total(rows(weights, [i % len(weights) for i in side]) for side in sides)
        slide = jnp.full_like(surface.friction, group.condim > 1)
        mine = Touching(
            jnp.maximum(surface.friction, LEAST_FRICTION) * slide,
            slide, surface.solimp, spring, damper, surface.margin, weight,
        )  # fmt: skip
        parts += [mine] * group.collider.n_contacts
    return rows(jax.tree.map(_join, *parts), plan.order)


def _join(*parts: jax.Array) -> jax.Array:
    size = max(p.shape[-1] for p in parts)
    return jnp.concatenate([jnp.broadcast_to(p, (*p.shape[:-1], size)) for p in parts])


def constraints(
    sys: System,
    links: Layout,
    plan: Plan,
    soft: Softness,
    here: Smooth,
    q: jax.Array,
    qd: jax.Array,
) -> Constraints:
    """Evaluates all constraints.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        links: its links.
        plan: its blocks, and what is constrained.
        soft: the constraints' parameters.
        here: the unconstrained dynamics at the state.
        q: coordinates (nq, batch).
        qd: rates (nv, batch), in the model's order.
    """
    arms, singles, asked = _scalar(sys, plan, soft, q, qd)
    if soft.contacts is None:
        none = tuple(None for _ in plan.slots)
        return Constraints(singles, arms, asked, None, none, None)
    dist, point, axes = located(sys, links, plan, here)
    jacobian = _jacobian(plan, here, point, axes)
    moving = contact_rates(plan, jacobian, to_blocks(plan.blocks, qd))
    law, normal = _law(sys, soft.contacts, dist)
    damper = soft.contacts.damper
    wanted = Vec3(normal - damper * moving.x, -damper * moving.y, -damper * moving.z)
    return Constraints(singles, arms, asked, law, jacobian, wanted)


def _scalar(
    sys: System, plan: Plan, soft: Softness, q: jax.Array, qd: jax.Array
) -> tuple[jax.Array, Rows, jax.Array]:
    """Limits and dry friction: which way each acts, its law, and what it asks for."""
    parts = []
    if soft.limits is not None:
        parts.append(_limits(sys, plan, soft.limits, q, qd))
    if soft.dry is not None:
        parts.append(_dry(sys, plan, soft.dry, qd))
    if not parts:
        empty = qd[:0]
        return empty, Rows(empty, empty, empty), empty
    return jax.tree.map(_join, *parts) if len(parts) > 1 else parts[0]


def _limits(
    sys: System, plan: Plan, soft: Single, q: jax.Array, qd: jax.Array
) -> tuple[jax.Array, Rows, jax.Array]:
    """The nearer limit of each degree of freedom."""
    dofs = plan.limited
    joints = [sys.dof_joint()[d] for d in dofs]
    offset = [sys.joint_q_start()[j] - sys.joint_qd_start()[j] for j in joints]
    at = rows(q, [d + o for d, o in zip(dofs, offset, strict=True)])
    lower, upper = rows(sys.dof.limit, dofs)
    nearer = at - lower < upper - at
    arms = jnp.where(nearer, 1.0, -1.0).astype(at.dtype)
    distance = jnp.where(nearer, at - lower, upper - at) - rows(sys.joint.margin, joints)
    share = impedance(soft.solimp, distance)
    stiffness = share / jnp.maximum((1.0 - share) * soft.weight, SOFTEST)
    stiffness = jnp.where(distance < 0, stiffness, 0.0)
    asked = -soft.damper * arms * rows(qd, dofs) - soft.spring * share * distance
    zero = jnp.zeros_like(stiffness)
    return arms, Rows(stiffness, zero, zero + jnp.inf), asked


def _dry(sys: System, plan: Plan, soft: Single, qd: jax.Array) -> tuple[jax.Array, Rows, jax.Array]:
    """Dry friction: a force against the motion, up to a bound."""
    rate, loss = rows((qd, sys.dof.frictionloss), plan.dry)
    share = impedance(soft.solimp, jnp.zeros_like(soft.weight))
    full = jnp.ones_like(rate)
    stiffness = share / jnp.maximum((1.0 - share) * soft.weight, SOFTEST) * full
    return full, Rows(stiffness, -loss * full, loss * full), -soft.damper * rate


def located(
    sys: System, links: Layout, plan: Plan, here: Smooth
) -> tuple[jax.Array, Vec3, tuple[Vec3, ...]]:
    """Distances, points and axes of all slots."""
    frames = frames_of(here.pos, here.rot)
    place = (*links.position, -1)
    found = contacts(sys, lambda wanted: frames([place[i] for i in wanted]))
    sized = [t._replace(along=_along(t)) for t in (c.touch for c in found)]
    flat = [jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), t) for t in sized]
    touch = rows(jax.tree.map(_join, *flat), plan.order)
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


def _jacobian(
    plan: Plan, here: Smooth, point: Vec3, axes: tuple[Vec3, ...]
) -> tuple[Vec3 | None, ...]:
    """What each contact moves along its axes per unit rate of the path it is on."""
    subspace = _on_paths(plan, here.subspace)
    one_tree = here.origin.x.shape[0] == 1
    origin = [here.origin] * len(plan.slots) if one_tree else _on_paths(plan, here.origin)
    out: list[Vec3 | None] = []
    for i, slots in enumerate(plan.slots):
        if slots is None:
            out.append(None)
            continue

        def of_block(x: jax.Array, slots: Slots = slots) -> jax.Array:
            copies = slots.sign.shape[2]
            mine = x[slots.start : slots.start + slots.each * copies]
            return mine.reshape(1, slots.each, copies, x.shape[-1])

        at, *along = jax.tree.map(of_block, (point, *axes))
        arm = at - origin[i]
        ang, lin = subspace[i]
        columns = [lin.dot(t) + ang.dot(arm.cross(t)) for t in along]
        if (slots.sign != 1).any():
            columns = [c * slots.sign for c in columns]
        out.append(Vec3(*columns))
    return tuple(out)


def _on_paths(plan: Plan, tree: Any) -> list[Any]:
    """For each block, components along its paths, (path, 1, copies, batch)."""
    leaves, structure = jax.tree.flatten(tree)
    paths = zip(*(on_paths(plan.blocks, x) for x in leaves), strict=True)
    return [jax.tree.unflatten(structure, [x[:, None] for x in path]) for path in paths]


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
        law: Pyramid | Ellipse = Ellipse(normal, tangent, mu, mu / jnp.sqrt(ratio))
    else:
        compliance = jnp.maximum((1.0 - share) / share * weight * (1.0 + mu * mu), SOFTEST)
        edge = 2.0 * mu * mu / sys.opt.impratio
        compliance = jnp.where(soft.sliding > 0, compliance * edge, compliance)
        law = Pyramid(jnp.where(active, 1.0 / compliance, 0.0), mu, soft.sliding)
    return law, -soft.spring * share * distance
