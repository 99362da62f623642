"""The affine actuator: fixed gain and affine bias, as motors, servos and dampers have."""

import jax

from brax.actuators.interface import ActuatorParams, ActuatorType


class Affine(ActuatorType):
    """`gain0 ctrl + bias0 + bias1 length + bias2 velocity`.

    Source: MuJoCo's documentation, chapter Computation, section Actuation model, Force generation.
    """

    name = "affine"
    setpoint = True

    def force(
        self, params: ActuatorParams, signal: jax.Array, length: jax.Array, velocity: jax.Array
    ) -> jax.Array:
        """Return the force, linear in the control and in the motion."""
        bias = params.biasprm
        return params.gainprm[0] * signal + bias[0] + bias[1] * length + bias[2] * velocity


AFFINE = Affine()
