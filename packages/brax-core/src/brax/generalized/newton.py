"""The constraint solver: Newton's method on accelerations, with a fixed number of steps.

Constrained accelerations minimize `(a - a0)^T M (a - a0) / 2 + energy(J a - reference)`, which is
convex. The Hessian is factored with the sparsity of the mass matrix. The solution is
differentiated where its gradient vanishes, not through the steps that found it.

Source: MuJoCo's documentation, chapter Computation, section Constraint solver.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.components import Sym3, Vec3, rows, total
from brax.generalized import fronts
from brax.generalized.fronts import Front
from brax.generalized.laws import TINY, Ellipse, Pyramid, Rows
from brax.generalized.slots import Plan
from brax.once import once
from brax.tree import sum_rows


class Violation(NamedTuple):
    """Accelerations along the constraints, less what they ask for."""

    rows: jax.Array
    contacts: Vec3 | None


class Constraints(NamedTuple):
    """All constraints of a step, arrays."""

    rows: Rows
    arms: jax.Array
    """Jacobian of the scalar rows, each one number for one degree of freedom, (rows, batch)."""
    rows_reference: jax.Array
    contacts: Pyramid | Ellipse | None
    jacobian: tuple[Vec3 | None, ...]
    """For each block, what its contacts move along normal and tangents per unit rate of its path,
    components (path, slots, copies, batch)."""
    contacts_reference: Vec3 | None


class Problem(NamedTuple):
    """The minimization."""

    mass: list[Front]
    force: jax.Array
    """What acts without constraints, (nv, batch) in the order of elimination."""
    constraints: Constraints


def contact_rates(plan: Plan, jacobian: Sequence[Vec3 | None], rates: jax.Array) -> Vec3:
    """What rates (nv, batch) move all contacts along their axes, (slots, batch)."""
    parts = []
    for path, mine in zip(fronts.on_paths(plan.blocks, rates), jacobian, strict=True):
        if mine is not None:
            parts.append([fronts.dot(j, path[:, None]) for j in mine])
    flat = [[x.reshape(-1, x.shape[-1]) for x in part] for part in parts]
    return Vec3(*(jnp.concatenate(x) for x in zip(*flat, strict=True)))


class Solver:
    """The solver of one structure."""

    def __init__(self, plan: Plan, steps: int, search_steps: int) -> None:
        """Takes the structure, and how many steps of Newton, and along each direction."""
        self.plan, self.owners = plan, plan.rows
        self.steps, self.search_steps = steps, search_steps

    def solve(self, problem: Problem, start: jax.Array) -> jax.Array:
        """Accelerations (nv, batch), from where the search starts."""
        found = jax.custom_jvp(self._search)
        found.defjvp(self._derivative)
        return found(problem, start)

    def along(self, c: Constraints, a: jax.Array) -> Violation:
        """Accelerations along the constraints, J a."""
        single = c.arms * rows(a, self.owners)
        if c.contacts is None:
            return Violation(single, None)
        return Violation(single, contact_rates(self.plan, c.jacobian, a))

    def back(self, c: Constraints, force: Violation, like: jax.Array) -> jax.Array:
        """Forces on the degrees of freedom, J^T f."""
        out = self._on_dofs(c.arms * force.rows, like)
        if force.contacts is None:
            return out
        parts: list[jax.Array | None] = []
        for slots, jacobian in zip(self.plan.slots, c.jacobian, strict=True):
            if slots is None or jacobian is None:
                parts.append(None)
                continue
            f = [self._of_block(slots, x, jacobian) for x in force.contacts]
            pushed = total(j * x[None] for j, x in zip(jacobian, f, strict=True))
            parts.append(total(pushed[:, i] for i in range(slots.each)))
        return out + fronts.from_paths(self.plan.blocks, parts, like)

    def _on_dofs(self, x: jax.Array, like: jax.Array) -> jax.Array:
        """Sums what scalar rows have for their degrees of freedom."""
        if not self.owners:
            return jnp.zeros_like(like)
        return sum_rows(x, self.owners, like.shape[0])

    def _of_block(self, slots: Any, x: jax.Array, jacobian: Vec3) -> jax.Array:
        """A block's share of what is given for all slots, (slots, copies, batch)."""
        copies = jacobian.x.shape[2]
        piece = x[slots.start : slots.start + slots.each * copies]
        return piece.reshape(slots.each, copies, x.shape[-1])

    def respond(self, c: Constraints, v: Violation) -> tuple[Violation, tuple[Any, Any]]:
        """Forces and stiffnesses."""
        rows, stiff = c.rows.response(v.rows)
        if c.contacts is None or v.contacts is None:
            return Violation(rows, None), (stiff, None)
        touch, block = c.contacts.response(v.contacts)
        return Violation(rows, touch), (stiff, block)

    def hessian(self, problem: Problem, stiffness: tuple[Any, Any]) -> list[Front]:
        """M + J^T D J."""
        c, (rows, touch) = problem.constraints, stiffness
        diagonal = self._on_dofs(c.arms * c.arms * rows, problem.force)
        loaded = fronts.add_diagonal(self.plan.blocks, problem.mass, diagonal)
        if touch is None:
            return loaded
        return [
            front if slots is None or j is None else self._press(front, slots, j, touch)
            for front, slots, j in zip(loaded, self.plan.slots, c.jacobian, strict=True)
        ]

    def _press(self, front: Front, slots: Any, jacobian: Vec3, touch: Sym3) -> Front:
        """Adds the stiffness of a block's contacts to its front."""
        block = Sym3(*(self._of_block(slots, x, jacobian) for x in touch))
        pushed = block.mul(jacobian)
        out = []
        for i, row in enumerate(front):
            for s in range(slots.each):
                terms = [p[i, s] * j[: i + 1, s] for p, j in zip(pushed, jacobian, strict=True)]
                row = fronts.add(row, total(terms))
            out.append(row)
        return out

    def gradient(self, problem: Problem, a: jax.Array) -> jax.Array:
        """What vanishes at the solution."""
        c = problem.constraints
        force, _ = self.respond(c, self.violation(c, a))
        inertial = fronts.multiply(self.plan.blocks, problem.mass, a)
        return inertial - problem.force - self.back(c, force, a)

    def violation(self, c: Constraints, a: jax.Array) -> Violation:
        """How far accelerations (nv, batch) are from what the constraints ask for."""
        asked = Violation(c.rows_reference, c.contacts_reference)
        return once(jax.tree.map(jnp.subtract, self.along(c, a), asked))

    def _search(self, problem: Problem, start: jax.Array) -> jax.Array:
        inertial = fronts.multiply(self.plan.blocks, problem.mass, start) - problem.force
        carry = start, self.violation(problem.constraints, start), inertial
        step = lambda _, carry: self._newton_step(problem, carry)  # noqa: E731
        return jax.lax.fori_loop(0, self.steps, step, carry)[0]

    def _newton_step(self, problem: Problem, carry: Any) -> Any:
        a, v, inertial = carry
        blocks, c = self.plan.blocks, problem.constraints
        force, stiffness = once(self.respond(c, v))
        slope = inertial - self.back(c, force, a)
        pivots = fronts.factor(blocks, self.hessian(problem, stiffness))
        direction = -fronts.solve(blocks, pivots, slope)
        change = once(self.along(c, direction))
        heavy = fronts.multiply(blocks, problem.mass, direction)
        first, second = sum_all(direction * inertial), sum_all(direction * heavy)
        size = self._line_search(c, v, change, first, second, sum_all(direction * slope))
        moved = jax.tree.map(lambda x, d: x + size * d, (v, inertial), (change, heavy))
        return a + size * direction, *moved

    def _line_search(
        self,
        c: Constraints,
        v: Violation,
        change: Violation,
        first: jax.Array,
        second: jax.Array,
        steep: jax.Array,
    ) -> jax.Array:
        """How far to go: where the cost's slope along the direction vanishes.

        Newton's method from the full step; a step that would leave the bracket goes where the
        secant of its ends vanishes. The flattest point seen is taken, none if none is flatter.
        """
        low: tuple[jax.Array, ...] = (jnp.zeros_like(first), steep)
        high: tuple[jax.Array, ...] = (jnp.full_like(first, jnp.inf), -steep)
        size, best = jnp.ones_like(first), (jnp.zeros_like(first), jnp.abs(steep))
        for _ in range(self.search_steps + 1):
            power, curvature = self._along_line(c, v, change, size)
            slope, curve = first + size * second - power, second + curvature
            short, here = slope < 0, (size, slope)
            low, high = (
                tuple(jnp.where(take, x, y) for x, y in zip(here, end, strict=True))
                for take, end in ((short, low), (~short, high))
            )
            better = jnp.abs(slope) < best[1]
            best = jnp.where(better, size, best[0]), jnp.where(better, jnp.abs(slope), best[1])
            guess = size - slope / curve
            bounded = jnp.minimum(high[0], 4.0 * low[0] + 1.0)
            secant = low[0] - low[1] * (bounded - low[0]) / (high[1] - low[1] + TINY)
            size = jnp.where((guess > low[0]) & (guess < high[0]), guess, secant)
        return best[0]

    def _along_line(
        self, c: Constraints, v: Violation, change: Violation, size: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Power and curvature of all constraints, (1, batch)."""
        power, curvature = map(sum_all, c.rows.along(v.rows, change.rows, size))
        if c.contacts is None or v.contacts is None or change.contacts is None:
            return power, curvature
        touching = c.contacts.along(v.contacts, change.contacts, size)
        return power + sum_all(touching.power), curvature + sum_all(touching.curvature)

    def _derivative(self, primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
        """The implicit function theorem at the solution."""
        problem, start = primals
        a = self.solve(problem, start)
        _, change = jax.jvp(lambda p: self.gradient(p, a), (problem,), (tangents[0],))
        _, stiffness = self.respond(problem.constraints, self.violation(problem.constraints, a))
        pivots = fronts.factor(self.plan.blocks, self.hessian(problem, stiffness))
        return a, -fronts.solve(self.plan.blocks, pivots, change)


def sum_all(x: jax.Array) -> jax.Array:
    """Sum of the rows of (n, batch), (1, batch)."""
    return total(x[i : i + 1] for i in range(x.shape[0])) if x.shape[0] else x.sum(0)[None]
