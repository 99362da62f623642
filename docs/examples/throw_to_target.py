"""Trajectory optimization through contact: throw a ball so that it bounces into a target.

The ball leaves (0, 0, 1) m and bounces once. After 1.2 s it should be at (3, 0, 0.6) m. The program
improves the velocity of the throw by gradients through the bounce and prints it with how far from
the target the ball then is: less than a millimetre. Only 2.5 m/s forward can be right.
"""

import jax
import jax.numpy as jnp

from brax import plugins
from brax.builder import ModelBuilder

TIMESTEP, SECONDS = 0.002, 1.2
TARGET = jnp.array([3.0, 0.0, 0.6])

model = ModelBuilder()
# Without `time_of_impact` the derivative of a bounce is wrong: docs/gradients.md.
model.set_option(timestep=TIMESTEP, time_of_impact=True)
model.add_geom(type="plane", size=(0, 0, 1), elasticity=0.8, friction=(0, 0, 0))
model.add_body("ball", pos=(0, 0, 1), mass=1.0, inertia=(0.004, 0.004, 0.004))
model.add_joint("ball", "free")
model.add_geom("ball", "sphere", size=(0.1,), elasticity=0.8, friction=(0, 0, 0))
sys = model.build()
spring = plugins.get("pipeline", "spring")


def end(throw):
    """Return where a ball is that is thrown with the velocity (forward, up) [m/s]."""
    velocity = jnp.zeros(6).at[jnp.array([0, 2])].set(throw)
    state = spring.init(sys, sys.init_q, velocity)
    return spring.step(sys, state, jnp.zeros(0), round(SECONDS / TIMESTEP)).x.pos[0]


def miss(throw):
    """Return half the squared distance from the target."""
    return 0.5 * jnp.sum((end(throw) - TARGET) ** 2)


@jax.jit
def improve(throw, _):
    """Return the throw after one step of gradient descent."""
    return throw - 0.5 * jax.grad(miss)(throw), None


throw, _ = jax.lax.scan(improve, jnp.array([1.0, 1.0]), length=100)
distance = jnp.linalg.norm(end(throw) - TARGET)
print(f"forward {throw[0]:.3f} m/s, up {throw[1]:.3f} m/s, {distance:.4f} m from the target")
