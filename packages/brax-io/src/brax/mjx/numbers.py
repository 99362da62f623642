"""Writes the numbers of a `System` over those of MJX's model of its file."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from brax.base import System, Transform, flat
from brax.errors import ModelError
from brax.io.mjcf.names import body_names

_WITHOUT_EFFECT = (
    "init_q",
    "vel_damping",
    "ang_damping",
    "baumgarte_erp",
    "geom.elasticity",
    "geom.invweight",
    "geom.rgba",
    "joint.user",
    "equality.invweight",
    "camera",
    "sensor.cutoff",
    "keyframes",
    "site.size",
)
"""Paths of numbers that MJX's step does not depend on. The pipeline reports those that other
pipelines depend on. MJX has no inverse weights of geoms and equality constraints: it takes those of
the bodies."""

_FLUID = ("box", "geom.fluid")
"""Paths of numbers that matter in a fluid only."""

_INERTIA = ("body_mass", "body_inertia", "body_ipos", "body_iquat")

_BODY_OF = {"geom.transform": "geom", "site.transform": "site"}
"""Paths of frames, and whose they are."""


def changed_paths(sys: System, reference: System) -> list[str]:
    """Return the paths of the numbers that are traced or differ from those of another system.

    Args:
        sys: the system.
        reference: a system of the same structure, with known numbers.
    """
    ours = jax.tree_util.tree_leaves_with_path(sys)
    return sorted(
        {
            ".".join(key.name for key in path if isinstance(key, jax.tree_util.GetAttrKey))
            for (path, leaf), known in zip(ours, jax.tree.leaves(reference), strict=True)
            if np.size(leaf) and (_is_traced(leaf) or not np.array_equal(leaf, known))
        }
    )


def with_numbers(model: Any, sys: System, paths: Sequence[str]) -> Any:
    """Return MJX's model with numbers of a system.

    Args:
        model: MJX's model of the file that the system came from.
        sys: the system.
        paths: paths of the numbers to write, such as `link.inertia.mass`.

    Returns:
        MJX's model. The inertia of a link that consists of several of MuJoCo's bodies is that of
        its first one, and the others have none, which moves in the same way.

    Raises:
        ModelError: listing the numbers that MJX's model does not have.
    """
    paths = [path for path in paths if not _is_without_effect(path, sys)]
    new, refused = model, []
    for path in paths:
        if path.startswith("opt."):
            new = _with_option(new, sys, path.removeprefix("opt."))
        elif (values := _values(model, sys, path)) is None:
            refused.append(path)
        else:
            new = new.replace(**values)
    if refused:
        raise ModelError.of(
            [
                f"mjx: MJX's model cannot have other numbers of '{path}' than the file: keep those "
                "of the file, and do not pass the system to a compiled function"
                for path in refused
            ]
        )
    return new


def file_bodies(sys: System) -> np.ndarray:
    """Return the number of the body of each link in MuJoCo's model of the file, (n_links,)."""
    names = body_names(sys.file_model.model)
    return np.array([names.index(name) for name in sys.link_names], int)


def _is_traced(value: object) -> bool:
    return isinstance(value, jax.core.Tracer)


def _is_without_effect(path: str, sys: System) -> bool:
    """Return whether MJX's step does not depend on the numbers at a path."""
    listed = [*_WITHOUT_EFFECT, *([] if sys.opt.enable_fluid else _FLUID)]
    listed += [] if sys.opt.enable_gravcomp else ["link.gravcomp_arm"]
    listed += [] if any(sys.geom_moving) else ["geom.surface_velocity"]
    listed += [] if any(sys.geom_adhesive) else ["geom.adhesion"]
    listed += [] if any(sys.pair_adhesive) else ["pair.adhesion"]
    polynomials = "stiffness_poly", "damping_poly"
    listed += [] if any(sys.joint_polynomial) else [f"dof.{name}" for name in polynomials]
    listed += [] if any(sys.tendon_polynomial) else [f"tendon.{name}" for name in polynomials]
    return any(path == name or path.startswith(f"{name}.") for name in listed)


def _with_option(model: Any, sys: System, name: str) -> Any:
    """Return the model with one of the system's options."""
    changes = {name: getattr(sys.opt, name)}
    if name == "gravity":
        # The gravity of a model without gravity is zero, so the flag is not needed.
        flag = int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)
        changes["disableflags"] = model.opt.disableflags & ~flag
    return model.replace(opt=model.opt.replace(**changes))


def _values(model: object, sys: System, path: str) -> dict[str, Any] | None:
    """Return the arrays of MuJoCo's names that the numbers at a path change.

    Returns:
        New arrays by name; None if MuJoCo's model has none of the right shape.
    """
    owner = path.rpartition(".")[0]
    if owner in ("link.transform", "fixed"):
        return _body_frames(model, sys)
    if owner in _BODY_OF:
        return _frames(sys, _BODY_OF[owner])
    if path.startswith("link.inertia."):
        return _inertias(model, sys)
    name = flat.names_by_path().get(path, "")
    if path.startswith("link.") and name:
        return {name: _by_body(model, sys, name)}
    if path in _SPECIAL:
        return _SPECIAL[path](model, sys)
    if path == "equality.data" and _joins_parts(sys):
        return None
    if path == "geom.size":
        return {name: sys.geom.size, "geom_rbound": _bounds(model, sys)}
    if not name or not hasattr(model, name):  # MJX does not have all of MuJoCo's numbers
        return None
    value, now = flat.read(sys, name), getattr(model, name)
    # What MJX keeps in NumPy's arrays shapes its program.
    if np.shape(value) != np.shape(now) or (isinstance(now, np.ndarray) and _is_traced(value)):
        return None
    return {name: np.asarray(value) if isinstance(now, np.ndarray) else value}


def _by_body(model: object, sys: System, name: str) -> Any:
    """Return MuJoCo's array with the rows of the links."""
    return getattr(model, name).at[file_bodies(sys)].set(flat.read(sys, name)[1:])


def _body_frames(model: Any, sys: System) -> dict[str, Any]:
    """Return the frames of all bodies in those of their parents.

    A `System` has them in the frame of the link that carries them, which is not the parent where
    that has no joints.
    """
    names = body_names(sys.file_model.model)
    carried = dict(zip(sys.fixed_names, range(len(sys.fixed_names)), strict=True))
    bodies = [names.index(name) for name in (*sys.link_names, *sys.fixed_names)]
    parents = [names[sys.file_model.model.body_parentid[body]] for body in bodies]
    # The last row is for the parents that are links, or the world.
    frames = sys.fixed.concatenate(Transform.zero((1,)))
    above = frames.take(np.array([carried.get(name, -1) for name in parents], int))
    own = sys.link.transform.concatenate(sys.fixed)
    there = jax.vmap(Transform.inv_do)(above, own)
    rows = np.array(bodies, int)
    return {
        "body_pos": model.body_pos.at[rows].set(there.pos),
        "body_quat": model.body_quat.at[rows].set(there.rot),
    }


def _joins_parts(sys: System) -> bool:
    """Return whether an equality constraint is on a site, or on a body without joints.

    Its anchors in a `System` are in the frame of the link.
    """
    model = sys.file_model.model
    on_bodies = model.eq_objtype == mujoco.mjtObj.mjOBJ_BODY
    links = [0, *file_bodies(sys)]
    ends = np.stack([model.eq_obj1id, model.eq_obj2id])[:, on_bodies]
    return bool(
        (model.eq_objtype == mujoco.mjtObj.mjOBJ_SITE).any() or not np.isin(ends, links).all()
    )


def _inertias(model: Any, sys: System) -> dict[str, Any] | None:
    """Return masses and inertias, those of a link all in its own body.

    None if gravity compensation acts on some of a link's bodies only: MuJoCo weights it by their
    masses.
    """
    if np.asarray(sys.file_model.system.link.gravcomp_arm).any():
        return None
    links = file_bodies(sys)
    others = np.setdiff1d(np.arange(model.nbody), links)
    # Where masses are, the orientation of a body without mass does not matter.
    new = {name: _by_body(model, sys, name) for name in _INERTIA}
    new |= {name: new[name].at[others].set(0.0) for name in ("body_mass", "body_inertia")}
    below = np.eye(model.nbody)
    for body in range(model.nbody - 1, 0, -1):
        below[model.body_parentid[body]] += below[body]
    new["body_subtreemass"] = below @ new["body_mass"]
    # Shortcuts for bodies whose principal frame of inertia is their own frame.
    new["body_sameframe"] = np.zeros_like(model.body_sameframe)
    return new


def _frames(sys: System, kind: str) -> dict[str, Any]:
    """Return the frames of geoms or sites in those of MuJoCo's bodies."""
    frame: Transform = getattr(sys, kind).transform
    on = getattr(sys, f"{kind}_body")
    fixed = [(i, number) for i, (what, number) in enumerate(on) if what == "fixed"]
    if fixed:
        rows, numbers = np.array(fixed, int).T
        there = jax.vmap(Transform.inv_do)(sys.fixed.take(numbers), frame.take(rows))
        frame = jax.tree.map(lambda all_, some: all_.at[rows].set(some), frame, there)
    same = f"{kind}_sameframe"
    shortcuts = np.zeros_like(getattr(sys.file_model.model, same))
    return {f"{kind}_pos": frame.pos, f"{kind}_quat": frame.rot, same: shortcuts}


def _bounds(model: Any, sys: System) -> Any:
    """Return the radii of spheres around the geoms; those of the file where sizes do not tell."""
    a, b, c = sys.geom.size.T
    radii = {
        "sphere": a,
        "capsule": a + b,
        "cylinder": jnp.hypot(a, b),
        "ellipsoid": jnp.maximum(jnp.maximum(a, b), c),
        "box": jnp.linalg.norm(sys.geom.size, axis=-1),
    }
    kept = jnp.asarray(model.geom_rbound)
    columns = [radii.get(kind.name, kept)[g] for g, kind in enumerate(sys.geom_types)]
    return jnp.stack(columns)


def _springs(model: Any, sys: System) -> dict[str, Any]:
    q, dof = _scalar_joints(sys)
    return {"qpos_spring": jnp.asarray(model.qpos_spring).at[q].set(sys.dof.springref[dof])}


def _references(model: Any, sys: System) -> dict[str, Any]:
    q, _ = _scalar_joints(sys)
    return {"qpos0": jnp.asarray(model.qpos0).at[q].set(sys.ref[q])}


def _scalar_joints(sys: System) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinate and the degree of freedom of each joint that has one of each."""
    starts = zip(sys.joint_types, sys.joint_q_start(), sys.joint_qd_start(), strict=True)
    pairs = [(q, dof) for kind, q, dof in starts if kind.q_width == 1]
    return tuple(np.array(pairs, int).reshape(-1, 2).T)  # type: ignore[return-value]


def _gears(model: Any, sys: System) -> dict[str, Any]:
    first = jnp.asarray(model.actuator_gear).at[:, 0].set(sys.actuator.gear)
    wrench = sys.actuator.wrench * sys.actuator.gear[:, None]
    # MuJoCo's gear of a ball joint begins with the torque, that of a free joint with the force.
    torque = jnp.roll(wrench, 3, axis=1)
    types = [sys.joint_types[j] if j >= 0 else None for j in sys.actuator_joint]
    balls, poses = (
        np.array([kind is not None and getattr(kind, asked) for kind in types], bool)
        for asked in ("is_ball", "is_free")
    )
    in_space = (np.array(sys.actuator_site) >= 0) | poses
    gear = jnp.where(in_space[:, None], wrench, jnp.where(balls[:, None], torque, first))
    return {"actuator_gear": gear}


def _tendon_ranges(model: object, sys: System) -> dict[str, Any]:
    return {"tendon_range": jnp.stack(sys.tendon.limit, axis=-1)}


_SPECIAL = {
    "dof.springref": _springs,
    "ref": _references,
    "actuator.gear": _gears,
    "actuator.wrench": _gears,
    "tendon.limit": _tendon_ranges,
}
"""Paths whose numbers MuJoCo has in another form."""
