"""Models of the benchmark, their time steps, and the allowed heights of a torso, as plain data.

A worker gets a model as a dictionary: `path` or `xml`, `timestep` [s], `n_frames`, `gear` or None,
`noise` of the start, `hidden` coordinates that the policy does not see, the `height` coordinate,
the `conserved` axes of linear and angular momentum in free flight, and `limits` (`validation`).
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
ANT = ROOT / "packages/brax-envs/src/brax/envs/assets/ant.xml"
PIPELINES = ("spring", "positional", "generalized")

FREE = {"height": 2, "hidden": 2, "conserved": ("xyz", "xyz")}
PLANAR = {"height": 1, "hidden": 1, "conserved": ("xz", "y")}

STRONG = [350.0] * 11 + [100.0] * 6
SWIFT = [120.0, 90.0, 60.0, 120.0, 100.0, 100.0]

TASKS: dict[str, dict[str, Any]] = {
    "ant": {
        "file": "ant.xml",
        "noise": 0.1,
        "steps": {"generalized": (0.01, 5), "maximal": (0.005, 10)},
        "gear": {"positional": [200.0] * 8},
        # MuJoCo: -0.46 to 3.91, 1 % above 1.59, mean 0.74 after 5 steps and 0.18 after 100.
        "limits": {"low": -0.6, "high": 4.0, "hop": 1.8, "mean": (0.1, 1.0)},
        "drift": {"generalized": (0.0085, 0.0128), "maximal": (0.0067, 0.0077)},
        **FREE,
    },
    "humanoid": {
        "file": "humanoid.xml",
        "noise": 0.01,
        "steps": {"generalized": (0.003, 5), "maximal": (0.0015, 10)},
        "gear": {"spring": STRONG, "positional": STRONG},
        # MuJoCo: -1.17 to 1.41; only its feet meet the floor, so it falls through it by then.
        "limits": {"low": -1.4, "high": 1.8, "hop": 1.5, "mean": (-1.1, 1.45)},
        "drift": {"generalized": (0.030, 0.084), "maximal": (0.063, 0.131)},
        **FREE,
    },
    "halfcheetah": {
        "file": "half_cheetah.xml",
        "noise": 0.1,
        "steps": {"generalized": (0.01, 5), "maximal": (0.003125, 16)},
        "gear": {"spring": SWIFT, "positional": SWIFT},
        # MuJoCo: 0.10 to 1.23, 1 % above 0.88, mean 0.57 to 0.63.
        "limits": {"low": -0.2, "high": 1.6, "hop": 1.1, "mean": (0.4, 0.8)},
        "drift": {"generalized": (0.038, 0.036), "maximal": (0.012, 0.015)},
        **PLANAR,
    },
}
"""The environments of Google's brax: their time steps, motors and noise. The heights of torsos [m]
are those of 600 of them in MuJoCo 4.0.0 during 100 steps of random actions; `drift` what its Euler
loses of linear and angular momentum in free flight, at the same time step."""

MORE = 1.5
"""We may lose so much more, since the actions differ."""


def task(name: str, pipeline: str, folder: str | None = None) -> dict[str, Any]:
    """Return a model of Google's brax, from its folder; `path` is None without one."""
    about = TASKS[name]
    kind = "generalized" if pipeline == "generalized" else "maximal"
    timestep, n_frames = about["steps"][kind]
    limits = about["limits"] | {"drift": [MORE * share for share in about["drift"][kind]]}
    return {
        "path": folder and str(Path(folder) / about["file"]),
        "timestep": timestep,
        "n_frames": n_frames,
        "gear": about["gear"].get(pipeline),
        "limits": limits,
        **{k: about[k] for k in ("noise", "height", "hidden", "conserved")},
    }


def ant(pipeline: str) -> dict[str, Any]:
    """Our ant, with the motors of its file."""
    return task("ant", pipeline) | {"gear": None, "path": str(ANT)}


def crowded_humanoid() -> dict[str, Any]:
    """Our humanoid, each of whose limbs may touch each other and the floor."""
    folder = ANT.parent
    parts = {
        name: (folder / name).read_text() for name in ("humanoid_setup.xml", "humanoid_body.xml")
    }
    xml = (folder / "humanoid.xml").read_text()
    for name, part in parts.items():
        inner = re.sub(r"</?mujocoinclude>", "", part)
        xml = xml.replace(f'<include file="{name}"/>', inner)
    xml = xml.replace('contype="0" conaffinity="0"', 'contype="1" conaffinity="1"')
    about = task("humanoid", "generalized") | {"gear": None}
    limits = about["limits"] | {"low": 0.0, "mean": (0.2, 1.45)}
    return _with(about, xml, MOST.format(pairs=64, points=16), limits)


def rough_ant() -> dict[str, Any]:
    """Our ant on a field of 41 by 41 random heights, up to 15 cm, half a metre apart."""
    heights = np.random.default_rng(0).uniform(0, 1, 41 * 41).round(3)
    size = 'name="field" nrow="41" ncol="41" size="10 10 0.15 0.5"'
    field = f'<hfield {size} elevation="{" ".join(map(str, heights.tolist()))}"/>'
    ground = '<geom type="hfield" hfield="field" pos="0 0 -0.15" conaffinity="1" contype="0"/>'
    xml = re.sub(r'<geom name="floor"[^>]*/>', ground, ANT.read_text())
    about = task("ant", "generalized") | {"gear": None}
    return _with(about, xml, f"<asset>{field}</asset>", about["limits"] | {"mean": (0.0, 1.0)})


def gripper() -> dict[str, Any]:
    """Two fingers on a hand that goes up and down, and three boxes on the floor between them."""
    boxes = "".join(
        f'<body pos="0 {0.07 * i:.2f} 0.03"><freejoint/>'
        '<geom type="box" size="0.03 0.03 0.03" density="500"/></body>'
        for i in (0, -1, 1)
    )
    fingers = "".join(
        f'<body pos="{0.08 * side} 0 0"><joint name="f{side}" type="slide" axis="{-side} 0 0"'
        ' damping="2" range="0 0.06" limited="true"/>'
        '<geom type="box" size="0.01 0.08 0.04" mass="0.1"/></body>'
        for side in (-1, 1)
    )
    hand = (
        '<body pos="0 0 0.06"><joint name="up" type="slide" axis="0 0 1" damping="20" range="0 0.3"'
        ' limited="true"/><geom type="box" size="0.1 0.02 0.01" pos="0 0 0.06" mass="0.3"/>'
        f"{fingers}</body>"
    )
    motors = "".join(
        f'<motor joint="{name}" gear="{gear}" ctrllimited="true" ctrlrange="-1 1"/>'
        for name, gear in (("up", 12), ("f-1", 6), ("f1", 6))
    )
    xml = (
        '<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="0 0 1"/>'
        f"{boxes}{hand}</worldbody><actuator>{motors}</actuator></mujoco>"
    )
    limits = {"low": 0.0, "high": 0.6, "hop": 0.5, "mean": (0.02, 0.2)}
    about = {"gear": None, "noise": 0.002, "timestep": 0.005, "n_frames": 10, **FREE}
    return _with(about, xml, "", limits)


MOST = (
    '<custom><numeric name="max_geom_pairs" data="{pairs}"/>'
    '<numeric name="max_contact_points" data="{points}"/></custom>'
)
"""Settings in a model file: how many pairs are tested, and how many contacts are followed."""


def _with(
    about: Mapping[str, Any], xml: str, more: str, limits: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a model of its own file, with additions."""
    made = {k: v for k, v in about.items() if k != "path"}
    return made | {"xml": xml.replace("<worldbody>", f"{more}<worldbody>", 1), "limits": limits}


def chain(links: int) -> dict[str, Any]:
    """Rods of 0.1 m in a row, hung from the world by hinges across it; nothing collides."""
    body = (
        '<body pos="{at} 0 0"><joint axis="0 {y} {z}" armature="0.001" damping="0.01"/>'
        '<geom type="capsule" size="0.02" fromto="0 0 0 0.1 0 0" contype="0" conaffinity="0"/>'
    )
    bodies = [body.format(at=0.1 if i else 0, y=1 - i % 2, z=i % 2) for i in range(links)]
    reach = 0.1 * links
    limits = {"low": -reach, "high": reach, "hop": reach, "mean": (-reach, reach)}
    return _made("".join(bodies) + "</body>" * links, 0.01, limits)


def tray(contacts: int) -> dict[str, Any]:
    """Return a plate that floats free, on a row of balls which touch the floor."""
    balls = "".join(
        f'<geom type="sphere" size="0.05" pos="{0.11 * (i % 8):.2f} {0.11 * (i // 8):.2f} 0"/>'
        for i in range(contacts)
    )
    plate = '<geom type="box" size="0.4 0.4 0.04" pos="0.385 0.385 0.1" contype="0" conaffinity="0"'
    floor = '<geom type="plane" size="0 0 1" conaffinity="1" contype="0"/>'
    body = f'{floor}<body pos="0 0 0.06"><freejoint/>{plate} density="100"/>{balls}</body>'
    # without contacts it falls
    low = -0.1 if contacts else -1e3
    return _made(body, 0.0, {"low": low, "high": 0.3, "hop": 0.3, "mean": (low, 0.3)})


def _made(world: str, noise: float, limits: Mapping[str, Any]) -> dict[str, Any]:
    geom = '<default><geom contype="1" conaffinity="0"/></default>'
    xml = f"<mujoco>{geom}<worldbody>{world}</worldbody></mujoco>"
    about = {"gear": None, "noise": noise, "limits": limits, "timestep": 0.005, "n_frames": 10}
    return {"xml": xml, **about, **FREE}
