"""The joints of all trees at once: one sparse factorization, then a pass up and a pass down.

Unknown are the links' velocities at the end of the step. Each joint transmits whatever impulse
keeps its link moving as it allows; along its degrees of freedom the impulse is what motors,
springs, damping and the rotor's inertia give. Eliminating links from the tips inwards costs no
fill-in.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 7.3, for impulses.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.components import Sym3, Vec3, total
from brax.fusion import fence
from brax.spatial import Rigid, Spatial, Sym6, invert
from brax.tree import Layout, down, up


class Pivot(NamedTuple):
    """The elimination of one group."""

    subspace: tuple[Spatial, ...]
    gain: tuple[Spatial, ...]
    """For each degree of freedom, its rate per unit of the parent's velocity, negated."""
    force: tuple[Spatial, ...]
    """For each degree of freedom, the link's momentum per unit of its rate."""
    inverse: list[list[jax.Array]]
    """Inverse inertia seen by the degrees of freedom."""
    drive: Spatial | None
    """Relative velocity that the joint asks for beside its degrees of freedom."""
    drive_momentum: Spatial | None
    free: Sym6 | None
    """Inverse inertia of a link that nothing holds."""


def factor(
    plan: Layout,
    inertias: Sequence[Rigid],
    subspaces: Sequence[tuple[Spatial, ...]],
    drives: Sequence[Spatial | None],
    impedance: Sequence[tuple[jax.Array, ...]],
) -> list[Pivot]:
    """Eliminates the links from the tips inwards.

    Args:
        plan: the layout.
        inertias: spatial inertia of the links, about their tree's common point, by group.
        subspaces: motion subspace of the joints, by group.
        drives: relative velocities that the joints ask for, by group; None for free links.
        impedance: rotor inertia plus damping times the step, by group.
    """
    # Rigid as long as nothing hangs on the links, full from then on.
    loaded: list[Rigid | Sym6] = list(inertias)
    pivots: list[Any] = [None] * len(plan.groups)
    for index in reversed(range(len(plan.groups))):
        group, inertia = plan.groups[index], loaded[index]
        drive = drives[index]
        if drive is None:
            pivots[index] = fence(Pivot((), (), (), [], None, None, _full(inertia).inverse()))
            continue
        subspace = subspaces[index]
        force = fence(tuple(inertia.mul(s) for s in subspace))
        seen = [[s.dot(f) for f in force] for s in subspace]
        for k, extra in enumerate(impedance[index]):
            seen[k][k] = seen[k][k] + extra
        inverse = fence(invert(seen))
        gain = tuple(_combine(row, force) for row in inverse)
        pivots[index] = fence(
            Pivot(subspace, gain, force, inverse, drive, inertia.mul(drive), None)
        )
        if group.parents is not None:
            left = _full(inertia)
            for f, g in zip(force, gain, strict=True):
                left = left.add_outer(f, g * -1.0)
            for target, part in up(fence(left), group, plan):
                loaded[target] = fence(_full(loaded[target]) + part)
    return pivots


def _full(inertia: Rigid | Sym6) -> Sym6:
    return inertia.full() if isinstance(inertia, Rigid) else inertia


def _combine(weights: Sequence[jax.Array], items: Sequence[Spatial]) -> Spatial:
    combined = items[0] * weights[0]
    for w, item in zip(weights[1:], items[1:], strict=True):
        combined = combined + item * w
    return combined


def solve(
    plan: Layout,
    pivots: Sequence[Pivot],
    momenta: Sequence[Spatial],
    impulses: Sequence[tuple[jax.Array, ...]],
) -> tuple[list[Spatial], list[tuple[jax.Array, ...]]]:
    """Finds the velocities.

    Args:
        plan: the layout.
        pivots: from `factor`.
        momenta: momentum of each link without its joints, about the common point, by group.
        impulses: impulse along each degree of freedom, by group.

    Returns:
        Velocities of the links and rates of the joints, by group.
    """
    loaded = list(momenta)
    pushed: list[Any] = [None] * len(plan.groups)
    for index in reversed(range(len(plan.groups))):
        group, pivot = plan.groups[index], pivots[index]
        if pivot.drive is None or pivot.drive_momentum is None:
            continue
        momentum = loaded[index] - pivot.drive_momentum
        load = [r + s.dot(momentum) for r, s in zip(impulses[index], pivot.subspace, strict=True)]
        push = fence(
            tuple(total(w * x for w, x in zip(row, load, strict=True)) for row in pivot.inverse)
        )
        pushed[index] = push
        if group.parents is not None:
            for target, part in up(fence(momentum - _combine(push, pivot.force)), group, plan):
                loaded[target] = loaded[target] + part
    velocities: list[Any] = [None] * len(plan.groups)
    rates: list[Any] = [()] * len(plan.groups)
    for index, (group, pivot) in enumerate(zip(plan.groups, pivots, strict=True)):
        if pivot.drive is None:
            assert pivot.free is not None
            velocities[index] = fence(pivot.free.mul(loaded[index]))
            continue
        parent = down(velocities, group, plan)
        rate = pushed[index]
        if parent is not None:
            rate = fence(tuple(p - g.dot(parent) for p, g in zip(rate, pivot.gain, strict=True)))
        velocity = _combine(rate, pivot.subspace) + pivot.drive
        if parent is not None:
            velocity = velocity + parent
        velocities[index], rates[index] = fence((velocity, rate))
    return velocities, rates


def mobility(
    plan: Layout, pivots: Sequence[Pivot]
) -> tuple[list[Sym6], list[tuple[jax.Array, ...]]]:
    """How easily each link and each degree of freedom moves, with all joints in place.

    Returns:
        Inverse inertia of each link about the common point, and of each degree of freedom.
    """
    links: list[Any] = [None] * len(plan.groups)
    dofs: list[Any] = [()] * len(plan.groups)
    for index, (group, pivot) in enumerate(zip(plan.groups, pivots, strict=True)):
        if group.unconstrained:
            links[index] = pivot.free
            continue
        n = len(pivot.subspace)
        core = [list(row) for row in pivot.inverse]
        if group.parents is None:
            mobile = _zero_sym6(pivot.subspace[0].ang.x)
        else:
            mobile = down(links, group, plan)
            pulls = fence([mobile.mul(g) for g in pivot.gain])
            core = [[core[i][j] + pivot.gain[i].dot(pulls[j]) for j in range(n)] for i in range(n)]
            for s, z in zip(pivot.subspace, pulls, strict=True):
                mobile = mobile.add_outer(s * -1.0, z).add_outer(z * -1.0, s)
        for i, s in enumerate(pivot.subspace):
            mobile = mobile.add_outer(s, _combine(core[i], pivot.subspace))
        links[index], dofs[index] = fence((mobile, tuple(core[i][i] for i in range(n))))
    return links, dofs


def _zero_sym6(like: jax.Array) -> Sym6:
    zero = jnp.zeros_like(like)
    sym, vec = Sym3(*[zero] * 6), Vec3(zero, zero, zero)
    return Sym6(sym, (vec, vec, vec), sym)
