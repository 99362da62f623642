"""Tree solve: all joints of all trees at once, by an articulated-body algorithm for impulses.

The unknowns are the links' velocities, or their changes. The generalized pipeline solves for
accelerations by the same equations, with forces for impulses and momenta. Each joint passes on
whatever impulse keeps its link moving as the joint allows. Along its degrees of freedom the impulse
is given by actuators, springs, damping and armature. A stack of joints is a chain of links without
mass, so that its degrees of freedom are eliminated one by one, from the tips inwards, without
fill-in.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 7.3 (table 7.1), with impulses
in place of forces.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from brax.components import Sym3, Vec3, total
from brax.spatial import Rigid, Spatial, Sym6
from brax.tree import Layout, PerDof, down, up

T = TypeVar("T")

_MIN_INERTIA = 1e-10
"""Articulated inertia [kg m² or kg] below which a direction counts as one that other joints of its
stack have already. It is less for small links."""

_MIN_INERTIA_SHARE = 1e-5
"""The same as a share of the inertia without the other joints of the stack. Rounding leaves a few
millionths in single precision."""


class GroupPivot(NamedTuple):
    """The elimination of one group of links."""

    subspace: tuple[Spatial, ...]
    """Motion subspace S: for each degree of freedom, the link's velocity per unit of its rate."""
    force: tuple[Spatial, ...]
    """U = I^A S: the momentum that belongs to each direction."""
    gain: tuple[Spatial, ...]
    """U D⁻¹: the rate of each degree of freedom that a velocity of its parent takes away."""
    mobility: PerDof
    """D⁻¹, with D = Sᵀ U + impedance: rate per unit of impulse."""
    drive: Spatial | None
    """Relative velocity that the joint asks for beside its degrees of freedom, such as a
    correction."""
    drive_momentum: Spatial | None
    """The momentum I^A drive."""
    free: Sym6 | None
    """Inverse inertia of a free link; None for others."""
    arm: Vec3 | None
    """From the parent's point to the link's [m]; None if both have the tree's common point."""


def factor(
    plan: Layout,
    inertias: Sequence[Rigid],
    subspaces: Sequence[tuple[Spatial, ...]],
    drives: Sequence[Spatial | None],
    impedance: Sequence[PerDof],
    arms: Sequence[Vec3] | None = None,
) -> list[GroupPivot]:
    """Eliminate the links from the tips inwards.

    Args:
        plan: the layout.
        inertias: spatial inertia of the links, by group. It is about their tree's common point,
            or about a point of each link if there are arms, and so is all that follows.
        subspaces: motion subspace of the joints, by group.
        drives: relative velocities that the joints ask for, by group; None for free links.
        impedance: armature plus damping times the step, by group.
        arms: from the parent's point to the link's, by group [m]. About a point nearby numbers are
            small, and in long trees keep their digits: about a point 100 links away the inertia of
            a link is a difference of numbers that are 10,000 times as large.
    """
    # Rigid as long as nothing hangs on the links, full from then on.
    loaded: list[Rigid | Sym6] = list(inertias)
    pivots: list[Any] = [None] * len(plan.groups)
    for index in reversed(range(len(plan.groups))):
        group, inertia, drive = plan.groups[index], loaded[index], drives[index]
        if drive is None:
            # A free link passes nothing on, so that its articulated inertia is inverted as a whole.
            free = _full(inertia).inverse()
            pivots[index] = GroupPivot((), (), (), (), None, None, free, None)
            continue
        arm = None if arms is None else arms[index]
        own = inertia, subspaces[index], drive, impedance[index], arm
        if group.depths == 1:
            pivots[index], left = _pivot(*own)
        else:
            pivots[index], left = _pivots(group.depths, own)
        # What is left of a link's articulated inertia adds to its parent's: I^A_p += I^A - U D⁻¹ Uᵀ
        # (table 7.1).
        for target, part in up(left, group.first, plan):
            loaded[target] = _full(loaded[target]) + part
    return pivots


def _pivot(
    inertia: Rigid | Sym6,
    subspace: tuple[Spatial, ...],
    drive: Spatial,
    impedance: PerDof,
    arm: Vec3 | None,
) -> tuple[GroupPivot, Sym6]:
    """Return the elimination of links of one depth, and the inertia left to their parents."""
    # Taken before the elimination: the drive is a velocity of the whole link, not along S.
    push = inertia.mul(drive)
    forces: list[Spatial] = []
    gains: list[Spatial] = []
    mobile: list[jax.Array] = []
    # The last joint of a stack is eliminated first: it is nearest to the link.
    for s, extra in zip(reversed(subspace), reversed(impedance), strict=True):
        force = inertia.mul(s)
        inverse = 1.0 / (_inertia_along(s, force, forces, mobile) + extra)
        gain = force * inverse
        # I^a = I^A - U D⁻¹ Uᵀ, one degree of freedom after another (table 7.1).
        inertia = _full(inertia).sub_outer(force, gain)
        forces.append(force)
        gains.append(gain)
        mobile.append(inverse)
    found = tuple(reversed(forces)), tuple(reversed(gains)), tuple(reversed(mobile))
    left = _full(inertia)
    left = left if arm is None else left.carried(arm)
    return GroupPivot(subspace, *found, drive, push, None, arm), left


def _inertia_along(
    s: Spatial, force: Spatial, forces: Sequence[Spatial], mobile: Sequence[jax.Array]
) -> jax.Array:
    """Return the articulated inertia along a direction of a stack, which is positive.

    Args:
        s: the direction.
        force: its momentum I^A s, after the joints below it were eliminated.
        forces: the momenta U of those joints.
        mobile: their inverse inertias D⁻¹.
    """
    left = s.dot(force)
    # In gimbal lock two directions of a stack coincide, and nothing is left of the second one's
    # inertia. The floor is small against what it was before: an absolute one would slow links of a
    # few millimetres.
    whole = total([left, *(s.dot(u) ** 2 * d for u, d in zip(forces, mobile, strict=True))])
    share = jnp.minimum(_MIN_INERTIA_SHARE * whole, _MIN_INERTIA)
    floor = jnp.where(whole > 0, share, _MIN_INERTIA)
    return jnp.maximum(left, jax.lax.stop_gradient(floor))


def _pivots(depths: int, own: Any) -> tuple[GroupPivot, Sym6]:
    """Return the same for many depths, one after another."""
    # A chain of many equal depths is a loop: its program does not grow with the chain.
    inertia, *rest = _depths(depths, (_full(own[0]), *own[1:]))

    def eliminate(carried: Sym6, depth: Any) -> tuple[Sym6, GroupPivot]:
        inertia, *rest = depth
        pivot, left = _pivot(inertia + carried, *rest)
        return left, pivot

    nothing = jax.tree.map(lambda x: jnp.zeros_like(x[0]), inertia)
    left, found = jax.lax.scan(eliminate, nothing, (inertia, *rest), reverse=True)
    return _links(found), left


def _depths(depths: int, tree: T) -> T:
    """Return rows of links as (depths, links, batch), all with one batch size."""
    # Constants have batch size 1, states the whole batch; a scan wants one shape.
    size = max(x.shape[-1] for x in jax.tree.leaves(tree))

    def split(x: jax.Array) -> jax.Array:
        apart = x.reshape(depths, -1, x.shape[-1])
        return jnp.broadcast_to(apart, (*apart.shape[:2], size))

    return jax.tree.map(split, tree)


def _links(tree: T) -> T:
    """Return rows of links from (depths, links, batch); undoes `_depths`."""
    return jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), tree)


def _full(inertia: Rigid | Sym6) -> Sym6:
    """Return an inertia as a full symmetric matrix."""
    return inertia.full() if isinstance(inertia, Rigid) else inertia


def without_drives(pivots: Sequence[GroupPivot], momenta: Sequence[Spatial]) -> list[Spatial]:
    """Return the links' momenta less what the drives of their joints need."""
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
    """Solve for the velocities.

    Args:
        plan: the layout.
        pivots: from `factor`.
        momenta: momentum of each link without its joints, about the common point, by group; where
            joints have drives, less what these need (`without_drives`).
        impulses: impulse along each degree of freedom, by group; None where there is none.
        driven: True to include the drives of the joints; without them the result is linear in the
            loads.

    Returns:
        Velocities of the links and rates of the joints, by group.
    """
    loaded = list(momenta)
    pushed: list[Any] = [()] * len(plan.groups)
    # Inward pass (table 7.1): loads go from the tips to the roots.
    for index in reversed(range(len(plan.groups))):
        group, pivot, momentum = plan.groups[index], pivots[index], loaded[index]
        # A free link is the root of its tree, and its load is complete when its turn comes.
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
    """Return rates of links of one depth on parents at rest, and the momentum that they pass on."""
    rates = []
    for k in reversed(range(len(pivot.subspace))):
        load = impulses[k]
        if momentum is not None:
            # Sᵀ p: the part of the momentum along this degree of freedom.
            along = pivot.subspace[k].dot(momentum)
            load = along if load is None else load + along
        if load is None:
            load = jnp.zeros_like(pivot.mobility[k])
        # D⁻¹ (tau - Sᵀ p) of table 7.1, with momenta p of the opposite sign.
        rates.append(load * pivot.mobility[k])
        # U times the rate stays with the link; the rest goes on to the parent.
        pull = pivot.force[k] * rates[-1]
        momentum = pull * -1.0 if momentum is None else momentum - pull
    if momentum is not None and pivot.arm is not None:
        momentum = momentum.carried(pivot.arm)
    return tuple(reversed(rates)), momentum


def _pushes(
    depths: int,
    pivot: GroupPivot,
    momentum: Spatial | None,
    impulses: tuple[jax.Array | None, ...],
) -> tuple[PerDof, Spatial]:
    """Return the same for many depths, one after another."""
    every = _depths(depths, (pivot, momentum, impulses))

    def pass_on(carried: Spatial, depth: Any) -> tuple[Spatial, PerDof]:
        pivot, own, impulses = depth
        rates, left = _push(pivot, carried if own is None else own + carried, impulses)
        return carried if left is None else left, rates

    # The scan starts at the tips, which nothing hangs on.
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
    """Return velocities and rates by the outward pass, from the roots to the tips."""
    velocities: list[Any] = [None] * len(plan.groups)
    rates: list[PerDof] = [()] * len(plan.groups)
    for index, (group, pivot) in enumerate(zip(plan.groups, pivots, strict=True)):
        if pivot.free is not None:
            load = loaded[index]
            if load is None:
                # A free link on which nothing acts: zeros of the right shape.
                load = jax.tree.map(jnp.zeros_like, Spatial(*pivot.free.h[:2]))
            velocities[index] = pivot.free.mul(load)
            continue
        # None at a root: the world is at rest.
        velocity = down(velocities, group.first, plan)
        if group.depths == 1:
            velocities[index], rates[index] = _moved(pivot, pushed[index], velocity, driven)
            continue
        every = _depths(group.depths, (pivot, pushed[index]))
        first = jax.tree.map(lambda x: jnp.zeros_like(x[0]), every[0].drive)

        def move(parent: Spatial, depth: Any) -> tuple[Spatial, tuple[Spatial, PerDof]]:
            pivot, pushed = depth
            found = _moved(pivot, pushed, parent, driven)
            return found[0], found

        found = jax.lax.scan(move, first if velocity is None else first + velocity, every)[1]
        velocities[index], rates[index] = _links(found)
    return velocities, rates


def _moved(
    pivot: GroupPivot, pushed: PerDof, velocity: Spatial | None, driven: bool
) -> tuple[Spatial, PerDof]:
    """Return velocities and rates of links of one depth from their parents' velocities.

    The parents' velocities are None if they are at rest.
    """
    out: Any = velocity
    if velocity is not None and pivot.arm is not None:
        out = velocity.moved(pivot.arm)
    mine = []
    for k, rate in enumerate(pushed):
        # qd = D⁻¹ (...) - (U D⁻¹)ᵀ v_parent, then v += S qd: the outward pass of table 7.1.
        mine.append(rate if out is None else rate - pivot.gain[k].dot(out))
        along = pivot.subspace[k] * mine[-1]
        out = along if out is None else out + along
    return (out + pivot.drive if driven else out), tuple(mine)


def mobility(plan: Layout, pivots: Sequence[GroupPivot]) -> tuple[list[Sym6], list[PerDof]]:
    """Return the inverse inertia of each link and each degree of freedom, with all joints in place.

    Returns:
        Inverse inertia of each link about the common point, and of each degree of freedom.
    """
    links: list[Any] = [None] * len(plan.groups)
    dofs: list[PerDof] = [()] * len(plan.groups)
    for index, (group, pivot) in enumerate(zip(plan.groups, pivots, strict=True)):
        if pivot.free is not None:
            links[index] = pivot.free
            continue
        # The inverse operational-space inertia of a link follows from its parent's, root first.
        parent = down(links, group.first, plan)
        if group.depths == 1:
            links[index], dofs[index] = _mobile(pivot, parent)
            continue
        every = _depths(group.depths, pivot)
        first = _zero(every.mobility[0][0])

        def hang(above: Sym6, depth: GroupPivot) -> tuple[Sym6, tuple[Sym6, PerDof]]:
            found = _mobile(depth, above)
            return found[0], found

        found = jax.lax.scan(hang, first if parent is None else first + parent, every)[1]
        links[index], dofs[index] = _links(found)
    return links, dofs


def _mobile(pivot: GroupPivot, mobile: Sym6 | None) -> tuple[Sym6, PerDof]:
    """Return the inverse inertias of links of one depth, from those of their parents.

    The parents' are None if they are at rest.
    """
    out: Any = mobile
    mine = []
    for s, gain, own in zip(pivot.subspace, pivot.gain, pivot.mobility, strict=True):
        # On a parent at rest the link moves along S only: its inverse inertia is S D⁻¹ Sᵀ.
        if out is None:
            mine.append(own)
            out = _zero(own).add_outer(s, s * own)
            continue
        pull = out.mul(gain)
        # D⁻¹ + kᵀ Λ⁻¹ k, with k = U D⁻¹ and Λ⁻¹ the parent's inverse inertia.
        mine.append(own + gain.dot(pull))
        # Two products rather than three: s s^T is shared between the other two.
        pull = pull - s * (0.5 * mine[-1])
        out = out.sub_outer(s, pull).sub_outer(pull, s)
    return out, tuple(mine)


def _zero(like: jax.Array) -> Sym6:
    """Return a zero inertia of the shape of `like`."""
    zero = jnp.zeros_like(like)
    vec = Vec3(zero, zero, zero)
    return Sym6(Sym3(*[zero] * 6), (vec, vec, vec), Sym3(*[zero] * 6))
