"""Interface of actuator types: laws of the force and of the activation."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp


class ActuatorParams(NamedTuple):
    """Parameters of the actuators of one type; all arrays have the shape (actuators, batch)."""

    gainprm: tuple[jax.Array, ...]
    """Ten gain parameters."""
    biasprm: tuple[jax.Array, ...]
    """Ten bias parameters."""
    dynprm: tuple[jax.Array, ...] = ()
    """Ten parameters of the activation's dynamics."""
    length_range: tuple[jax.Array, ...] = ()
    """Smallest and largest length that the actuator can have [rad or m, times the gear]."""
    control: jax.Array | None = None
    """The controls within their ranges, for a force that depends on them as well as on the
    activations; given to `force` only."""


class ActuatorType(ABC):
    """A type of actuator. Instances are stateless and live in `System` as static fields.

    The engine applies the ranges of control, activation and force, and the gear, for every type. A
    `stateful` type has one number in the state, its activation: the quantity between the control
    and the force, such as the current of a motor or the activation of a muscle.

    In its methods all arrays have the shape (actuators, batch), and a time step (1, batch).
    """

    name: ClassVar[str]
    """Name in the registry."""
    stateful: ClassVar[bool] = False
    """True if it has an activation, which starts at zero and changes at `rate`."""
    needs_length_range: ClassVar[bool] = False
    """True if it reads the smallest and largest length."""

    setpoint: ClassVar[bool] = False
    """True if its signal is a desired length where the first gain and the second bias are opposite.
    Between a site and a reference that only rotates, the setpoint is then moved to the nearest
    turn."""

    @abstractmethod
    def force(
        self, params: ActuatorParams, signal: jax.Array, length: jax.Array, velocity: jax.Array
    ) -> jax.Array:
        """Return the actuator's force [N or N m].

        Args:
            params: its parameters.
            signal: its activation if it is `stateful`, else the control within its range.
            length: gear times the joint's coordinate, or the tendon's or site's length [rad or m].
            velocity: gear times the joint's velocity, or the tendon's or site's [rad/s or m/s].
        """

    def rate(
        self,
        params: ActuatorParams,
        ctrl: jax.Array,
        activation: jax.Array,
        length: jax.Array,
        velocity: jax.Array,
    ) -> jax.Array:
        """Return the activation's rate of change [1/s], if the type is `stateful`.

        Args:
            params: its parameters.
            ctrl: control within its range.
            activation: the present activation.
            length: as for `force`.
            velocity: as for `force`.
        """
        return jnp.zeros_like(activation)

    def integrate(
        self, params: ActuatorParams, activation: jax.Array, rate: jax.Array, dt: jax.Array
    ) -> jax.Array:
        """Return the activation `dt` [s] later, at a rate that `rate` returned."""
        # Euler's rule, MuJoCo's for all types but `filterexact`.
        return activation + dt * rate
