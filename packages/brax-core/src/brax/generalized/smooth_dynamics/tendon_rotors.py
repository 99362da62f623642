"""Armature of tendons: inertia of changes of their length, in the mass matrix and the bias force.

A tendon of length L with armature a adds a J_i J_j to the mass matrix and a J_i dJ/dt qd to the
bias force, where J is the derivative of L by the coordinates.

Source: MuJoCo's documentation, XML reference, attribute `armature` of tendons.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.actuators.spatial_tendons import tendon_reach
from brax.base import System
from brax.components import Quat, Vec3, rows
from brax.generalized.smooth_dynamics.structure import Structure
from brax.kinematics import Frames
from brax.spatial import Spatial
from brax.tree import Layout, over_subtrees, sum_rows


class LinkMotion(NamedTuple):
    """Frames and motion of the links, in the layout's order, as in `SmoothDynamics`."""

    pos: Vec3
    """Origins of the link frames in the world."""
    rot: Quat
    """Orientations of the link frames in the world."""
    velocity: Spatial
    """Spatial velocities about the trees' common points."""
    acceleration: Spatial
    """Spatial accelerations at constant rates, with the upward one that stands for gravity."""
    origin: Vec3
    """The common point of each link's tree; one row if there is one tree."""


class TendonRotor(NamedTuple):
    """The armature of one tendon."""

    moment: jax.Array
    """J: change of the length per unit of each rate, in the order of elimination, (nv, batch)."""
    momentum: jax.Array
    """J times the armature, (nv, batch)."""
    bias: jax.Array | None
    """Bias force, (nv, batch); None for a fixed tendon, whose J is constant."""


def has_rotors(sys: System) -> bool:
    """Return whether any tendon has armature."""
    return any(sys.tendon_rotor)


def tendon_rotors(
    sys: System, plan: Layout, structure: Structure, motion: LinkMotion, subspace: Spatial
) -> list[TendonRotor]:
    """Return the armatures of all tendons that have one, at a state.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        plan: the layout of its links.
        structure: the blocks of its degrees of freedom.
        motion: the links.
        subspace: motion subspaces of the degrees of freedom, in the order of elimination.
    """
    out = [_fixed(sys, structure, t) for t in _where(sys, spatial=False)]
    if moving := _where(sys, spatial=True):
        out += _spatial(sys, plan, structure, motion, subspace, moving)
    return out


def _where(sys: System, spatial: bool) -> list[int]:
    """Return the fixed, or the spatial, tendons that have armature."""
    paths = zip(sys.tendon_rotor, sys.tendon_path, strict=True)
    return [t for t, (rotor, path) in enumerate(paths) if rotor and bool(path) == spatial]


def _fixed(sys: System, structure: Structure, tendon: int) -> TendonRotor:
    """Return the armature of a fixed tendon, whose moments are its coefficients."""
    first, joints = sum(map(len, sys.tendon_joints[:tendon])), sys.tendon_joints[tendon]
    mine = rows(sys.tendon.coef, range(first, first + len(joints)))
    place = tuple(structure.position[sys.joint_qd_start()[j]] for j in joints)
    moment = sum_rows(mine, place, sys.qd_size())
    return TendonRotor(moment, rows(sys.tendon.armature, [tendon]) * moment, None)


def _spatial(
    sys: System,
    plan: Layout,
    structure: Structure,
    motion: LinkMotion,
    subspace: Spatial,
    tendons: list[int],
) -> list[TendonRotor]:
    """Return the armatures of spatial tendons."""
    frames, change = _frames(sys, plan, motion)
    reach, changed = jax.jvp(lambda f: tendon_reach(sys, f), (frames,), (change,))
    arm, out = motion.pos - motion.origin, []
    for t in tendons:
        unit = jnp.array([[float(i == t)] for i in range(len(sys.tendon_names))])
        # The wrench of a unit tension on each link, moved to the common point; see `on_dofs`.
        push = rows(reach.on_links(unit, sys.num_links()), plan.order)
        about = Spatial(push.ang + arm.cross(push.lin), push.lin)
        owners = sys.dof_link()
        carried = [plan.position[owners[d]] for d in structure.order]
        moment = subspace.dot(rows(over_subtrees(about, plan), carried))
        momentum = rows(sys.tendon.armature, [t]) * moment
        # The velocity of the length changes by dJ/dt qd at constant rates.
        out.append(TendonRotor(moment, momentum, momentum * rows(changed.velocity, [t])))
    return out


def _frames(sys: System, plan: Layout, motion: LinkMotion) -> tuple[Frames, Frames]:
    """Return the link frames in the model's order, and their rates of change at constant rates."""
    (ang, lin), arm = motion.velocity, motion.pos - motion.origin
    vel = lin + ang.cross(arm)
    # A spatial acceleration is that of the velocity field at a fixed point: the origin of the frame
    # moves through the field, which adds w x v.
    turning, moving = motion.acceleration
    acc = moving + turning.cross(arm) + ang.cross(vel)
    acc = Vec3(*(a + sys.opt.gravity[k : k + 1] for k, a in enumerate(acc)))
    # The derivative of a unit quaternion is half the angular velocity times it.
    zero = jnp.zeros_like(ang.x)
    rot = Quat(zero, *(ang * 0.5)).mul(motion.rot)
    now = Frames(motion.pos, motion.rot, ang, vel)
    # Tangents have the shapes of what they belong to, which constants may have with a batch of 1.
    like = jnp.zeros_like(acc.x + vel.x + rot.w)
    now, change = (
        jax.tree.map(lambda x: x + like, f) for f in (now, Frames(vel, rot, turning, acc))
    )
    return rows(now, plan.position), rows(change, plan.position)
