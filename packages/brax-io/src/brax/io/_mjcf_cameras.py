"""Cameras of MuJoCo's compiled model."""

from collections.abc import Mapping

import mujoco

from brax.builder import ModelBuilder
from brax.io._mjcf_names import body_names, keyword, names


def cameras(
    builder: ModelBuilder, model: mujoco.MjModel, places: Mapping[tuple[str, int], str]
) -> None:
    """Adds all of them."""
    bodies = body_names(model)
    for c, name in enumerate(names(model, "camera")):
        target = int(model.cam_targetbodyid[c])
        builder.add_camera(
            bodies[model.cam_bodyid[c]],
            name,
            model.cam_pos[c],
            model.cam_quat[c],
            mode=keyword(mujoco.mjtCamLight, model.cam_mode[c]),
            target=bodies[target] if target >= 0 else "",
            fovy=float(model.cam_fovy[c]),
            line=places.get(("camera", c), ""),
        )
