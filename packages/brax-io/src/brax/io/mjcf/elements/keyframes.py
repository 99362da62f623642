"""Keyframes of MuJoCo's compiled model."""

from collections.abc import Iterator, Mapping

import mujoco
import numpy as np

from brax.builder import ModelBuilder
from brax.io.mjcf.custom_elements import Custom
from brax.io.mjcf.names import names


def keyframes(
    builder: ModelBuilder,
    model: mujoco.MjModel,
    custom: Custom,
    places: Mapping[tuple[str, int], str],
) -> None:
    """Add the keyframes that are supported; `support` reports the others."""
    unread = dict(left_out(model, custom))
    for k, name in enumerate(names(model, "key")):
        if k in unread:
            continue
        builder.add_keyframe(
            name,
            model.key_qpos[k],
            qd=model.key_qvel[k],
            activation=model.key_act[k],
            ctrl=model.key_ctrl[k],
            line=places.get(("key", k), ""),
        )


def ignored_parts(model: mujoco.MjModel) -> Iterator[tuple[int, str]]:
    """Yield the keyframes of which a part has no effect, and what that part is."""
    # body_mocapid is -1 for all other bodies, so the last nmocap bodies are the mocap bodies in
    # order.
    mocap = np.argsort(model.body_mocapid)[model.nbody - model.nmocap :]
    for k in range(model.nkey):
        moved = not np.allclose(model.key_mpos[k].reshape(-1, 3), model.body_pos[mocap])
        rotated = not np.allclose(model.key_mquat[k].reshape(-1, 4), model.body_quat[mocap])
        if moved or rotated:
            yield k, "its mpos and mquat: mocap bodies start where they are; the rest is read"
        if model.key_time[k]:
            yield k, "its time: a state has none; the rest is read"


def left_out(model: mujoco.MjModel, custom: Custom) -> Iterator[tuple[int, str]]:
    """Yield the keyframes that are not read, and why."""
    if custom.joint_types:
        for k in range(model.nkey):
            yield k, "joints of a type that MuJoCo does not know may have other coordinates"
