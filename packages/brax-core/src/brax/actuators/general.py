"""The general actuator: affine gain and affine bias, as pneumatics and variable stiffness have."""

import jax

from brax.actuators.interface import ActuatorParams, ActuatorType


class General(ActuatorType):
    """`(gain0 + gain1 length + gain2 velocity) signal + bias0 + bias1 length + bias2 velocity`.

    Source: MuJoCo's documentation, chapter Computation, section Actuation model, Force generation.
    """

    name = "general"

    def force(
        self, params: ActuatorParams, signal: jax.Array, length: jax.Array, velocity: jax.Array
    ) -> jax.Array:
        """Return the force, linear in the signal and in the motion."""
        gain, bias = (
            p[0] + p[1] * length + p[2] * velocity for p in (params.gainprm, params.biasprm)
        )
        return gain * signal + bias


GENERAL = General()
