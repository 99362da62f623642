"""The PID servo: its activation is the integral of the error of the length."""

import jax
import jax.numpy as jnp

from brax.actuators.interface import ActuatorParams, ActuatorType


class Pid(ActuatorType):
    """The law `kp (ctrl - length) - kv velocity + ki activation`.

    The activation is the integral of the error, ctrl - length. `gain0` is ki, and `bias1` and
    `bias2` are -kp and -kv. The activation stops to grow beyond `dyn0` and below minus `dyn0`,
    unless that is zero.

    Source: MuJoCo's documentation, XML reference, actuator/pid.
    """

    name = "pid"
    stateful = True

    def force(
        self, params: ActuatorParams, signal: jax.Array, length: jax.Array, velocity: jax.Array
    ) -> jax.Array:
        """Return the sum of the three terms."""
        assert params.control is not None
        _, position, rate, *_ = params.biasprm
        # The bias parameters are minus the gains.
        return params.gainprm[0] * signal - position * (params.control - length) + rate * velocity

    def rate(
        self,
        params: ActuatorParams,
        ctrl: jax.Array,
        activation: jax.Array,
        length: jax.Array,
        velocity: jax.Array,
    ) -> jax.Array:
        """Return the error, or zero where the activation is at its bound."""
        error, most = ctrl - length, params.dynprm[0]
        beyond = (activation >= most) & (error > 0) | (activation <= -most) & (error < 0)
        return jnp.where(beyond & (most > 0), 0.0, error)


PID = Pid()
