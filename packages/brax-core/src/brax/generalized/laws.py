"""Force laws of the soft constraints: the dual of a regularized cone, and its derivative.

Each law gives the force for `v`, the acceleration along the constraint less the one it asks for.
Forces are the negative gradient of a convex energy; the stiffness is its second derivative.

Source: MuJoCo's documentation, chapter Computation, section Constraint solver; Todorov (2014).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.components import Sym3, Vec3

TINY = 1e-20
"""Keeps square roots and quotients from zero; far below any squared acceleration that matters."""


class Line(NamedTuple):
    """Of each constraint, on the way along a change of `v`."""

    power: jax.Array
    """Force times change."""
    curvature: jax.Array
    """Second derivative of the energy."""


class Rows(NamedTuple):
    """Scalar constraints (rows, batch): a spring whose force has bounds."""

    stiffness: jax.Array
    """Force per unit of violated acceleration, zero where the constraint is not active."""
    lower: jax.Array
    upper: jax.Array

    def response(self, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Force and stiffness."""
        wanted = -self.stiffness * v
        inside = (wanted > self.lower) & (wanted < self.upper)
        return jnp.clip(wanted, self.lower, self.upper), jnp.where(inside, self.stiffness, 0.0)

    def along(self, v: jax.Array, change: jax.Array, size: jax.Array) -> Line:
        """Power of the forces at `v + size * change`, and how fast it falls with `size`."""
        force, stiffness = self.response(v + size * change)
        return Line(force * change, stiffness * change * change)


class Pyramid(NamedTuple):
    """Contacts (contacts, batch) whose friction cone is a pyramid of four edges."""

    stiffness: jax.Array
    """Of each edge, zero where the contact is not active."""
    friction: jax.Array
    """Sliding friction; zero where a contact has none, and then one edge only."""
    edges: jax.Array
    """How much the three other edges count: one, or zero without friction."""

    def _edges(self, v: Vec3) -> tuple[jax.Array, ...]:
        a, b = v.y * self.friction, v.z * self.friction
        return v.x + a, v.x - a, v.x + b, v.x - b

    def response(self, v: Vec3) -> tuple[Vec3, Sym3]:
        """Force and stiffness in the contact's frame, normal first."""
        first, *others = self._edges(v)
        on = [self.stiffness * (first < 0)]
        on += [self.stiffness * self.edges * (e < 0) for e in others]
        f = [-d * e for d, e in zip(on, (first, *others), strict=True)]
        mu = self.friction
        force = Vec3(f[0] + f[1] + f[2] + f[3], mu * (f[0] - f[1]), mu * (f[2] - f[3]))
        return force, Sym3(
            on[0] + on[1] + on[2] + on[3],
            mu * mu * (on[0] + on[1]),
            mu * mu * (on[2] + on[3]),
            mu * (on[0] - on[1]),
            mu * (on[2] - on[3]),
            jnp.zeros_like(mu),
        )

    def along(self, v: Vec3, change: Vec3, size: jax.Array) -> Line:
        """As `Rows.along`, edge by edge: no matrix is needed."""
        power = curvature = jnp.zeros_like(v.x)
        others = self.stiffness * self.edges
        weights = self.stiffness, others, others, others
        for weight, edge, rate in zip(weights, self._edges(v), self._edges(change), strict=True):
            at = edge + size * rate
            pressed = jnp.where(at < 0, weight * rate, 0.0)
            power, curvature = power - pressed * at, curvature + pressed * rate
        return Line(power, curvature)


class Ellipse(NamedTuple):
    """Contacts (contacts, batch) whose friction cone is round."""

    normal: jax.Array
    """Stiffness along the normal, zero where the contact is not active."""
    tangent: jax.Array
    """Stiffness along the tangents, zero where a contact has no friction."""
    friction: jax.Array
    """Sliding friction."""
    mu: jax.Array
    """Friction of the regularized cone."""

    def _zones(self, v: Vec3) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """Scaled distance from the cone, tangential speed, and where v is in cone and dual."""
        speed = jnp.sqrt(v.y * v.y + v.z * v.z + TINY)
        n, t = self.mu * v.x, self.friction * speed
        return n - self.mu * t, speed, n >= self.mu * t, self.mu * n + t <= 0

    def response(self, v: Vec3) -> tuple[Vec3, Sym3]:
        """Force and stiffness in the contact's frame, normal first."""
        gap, speed, free, stuck = self._zones(v)
        mu, slide = self.mu, self.mu * self.friction
        along = self.normal / (mu * mu * (1.0 + mu * mu))
        y, z = v.y / speed, v.z / speed
        turn = -along * gap * slide / speed

        def pick(sticking: jax.Array, sliding: jax.Array) -> jax.Array:
            return jnp.where(free, 0.0, jnp.where(stuck, sticking, sliding))

        pull = along * gap
        force = Vec3(
            pick(-self.normal * v.x, -pull * mu),
            pick(-self.tangent * v.y, pull * slide * y),
            pick(-self.tangent * v.z, pull * slide * z),
        )
        zero = jnp.zeros_like(gap)
        return force, Sym3(
            pick(self.normal, along * mu * mu),
            pick(self.tangent, along * slide * slide * y * y + turn * z * z),
            pick(self.tangent, along * slide * slide * z * z + turn * y * y),
            pick(zero, -along * mu * slide * y),
            pick(zero, -along * mu * slide * z),
            pick(zero, (along * slide * slide - turn) * y * z),
        )

    def along(self, v: Vec3, change: Vec3, size: jax.Array) -> Line:
        """As `Rows.along`."""
        force, stiffness = self.response(v + change * size)
        return Line(force.dot(change), stiffness.mul(change).dot(change))


def impedance(solimp: tuple[jax.Array, ...], distance: jax.Array) -> jax.Array:
    """How far a constraint has its way, between 0 and 1, at a violation.

    Args:
        solimp: least and most impedance, width [m or rad], midpoint and power of the transition.
        distance: violation, of either sign.
    """
    low, high, width, middle, power = solimp
    low, high = (jnp.clip(x, 1e-4, 0.9999) for x in (low, high))
    middle, power = jnp.clip(middle, 1e-4, 0.9999), jnp.maximum(power, 1.0)
    x = jnp.minimum(jnp.abs(distance) / jnp.maximum(width, 1e-15), 1.0)
    below = x <= middle
    # The power of what is not taken must have a finite derivative too.
    rise = middle * _power(jnp.where(below, x, middle) / middle, power)
    fall = 1.0 - (1.0 - middle) * _power(
        (1.0 - jnp.where(below, middle, x)) / (1.0 - middle), power
    )
    return low + jnp.where(below, rise, fall) * (high - low)


def _power(x: jax.Array, power: jax.Array) -> jax.Array:
    return jnp.exp(power * jnp.log(x + TINY))


def reference(
    solref: tuple[jax.Array, ...], highest: jax.Array, timestep: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Stiffness and damping of the acceleration that a constraint asks for.

    Args:
        solref: time constant [s] and damping ratio; or, negative, stiffness and damping.
        highest: the most impedance.
        timestep: physics step [s]; no time constant is shorter than two of them.
    """
    first, second = solref
    high = jnp.clip(highest, 1e-4, 0.9999)
    direct = first <= 0
    time = jnp.maximum(jnp.where(direct, 1.0, first), 2.0 * timestep)
    ratio = jnp.where(direct, 1.0, second)
    spring = 1.0 / (high * high * time * time * ratio * ratio)
    damper = 2.0 / (high * time)
    return (
        jnp.where(direct, -first / (high * high), spring),
        jnp.where(direct, -second / high, damper),
    )
