"""What an actuator type is: a law from control and motion to force."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import jax


class ActuatorParams(NamedTuple):
    """The numbers of actuators of one type, arrays shaped (actuators, batch)."""

    gainprm: tuple[jax.Array, ...]
    """Ten gain parameters."""
    biasprm: tuple[jax.Array, ...]
    """Ten bias parameters."""


class ActuatorType(ABC):
    """A kind of actuator. Instances are stateless and live in `System` as static fields.

    Ranges of control and force, and the gear, are applied around it, alike for every type.
    """

    name: ClassVar[str]
    """The name in the registry."""

    @abstractmethod
    def force(
        self, params: ActuatorParams, ctrl: jax.Array, length: jax.Array, velocity: jax.Array
    ) -> jax.Array:
        """The actuator's force [N or N m].

        Args:
            params: its numbers.
            ctrl: control within its range, shape (actuators, batch).
            length: gear times the joint's coordinate.
            velocity: gear times the joint's rate.
        """
