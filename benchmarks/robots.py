"""Models as people have them, as plain data: files of PyPI packages, chains, and a heap of boxes.

A model is a dictionary with `path` or `xml`. Robots whose files have neither ground nor motors also
have `floor`, `stiffness` [N m/rad] of a servo for every hinge, and the pose to start from:
`height` [m] and `angles` [rad], by a part of the joints' names.
"""

from importlib import util
from pathlib import Path

import numpy as np
from models import chain
from sides import ROBOTS

SUITE = ("cheetah", "humanoid", "quadruped", "manipulator", "humanoid_CMU", "dog")
"""Files of dm_control's suite."""

LINKS, BOXES = (20, 50, 100), 50

GO1 = {
    "floor": True,
    "stiffness": 35.0,
    "height": 0.278,
    "angles": {"thigh": 0.9, "calf": -1.8},
}
"""Unitree's quadruped, as mjlab has it stand."""

G1 = {
    "floor": True,
    "stiffness": 100.0,
    "height": 0.76,
    "angles": {"hip_pitch": -0.312, "knee": 0.669, "ankle_pitch": -0.363, "elbow": 0.6},
}
"""Unitree's humanoid, as mjlab has it stand."""


def robots():
    """Return all models by name."""
    package = util.find_spec("dm_control")
    dm_control = Path(package.origin).parent if package else Path()
    zoo, assets = ROBOTS / "mjlab/asset_zoo/robots", ROBOTS / "gymnasium_robotics/envs/assets"
    files = {
        **{name: dm_control / f"suite/{name}.xml" for name in SUITE},
        "rodent": dm_control / "locomotion/walkers/assets/rodent.xml",
        "Unitree Go1": zoo / "unitree_go1/xmls/go1.xml",
        "Unitree G1": zoo / "unitree_g1/xmls/g1.xml",
        "Shadow hand": assets / "hand/manipulate_block.xml",
        "Fetch arm": assets / "fetch/pick_and_place.xml",
    }
    added = {"rodent": {"floor": True}, "Unitree Go1": GO1, "Unitree G1": G1}
    made = {f"chain of {n}": chain(n)["xml"] for n in LINKS} | {f"{BOXES} boxes": heap(BOXES)}
    return {
        **{name: {"path": str(path), **added.get(name, {})} for name, path in files.items()},
        **{name: {"xml": xml} for name, xml in made.items()},
    }


def heap(boxes):
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
