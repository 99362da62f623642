"""System identification: find mass and friction of a sled from how it was seen to move.

The sled was pulled with 20 N for half a second and then slid to a stop. A camera saw where it was,
to a millimetre. The program prints the mass and the friction that explain the film: 2 kg and 0.3.
"""

import jax
import jax.numpy as jnp
import numpy as np

from brax import plugins
from brax.builder import ModelBuilder

TIMESTEP, N_FRAMES, FRAMES, PULL, GRAVITY = 0.001, 5, 200, 20.0, 9.81
SEEN = TIMESTEP * N_FRAMES * np.arange(1, FRAMES + 1)  # times of the film's pictures [s]

model = ModelBuilder()
model.set_option(timestep=TIMESTEP)
model.add_geom(type="plane", size=(0, 0, 1))
model.add_body("sled", pos=(0, 0, 0.1), mass=1.0, inertia=(0.01, 0.01, 0.01))
model.add_joint("sled", "slide", "along", axis=(1, 0, 0))
model.add_joint("sled", "slide", "up", axis=(0, 0, 1))
model.add_geom("sled", "box", size=(0.2, 0.1, 0.1))
model.add_actuator("along")
sys = model.build()
spring = plugins.get("pipeline", "spring")
controls = jnp.where(SEEN <= 0.5, PULL, 0.0)[:, None]


@jax.jit
def positions(parameters):
    """Return where a sled with this mass [kg] and friction is in each picture [m], (FRAMES,)."""
    mass, friction = parameters
    changed = sys.replace(
        body_mass=sys.body_mass.at[-1].set(mass),
        geom_friction=sys.geom_friction.at[:, 0].set(friction),
    )

    def step(state, control):
        state = spring.step(changed, state, control, N_FRAMES)
        return state, state.q[0]

    start = spring.init(changed, changed.init_q, jnp.zeros(2))
    return jax.lax.scan(step, start, controls)[1]


def film(mass=2.0, friction=0.3):
    """Return the positions that Newton's law gives, with a millimetre of noise, (FRAMES,)."""
    slowing = friction * GRAVITY
    gaining = PULL / mass - slowing
    sliding = np.clip(SEEN - 0.5, 0, 0.5 * gaining / slowing)
    exact = gaining * np.minimum(SEEN, 0.5) ** 2 / 2
    exact += 0.5 * gaining * sliding - slowing * sliding**2 / 2
    return exact + np.random.default_rng(0).normal(scale=1e-3, size=FRAMES)


seen = film()
parameters = jnp.array([1.0, 0.5])
for _ in range(10):  # Gauss-Newton: least squares with the simulation linearized
    error, slopes = positions(parameters) - seen, jax.jacfwd(positions)(parameters)
    parameters -= jnp.linalg.lstsq(slopes, error)[0]
print(f"mass {parameters[0]:.3f} kg, friction {parameters[1]:.3f}")
