"""An observation of the ant and a key, for the page of brax-agents."""

import jax

from brax import envs

key = jax.random.key(0)
observation = envs.get_environment("ant").reset(key).obs
