"""Programs for a GPU and a TPU can be made on a computer that has neither."""

import jax
import jax.numpy as jnp
import pytest

from brax import envs, plugins
from brax.training.distributed import devices

PLATFORMS = ["cuda", "tpu"]
BATCH = 16

CASES = [
    *(("inverted_pendulum", backend) for backend in ("spring", "positional", "generalized")),
    ("ant", "positional"),
    ("humanoid", "generalized"),
]


def exported(function, *args):
    """Return the program of a function for the platforms, after it was written and read back."""
    leaves, structure = jax.tree.flatten(args)

    # JAX writes no pytrees of types that it does not know, so the program takes and returns lists.
    def flat(*leaves):
        return jax.tree.leaves(function(*jax.tree.unflatten(structure, leaves)))

    # JAX refuses to export custom calls whose meaning may change between its versions.
    program = jax.export.export(jax.jit(flat), platforms=PLATFORMS)(*leaves)
    found = jax.export.deserialize(program.serialize())
    assert list(found.platforms) == PLATFORMS
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "backend"), CASES)
def test_the_step_of_an_environment(name, backend):
    env = envs.get_environment(name, backend=backend)
    keys = jax.ShapeDtypeStruct((BATCH,), jax.random.key(0).dtype)
    state = jax.eval_shape(jax.vmap(env.reset), keys)
    action = jax.ShapeDtypeStruct((BATCH, env.action_size), jnp.float32)
    text = exported(jax.vmap(env.step), state, action).mlir_module()
    # JAX's default precision would let a GPU round the factors to ten bits of mantissa.
    products = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
    assert all("precision = [HIGHEST, HIGHEST]" in line for line in products)
    assert products or name != "humanoid"  # whose observation has inertias of the links
    assert "custom_call" not in text


TRAINING = {
    "ppo": {"num_envs": 16, "batch_size": 16, "num_minibatches": 2, "unroll_length": 5},
    "sac": {"num_envs": 16, "batch_size": 16, "min_replay_size": 16, "max_replay_size": 256},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINING)
def test_the_training_step_of_an_agent(name):
    agent = plugins.get("trainer", name)
    settings = {"num_timesteps": 1000, "episode_length": 20, **TRAINING[name]}
    config, runtime = agent.check(settings)
    env = envs.get_environment("inverted_pendulum", backend="spring")
    mesh = devices.env_mesh(config.num_envs, 1)
    learner = agent.build(env, config, runtime, mesh, jax.random.key(0))[0]
    state = jax.eval_shape(learner.init, jax.random.key(0))
    exported(learner.advance, state, jax.ShapeDtypeStruct((), jnp.int32))
