"""A custom actuator: a piston of gas, registered from a package of your own.

By Boyle's law, the force of gas times its length is constant, here 20 J for each unit of control.
The piston carries 4 kg, so it comes to rest where 20 J * ctrl / length = 4 kg * 9.81 m/s^2. The
program prints that length with two units of gas: 1.019 m.

In a package, the functions below the class are a module `my_package.plugin`, and two lines of its
pyproject.toml take the place of `plugins.register`:

    [project.entry-points.brax]
    my_package = "my_package.plugin"
"""

import sys

import jax
import jax.numpy as jnp

from brax import plugins
from brax.actuators import ActuatorParams, ActuatorType
from brax.builder import ModelBuilder
from brax.plugins import Spec, hookimpl


class GasPiston(ActuatorType):
    """A piston with the force `gain0 ctrl / length`."""

    name = "gas_piston"

    def force(
        self, params: ActuatorParams, signal: jax.Array, length: jax.Array, velocity: jax.Array
    ) -> jax.Array:
        """Return the force, in the direction of a growing length."""
        return params.gainprm[0] * signal / jnp.maximum(length, 0.01)


BRAX_PLUGIN_API = 1


@hookimpl
def brax_actuators() -> list[Spec]:
    """Return the actuators of this package."""
    return [Spec("gas_piston", GasPiston(), "force gain0 ctrl / length")]


if __name__ == "__main__":
    plugins.register(sys.modules[__name__], "my_package")

    model = ModelBuilder()
    model.set_option(timestep=0.01)
    model.add_body("load", mass=4.0, inertia=(0.1, 0.1, 0.1))
    model.add_joint("load", "slide", "cylinder", axis=(0, 0, 1), damping=20.0)
    model.add_actuator("cylinder", "gas_piston", gainprm=(20.0,), ctrl_range=(0, 5))
    model.set_init_q([0.5])
    system = model.build()
    spring = plugins.get("pipeline", "spring")

    state = spring.init(system, system.init_q, jnp.zeros(1))
    state = jax.jit(spring.step, static_argnums=3)(system, state, jnp.array([2.0]), 1000)
    print(f"length {state.q[0]:.3f} m")
