"""Model-predictive control: swing a pendulum up with a motor that is too weak to lift it.

In every control step, the program simulates 256 variations of its plan as one batch, and continues
with their mean, weighted by how well each does (Williams et al. 2017, MPPI). The motor has 2 N m.
To hold the rod level takes m g l / 2 = 4.9 N m, so it has to be swung. After 6 s it balances: the
program prints its angle from upright, less than 10 degrees. Without control it would be 180.
"""

import jax
import jax.numpy as jnp

from brax import plugins
from brax.builder import ModelBuilder

SAMPLES, HORIZON, N_FRAMES, STEPS = 256, 40, 4, 150
NOISE, TEMPERATURE = 0.6, 1.0

model = ModelBuilder()
model.set_option(timestep=0.01)
model.add_body("rod", mass=1.0, inertia=(1 / 12, 1 / 12, 1e-3), ipos=(0, 0, -0.5))
model.add_joint("rod", "hinge", "pivot", axis=(0, 1, 0), damping=0.05)
model.add_actuator("pivot", gear=2.0, ctrl_range=(-1, 1))
sys = model.build()
pipeline = plugins.get("pipeline", "generalized")


def cost(state):
    """Return 0 for a rod that stands upright at rest."""
    return 1 + jnp.cos(state.q[0]) + 0.02 * state.qd[0] ** 2


def simulate(state, plan):
    """Return the cost of a plan, HORIZON controls, from a state."""

    def step(state, control):
        state = pipeline.step(sys, state, control[None], N_FRAMES)
        return state, cost(state)

    return jnp.sum(jax.lax.scan(step, state, plan)[1])


def control_step(carry, key):
    """Improve the plan, and apply its first control."""
    state, plan = carry
    noise = NOISE * jax.random.normal(key, (SAMPLES, HORIZON))
    plans = jnp.clip(plan + noise, -1, 1)
    costs = jax.vmap(simulate, (None, 0))(state, plans)
    plan = jax.nn.softmax(-costs / TEMPERATURE) @ plans
    state = pipeline.step(sys, state, plan[:1], N_FRAMES)
    return (state, jnp.append(plan[1:], 0.0)), state.q[0]


@jax.jit
def control(state, keys):
    """Return the angle after each control step, (STEPS,)."""
    return jax.lax.scan(control_step, (state, jnp.zeros(HORIZON)), keys)[1]


start = pipeline.init(sys, sys.init_q, jnp.zeros(1))
angles = control(start, jax.random.split(jax.random.key(0), STEPS))
upright = jnp.abs((angles[-1] % (2 * jnp.pi)) - jnp.pi)
print(f"{jnp.degrees(upright):.1f} degrees from upright")
