"""The constraint solver: Newton's method on accelerations, with a fixed number of steps.

Constrained accelerations minimize `(a - a0)^T M (a - a0) / 2 + energy(J a - reference)`, which is
convex. The Hessian is factored with the sparsity of the mass matrix. The solution is
differentiated where its gradient vanishes, not through the steps that found it.

Source: MuJoCo's documentation, chapter Computation, section Constraint solver.
"""

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.components import rows, sum_first, total
from brax.generalized.constraints.constraint_laws import (
    MIN_SQUARED_NORM,
    Along,
    EllipticCone,
    IndependentLaw,
    Matrix,
    PyramidalCone,
    ScalarLaw,
)
from brax.generalized.constraints.constraint_layout import (
    BlockConstraints,
    ConstraintFamily,
    ConstraintLayout,
)
from brax.generalized.constraints.jacobians import of_block
from brax.generalized.linalg import (
    constraint_hessian_dense,
    constraint_hessian_sparse,
    frontal,
    unrolled,
)
from brax.generalized.linalg.frontal import Front
from brax.generalized.linalg.unrolled import add
from brax.kernels.fusion_barrier import fusion_barrier
from brax.kernels.skip import where_needed
from brax.tree import sum_rows

Law = IndependentLaw | PyramidalCone | EllipticCone

MAX_UNROLLED_SUM_ROWS = 64
"""Rows from which on a sum is no longer written out."""

CONVERGED_POWER = 0.75
"""Power of the precision that is the slope of the cost, as a share of the forces, from which on an
environment makes no further steps: 6e-6 in single, 2e-12 in double precision."""

MAX_UNROLLED_LINE_SEARCH = 8
"""Looks along a direction up to which they are written out, not looped over."""


class Violation(NamedTuple):
    """Accelerations along the constraints, less what they ask for."""

    rows: jax.Array
    families: tuple[Along, ...]


class Joined(NamedTuple):
    """The constraints of one family of a step, arrays."""

    law: Law
    jacobian: tuple[Along | None, ...]
    """For each block, for each direction, what a unit rate of the path moves, (path, slots,
    copies, batch)."""
    reference: Along
    """The acceleration along each direction that is asked for, (slots, batch)."""


class Constraints(NamedTuple):
    """All constraints of a step, arrays."""

    rows: ScalarLaw
    signs: jax.Array
    """Jacobian of the scalar rows, each one number for one degree of freedom, (rows, batch)."""
    rows_reference: jax.Array
    families: tuple[Joined, ...]


class ConstraintProblem(NamedTuple):
    """The minimization."""

    mass: list[Front]
    force: jax.Array
    """What acts without constraints, (nv, batch) in the order of elimination."""
    constraints: Constraints


def along_families(
    plan: ConstraintLayout, jacobians: Sequence[Sequence[Along | None]], rates: jax.Array
) -> list[Along]:
    """What rates (nv, batch) move each family along its directions, (slots, batch)."""
    if not jacobians:
        return []
    paths = frontal.on_paths(plan.blocks, rates)
    out = []
    for family, jacobian in zip(plan.families, jacobians, strict=True):
        parts = [
            [_constraint_hessian(slots).apply_jacobian(slots, j, paths[i]) for j in mine]
            for i, slots, mine in _present(family, jacobian)
        ]
        flat = [[x.reshape(-1, x.shape[-1]) for x in part] for part in parts]
        out.append(tuple(jnp.concatenate(x) for x in zip(*flat, strict=True)))
    return out


class _Line(NamedTuple):
    """What is known of the cost's slope along a direction: sizes and slopes, (1, batch)."""

    low: tuple[jax.Array, jax.Array]
    """The largest size that is known to be too short."""
    high: tuple[jax.Array, jax.Array]
    """The least that is known to be too long."""
    size: jax.Array
    """To be looked at next."""
    best: tuple[jax.Array, jax.Array]
    """The flattest seen, and how steep it is."""

    def at(self, slope: jax.Array, curve: jax.Array) -> "_Line":
        """With the slope and its derivative at the size."""
        size = self.size
        short, better = slope < 0, jnp.abs(slope) < self.best[1]
        low, high, best = (
            (jnp.where(take, size, end[0]), jnp.where(take, value, end[1]))
            for take, value, end in (
                (short, slope, self.low),
                (~short, slope, self.high),
                (better, jnp.abs(slope), self.best),
            )
        )
        guess = size - slope / curve
        bounded = jnp.minimum(high[0], 4.0 * low[0] + 1.0)
        secant = low[0] - low[1] * (bounded - low[0]) / (high[1] - low[1] + MIN_SQUARED_NORM)
        within = (guess > low[0]) & (guess < high[0])
        return _Line(low, high, jnp.where(within, guess, secant), best)


class Solver:
    """The solver of one structure."""

    def __init__(self, plan: ConstraintLayout, steps: int, search_steps: int) -> None:
        """Takes the structure, and how many steps of Newton, and along each direction."""
        self.plan, self.owners = plan, plan.rows
        self.steps, self.search_steps = steps, search_steps

    def solve(self, problem: ConstraintProblem, start: jax.Array) -> jax.Array:
        """Accelerations (nv, batch), from where the search starts.

        The result of one step alone is no solution, so it is differentiated as it is computed.
        """
        if self.steps == 1:
            return self._search(problem, start)
        found = jax.custom_jvp(self._search)
        found.defjvp(self._derivative)
        return found(problem, start)

    def apply_jacobian(self, c: Constraints, a: jax.Array) -> Violation:
        """Accelerations along the constraints, J a."""
        single = c.signs * rows(a, self.owners)
        return Violation(
            single, tuple(along_families(self.plan, [f.jacobian for f in c.families], a))
        )

    def apply_transpose(self, c: Constraints, force: Violation, like: jax.Array) -> jax.Array:
        """Forces on the degrees of freedom, J^T f."""
        out = self._on_dofs(c.signs * force.rows, like)
        if not c.families:
            return out
        parts: list[jax.Array | None] = [None] * len(self.plan.blocks.blocks)
        for family, joined, mine in zip(
            self.plan.families, c.families, force.families, strict=True
        ):
            for i, slots, jacobian in _present(family, joined.jacobian):
                f = tuple(of_block(slots, x) for x in mine)
                parts[i] = add(
                    parts[i], _constraint_hessian(slots).apply_transpose(slots, jacobian, f)
                )
        return out + frontal.from_paths(self.plan.blocks, parts, like)

    def _on_dofs(self, x: jax.Array, like: jax.Array) -> jax.Array:
        """Sums what scalar rows have for their degrees of freedom."""
        if not self.owners:
            return jnp.zeros_like(like)
        return sum_rows(x, self.owners, like.shape[0])

    def respond(
        self, c: Constraints, v: Violation
    ) -> tuple[Violation, tuple[jax.Array, tuple[Matrix, ...]]]:
        """Forces and stiffnesses."""
        force, stiff = c.rows.response(v.rows)
        found = [f.law.response(mine) for f, mine in zip(c.families, v.families, strict=True)]
        return Violation(force, tuple(f for f, _ in found)), (stiff, tuple(m for _, m in found))

    def hessian(
        self, problem: ConstraintProblem, stiffness: tuple[jax.Array, tuple[Matrix, ...]]
    ) -> list[Front]:
        """M + J^T D J."""
        c, (single, matrices) = problem.constraints, stiffness
        diagonal = self._on_dofs(c.signs * c.signs * single, problem.force)
        loaded: list[Any] = frontal.add_diagonal(self.plan.blocks, problem.mass, diagonal)
        for family, joined, matrix in zip(self.plan.families, c.families, matrices, strict=True):
            for i, slots, jacobian in _present(family, joined.jacobian):
                mine = tuple(
                    tuple(None if x is None else of_block(slots, x) for x in row) for row in matrix
                )
                assembly = _constraint_hessian(slots)
                if assembly is unrolled:
                    loaded[i] = unrolled.hessian(slots, loaded[i], jacobian, mine)
                else:
                    kind = frontal.algebra(self.plan.blocks.blocks[i])
                    loaded[i] = kind.add_matrix(loaded[i], assembly.hessian(slots, jacobian, mine))
        return loaded

    def gradient(self, problem: ConstraintProblem, a: jax.Array) -> jax.Array:
        """What vanishes at the solution."""
        c = problem.constraints
        force, _ = self.respond(c, self.violation(c, a))
        inertial = frontal.multiply(self.plan.blocks, problem.mass, a)
        return inertial - problem.force - self.apply_transpose(c, force, a)

    def violation(self, c: Constraints, a: jax.Array) -> Violation:
        """How far accelerations (nv, batch) are from what the constraints ask for."""
        asked = Violation(c.rows_reference, tuple(f.reference for f in c.families))
        return fusion_barrier(jax.tree.map(jnp.subtract, self.apply_jacobian(c, a), asked))

    def _search(self, problem: ConstraintProblem, start: jax.Array) -> jax.Array:
        inertial = frontal.multiply(self.plan.blocks, problem.mass, start) - problem.force
        carry = start, self.violation(problem.constraints, start), inertial
        if self.steps == 1:
            return self._newton_step(problem, carry, self._slope(problem, carry))[0]
        weight = 1.0 / frontal.diagonal(self.plan.blocks, problem.mass)

        def step(_: int, carry: Any) -> Any:
            slope = self._slope(problem, carry)
            return where_needed(
                self._far(problem, weight, carry, slope),
                lambda carry: self._newton_step(problem, carry, slope),
                carry,
            )

        return jax.lax.fori_loop(0, self.steps, step, carry)[0]

    def _slope(self, problem: ConstraintProblem, carry: Any) -> jax.Array:
        """That of the cost, (nv, batch)."""
        a, v, inertial = carry
        force, _ = fusion_barrier(self.respond(problem.constraints, v))
        return inertial - self.apply_transpose(problem.constraints, force, a)

    def _far(
        self, problem: ConstraintProblem, weight: jax.Array, carry: Any, slope: jax.Array
    ) -> jax.Array:
        """Return whether the slope of the cost is more than is left of it by rounding, (1, batch).

        `weight` makes squares of forces comparable: one over what each degree of freedom moves.
        """
        _, _, inertial = carry
        scale = inertial * inertial + problem.force * problem.force
        near = float(jnp.finfo(slope.dtype).eps) ** CONVERGED_POWER
        # Written so that NaN is far: a step then carries it into the accelerations.
        return ~(sum_all(weight * slope * slope) <= near**2 * sum_all(weight * scale))

    def _newton_step(self, problem: ConstraintProblem, carry: Any, slope: jax.Array) -> Any:
        a, v, inertial = carry
        blocks, c = self.plan.blocks, problem.constraints
        _, stiffness = fusion_barrier(self.respond(c, v))
        pivots = frontal.factor(blocks, self.hessian(problem, stiffness))
        direction = -frontal.solve(blocks, pivots, slope)
        change = fusion_barrier(self.apply_jacobian(c, direction))
        heavy = frontal.multiply(blocks, problem.mass, direction)
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
        zero = jnp.zeros_like(first)
        seen = _Line(
            low=(zero, steep),
            high=(jnp.full_like(first, jnp.inf), -steep),
            size=jnp.ones_like(first),
            best=(zero, jnp.abs(steep)),
        )

        def look(_: int, seen: _Line) -> _Line:
            power, curvature = self._along_line(c, v, change, seen.size)
            return seen.at(first + seen.size * second - power, second + curvature)

        turns = self.search_steps + 1
        return jax.lax.fori_loop(
            0, turns, look, seen, unroll=turns <= MAX_UNROLLED_LINE_SEARCH
        ).best[0]

    def _along_line(
        self, c: Constraints, v: Violation, change: Violation, size: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Power and curvature of all constraints, (1, batch)."""
        lines = [c.rows.along(v.rows, change.rows, size)]
        for family, dynamics, there in zip(c.families, v.families, change.families, strict=True):
            lines.append(family.law.along(dynamics, there, size))
        return total(sum_all(x.power) for x in lines), total(sum_all(x.curvature) for x in lines)

    def _derivative(self, primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
        """The implicit function theorem at the solution."""
        problem, start = primals
        a = self.solve(problem, start)
        _, change = jax.jvp(lambda p: self.gradient(p, a), (problem,), (tangents[0],))
        _, stiffness = self.respond(problem.constraints, self.violation(problem.constraints, a))
        pivots = frontal.factor(self.plan.blocks, self.hessian(problem, stiffness))
        return a, -frontal.solve(self.plan.blocks, pivots, change)


def _present(
    family: ConstraintFamily, jacobian: Sequence[Along | None]
) -> Iterator[tuple[int, BlockConstraints, Along]]:
    """The blocks that a family has constraints on."""
    for i, (slots, mine) in enumerate(zip(family.slots, jacobian, strict=True)):
        if slots is not None and mine is not None:
            yield i, slots, mine


def _constraint_hessian(slots: BlockConstraints) -> ModuleType:
    """What goes between constraints and the places of a path."""
    if slots.link_paths is not None:
        return constraint_hessian_dense
    return unrolled if slots.reach is None else constraint_hessian_sparse


def sum_all(x: jax.Array) -> jax.Array:
    """Sum of the rows of (n, batch), (1, batch)."""
    if x.shape[0] > MAX_UNROLLED_SUM_ROWS:
        return sum_first(x)
    return total(x[i : i + 1] for i in range(x.shape[0])) if x.shape[0] else x.sum(0)[None]
