"""MuJoCo's fixed gain and affine bias: motor, position servo, velocity servo, damper."""

import jax

from brax.actuators.interface import ActuatorParams, ActuatorType


class Affine(ActuatorType):
    """`gain0 ctrl + bias0 + bias1 length + bias2 velocity`."""

    name = "affine"
    setpoint = True

    def force(
        self, params: ActuatorParams, signal: jax.Array, length: jax.Array, velocity: jax.Array
    ) -> jax.Array:
        """Linear in the control and in the motion."""
        bias = params.biasprm
        return params.gainprm[0] * signal + bias[0] + bias[1] * length + bias[2] * velocity


AFFINE = Affine()
