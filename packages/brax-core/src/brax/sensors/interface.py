"""Interface of sensor types: a few numbers, computed from a state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import jax

if TYPE_CHECKING:
    from brax.sensors.evaluation_context import EvaluationContext

Object = tuple[str, int]
"""Kind and index of a measured element: a joint, tendon, actuator, link, inertia, fixed body, geom,
site or the world."""

FRAME_OBJECTS = ("body", "inertia", "geom", "site")
"""Kinds of element with a frame; an inertia's is at the centre of mass, along the principal
axes."""


class Asked(NamedTuple):
    """The sensors of one type."""

    objects: Sequence[Object]
    """Element that each one measures."""
    references: Sequence[Object | None]
    """Frame that each one measures in; None for the world's."""


class SensorType(ABC):
    """A type of sensor. Instances are stateless and live in `System` as static fields."""

    name: ClassVar[str]
    """Name in model files and in the registry."""
    width: ClassVar[int] = 1
    """Number of values of a sensor."""
    objects: ClassVar[tuple[str, ...]]
    """Kinds of element that it measures: joint, tendon, actuator, body, inertia, geom or site."""
    coordinates: ClassVar[tuple[int, ...]] = ()
    """Allowed numbers of coordinates of the joint, for a sensor of joints."""
    relative: ClassVar[bool] = False
    """True if it can measure in the frame of another element."""
    own_link: ClassVar[bool] = False
    """True if it measures a whole body, which must then have joints of its own."""
    sees_site: ClassVar[bool] = False
    """True if the shape of its site matters, which must then have a ray test."""
    sees_geoms: ClassVar[bool] = False
    """True if it depends on the shapes of all geoms, which must then have a ray test."""
    reads_forces: ClassVar[bool] = True
    """True if it reads forces or accelerations. The pipelines that report `State.forces` do so only
    for models with such sensors."""
    limited: ClassVar[bool] = True
    """True if `cutoff` bounds its numbers."""

    @abstractmethod
    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the numbers of the sensors of this type.

        Args:
            context: the model at a state.
            asked: the measured elements.

        Returns:
            Shape (sensors, width, batch).
        """
