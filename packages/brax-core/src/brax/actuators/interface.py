"""What an actuator type is: a law from control and motion to force, and of its activation."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp


class ActuatorParams(NamedTuple):
    """The numbers of actuators of one type, arrays shaped (actuators, batch)."""

    gainprm: tuple[jax.Array, ...]
    """Ten gain parameters."""
    biasprm: tuple[jax.Array, ...]
    """Ten bias parameters."""
    dynprm: tuple[jax.Array, ...] = ()
    """Ten parameters of the activation's dynamics."""
    length_range: tuple[jax.Array, ...] = ()
    """Smallest and largest length that the actuator can have."""


class ActuatorType(ABC):
    """A kind of actuator. Instances are stateless and live in `System` as static fields.

    Ranges of control, activation and force, and the gear, are applied around it, alike for every
    type. One that is `stateful` has one number of its own in the state, its activation: what is
    between the control and the force, such as the current of a motor or the charge of a muscle.
    """

    name: ClassVar[str]
    """The name in the registry."""
    stateful: ClassVar[bool] = False
    """True if it has an activation, which starts at zero and changes at `rate`."""
    needs_length_range: ClassVar[bool] = False
    """True if it asks for the smallest and largest length."""

    setpoint: ClassVar[bool] = False
    """True if its signal is where it shall be when the first gain and the second bias are opposite,
    so that between a site and a reference that only turns the nearest turn counts."""

    @abstractmethod
    def force(
        self, params: ActuatorParams, signal: jax.Array, length: jax.Array, velocity: jax.Array
    ) -> jax.Array:
        """The actuator's force [N or N m].

        Args:
            params: its numbers.
            signal: its activation if it is `stateful`, else the control within its range, shape
                (actuators, batch).
            length: gear times the joint's coordinate, or the tendon's or site's length.
            velocity: gear times the joint's rate, or the tendon's or site's.
        """

    def rate(
        self,
        params: ActuatorParams,
        ctrl: jax.Array,
        activation: jax.Array,
        length: jax.Array,
        velocity: jax.Array,
    ) -> jax.Array:
        """The activation's rate of change [1/s], if it is `stateful`.

        Args:
            params: its numbers.
            ctrl: control within its range, shape (actuators, batch).
            activation: as it is now.
            length: as for `force`.
            velocity: as for `force`.
        """
        return jnp.zeros_like(activation)

    def integrate(
        self, params: ActuatorParams, activation: jax.Array, rate: jax.Array, dt: jax.Array
    ) -> jax.Array:
        """The activation `dt` later, at a rate that `rate` found."""
        return activation + dt * rate
