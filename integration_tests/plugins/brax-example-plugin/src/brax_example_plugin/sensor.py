"""The power of a joint's actuators."""

import jax
import jax.numpy as jnp

from brax.sensors import Asked, EvaluationContext, SensorType


class JointPower(SensorType):
    """Total force of the actuators times the velocity of a joint with one coordinate [W]."""

    name = "jointpower"
    objects = ("joint",)
    coordinates = (1,)
    reads_forces = False

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the powers, which are negative where the joint drives its actuators."""
        starts = context.sys.joint_qd_start()
        power = context.actuator_force * context.qd
        return jnp.stack([power[starts[j]][None] for _, j in asked.objects])


JOINT_POWER = JointPower()
