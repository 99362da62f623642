"""Cameras of MuJoCo's compiled model."""

from collections.abc import Iterator, Mapping

import mujoco

from brax.builder import ModelBuilder
from brax.io.mjcf.names import body_names, keyword, names


def cameras(
    builder: ModelBuilder, model: mujoco.MjModel, places: Mapping[tuple[str, int], str]
) -> None:
    """Adds all that can see."""
    bodies, blind = body_names(model), dict(left_out(model))
    for c, name in enumerate(names(model, "camera")):
        if c in blind:
            continue
        target = int(model.cam_targetbodyid[c])
        mode = keyword(mujoco.mjtCamLight, model.cam_mode[c])
        if mode.startswith("target") and target < 0:
            mode = "fixed"  # as MuJoCo: a camera that names no target stays as it is
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
    """Yields the number of each camera that is not added, and the reason."""
    for c in range(model.ncam):
        if not model.cam_fovy[c] > 0:
            yield c, f"fovy is {model.cam_fovy[c]:g}: nothing can be seen through it"
