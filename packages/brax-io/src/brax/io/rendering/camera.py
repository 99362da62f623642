"""Poses of a model's cameras along a trajectory."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from brax import kinematics, math
from brax.base import System, Transform
from brax.mocap import at_rest


def camera_poses(sys: System, camera: int, x: Transform) -> Transform:
    """Return the pose of a camera in each frame of a trajectory, in the world.

    Source: MuJoCo's documentation, camera/mode. The offset and orientation that a tracking camera
    keeps are those in MuJoCo's `qpos0`, whatever the initial configuration is. A system without a
    file's model does not know that; there they are those in the initial configuration.

    Args:
        sys: the system.
        camera: index of the camera.
        x: poses of the links, then of the mocap bodies, (frames, n_links + n_mocap, ...); without
            the mocap bodies, their poses are the model's.

    Returns:
        Poses, shape (frames, ...). A camera looks along its negative z axis, with y up.
    """
    mode = sys.camera_modes[camera]
    link = _frame(sys, sys.camera_link[camera], sys.camera_mocap[camera])
    target = _frame(sys, sys.camera_target[camera], sys.camera_aim[camera])
    x = _with_mocap(sys, x)
    if mode.startswith("track"):
        q = sys.init_q
        if sys.file_model is not None:  # `init_qpos` of the file replaces the initial one
            q = jnp.asarray(sys.file_model.model.qpos0, q.dtype)
        start, _ = kinematics.forward(sys, q, jnp.zeros(sys.qd_size()))
        first = _with_mocap(sys, Transform(start.pos[None], start.rot[None]))
        initial = _fixed(sys, camera, first)
        origin = _centre if mode == "trackcom" else _origin
        pos = origin(sys, link, x) + initial.pos - origin(sys, link, first)
        return Transform(pos, jnp.broadcast_to(initial.rot, (len(pos), 4)))
    fixed = _fixed(sys, camera, x)
    if mode == "fixed":
        return fixed
    seen = (_centre if mode == "targetbodycom" else _origin)(sys, target, x)
    return Transform(fixed.pos, _towards(np.asarray(fixed.pos - seen)))


def _frame(sys: System, link: int, mocap: int) -> int:
    """Return the index of a link's or a mocap body's pose; -1 is the world."""
    return link if mocap < 0 else sys.num_links() + mocap


def _with_mocap(sys: System, x: Transform) -> Transform:
    """Return the poses of links (frames, n_links, ...) and of mocap bodies, added if missing."""
    rest = at_rest(sys)
    if rest is None or x.pos.shape[1] > sys.num_links():
        return x
    n = len(x.pos)
    return jax.tree.map(
        lambda a, b: jnp.concatenate([a, jnp.broadcast_to(b, (n, *b.shape))], axis=1), x, rest
    )


def _fixed(sys: System, camera: int, x: Transform) -> Transform:
    """Return the pose of a camera that is fixed to its link or mocap body."""
    frame, body = sys.camera.transform.take(camera), sys.camera_mocap[camera]
    link = _frame(sys, sys.camera_link[camera], body)
    if body >= 0:
        frame = sys.fixed.take(sys.mocap_fixed[body]).inv_do(frame)
    if link < 0:
        n = len(x.pos)
        return Transform(jnp.tile(frame.pos, (n, 1)), jnp.tile(frame.rot, (n, 1)))
    return x.take(link, axis=1).do(frame)


def _origin(sys: System, link: int, x: Transform) -> jnp.ndarray:
    """Return the origin of a frame, (frames, 3)."""
    return jnp.zeros((len(x.pos), 3)) if link < 0 else jnp.asarray(x.pos[:, link])


def _centre(sys: System, link: int, x: Transform) -> jnp.ndarray:
    """Return the centre of mass of a link's subtree, (frames, 3); of all links for the world.

    A mocap body has no mass here, so its origin is returned.
    """
    if link >= sys.num_links():
        return _origin(sys, link, x)
    subtree = [link] if link >= 0 else []
    # Parents come before their children, so one pass finds the whole subtree.
    for child, parent in enumerate(sys.link_parents):
        if parent in subtree or (link < 0 and parent < 0):
            subtree.append(child)
    inertia = sys.link.inertia.take(np.array(subtree))
    centres = x.pos[:, subtree] + math.rotate(inertia.transform.pos, x.rot[:, subtree])
    return (centres * inertia.mass[:, None]).sum(axis=1) / inertia.mass.sum()


def _towards(back: np.ndarray) -> jnp.ndarray:
    """Return orientations (frames, 4) of cameras that look along `-back` (frames, 3), x level."""
    z = back / np.maximum(np.linalg.norm(back, axis=1, keepdims=True), 1e-12)
    level = np.cross([0.0, 0, 1], z)
    level[np.linalg.norm(level, axis=1) < 1e-9] = [1, 0, 0]  # looking straight up or down
    x = level / np.linalg.norm(level, axis=1, keepdims=True)
    matrices = np.stack([x, np.cross(z, x), z], axis=-1)
    return jnp.asarray(np.stack([_quaternion(m) for m in matrices]))


def _quaternion(matrix: np.ndarray) -> np.ndarray:
    out = np.zeros(4)
    mujoco.mju_mat2Quat(out, matrix.ravel())
    return out
