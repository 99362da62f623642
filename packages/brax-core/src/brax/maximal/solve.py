"""The joints of all trees at once: one sparse elimination, then passes up and down.

Unknown are the links' velocities, or their changes. Each joint passes on whatever impulse keeps its
link moving as it allows; along its degrees of freedom the impulse is what motors, springs, damping
and the rotor's inertia give. A stack of joints is a chain of links without mass, so its degrees of
freedom are eliminated one by one, from the tips inwards, without fill-in.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 7.3, for impulses.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.components import Sym3, Vec3
from brax.maximal.links import PerDof
from brax.spatial import Rigid, Spatial, Sym6
from brax.tree import Layout, down, up

LEAST = 1e-10
"""Inertia [kg m^2 or kg] below which a direction is one that the others of its stack have."""


class Pivot(NamedTuple):
    """The elimination of one group."""

    subspace: tuple[Spatial, ...]
    """For each degree of freedom, the link's velocity per unit of its rate."""
    force: tuple[Spatial, ...]
    """The momentum that goes with it."""
    gain: tuple[Spatial, ...]
    """The rate that a velocity of what it hangs on takes away."""
    mobility: PerDof
    """Rate per unit of impulse."""
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
    impedance: Sequence[PerDof],
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
        group, inertia, drive = plan.groups[index], loaded[index], drives[index]
        if drive is None:
            free = _full(inertia).inverse()
            pivots[index] = Pivot((), (), (), (), None, None, free)
            continue
        push = inertia.mul(drive)
        forces, gains, mobile = [], [], []
        for s, extra in zip(reversed(subspaces[index]), reversed(impedance[index]), strict=True):
            force = inertia.mul(s)
            inverse = 1.0 / (jnp.maximum(s.dot(force), LEAST) + extra)
            gain = force * inverse
            inertia = _full(inertia).sub_outer(force, gain)
            forces.append(force)
            gains.append(gain)
            mobile.append(inverse)
        pivots[index] = Pivot(
            subspaces[index],
            tuple(reversed(forces)),
            tuple(reversed(gains)),
            tuple(reversed(mobile)),
            drive,
            push,
            None,
        )
        if group.parents is not None:
            for target, part in up(_full(inertia), group, plan):
                loaded[target] = _full(loaded[target]) + part
    return pivots


def _full(inertia: Rigid | Sym6) -> Sym6:
    return inertia.full() if isinstance(inertia, Rigid) else inertia


def without_drives(pivots: Sequence[Pivot], momenta: Sequence[Spatial]) -> list[Spatial]:
    """Takes off the links' momenta what the drives of their joints need."""
    return [
        m if p.drive_momentum is None else m - p.drive_momentum
        for p, m in zip(pivots, momenta, strict=True)
    ]


def solve(
    plan: Layout,
    pivots: Sequence[Pivot],
    momenta: Sequence[Spatial | None],
    impulses: Sequence[tuple[jax.Array | None, ...]],
    driven: bool,
) -> tuple[list[Spatial], list[PerDof]]:
    """Finds the velocities.

    Args:
        plan: the layout.
        pivots: from `factor`.
        momenta: momentum of each link without its joints, about the common point, by group; where
            the joints ask for something, less what that takes (`without_drives`).
        impulses: impulse along each degree of freedom, by group; None where there is none.
        driven: whether the joints ask for anything; if not, this is linear.

    Returns:
        Velocities of the links and rates of the joints, by group.
    """
    loaded = list(momenta)
    pushed: list[Any] = [()] * len(plan.groups)
    for index in reversed(range(len(plan.groups))):
        group, pivot, momentum = plan.groups[index], pivots[index], loaded[index]
        if pivot.free is not None:
            continue
        rates = []
        for k in reversed(range(len(pivot.subspace))):
            load = impulses[index][k]
            if momentum is not None:
                along = pivot.subspace[k].dot(momentum)
                load = along if load is None else load + along
            if load is None:
                load = jnp.zeros_like(pivot.mobility[k])
            rates.append(load * pivot.mobility[k])
            pull = pivot.force[k] * rates[-1]
            momentum = pull * -1.0 if momentum is None else momentum - pull
        pushed[index] = tuple(reversed(rates))
        if group.parents is not None and momentum is not None:
            for target, part in up(momentum, group, plan):
                old = loaded[target]
                loaded[target] = part if old is None else old + part
    return _respond(plan, pivots, loaded, pushed, driven)


def _respond(
    plan: Layout,
    pivots: Sequence[Pivot],
    loaded: Sequence[Spatial | None],
    pushed: Sequence[PerDof],
    driven: bool,
) -> tuple[list[Spatial], list[PerDof]]:
    """The pass from the roots to the tips."""
    velocities: list[Any] = [None] * len(plan.groups)
    rates: list[PerDof] = [()] * len(plan.groups)
    for index, (group, pivot) in enumerate(zip(plan.groups, pivots, strict=True)):
        if pivot.free is not None:
            load = loaded[index]
            if load is None:
                load = jax.tree.map(jnp.zeros_like, Spatial(*pivot.free.h[:2]))
            velocities[index] = pivot.free.mul(load)
            continue
        velocity, mine = down(velocities, group, plan), []
        for k, rate in enumerate(pushed[index]):
            mine.append(rate if velocity is None else rate - pivot.gain[k].dot(velocity))
            along = pivot.subspace[k] * mine[-1]
            velocity = along if velocity is None else velocity + along
        if driven:
            velocity = velocity + pivot.drive
        velocities[index], rates[index] = velocity, tuple(mine)
    return velocities, rates


def mobility(plan: Layout, pivots: Sequence[Pivot]) -> tuple[list[Sym6], list[PerDof]]:
    """How easily each link and each degree of freedom moves, with all joints in place.

    Returns:
        Inverse inertia of each link about the common point, and of each degree of freedom.
    """
    links: list[Any] = [None] * len(plan.groups)
    dofs: list[PerDof] = [()] * len(plan.groups)
    for index, (group, pivot) in enumerate(zip(plan.groups, pivots, strict=True)):
        if pivot.free is not None:
            links[index] = pivot.free
            continue
        mobile, mine = down(links, group, plan), []
        for s, gain, own in zip(pivot.subspace, pivot.gain, pivot.mobility, strict=True):
            if mobile is None:
                mine.append(own)
                mobile = _zero(own).add_outer(s, s * own)
                continue
            pull = mobile.mul(gain)
            mine.append(own + gain.dot(pull))
            # Two products rather than three: s s^T is shared between the other two.
            pull = pull - s * (0.5 * mine[-1])
            mobile = mobile.sub_outer(s, pull).sub_outer(pull, s)
        links[index], dofs[index] = mobile, tuple(mine)
    return links, dofs


def _zero(like: jax.Array) -> Sym6:
    zero = jnp.zeros_like(like)
    vec = Vec3(zero, zero, zero)
    return Sym6(Sym3(*[zero] * 6), (vec, vec, vec), Sym3(*[zero] * 6))
