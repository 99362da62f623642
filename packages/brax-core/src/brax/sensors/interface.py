"""What a sensor type is: a few numbers, read off a state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import jax

if TYPE_CHECKING:
    from brax.sensors.evaluation_context import EvaluationContext

Object = tuple[str, int]
"""Kind and index of what is measured: a joint, tendon, actuator, link, inertia, fixed, geom, site
or the world."""

FRAME_OBJECTS = ("body", "inertia", "geom", "site")
"""Kinds of element that have a frame; a body's is its own, its inertia's that of its mass."""


class Asked(NamedTuple):
    """The sensors of one type."""

    objects: Sequence[Object]
    """What each measures."""
    references: Sequence[Object | None]
    """The frame that each measures in; None for the world's."""


class SensorType(ABC):
    """A kind of sensor. Instances are stateless and live in `System` as static fields."""

    name: ClassVar[str]
    """The name in model files and in the registry."""
    width: ClassVar[int] = 1
    """How many numbers it gives."""
    objects: ClassVar[tuple[str, ...]]
    """Kinds of element that it measures: joint, tendon, actuator, body, inertia, geom or site."""
    coordinates: ClassVar[tuple[int, ...]] = ()
    """Numbers of coordinates that a joint may have, of a sensor of joints."""
    relative: ClassVar[bool] = False
    """True if it may measure in the frame of another element."""
    own_link: ClassVar[bool] = False
    """True if it measures a whole body, which must have joints of its own then."""
    sees_site: ClassVar[bool] = False
    """True if the shape of its site matters, which must be one that stops rays then."""
    sees_geoms: ClassVar[bool] = False
    """True if a sensor of this type depends on the shapes of all geoms."""
    reads_forces: ClassVar[bool] = True
    """Whether it reads forces or accelerations, so that the pipelines that report `State.forces`
    do so; false of what follows from places, velocities and controls."""
    limited: ClassVar[bool] = True
    """True if `cutoff` bounds its numbers."""

    @abstractmethod
    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """What the sensors of this type say.

        Args:
            here: the model at a state, with all that may be asked for.
            asked: what the sensors measure.

        Returns:
            Shape (sensors, width, batch).
        """
