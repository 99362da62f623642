"""The joints of all trees at once: one sparse elimination, then passes up and down.

Unknown are the links' velocities, or their changes. Each joint passes on whatever impulse keeps its
link moving as it allows; along its degrees of freedom the impulse is what motors, springs, damping
and the rotor's inertia give. A stack of joints is a chain of links without mass, so its degrees of
freedom are eliminated one by one, from the tips inwards, without fill-in.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 7.3, for impulses.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from brax.components import Sym3, Vec3
from brax.maximal.links import PerDof
from brax.spatial import Rigid, Spatial, Sym6
from brax.tree import Layout, down, up

T = TypeVar("T")

MIN_INERTIA = 1e-10
"""Inertia [kg m^2 or kg] below which a direction is one that the others of its stack have."""


class GroupPivot(NamedTuple):
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
) -> list[GroupPivot]:
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
            pivots[index] = GroupPivot((), (), (), (), None, None, free)
            continue
        own = inertia, subspaces[index], drive, impedance[index]
        if group.depths == 1:
            pivots[index], left = _pivot(*own)
        else:
            pivots[index], left = _pivots(group.depths, own)
        for target, part in up(left, group.first, plan):
            loaded[target] = _full(loaded[target]) + part
    return pivots


def _pivot(
    inertia: Rigid | Sym6, subspace: tuple[Spatial, ...], drive: Spatial, impedance: PerDof
) -> tuple[GroupPivot, Sym6]:
    """The elimination of links of one depth, and the inertia that is left of them."""
    push = inertia.mul(drive)
    forces, gains, mobile = [], [], []
    for s, extra in zip(reversed(subspace), reversed(impedance), strict=True):
        force = inertia.mul(s)
        inverse = 1.0 / (jnp.maximum(s.dot(force), MIN_INERTIA) + extra)
        gain = force * inverse
        inertia = _full(inertia).sub_outer(force, gain)
        forces.append(force)
        gains.append(gain)
        mobile.append(inverse)
    found = tuple(reversed(forces)), tuple(reversed(gains)), tuple(reversed(mobile))
    return GroupPivot(subspace, *found, drive, push, None), _full(inertia)


def _pivots(depths: int, own: Any) -> tuple[GroupPivot, Sym6]:
    """The same for many depths, one after another."""
    inertia, *rest = _depths(depths, (_full(own[0]), *own[1:]))

    def eliminate(carried: Sym6, here: Any) -> tuple[Sym6, GroupPivot]:
        inertia, *rest = here
        pivot, left = _pivot(inertia + carried, *rest)
        return left, pivot

    nothing = jax.tree.map(lambda x: jnp.zeros_like(x[0]), inertia)
    left, found = jax.lax.scan(eliminate, nothing, (inertia, *rest), reverse=True)
    return _links(found), left


def _depths(depths: int, tree: T) -> T:
    """Splits rows of links into (depths, links, batch), all of one batch size."""
    size = max(x.shape[-1] for x in jax.tree.leaves(tree))

    def split(x: jax.Array) -> jax.Array:
        apart = x.reshape(depths, -1, x.shape[-1])
        return jnp.broadcast_to(apart, (*apart.shape[:2], size))

    return jax.tree.map(split, tree)


def _links(tree: T) -> T:
    """Undoes `_depths`."""
    return jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), tree)


def _full(inertia: Rigid | Sym6) -> Sym6:
    return inertia.full() if isinstance(inertia, Rigid) else inertia


def without_drives(pivots: Sequence[GroupPivot], momenta: Sequence[Spatial]) -> list[Spatial]:
    """Takes off the links' momenta what the drives of their joints need."""
    return [
        m if p.drive_momentum is None else m - p.drive_momentum
        for p, m in zip(pivots, momenta, strict=True)
    ]


def solve(
    plan: Layout,
    pivots: Sequence[GroupPivot],
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
        if group.depths == 1:
            pushed[index], left = _push(pivot, momentum, impulses[index])
        else:
            pushed[index], left = _pushes(group.depths, pivot, momentum, impulses[index])
        if left is not None:
            for target, part in up(left, group.first, plan):
                old = loaded[target]
                loaded[target] = part if old is None else old + part
    return _respond(plan, pivots, loaded, pushed, driven)


def _push(
    pivot: GroupPivot, momentum: Spatial | None, impulses: tuple[jax.Array | None, ...]
) -> tuple[PerDof, Spatial | None]:
    """The rates that links of one depth would have on still ones, and the momentum they pass on."""
    rates = []
    for k in reversed(range(len(pivot.subspace))):
        load = impulses[k]
        if momentum is not None:
            along = pivot.subspace[k].dot(momentum)
            load = along if load is None else load + along
        if load is None:
            load = jnp.zeros_like(pivot.mobility[k])
        rates.append(load * pivot.mobility[k])
        pull = pivot.force[k] * rates[-1]
        momentum = pull * -1.0 if momentum is None else momentum - pull
    return tuple(reversed(rates)), momentum


def _pushes(
    depths: int,
    pivot: GroupPivot,
    momentum: Spatial | None,
    impulses: tuple[jax.Array | None, ...],
) -> tuple[PerDof, Spatial]:
    """The same for many depths, one after another."""
    every = _depths(depths, (pivot, momentum, impulses))

    def pass_on(carried: Spatial, here: Any) -> tuple[Spatial, PerDof]:
        pivot, own, impulses = here
        rates, left = _push(pivot, carried if own is None else own + carried, impulses)
        return carried if left is None else left, rates

    nothing = jax.tree.map(lambda x: jnp.zeros_like(x[0]), every[0].drive)
    left, rates = jax.lax.scan(pass_on, nothing, every, reverse=True)
    return _links(rates), left


def _respond(
    plan: Layout,
    pivots: Sequence[GroupPivot],
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
        velocity = down(velocities, group.first, plan)
        if group.depths == 1:
            velocities[index], rates[index] = _moved(pivot, pushed[index], velocity, driven)
            continue
        every = _depths(group.depths, (pivot, pushed[index]))
        first = jax.tree.map(lambda x: jnp.zeros_like(x[0]), every[0].drive)

        def move(parent: Spatial, here: Any) -> tuple[Spatial, tuple[Spatial, PerDof]]:
            pivot, pushed = here
            found = _moved(pivot, pushed, parent, driven)
            return found[0], found

        found = jax.lax.scan(move, first if velocity is None else first + velocity, every)[1]
        velocities[index], rates[index] = _links(found)
    return velocities, rates


def _moved(
    pivot: GroupPivot, pushed: PerDof, velocity: Spatial | None, driven: bool
) -> tuple[Spatial, PerDof]:
    """Velocities and rates of links of one depth, from those of their parents, None if at rest."""
    out: Any = velocity
    mine = []
    for k, rate in enumerate(pushed):
        mine.append(rate if out is None else rate - pivot.gain[k].dot(out))
        along = pivot.subspace[k] * mine[-1]
        out = along if out is None else out + along
    return (out + pivot.drive if driven else out), tuple(mine)


def mobility(plan: Layout, pivots: Sequence[GroupPivot]) -> tuple[list[Sym6], list[PerDof]]:
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
        parent = down(links, group.first, plan)
        if group.depths == 1:
            links[index], dofs[index] = _mobile(pivot, parent)
            continue
        every = _depths(group.depths, pivot)
        first = _zero(every.mobility[0][0])

        def hang(above: Sym6, here: GroupPivot) -> tuple[Sym6, tuple[Sym6, PerDof]]:
            found = _mobile(here, above)
            return found[0], found

        found = jax.lax.scan(hang, first if parent is None else first + parent, every)[1]
        links[index], dofs[index] = _links(found)
    return links, dofs


def _mobile(pivot: GroupPivot, mobile: Sym6 | None) -> tuple[Sym6, PerDof]:
    """The mobility of links of one depth, from that of their parents, None if they stand still."""
    out: Any = mobile
    mine = []
    for s, gain, own in zip(pivot.subspace, pivot.gain, pivot.mobility, strict=True):
        if out is None:
            mine.append(own)
            out = _zero(own).add_outer(s, s * own)
            continue
        pull = out.mul(gain)
        mine.append(own + gain.dot(pull))
        # Two products rather than three: s s^T is shared between the other two.
        pull = pull - s * (0.5 * mine[-1])
        out = out.sub_outer(s, pull).sub_outer(pull, s)
    return out, tuple(mine)


def _zero(like: jax.Array) -> Sym6:
    zero = jnp.zeros_like(like)
    vec = Vec3(zero, zero, zero)
    return Sym6(Sym3(*[zero] * 6), (vec, vec, vec), Sym3(*[zero] * 6))
