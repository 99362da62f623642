"""A population of robots with different bodies in one batch.

Each robot is a wheel of another radius with the motor in its hub, and with another weight. All run
in one compiled program. After 2 s of rolling at 10 rad/s, a wheel of radius r is 20 r m away: the
program prints how far each of four came, 2, 4, 6 and 8 m.
"""

import jax
import jax.numpy as jnp
import numpy as np

from brax import plugins
from brax.builder import ModelBuilder

SPEED, SECONDS, TIMESTEP = 10.0, 2.0, 0.005


def robot(radius):
    """Return a wheel on a plane, with a servo that holds its speed."""
    mass = 50 * radius
    model = ModelBuilder()
    model.set_option(timestep=TIMESTEP)
    model.add_geom(type="plane", size=(0, 0, 1))
    model.add_body("axle", pos=(0, 0, radius), mass=1.0, inertia=(0.01, 0.01, 0.01))
    model.add_joint("axle", "slide", "along", axis=(1, 0, 0))
    model.add_joint("axle", "slide", "up", axis=(0, 0, 1))
    model.add_body("wheel", "axle", mass=mass, inertia=[0.4 * mass * radius**2] * 3)
    model.add_joint("wheel", "hinge", "hub", axis=(0, 1, 0))
    model.add_geom("wheel", "sphere", size=(radius,))
    model.add_actuator("hub", gainprm=(50.0,), biasprm=(0, 0, -50.0))
    return model.build()


robots = [robot(radius) for radius in (0.1, 0.2, 0.3, 0.4)]
population = jax.tree.map(lambda *numbers: jnp.stack(numbers), *robots)
spring = plugins.get("pipeline", "spring")


@jax.jit
@jax.vmap
def distance(sys):
    """Return how far a robot rolls [m]."""
    radius = sys.geom.size[1, 0]
    start = jnp.array([SPEED * radius, 0.0, SPEED])
    state = spring.init(sys, sys.init_q, start)
    return spring.step(sys, state, jnp.array([SPEED]), round(SECONDS / TIMESTEP)).q[0]


print(*np.round(distance(population), 2))
