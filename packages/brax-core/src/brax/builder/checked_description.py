"""A description after its checks, from which the arrays are made."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from brax.builder.elements import Element
from brax.colliders import CollisionGroup


class CheckedDescription(NamedTuple):
    """A checked description: static bodies are fused, and types are objects."""

    option: dict[str, Any]
    links: Sequence[Element]
    boxes: Sequence[Element]
    fixed: Sequence[Element]
    joints: Sequence[Element]
    """In the order of the links."""
    joint_types: tuple[Any, ...]
    geoms: Sequence[Element]
    geom_types: tuple[Any, ...]
    sites: Sequence[Element]
    site_types: tuple[Any, ...]
    tendons: Sequence[Element]
    equalities: Sequence[Element]
    """With their numbers as `data`, and the elements that they constrain as the builder names
    them."""
    actuators: Sequence[Element]
    actuator_types: tuple[Any, ...]
    sensors: Sequence[Element]
    sensor_types: tuple[Any, ...]
    cameras: Sequence[Element]
    keys: Sequence[Element]
    sizes: dict[str, int]
    """Length of each part of a keyframe."""
    collisions: tuple[CollisionGroup, ...]
    pairs: Sequence[Element]
    integrator: Any
    init_q: np.ndarray | None
