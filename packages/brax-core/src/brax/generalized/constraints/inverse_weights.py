"""How easily links and degrees of freedom move at rest: the scale of soft constraints.

MuJoCo's `body_invweight0` and `dof_invweight0`. They are computed once, when a model is built, and
stay as they are when masses are changed later.

Source: MuJoCo's documentation, chapter Computation, section Constraint model: diagApprox.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.actuators.spatial_tendons import has_paths, tendon_reach
from brax.base import System
from brax.components import Vec3, quat, vec3, zero_vec
from brax.joints import JointParams
from brax.kinematics import Frames

Array = np.ndarray


class InertialFrames(NamedTuple):
    """Centres of mass of the bodies as they were described, in the frames of their links [m]."""

    geoms: Array
    """Of the body of each geom, (n_geoms, 3)."""
    ends: Array
    """Of the two bodies of each equality, (n_equalities, 2, 3); any where it ties none."""
    pos: Array
    """Link frames in the world with every joint at rest, (n_links, 3)."""
    quat: Array
    """Their orientations, (n_links, 4)."""
    bodies: tuple[int, ...]
    """How many bodies each link was made of."""


def inverse_weights(sys: System, places: InertialFrames) -> dict[str, Array]:
    """Inverse weights of a concrete model, in double precision.

    Args:
        sys: the model.
        places: where the bodies are that its geoms and equalities were given to.

    Returns:
        `link`: of each one's centre of mass [1/kg] and of its rotation [1/(kg m^2)], (n_links, 2);
        `dof`: of each degree of freedom, (nv,); `tendon`: of each one's length, (n_tendons,);
        `geom`: of the centre of mass of each one's body, (n_geoms,); `equality`: summed over what
        each ties, of translation (or of the coordinate) and of rotation, (n_equalities, 2).
    """
    pos, rot = places.pos, [_matrix(quat) for quat in places.quat]
    subspace = _subspace(sys, pos, rot)
    at = _Rest(sys, subspace, pos, rot)
    jacobians = [at.jacobian(i, c) for i, c in enumerate(sys.link.inertia.transform.pos)]
    mass = np.diag(np.asarray(sys.dof.armature, float))
    for i, jacobian in enumerate(jacobians):
        turned = rot[i] @ _matrix(sys.link.inertia.transform.rot[i])
        moments = turned @ np.diag(np.asarray(sys.link.inertia.i[i], float)) @ turned.T
        dofs, (ang, lin) = _acting(jacobian)
        own = ang.T @ moments @ ang + float(sys.link.inertia.mass[i]) * lin.T @ lin
        mass[np.ix_(dofs, dofs)] += own
    inverse = np.linalg.pinv(mass, hermitian=True)
    along = _tendons(sys) + _paths(sys, at, places)
    found = {
        "link": np.array([_mean(j, inverse) for j in jacobians]).reshape(-1, 2),
        "dof": _by_kind(sys, subspace, np.diag(inverse)),
        "tendon": np.einsum("ti,ij,tj->t", along, inverse, along),
    }
    for link in _sliders(sys, places, subspace, rot):
        weight = 1.0 / float(sys.link.inertia.mass[link])
        found["link"][link] = weight, 0.0
        found["dof"][np.array(sys.dof_link()) == link] = weight

    def weigh(link: int, centre: Array) -> Array:
        if link < 0:
            return np.zeros(2)
        if places.bodies[link] == 1:
            return np.array(found["link"][link])
        return _mean(at.jacobian(link, centre), inverse)

    geoms = [weigh(*each) for each in zip(sys.geom_link, places.geoms, strict=True)]
    starts = sys.joint_qd_start()
    ties: list[Any] = []
    for kind, pair, ends in zip(sys.equality_types, sys.equality_pair, places.ends, strict=True):
        if kind in ("joint", "tendon"):
            table = found["dof"][np.asarray(starts, int)] if kind == "joint" else found["tendon"]
            ties.append([sum(table[k] for k in pair if k >= 0), 0.0])
        else:
            ties.append(sum(weigh(*each) for each in zip(pair, ends, strict=True)))
    return found | {
        "geom": np.array(geoms).reshape(-1, 2)[:, 0],
        "equality": np.array(ties, float).reshape(-1, 2),
    }


def _sliders(sys: System, places: InertialFrames, subspace: Array, rot: list[Array]) -> list[int]:
    """Links that only slide along axes of their inertia, on the world, and carry nothing.

    MuJoCo's weight of these (its `body_simple` is 2) is one over the mass: it is not averaged over
    three directions, and armature does not count.
    """
    frame, owners, out = sys.link.inertia.transform, np.array(sys.dof_link(), int), []
    anchors = np.abs(np.asarray(sys.joint.pos, float)).reshape(-1, 3).max(axis=1)
    for link, parent in enumerate(sys.link_parents):
        axes = subspace[owners == link]
        along = axes[:, 3:] @ rot[link]
        offsets = [*np.asarray(frame.pos[link], float), *np.asarray(frame.rot[link][1:], float)]
        offsets += [anchors[joint] for joint in sys.link_joints(link)]
        alone = parent < 0 and link not in sys.link_parents and places.bodies[link] == 1
        slides = not axes[:, :3].any() and (np.abs(along) > 1 - 1e-9).any(axis=1).all()
        if alone and slides and np.max(np.abs(offsets)) < 1e-6:
            out.append(link)
    return out


def _mean(jacobian: Array, inverse: Array) -> Array:
    """Of a body's translation and rotation, over the three directions, (2,)."""
    dofs, (ang, lin) = _acting(jacobian)
    near = inverse[np.ix_(dofs, dofs)]
    return np.array([np.sum((part @ near) * part) / 3 for part in (lin, ang)])


def _acting(jacobian: Array) -> tuple[Array, tuple[Array, Array]]:
    """The degrees of freedom that move a body, and how they turn it and move its point."""
    dofs = np.flatnonzero(np.abs(jacobian).sum(axis=0))
    return dofs, (jacobian[:3, dofs], jacobian[3:, dofs])


def _by_kind(sys: System, subspace: Array, diagonal: Array) -> Array:
    """Averages over the turning, and over the other, degrees of freedom of each joint."""
    turns = np.abs(subspace[:, :3]).sum(axis=1) > 0
    kinds = list(zip(sys.dof_joint(), turns.tolist(), strict=True))
    return np.array([diagonal[[k == kind for k in kinds]].mean() for kind in kinds])


def _tendons(sys: System) -> Array:
    """What a unit of each degree of freedom adds to the tendons' lengths, (n_tendons, nv)."""
    out = np.zeros((len(sys.tendon_names), sys.qd_size()))
    starts = sys.joint_qd_start()
    pairs = [(t, starts[j]) for t, joints in enumerate(sys.tendon_joints) for j in joints]
    for (tendon, dof), coef in zip(pairs, np.asarray(sys.tendon.coef, float), strict=True):
        out[tendon, dof] += coef
    return out


def _paths(sys: System, at: "_Rest", places: InertialFrames) -> Array:
    """The same of spatial tendons."""
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
    reach = tendon_reach(jax.tree.map(lambda a: a[..., None], sys), frames)
    pushes = np.array([*reach.push.ang, *reach.push.lin], float)[..., 0].T
    for tendon, link, push in zip(reach.owner, reach.link, pushes, strict=True):
        out[tendon] += push @ at.jacobian(link, np.zeros(3))
    return out


def _subspace(sys: System, pos: Array, rot: list[Array]) -> Array:
    """Unit velocities of the degrees of freedom, angular and, at the world's origin, linear."""
    out = []
    for joint, (kind, link) in enumerate(zip(sys.joint_types, sys.joint_link, strict=True)):
        axis = np.asarray(sys.joint.axis[joint], float)
        user = np.asarray(sys.joint.user[joint], float)
        params = JointParams(_column(axis), tuple(x[None, None] for x in user))
        point = pos[link] + rot[link] @ np.asarray(sys.joint.pos[joint], float)
        for twist in kind.motion_subspace(params, kind.zero(np.zeros((1, 1)))):
            ang, vel = (rot[link] @ _numbers(part) for part in twist)
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

    def jacobian(self, link: int, point: Any) -> Array:
        """Angular velocity of a link, and velocity of a point in its frame, per rate, (6, nv)."""
        there = self.pos[link] + self.rot[link] @ np.asarray(point, float)
        ang, lin = self.subspace[:, :3], self.subspace[:, 3:]
        columns = np.concatenate([ang, lin + np.cross(ang, there)], axis=1)
        return np.array((columns * self.moved[link][:, None]).T)


def _column(v: Array) -> Vec3:
    return Vec3(*(jnp.asarray([[x]]) for x in v))


def _numbers(v: Vec3 | None) -> Array:
    return np.zeros(3) if v is None else np.array([float(np.asarray(c).item()) for c in v])


def _matrix(quat: Any) -> Array:
    w, x, y, z = np.asarray(quat, float)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
