"""With JAX_ENABLE_X64 every agent trains every environment.

A change of type between two steps is an error when a program is traced, before it is compiled. So
every agent's whole program is traced with every environment, and a few are run.
"""

import os
import subprocess
import sys

import pytest

ALL = """
import jax
import jax.numpy as jnp
from brax import envs, plugins
from brax.env import Env
from brax.training.distributed import devices
from brax.training.runner import parts

SMALL = dict(num_timesteps=64, num_evals=2, num_eval_envs=2, episode_length=8,
             normalize_observations=True)
AGENTS = {
    "ppo": dict(num_envs=4, batch_size=4, num_minibatches=2, unroll_length=3),
    "sac": dict(num_envs=4, batch_size=4, max_replay_size=64),
    "td3": dict(num_envs=4, batch_size=4, max_replay_size=64, n_steps=2, num_atoms=5),
    "es": dict(population_size=2),
    "ars": dict(number_of_directions=1, top_directions=1),
    "apg": dict(num_envs=4, horizon_length=3),
    "reppo": dict(num_envs=4, unroll_length=3, num_minibatches=2),
    "shac": dict(num_envs=4, horizon_length=3, num_minibatches=1),
    "bc": dict(num_envs=4, demo_length=3, batch_size=4, max_replay_size=64),
}


class Shaped(Env):
    '''What an agent sees of another environment: shapes and types, without physics.'''

    def __init__(self, env):
        self.action_size = env.action_size
        self.start = jax.eval_shape(env.reset, jax.random.key(0))
        after = [
            jax.eval_shape(env.step, self.start, jax.ShapeDtypeStruct((env.action_size,), kind))
            for kind in (jnp.float32, jnp.float64)
        ]
        assert jax.tree.leaves(after[0]) == jax.tree.leaves(after[1]), "types follow the action's"
        self.after = after[0]

    action_size = 0

    def reset(self, rng):
        return zeros(self.start)

    def step(self, state, action):
        return zeros(self.after)


def zeros(tree):
    def zero(x):
        is_key = jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
        return jax.random.key(0) if is_key else jnp.zeros(x.shape, x.dtype)

    return jax.tree.map(zero, tree)


def trace(agent, env, settings):
    config, runtime = agent.check(settings)
    keys = jax.random.split(jax.random.key(0), 2)
    mesh = devices.env_mesh(config.num_envs, 1)
    learner, make_policy, _ = agent.build(env, config, runtime, mesh, keys[0])
    state = jax.eval_shape(learner.init, keys[0])
    after, _ = jax.eval_shape(learner.advance, state, jnp.int32(1))
    jax.eval_shape(learner.fresh_environments, after)
    evaluator = parts.make_evaluator(env, config, runtime, make_policy, keys)
    jax.eval_shape(evaluator._unroll, (state.params.normalizer, state.params.policy), keys[0])


assert jnp.zeros(()).dtype == jnp.float64
pairs = 0
for name in envs.list_environments():
    env = Shaped(envs.get_environment(name))
    still = jnp.zeros((4, env.action_size))
    # A function of its own for each environment: JAX keeps what it has traced of one.
    AGENTS["bc"]["teacher_inference_fn"] = lambda obs, key, still=still: (still, {})
    for agent, settings in AGENTS.items():
        try:
            trace(plugins.get("trainer", agent), env, SMALL | settings)
        except Exception as error:
            raise SystemExit(f"{agent} in {name}: {error}")
        pairs += 1
print(pairs)
"""

SOME = """
from brax import envs, plugins

for agent, name, more in (
    ("es", "inverted_pendulum", dict(population_size=4, policy_average_steps=1000)),
    ("ppo", "fast", dict(num_envs=4, batch_size=4, num_minibatches=2, unroll_length=3)),
    (
        "ppo",
        "fast",
        dict(num_envs=4, batch_size=4, num_minibatches=2, unroll_length=3, memory="lstm",
             memory_burn_in=1),
    ),
    ("sac", "fast", dict(num_envs=4, batch_size=4, max_replay_size=64)),
):
    settings = dict(num_timesteps=100, num_eval_envs=2, episode_length=8, **more)
    trainer = plugins.get("trainer", agent)
    *_, metrics = trainer.train(envs.get_environment(name), **settings)
    assert metrics["eval/episode_reward"] == metrics["eval/episode_reward"], agent
"""


def run(program):
    """Run a program in double precision; return what it prints."""
    env = os.environ | {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.long
def test_every_agent_takes_every_environment():
    envs = pytest.importorskip("brax.envs", reason="brax-envs is not installed")
    assert int(run(ALL)) == 9 * len(envs.list_environments())


@pytest.mark.slow
@pytest.mark.long
def test_some_train():
    pytest.importorskip("brax.envs", reason="brax-envs is not installed")
    run(SOME)
