"""Inverse weights: the inverse inertia of links and degrees of freedom at rest.

They scale the softness of constraints: MuJoCo's `body_invweight0`, `dof_invweight0` and
`tendon_invweight0`. They are computed once, when a model is built, and stay as they are when masses
change later.

Source: MuJoCo's documentation, chapter Computation, section Constraint model: diagApprox.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.actuators.spatial_tendons import has_paths, tendon_reach
from brax.base import System
from brax.components import Vec3, quat, vec3, zero_vec
from brax.generalized.smooth_dynamics.structure import dof_parents, structure
from brax.joints import JointParams
from brax.kinematics import Frames
from brax.spatial import Spatial

Array = np.ndarray


class InertialFrames(NamedTuple):
    """Centres of mass of the bodies as they were described, in the frames of their links [m]."""

    geoms: Array
    """Centre of mass of each geom's body, (n_geoms, 3)."""
    ends: Array
    """Centres of mass of each equality's two bodies, (n_equalities, 2, 3); arbitrary for other
    equalities."""
    pos: Array
    """Link frames in the world with every joint at rest, (n_links, 3)."""
    quat: Array
    """Their orientations, (n_links, 4)."""
    bodies: tuple[int, ...]
    """Number of bodies that each link was made of."""


def inverse_weights(sys: System, places: InertialFrames) -> dict[str, Array]:
    """Return the inverse weights of a concrete model, in double precision.

    Args:
        sys: the model.
        places: centres of mass of the bodies that its geoms and equalities were given to.

    Returns:
        `link`: translation of the centre of mass [1/kg] and rotation [1/(kg m²)] of each link,
        (n_links, 2); `dof`: of each degree of freedom, (nv,); `tendon`: of each tendon's length,
        (n_tendons,); `geom`: translation of the centre of mass of each geom's body, (n_geoms,);
        `equality`: summed over what each equality couples, translation (or the coordinate) and
        rotation, (n_equalities, 2).
    """
    pos, rot = places.pos, [_matrix(quat) for quat in places.quat]
    subspace = _subspace(sys, pos, rot)
    at = _Rest(sys, subspace, pos, rot)
    jacobians = [at.jacobian(i, c) for i, c in enumerate(sys.link.inertia.transform.pos)]
    along = _tendons(sys) + _paths(sys, at, places)
    mass = _mass_matrix(sys, rot, jacobians, along)
    # The pseudo-inverse stays finite where a degree of freedom has no inertia.
    inverse = np.linalg.pinv(mass, hermitian=True)
    found = {
        "link": np.array([_mean(j, inverse) for j in jacobians]).reshape(-1, 2),
        "dof": _by_kind(sys, subspace, np.diag(inverse)),
        # J M⁻¹ Jᵀ of each tendon's length.
        "tendon": np.einsum("ti,ij,tj->t", along, inverse, along),
    }
    geared = (along[np.array(sys.tendon_rotor, bool)] != 0).any(axis=0)
    for link in _sliders(sys, places, subspace, rot, geared):
        weight = 1.0 / float(sys.link.inertia.mass[link])
        found["link"][link] = weight, 0.0
        found["dof"][np.array(sys.dof_link()) == link] = weight

    def weigh(link: int, centre: Array) -> Array:
        if link < 0:
            return np.zeros(2)
        # A link made of one body has that body's weight; of a fused link each body has its own.
        if places.bodies[link] == 1:
            return np.array(found["link"][link])
        return _mean(at.jacobian(link, centre), inverse)

    geoms = [weigh(*each) for each in zip(sys.geom_link, places.geoms, strict=True)]
    starts = sys.joint_qd_start()
    equalities: list[Any] = []
    for kind, pair, ends in zip(sys.equality_types, sys.equality_pair, places.ends, strict=True):
        if kind in ("joint", "tendon"):
            # The weight of a coupling is the sum of both coordinates' weights; the polynomial's
            # slope does not enter.
            table = found["dof"][np.asarray(starts, int)] if kind == "joint" else found["tendon"]
            equalities.append([sum(table[k] for k in pair if k >= 0), 0.0])
        else:
            equalities.append(sum(weigh(*each) for each in zip(pair, ends, strict=True)))
    return found | {
        "geom": np.array(geoms).reshape(-1, 2)[:, 0],
        "equality": np.array(equalities, float).reshape(-1, 2),
    }


def _mass_matrix(sys: System, rot: list[Array], jacobians: list[Array], along: Array) -> Array:
    """Return the mass matrix at rest, (nv, nv), from the Jacobians of the centres of mass.

    `along` has the derivatives of the tendons' lengths, (n_tendons, nv).
    """
    # M = sum of J_iᵀ I_i J_i over the links, plus armature. This is slower than the
    # composite-rigid-body algorithm, but independent of it, and it runs once a model.
    mass = np.diag(np.asarray(sys.dof.armature, float))
    for t, moment in enumerate(along):
        if sys.tendon_rotor[t]:
            mass += float(sys.tendon.armature[t]) * np.outer(moment, moment) * _carrying(sys)
    for i, jacobian in enumerate(jacobians):
        turned = rot[i] @ _matrix(sys.link.inertia.transform.rot[i])
        moments = turned @ np.diag(np.asarray(sys.link.inertia.moments[i], float)) @ turned.T
        dofs, (ang, lin) = _acting(jacobian)
        own = ang.T @ moments @ ang + float(sys.link.inertia.mass[i]) * lin.T @ lin
        mass[np.ix_(dofs, dofs)] += own
    return mass


def _carrying(sys: System) -> Array:
    """Return where one of two degrees of freedom carries the other, (nv, nv)."""
    above = structure(dof_parents(sys)).ancestors
    carried = np.array([[j in mine for j in range(len(above))] for mine in above])
    return carried | carried.T


def _sliders(
    sys: System, places: InertialFrames, subspace: Array, rot: list[Array], geared: Array
) -> list[int]:
    """Return links that only slide on the world, along axes of their inertia, and carry nothing.

    MuJoCo's weight of these (its `body_simple` is 2) is one over the mass: it is not averaged over
    three directions, and armature of joints does not count. That of tendons does: `geared` is True
    for the degrees of freedom that change the length of such a tendon.
    """
    frame, owners, out = sys.link.inertia.transform, np.array(sys.dof_link(), int), []
    anchors = np.abs(np.asarray(sys.joint.pos, float)).reshape(-1, 3).max(axis=1)
    for link, parent in enumerate(sys.link_parents):
        axes = subspace[owners == link]
        along = axes[:, 3:] @ rot[link]
        offsets = [*np.asarray(frame.pos[link], float), *np.asarray(frame.rot[link][1:], float)]
        offsets += [anchors[joint] for joint in sys.link_joints(link)]
        alone = parent < 0 and link not in sys.link_parents and places.bodies[link] == 1
        alone = alone and not geared[owners == link].any()
        # The tolerances allow for rounding in rotation matrices and in the model's numbers.
        slides = not axes[:, :3].any() and (np.abs(along) > 1 - 1e-9).any(axis=1).all()
        if alone and slides and np.max(np.abs(offsets)) < 1e-6:
            out.append(link)
    return out


def _mean(jacobian: Array, inverse: Array) -> Array:
    """Return the mean inverse inertia of a body's translation and rotation, (2,).

    The mean is over the three directions.
    """
    dofs, (ang, lin) = _acting(jacobian)
    near = inverse[np.ix_(dofs, dofs)]
    # A third of the trace of J M⁻¹ Jᵀ, for the linear and the angular rows.
    return np.array([np.sum((part @ near) * part) / 3 for part in (lin, ang)])


def _acting(jacobian: Array) -> tuple[Array, tuple[Array, Array]]:
    """Return the degrees of freedom that move a body, and their columns of its Jacobian."""
    dofs = np.flatnonzero(np.abs(jacobian).sum(axis=0))
    return dofs, (jacobian[:3, dofs], jacobian[3:, dofs])


def _by_kind(sys: System, subspace: Array, diagonal: Array) -> Array:
    """Return means over the rotational, and over the other, degrees of freedom of each joint."""
    # MuJoCo averages a free joint's three translations and three rotations separately, and a ball
    # joint's rotations.
    turns = np.abs(subspace[:, :3]).sum(axis=1) > 0
    kinds = list(zip(sys.dof_joint(), turns.tolist(), strict=True))
    return np.array([diagonal[[k == kind for k in kinds]].mean() for kind in kinds])


def _tendons(sys: System) -> Array:
    """Return the coefficients of fixed tendons: length per unit of rate, (n_tendons, nv)."""
    out = np.zeros((len(sys.tendon_names), sys.qd_size()))
    starts = sys.joint_qd_start()
    pairs = [(t, starts[j]) for t, joints in enumerate(sys.tendon_joints) for j in joints]
    for (tendon, dof), coef in zip(pairs, np.asarray(sys.tendon.coef, float), strict=True):
        out[tendon, dof] += coef
    return out


def _paths(sys: System, at: "_Rest", places: InertialFrames) -> Array:
    """Return the moment arms of spatial tendons at rest, (n_tendons, nv)."""
    out = np.zeros((len(sys.tendon_names), sys.qd_size()))
    if not has_paths(sys):
        return out
    still = zero_vec(jnp.zeros((len(places.pos), 1)))
    frames = Frames(
        vec3(jnp.asarray(places.pos)[..., None]),
        quat(jnp.asarray(places.quat)[..., None]),
        still,
        still,
    )
    owner, links, push = _pulls(sys, frames)
    pushes = np.array([*push.ang, *push.lin], float)[..., 0].T
    for tendon, link, force in zip(owner, links, pushes, strict=True):
        # The wrench of a unit tension on each link, times the link's Jacobian.
        out[tendon] += force @ at.jacobian(int(link), np.zeros(3))
    return out


@jax.jit  # one program: its hundreds of operations would be compiled one by one
def _pulls(sys: System, frames: Frames) -> tuple[Any, Any, Spatial]:
    """Return the tendon and the link of each pull of a unit tension, and its wrench."""
    reach = tendon_reach(jax.tree.map(lambda a: a[..., None], sys), frames)
    return reach.owner, reach.link, reach.push


def _subspace(sys: System, pos: Array, rot: list[Array]) -> Array:
    """Return the motion subspaces: angular part, and linear part at the world's origin, (nv, 6)."""
    out = []
    for joint, (kind, link) in enumerate(zip(sys.joint_types, sys.joint_link, strict=True)):
        axis = np.asarray(sys.joint.axis[joint], float)
        user = np.asarray(sys.joint.user[joint], float)
        params = JointParams(_column(axis), tuple(x[None, None] for x in user))
        point = pos[link] + rot[link] @ np.asarray(sys.joint.pos[joint], float)
        for twist in kind.motion_subspace(params, kind.zero(np.zeros((1, 1)))):
            ang, vel = (rot[link] @ _numbers(part) for part in twist)
            # A twist about `point` is moved to the world's origin: v_o = v_p + p x w.
            out.append(np.concatenate([ang, vel + np.cross(point, ang)]))
    return np.array(out).reshape(-1, 6)


class _Rest:
    """Jacobians of a model at rest."""

    def __init__(self, sys: System, subspace: Array, pos: Array, rot: list[Array]) -> None:
        self.subspace, self.pos, self.rot = subspace, pos, rot
        owners = np.array(sys.dof_link(), int)
        self.moved: list[Array] = []
        for i, parent in enumerate(sys.link_parents):
            self.moved.append((owners == i) | (self.moved[parent] if parent >= 0 else False))

    def jacobian(self, link: int, point: object) -> Array:
        """Return the angular velocity of a link and a point's velocity, per rate, (6, nv)."""
        there = self.pos[link] + self.rot[link] @ np.asarray(point, float)
        ang, lin = self.subspace[:, :3], self.subspace[:, 3:]
        columns = np.concatenate([ang, lin + np.cross(ang, there)], axis=1)
        return np.array((columns * self.moved[link][:, None]).T)


def _column(v: Array) -> Vec3:
    """Return a vector as components (1, 1)."""
    return Vec3(*(jnp.asarray([[x]]) for x in v))


def _numbers(v: Vec3 | None) -> Array:
    """Return components (1, 1) as a vector; zero for None."""
    return np.zeros(3) if v is None else np.array([float(np.asarray(c).item()) for c in v])


def _matrix(quat: object) -> Array:
    """Return the rotation matrix of a unit quaternion."""
    w, x, y, z = np.asarray(quat, float)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
