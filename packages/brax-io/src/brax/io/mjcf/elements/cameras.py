"""Cameras of MuJoCo's compiled model."""

from collections.abc import Iterator, Mapping

import mujoco
import numpy as np

from brax.builder import ModelBuilder
from brax.io.mjcf.names import body_names, keyword, names


def cameras(
    builder: ModelBuilder, model: mujoco.MjModel, places: Mapping[tuple[str, int], str]
) -> None:
    """Add all cameras with a field of view."""
    bodies, blind = body_names(model), dict(left_out(model))
    for c, name in enumerate(names(model, "camera")):
        if c in blind:
            continue
        target = int(model.cam_targetbodyid[c])
        mode = keyword(mujoco.mjtCamLight, model.cam_mode[c])
        if mode.startswith("target") and target < 0:
            mode = "fixed"  # as in MuJoCo: without a target the camera is fixed
        builder.add_camera(
            bodies[model.cam_bodyid[c]],
            name,
            model.cam_pos[c],
            model.cam_quat[c],
            mode=mode,
            target=bodies[target] if target >= 0 else "",
            fovy=float(model.cam_fovy[c]),
            line=places.get(("camera", c), ""),
        )


def left_out(model: mujoco.MjModel) -> Iterator[tuple[int, str]]:
    """Yield the number of each camera that is not added, and the reason."""
    for c in range(model.ncam):
        if not model.cam_fovy[c] > 0:
            yield c, f"fovy is {model.cam_fovy[c]:g}: nothing can be seen through it"


def ignored_parts(model: mujoco.MjModel) -> Iterator[tuple[int, str]]:
    """Yield the cameras whose projection is not the one of `fovy`, and how they are drawn."""
    projections = getattr(model, "cam_projection", np.zeros(model.ncam))
    for c in range(model.ncam):
        if projections[c]:
            yield c, "projection: it is drawn in perspective, with the angle fovy; the rest is read"
        fx, fy, *principal = model.cam_intrinsic[c]
        if model.cam_sensorsize[c].any() and (fx != fy or any(principal)):
            reason = "focal and principal: it is drawn centred, with the angle fovy"
            yield c, f"{reason}; the rest is read"
