"""Systems made by hand and trajectories made by arithmetic, for the tests of the page."""

import base64
import gzip
import json
import math
import re
from typing import Any

import numpy as np

from brax.base import Motion, State, System, Transform
from brax.builder import ModelBuilder

EVIL = "</script><script>alert(1)</script>"
BALL = (0.85, 0.3, 0.2, 1)


def walker(torso: str = "torso", timestep: float = 0.05) -> System:
    """Return a ball on a plane with a leg on one hinge and an arm on two."""
    made = ModelBuilder()
    heavy: dict[str, Any] = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
    made.add_body(torso, pos=(0, 0, 0.24), **heavy)
    made.add_body("leg", torso, pos=(0.3, 0, 0), **heavy)
    made.add_body("arm", torso, pos=(-0.3, 0, 0), **heavy)
    made.add_joint(torso, "free")
    made.add_joint("leg", "hinge", "knee", axis=(0, 1, 0))
    made.add_joint("arm", "hinge", "swing", pos=(0.05, 0, 0), axis=(0, 0, 1))
    made.add_joint("arm", "hinge", "lift", pos=(0.1, 0, 0), axis=(0, 1, 0))
    made.add_geom(type="plane", name="ground")
    made.add_geom(torso, "sphere", "ball", size=(0.25,), rgba=BALL)
    along_x = (math.sqrt(0.5), 0, math.sqrt(0.5), 0)
    made.add_geom("leg", "capsule", pos=(0.3, 0, 0), quat=along_x, size=(0.08, 0.2))
    made.add_geom("arm", "sphere", pos=(-0.3, 0, 0.1), size=(0.1,))
    made.set_option(timestep=timestep)
    return made.build()


def turn(axis: tuple[float, float, float], angle: float) -> np.ndarray:
    """Return the quaternion of a rotation by `angle` about a unit axis."""
    return np.array([math.cos(angle / 2), *(math.sin(angle / 2) * np.array(axis))])


def walk(frames: int) -> list[State]:
    """Return the walker gliding along x at 1 m/s while its knee bends, its arm at rest."""
    return [glide(0.05 * i, knee=0.5 * math.sin(0.05 * i)) for i in range(frames)]


def glide(x: float, knee: float = 0.0) -> State:
    """Return the walker with its torso at (x, 0, 0.24), the knee bent, the arm at rest."""
    pos: Any = np.array([[x, 0, 0.24], [x + 0.3, 0, 0.24], [x - 0.3, 0, 0.24]], np.float32)
    rot: Any = np.array([[1, 0, 0, 0], turn((0, 1, 0), knee), [1, 0, 0, 0]], np.float32)
    q: Any = np.array([*pos[0], 1, 0, 0, 0, knee, 0, 0], np.float32)
    still: Any = np.zeros(9, np.float32)
    return State(q, still, Transform(pos, rot), Motion(pos, pos))


def unpack(page):
    """Return what the page's own code reads: the model and its arrays."""
    model = json.loads(re.findall(r'class="brax-model">(.*?)</script>', page, re.S)[0])
    text = re.findall(r'class="brax-numbers">(.*?)</script>', page, re.S)[0]
    planes = np.frombuffer(gzip.decompress(base64.b64decode(text)), np.uint8).reshape(4, -1)
    flat = np.ascontiguousarray(planes.T).view("<f4").ravel()
    arrays = {}
    for name, (frames, *shape) in model["arrays"]:
        size = frames * math.prod(shape)
        arrays[name] = np.moveaxis(flat[:size].reshape(*shape, frames), -1, 0)
        flat = flat[size:]
    assert not flat.size
    return model, arrays
