"""The power that a joint's actuators give."""

import jax
import jax.numpy as jnp

from brax.sensors import Asked, EvaluationContext, SensorType


class JointPower(SensorType):
    """Force of all actuators together times the rate of a joint with one coordinate [W]."""

    name = "jointpower"
    objects = ("joint",)
    coordinates = (1,)
    reads_forces = False

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Negative where the joint drives its actuators."""
        starts = context.sys.joint_qd_start()
        power = context.actuator_force * context.qd
        return jnp.stack([power[starts[j]][None] for _, j in asked.objects])


JOINT_POWER = JointPower()
