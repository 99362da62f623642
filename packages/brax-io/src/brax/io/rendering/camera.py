"""Where a model's cameras stand along a trajectory."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from brax import kinematics, math
from brax.base import System, Transform
from brax.mocap import at_rest


def camera_poses(sys: System, camera: int, x: Transform) -> Transform:
    """The frame of a camera in each picture, in the world.

    Source: MuJoCo's documentation, camera/mode. What a camera keeps while it tracks it has where
    the model starts.

    Args:
        sys: the system.
        camera: its number.
        x: frames of the links and after them of the mocap bodies, (frames, n_links + n_mocap, ...);
            without the latter they are where the model has them.

    Returns:
        Shape (frames, ...).
    """
    mode = sys.camera_modes[camera]
    link = _frame(sys, sys.camera_link[camera], sys.camera_mocap[camera])
    target = _frame(sys, sys.camera_target[camera], sys.camera_aim[camera])
    x = _with_mocap(sys, x)
    if mode.startswith("track"):
        start, _ = kinematics.forward(sys, sys.init_q, jnp.zeros(sys.qd_size()))
        first = _with_mocap(sys, Transform(start.pos[None], start.rot[None]))
        stood = _fixed(sys, camera, first)
        origin = _centre if mode == "trackcom" else _origin
        pos = origin(sys, link, x) + stood.pos - origin(sys, link, first)
        return Transform(pos, jnp.broadcast_to(stood.rot, (len(pos), 4)))
    stands = _fixed(sys, camera, x)
    if mode == "fixed":
        return stands
    seen = (_centre if mode == "targetbodycom" else _origin)(sys, target, x)
    return Transform(stands.pos, _towards(np.asarray(stands.pos - seen)))


def _frame(sys: System, link: int, mocap: int) -> int:
    """Which of the frames a link's or a mocap body's is, -1 for the world's."""
    return link if mocap < 0 else sys.num_links() + mocap


def _with_mocap(sys: System, x: Transform) -> Transform:
    """Frames of links (frames, n_links, ...), and of the mocap bodies if they lack these."""
    rest = at_rest(sys)
    if rest is None or x.pos.shape[1] > sys.num_links():
        return x
    n = len(x.pos)
    return jax.tree.map(
        lambda a, b: jnp.concatenate([a, jnp.broadcast_to(b, (n, *b.shape))], axis=1), x, rest
    )


def _fixed(sys: System, camera: int, x: Transform) -> Transform:
    """The camera's frame as its link, or mocap body, carries it."""
    frame, body = sys.camera.transform.take(camera), sys.camera_mocap[camera]
    link = _frame(sys, sys.camera_link[camera], body)
    if body >= 0:
        frame = sys.fixed.take(sys.mocap_fixed[body]).to_local(frame)
    if link < 0:
        n = len(x.pos)
        return Transform(jnp.tile(frame.pos, (n, 1)), jnp.tile(frame.rot, (n, 1)))
    return x.take(link, axis=1).do(frame)


def _origin(sys: System, link: int, x: Transform) -> jnp.ndarray:
    """The origin of a frame, (frames, 3)."""
    return jnp.zeros((len(x.pos), 3)) if link < 0 else jnp.asarray(x.pos[:, link])


def _centre(sys: System, link: int, x: Transform) -> jnp.ndarray:
    """The centre of mass of a link and all that it carries, (frames, 3); of all for the world.

    A mocap body has no mass here, and stands for itself.
    """
    if link >= sys.num_links():
        return _origin(sys, link, x)
    carried = [link] if link >= 0 else []
    for child, parent in enumerate(sys.link_parents):
        if parent in carried or (link < 0 and parent < 0):
            carried.append(child)
    inertia = sys.link.inertia.take(np.array(carried))
    centres = x.pos[:, carried] + math.rotate(inertia.transform.pos, x.rot[:, carried])
    return (centres * inertia.mass[:, None]).sum(axis=1) / inertia.mass.sum()


def _towards(back: np.ndarray) -> jnp.ndarray:
    """Turns (frames, 4) of cameras that look along `-back` (frames, 3), x level."""
    z = back / np.maximum(np.linalg.norm(back, axis=1, keepdims=True), 1e-12)
    level = np.cross([0.0, 0, 1], z)
    level[np.linalg.norm(level, axis=1) < 1e-9] = [1, 0, 0]  # straight up or down
    x = level / np.linalg.norm(level, axis=1, keepdims=True)
    matrices = np.stack([x, np.cross(z, x), z], axis=-1)
    return jnp.asarray(np.stack([_quaternion(m) for m in matrices]))


def _quaternion(matrix: np.ndarray) -> np.ndarray:
    out = np.zeros(4)
    mujoco.mju_mat2Quat(out, matrix.ravel())
    return out
