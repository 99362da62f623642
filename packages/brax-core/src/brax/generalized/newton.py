"""Constraint solver: Newton's method on the accelerations, with an exact line search.

The constrained accelerations minimize the convex cost

    (a - a0)ᵀ M (a - a0) / 2 + s(J a - aref),

where a0 are the unconstrained accelerations and s is the sum of the constraint laws' energies. The
Hessian M + JᵀDJ is factorized with the sparsity of the mass matrix; `MAX_UNROLLED_DOFS` in
`smooth_dynamics/structure.py` decides which blocks are unrolled. With several iterations the
derivative is the implicit one, at the solution.

Source: MuJoCo's documentation, chapter Computation, sections Constraint model and Solver; Todorov
(2014).
"""

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

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
from brax.generalized.constraints.jacobians import ListedJacobian, of_block
from brax.generalized.linalg import (
    blocked,
    constraint_hessian_dense,
    constraint_hessian_sparse,
    frontal,
    joined_trees,
    unrolled,
)
from brax.generalized.linalg.frontal import Front
from brax.generalized.linalg.unrolled import add
from brax.kernels.fusion_barrier import fusion_barrier
from brax.kernels.skip import (
    empty,
    fold_needed,
    in_chunks,
    map_needed,
    rows_needed,
    unread,
    update_needed,
    where_needed,
)
from brax.tree import sum_rows

T = TypeVar("T")

Law = IndependentLaw | PyramidalCone | EllipticCone

Stiffness = tuple[jax.Array, tuple[Matrix | jax.Array, ...]]
"""D of the rows at single degrees of freedom, and of each family; see `FamilyRows.response`."""

MAX_UNROLLED_SUM_ROWS = 64
"""Most rows of a sum over degrees of freedom or constraints that is unrolled."""

CONVERGED_POWER = 0.75
"""Power of the machine precision that bounds the gradient of a converged environment, relative to
its forces: 6e-6 in single and 2e-12 in double precision."""

LINE_SEARCH_TOLERANCE = 0.01
"""Slope at which a line search ends, relative to the slope at its start. On the Unitree Go2 and the
humanoid, .0001 costs more and brings no step nearer to MuJoCo's."""

MAX_UNROLLED_LINE_SEARCH = 8
"""Most evaluations of a line search that is unrolled; more of them are a loop."""


class ConstraintVector(NamedTuple):
    """One value for each constraint row: residuals J a - aref, or forces."""

    rows: jax.Array
    """Limits and dry friction of joints, (rows, batch)."""
    families: tuple[Along, ...]
    """For each family, one array for each direction, (slots, batch)."""


def listed_jacobian(jacobian: Sequence[Along | ListedJacobian | None]) -> ListedJacobian | None:
    """Return the Jacobian on some block if contacts are listed, else None."""
    return next((j for j in jacobian if isinstance(j, ListedJacobian)), None)


def on_needed(listed: ListedJacobian | None, function: Callable[[T], Along], slots: T) -> Along:
    """Return a function of constraints, (slots, batch), chunk by chunk if they are listed.

    Nobody may read what belongs to chunks that are not needed.

    Args:
        listed: as `listed_jacobian` returns it.
        function: returns one array for each direction.
        slots: a pytree of its operands.
    """
    if listed is None:
        return function(slots)
    chunks = in_chunks(slots, len(listed.rows))
    none = unread(empty(function, jax.tree.map(lambda x: x[0], chunks)))
    found = map_needed(listed.filled, function, chunks, none)
    return tuple(x.reshape(-1, x.shape[-1]) for x in found)


class FamilyRows(NamedTuple):
    """The constraints of one family at a state, arrays."""

    law: Law
    """The constraint law: force and D of each direction."""
    jacobian: tuple[Along | ListedJacobian | None, ...]
    """For each block and direction the Jacobian J, (path or reach, slots, copies, batch); in chunks
    for listed contacts. None for a block without constraints."""
    aref: Along
    """Reference accelerations aref, MuJoCo's `efc_aref`, for each direction, (slots, batch)."""

    @property
    def listed(self) -> ListedJacobian | None:
        """The Jacobian on some block if contacts are listed, else None."""
        return listed_jacobian(self.jacobian)

    def residual(self, moving: Along) -> Along:
        """Return J a - aref; nobody may read what belongs to chunks that are not needed."""

        def less(given: tuple[Along, Along]) -> Along:
            return tuple(a - b for a, b in zip(*given, strict=True))

        return on_needed(self.listed, less, (moving, self.aref))

    def moved(self, needed: jax.Array, residual: Along, change: Along, size: jax.Array) -> Along:
        """Return `residual + size * change`, of listed contacts where environments need it.

        Args:
            needed: truth values, (1, batch).
            residual: residuals, (slots, batch).
            change: their change per unit of size.
            size: the size, (1, batch).
        """

        def step(residual: Along, change: Along) -> Along:
            return tuple(x + size * d for x, d in zip(residual, change, strict=True))

        listed = self.listed
        if listed is None:
            return step(residual, change)
        chunks = in_chunks((residual, change), len(listed.rows))
        found = update_needed(jnp.where(needed, listed.filled, 0), step, *chunks)
        return tuple(x.reshape(-1, x.shape[-1]) for x in found)

    def response(self, residual: Along) -> tuple[Along, Matrix | jax.Array]:
        """Return forces and D along the directions.

        D of listed contacts is an array, the weights of `outer_sums`. Nobody may read what belongs
        to chunks that are not needed.
        """
        listed = self.listed
        if listed is None:
            return self.law.response(residual)

        def of_chunk(given: tuple[Law, Along]) -> tuple[Along, jax.Array]:
            law, mine = given
            force, matrix = law.response(mine)
            entries = [x for row in matrix for x in row]
            zero = jnp.zeros_like(force[0])
            return force, jnp.stack([zero if x is None else x for x in entries])

        chunks = in_chunks((self.law, residual), len(listed.rows))
        none = unread(empty(of_chunk, jax.tree.map(lambda x: x[0], chunks)))
        force, weights = map_needed(listed.filled, of_chunk, chunks, none)
        return jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), force), weights

    def forces(self, residual: Along) -> Along:
        """Return forces along the directions, zero where no listed contact is."""
        force, _ = self.response(residual)
        listed = self.listed
        if listed is None:
            return force
        count = len(listed.rows)
        some = rows_needed(listed.filled, count)[:, None]
        mine = (jnp.where(some, x, 0.0) for x in in_chunks(force, count))
        return tuple(x.reshape(-1, x.shape[-1]) for x in mine)

    def along(self, residual: Along, change: Along, size: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return power and curvature of the energy at `residual + size * change`, (1, batch)."""
        listed = self.listed
        if listed is None:
            line = self.law.along(residual, change, size)
            return sum_all(line.power), sum_all(line.curvature)

        def more(sums: tuple[jax.Array, jax.Array], chunk: Any) -> tuple[jax.Array, jax.Array]:
            law, mine, rate = chunk
            line = law.along(mine, rate, size)
            return sums[0] + sum_all(line.power), sums[1] + sum_all(line.curvature)

        none = jnp.zeros_like(size)
        chunks = in_chunks((self.law, residual, change), len(listed.rows))
        return fold_needed(listed.filled, more, (none, none), chunks)


class Constraints(NamedTuple):
    """All constraints at a state, arrays."""

    rows: ScalarLaw
    """The law of limits and dry friction of joints."""
    signs: jax.Array
    """The Jacobian of these rows: each is 1 or -1 at one degree of freedom, (rows, batch)."""
    rows_aref: jax.Array
    """Reference accelerations of these rows, (rows, batch)."""
    families: tuple[FamilyRows, ...]
    """All other constraints."""


class ConstraintProblem(NamedTuple):
    """The minimization problem, in the order of elimination."""

    mass: list[Front]
    """The fronts of the mass matrix M."""
    force: jax.Array
    """The unconstrained force M a0, MuJoCo's `qfrc_smooth`, (nv, batch)."""
    constraints: Constraints
    """The constraints."""


def along_families(
    plan: ConstraintLayout,
    jacobians: Sequence[Sequence[Along | ListedJacobian | None]],
    rates: jax.Array,
) -> list[Along]:
    """Return J times rates (nv, batch): for each family and direction, (slots, batch)."""
    if not jacobians:
        return []
    paths = frontal.on_paths(plan.blocks, rates)
    out = []
    for family, jacobian in zip(plan.families, jacobians, strict=True):
        if joined := _of_forest(jacobian):
            assert plan.forest is not None
            out.append(joined_trees.apply_jacobian(plan.forest, joined, rates))
            continue
        # Outer index: block; inner index: direction. The slots of all blocks are joined below.
        parts = [_moved(slots, mine, paths[i]) for i, slots, mine in _present(family, jacobian)]
        flat = [[x.reshape(-1, x.shape[-1]) for x in part] for part in parts]
        out.append(tuple(jnp.concatenate(x) for x in zip(*flat, strict=True)))
    return out


class _LineSearch(NamedTuple):
    """The state of a line search: step sizes and slopes of the cost there, (1, batch).

    The cost is convex along the direction, so that its slope rises and the minimum lies between
    `low` and `high`.
    """

    low: tuple[jax.Array, jax.Array]
    """The largest size with a negative slope, and the slope."""
    high: tuple[jax.Array, jax.Array]
    """The smallest size with a positive slope, and the slope."""
    size: jax.Array
    """The size to be evaluated next."""
    best: tuple[jax.Array, jax.Array]
    """The size with the smallest absolute slope so far, and that absolute slope."""

    def at(self, slope: jax.Array, curve: jax.Array) -> "_LineSearch":
        """Return the search after an evaluation at `size`."""
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
        # Newton's method in one variable; the cost is piecewise smooth, so that it may leave the
        # bracket.
        guess = size - slope / curve
        # As long as no upper end is known, four times the lower one plus one stands for it.
        bounded = jnp.minimum(high[0], 4.0 * low[0] + 1.0)
        # Regula falsi on the bracket's ends. The small number keeps 0 / 0 from being NaN where both
        # slopes vanish.
        secant = low[0] - low[1] * (bounded - low[0]) / (high[1] - low[1] + MIN_SQUARED_NORM)
        within = (guess > low[0]) & (guess < high[0])
        return _LineSearch(low, high, jnp.where(within, guess, secant), best)


class Solver:
    """Newton's method for one structure of constraints."""

    def __init__(self, plan: ConstraintLayout, steps: int, search_steps: int) -> None:
        """Keep the structure and the numbers of iterations.

        Args:
            plan: the blocks and the constraint rows on them.
            steps: Newton steps, `opt.iterations`.
            search_steps: line search steps for each, `opt.ls_iterations`.
        """
        self.plan, self.owners = plan, plan.rows
        self.steps, self.search_steps = steps, search_steps

    def solve(self, problem: ConstraintProblem, start: jax.Array) -> jax.Array:
        """Return the accelerations (nv, batch), from a start of the same shape.

        With several steps the derivative is the implicit one, at the solution. The result of a
        single step is no solution, so that step is differentiated as it is computed.
        """
        if self.steps == 1:
            return self._search(problem, start)
        found = jax.custom_jvp(self._search)
        found.defjvp(self._derivative)
        return found(problem, start)

    def apply_jacobian(self, c: Constraints, a: jax.Array) -> ConstraintVector:
        """Return the accelerations along the constraints, J a."""
        single = c.signs * rows(a, self.owners)
        return ConstraintVector(
            single, tuple(along_families(self.plan, [f.jacobian for f in c.families], a))
        )

    def apply_transpose(
        self, c: Constraints, force: ConstraintVector, like: jax.Array
    ) -> jax.Array:
        """Return the forces on the degrees of freedom, Jᵀf, shaped as `like`."""
        out = self._on_dofs(c.signs * force.rows, like)
        if not c.families:
            return out
        # Forces add up along each block's path first; `from_paths` sums the paths' common
        # beginnings once.
        parts: list[jax.Array | None] = [None] * len(self.plan.blocks.blocks)
        for family, joined, mine in zip(
            self.plan.families, c.families, force.families, strict=True
        ):
            if listed := _of_forest(joined.jacobian):
                assert self.plan.forest is not None
                out = out + joined_trees.apply_transpose(self.plan.forest, listed, mine, like)
                continue
            for i, slots, jacobian in _present(family, joined.jacobian):
                f = tuple(of_block(slots, x) for x in mine)
                parts[i] = add(
                    parts[i], _constraint_hessian(slots).apply_transpose(slots, jacobian, f)
                )
        return out + frontal.from_paths(self.plan.blocks, parts, like)

    def _on_dofs(self, x: jax.Array, like: jax.Array) -> jax.Array:
        """Return the sum of the scalar rows at each degree of freedom, shaped as `like`."""
        if not self.owners:
            return jnp.zeros_like(like)
        return sum_rows(x, self.owners, like.shape[0])

    def respond(
        self, c: Constraints, residual: ConstraintVector
    ) -> tuple[ConstraintVector, Stiffness]:
        """Return the constraint forces and D, their negative derivative, at a residual."""
        force, stiff = c.rows.response(residual.rows)
        found = [f.response(mine) for f, mine in zip(c.families, residual.families, strict=True)]
        return ConstraintVector(force, tuple(f for f, _ in found)), (
            stiff,
            tuple(m for _, m in found),
        )

    def solve_hessian(
        self, problem: ConstraintProblem, stiffness: Stiffness, right: jax.Array
    ) -> jax.Array:
        """Solve (M + JᵀDJ) x = right, with the constraint Hessian, for (nv, batch)."""
        blocks, fronts = self.plan.blocks, self._fronts(problem, stiffness)
        if self.plan.forest is None:
            return frontal.solve(blocks, frontal.factor(blocks, fronts), right)
        listed = [
            (jacobian, matrix)
            for family, matrix in zip(problem.constraints.families, stiffness[1], strict=True)
            if (jacobian := _of_forest(family.jacobian)) and isinstance(matrix, jax.Array)
        ]
        return joined_trees.solve(self.plan.forest, blocks, fronts, listed, right)

    def _fronts(self, problem: ConstraintProblem, stiffness: Stiffness) -> list[Front]:
        """Return the fronts of M + JᵀDJ, without the listed contacts of a forest."""
        c, (single, matrices) = problem.constraints, stiffness
        # A row at one degree of freedom adds its D to the diagonal only: J is 1 or -1 there.
        diagonal = self._on_dofs(c.signs * c.signs * single, problem.force)
        loaded: list[Any] = frontal.add_diagonal(self.plan.blocks, problem.mass, diagonal)
        for family, joined, matrix in zip(self.plan.families, c.families, matrices, strict=True):
            if _of_forest(joined.jacobian):
                continue
            for i, slots, jacobian in _present(family, joined.jacobian):
                kind = frontal.algebra(self.plan.blocks.blocks[i])
                if isinstance(matrix, jax.Array):  # listed contacts
                    dense = constraint_hessian_dense.hessian
                    # Added in place to a large front, without a matrix for the sum.
                    loaded[i] = (
                        dense(jacobian, matrix, loaded[i])
                        if kind is blocked
                        else kind.add_matrix(loaded[i], dense(jacobian, matrix))
                    )
                    continue
                assembly, mine = _constraint_hessian(slots), _of_block(slots, matrix)
                # The unrolled assembly adds term by term to the rows of a front; the other makes a
                # whole matrix.
                if assembly is unrolled:
                    loaded[i] = unrolled.hessian(slots, loaded[i], jacobian, mine)
                else:
                    loaded[i] = kind.add_matrix(loaded[i], assembly.hessian(slots, jacobian, mine))
        return loaded

    def gradient(self, problem: ConstraintProblem, a: jax.Array) -> jax.Array:
        """Return the gradient of the cost, M a - M a0 - Jᵀf, which vanishes at the solution."""
        c = problem.constraints
        force, _ = self.respond(c, self.residual(c, a))
        inertial = frontal.multiply(self.plan.blocks, problem.mass, a)
        return inertial - problem.force - self.apply_transpose(c, force, a)

    def residual(self, c: Constraints, a: jax.Array) -> ConstraintVector:
        """Return the residual J a - aref for accelerations (nv, batch)."""
        moving = self.apply_jacobian(c, a)
        families = zip(c.families, moving.families, strict=True)
        found = ConstraintVector(
            moving.rows - c.rows_aref, tuple(f.residual(mine) for f, mine in families)
        )
        # J a is read by forces, stiffness and line search; the barrier has it computed once.
        return fusion_barrier(found)

    def _search(self, problem: ConstraintProblem, start: jax.Array) -> jax.Array:
        """Return the accelerations after all steps."""
        inertial = frontal.multiply(self.plan.blocks, problem.mass, start) - problem.force
        # No second start is tried beside the warm start. Where nothing is constrained the first
        # step ends at the solution, and a factorization is better spent on a step than on a start.
        # The loop carries a, J a - aref and M a - M a0. All are affine in a: a step updates them by
        # a product with the step size, without another multiplication by J or M.
        at = start, self.residual(problem.constraints, start), inertial
        everywhere = jnp.ones((1, start.shape[-1]), bool)
        if self.steps == 1:
            return self._newton_step(problem, at, *self._gradient_at(problem, at), everywhere)[0]
        # Squared forces over diag(M) are comparable between rotations and translations.
        weight = 1.0 / frontal.diagonal(self.plan.blocks, problem.mass)
        # The residuals of listed contacts are kept where no step is needed.
        no: Any = False
        listed: Any = tuple(f.listed is not None for f in problem.constraints.families)
        kept = no, ConstraintVector(no, listed), no

        def step(carry: Any) -> Any:
            running, at = carry
            gradient, stiffness = self._gradient_at(problem, at)
            needed = running & self._unconverged(problem, weight, at, gradient)

            def moved(at: Any) -> Any:
                return self._newton_step(problem, at, gradient, stiffness, needed)

            # Converged environments skip the factorization, where a whole register has converged.
            return needed, where_needed(needed, moved, at, kept)

        def turn(carry: Any, _: None) -> tuple[Any, None]:
            return where_needed(carry[0], step, carry, kept=True), None

        # On a CPU the loop ends when all environments of a register have converged.
        (_, (a, *_)), _ = jax.lax.scan(turn, (everywhere, at), None, length=self.steps)
        return a

    def _gradient_at(self, problem: ConstraintProblem, at: Any) -> tuple[jax.Array, Any]:
        """Return the gradient of the cost at a carried point, (nv, batch), and D of all laws."""
        a, residual, inertial = at
        force, stiffness = fusion_barrier(self.respond(problem.constraints, residual))
        return inertial - self.apply_transpose(problem.constraints, force, a), stiffness

    def _unconverged(
        self, problem: ConstraintProblem, weight: jax.Array, at: Any, gradient: jax.Array
    ) -> jax.Array:
        """Return whether the gradient exceeds its rounding error, (1, batch).

        `weight` is the inverse of the mass matrix's diagonal, which makes squared forces
        comparable.
        """
        _, _, inertial = at
        # The gradient is a difference of these two forces; its rounding error is a share of them.
        scale = inertial * inertial + problem.force * problem.force
        near = float(jnp.finfo(gradient.dtype).eps) ** CONVERGED_POWER
        # Written so that NaN is not converged: a step then carries it into the accelerations.
        return ~(sum_all(weight * gradient * gradient) <= near**2 * sum_all(weight * scale))

    def _newton_step(
        self,
        problem: ConstraintProblem,
        at: Any,
        gradient: jax.Array,
        stiffness: Any,
        needed: jax.Array,
    ) -> Any:
        """Return the carried point after one Newton step with a line search.

        Gradient and D are those at the carried point. The line search does not wait for
        environments that do not need the step, and their residuals of listed contacts are kept.
        """
        a, residual, inertial = at
        blocks, c = self.plan.blocks, problem.constraints
        # The Newton direction -H⁻¹ g, with H = M + JᵀDJ.
        direction = -self.solve_hessian(problem, stiffness, gradient)
        J_direction = fusion_barrier(self.apply_jacobian(c, direction))
        mass_direction = frontal.multiply(blocks, problem.mass, direction)
        # The quadratic part of the cost along the direction: its slope at 0 and its constant
        # curvature.
        quadratic_slope, quadratic_curvature = (
            sum_all(direction * inertial),
            sum_all(direction * mass_direction),
        )
        size = self._line_search(
            c,
            residual,
            J_direction,
            quadratic_slope,
            quadratic_curvature,
            sum_all(direction * gradient),
            needed,
        )
        families = zip(c.families, residual.families, J_direction.families, strict=True)
        moved = ConstraintVector(
            residual.rows + size * J_direction.rows,
            tuple(f.moved(needed, x, d, size) for f, x, d in families),
        )
        return a + size * direction, moved, inertial + size * mass_direction

    def _line_search(
        self,
        c: Constraints,
        residual: ConstraintVector,
        J_direction: ConstraintVector,
        quadratic_slope: jax.Array,
        quadratic_curvature: jax.Array,
        initial_slope: jax.Array,
        needed: jax.Array,
    ) -> jax.Array:
        """Return the step size at which the cost's slope along the direction vanishes.

        Newton's method in one variable starts from the full step. A step that would leave the
        bracket is replaced by the zero of the secant. The size with the smallest absolute slope is
        returned, or 0 if none is smaller than at the start.

        Args:
            c: the constraints.
            residual: J a - aref at the start.
            J_direction: J times the direction, the change of the residual per unit of size.
            quadratic_slope: slope of the quadratic part of the cost at the start.
            quadratic_curvature: curvature of the quadratic part.
            initial_slope: slope of the whole cost at the start, negative.
            needed: truth values, (1, batch), false where nobody reads the result.
        """
        zero = jnp.zeros_like(quadratic_slope)
        seen = _LineSearch(
            low=(zero, initial_slope),
            # No upper end is known yet. Its slope, the mirror of the lower one, puts the first
            # secant in the middle.
            high=(jnp.full_like(quadratic_slope, jnp.inf), -initial_slope),
            size=jnp.ones_like(quadratic_slope),
            best=(zero, jnp.abs(initial_slope)),
        )

        def evaluated(seen: _LineSearch) -> _LineSearch:
            power, curvature = self._along_line(c, residual, J_direction, seen.size)
            return seen.at(
                quadratic_slope + seen.size * quadratic_curvature - power,
                quadratic_curvature + curvature,
            )

        # Without a list all constraints are a few instructions: a branch around them costs more.
        listed = any(f.listed is not None for f in c.families)

        def look(_: int, seen: _LineSearch) -> _LineSearch:
            if not listed:
                return evaluated(seen)
            # Written so that NaN is not near enough, as in `_unconverged`.
            near = seen.best[1] <= LINE_SEARCH_TOLERANCE * jnp.abs(initial_slope)
            return where_needed(needed & ~near, evaluated, seen)

        # The full step is evaluated first; each further step evaluates once.
        turns = self.search_steps + 1
        return jax.lax.fori_loop(
            0, turns, look, seen, unroll=turns <= MAX_UNROLLED_LINE_SEARCH
        ).best[0]

    def _along_line(
        self,
        c: Constraints,
        residual: ConstraintVector,
        J_direction: ConstraintVector,
        size: jax.Array,
    ) -> tuple[jax.Array, jax.Array]:
        """Return power and curvature of all constraints along the direction, (1, batch)."""
        single = c.rows.along(residual.rows, J_direction.rows, size)
        lines = [(sum_all(single.power), sum_all(single.curvature))]
        for family, mine, rate in zip(
            c.families, residual.families, J_direction.families, strict=True
        ):
            lines.append(family.along(mine, rate, size))
        return total(power for power, _ in lines), total(curve for _, curve in lines)

    def _derivative(self, primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
        """Return the solution and its tangent, by the implicit function theorem."""
        problem, start = primals
        a = self.solve(problem, start)
        # At the solution the gradient g(p, a) is zero, so that da = -H⁻¹ (dg/dp) dp. The start does
        # not matter.
        _, change = jax.jvp(lambda p: self.gradient(p, a), (problem,), (tangents[0],))
        _, stiffness = self.respond(problem.constraints, self.residual(problem.constraints, a))
        return a, -self.solve_hessian(problem, stiffness, change)


def _of_forest(jacobian: Sequence[Along | ListedJacobian | None]) -> ListedJacobian | None:
    """Return the Jacobian of a family of listed contacts in a forest, None of any other family."""
    return next(
        (j for j in jacobian if isinstance(j, ListedJacobian) and j.trees is not None), None
    )


def _present(
    family: ConstraintFamily, jacobian: Sequence[Along | ListedJacobian | None]
) -> Iterator[tuple[int, BlockConstraints, Any]]:
    """Yield the blocks that a family has constraints on, with their Jacobians."""
    for i, (slots, mine) in enumerate(zip(family.slots, jacobian, strict=True)):
        if slots is not None and mine is not None:
            yield i, slots, mine


def _moved(slots: BlockConstraints, jacobian: Any, path: jax.Array) -> Sequence[jax.Array]:
    """Return J times the rates along a path: for each direction, (slots, copies, batch)."""
    kind = _constraint_hessian(slots)
    if kind is constraint_hessian_dense:
        return constraint_hessian_dense.apply_jacobian(slots, jacobian, path)
    return [kind.apply_jacobian(slots, j, path) for j in jacobian]


def _of_block(slots: BlockConstraints, matrix: Matrix) -> Matrix:
    """Return a block's part of D, its entries (slots, copies, batch)."""
    return tuple(tuple(None if x is None else of_block(slots, x) for x in row) for row in matrix)


def _constraint_hessian(slots: BlockConstraints) -> ModuleType:
    """Return the module that assembles JᵀDJ of a block's constraints."""
    # Listed contacts may act on any place of the path.
    if slots.link_paths is not None:
        return constraint_hessian_dense
    return unrolled if slots.reach is None else constraint_hessian_sparse


def sum_all(x: jax.Array) -> jax.Array:
    """Return the sum of the rows of (n, batch), (1, batch)."""
    # An unrolled sum has as many operations as rows; beyond this size it is one reduction.
    if x.shape[0] > MAX_UNROLLED_SUM_ROWS:
        return sum_first(x)
    return total(x[i : i + 1] for i in range(x.shape[0])) if x.shape[0] else x.sum(0)[None]
