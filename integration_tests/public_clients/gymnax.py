# /// script
# dependencies = ["gymnax", "six"]
# ///
"""`GymnaxToBraxWrapper` makes CartPole an environment that Brax's wrappers run."""

import jax
import jax.numpy as jnp
from gymnax import make
from gymnax.wrappers.brax import GymnaxToBraxWrapper

env, _ = make("CartPole-v1")
inner = GymnaxToBraxWrapper(env)
state = jax.jit(inner.reset)(jax.random.key(0))
state = jax.jit(inner.step)(state, jnp.array(1))
assert state.reward == 1
