"""One policy on our ant and on MuJoCo's: what it earns there is the same."""

from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from brax import envs
from brax.envs.task import ASSETS

POLICY = Path(__file__).parent / "policies" / "ant_generalized.npz"
"""The policy that PPO learned in five million steps on `generalized`.

`export_policy.py` of the benchmarks writes it. It walks at 0.5 m/s and falls in a fifth of its
episodes.
"""
EPISODES, LENGTH = 100, 1000
TIMESTEP, N_FRAMES = 0.01, 5
SHARE = 0.05
"""Returns agree to this share of MuJoCo's; seen 1.1 %, and 2.2 % of lengths."""


def act(policy, obs, xp):
    """Return the mean actions of a network with relu layers, for observations (..., 27)."""
    hidden = (obs - policy["mean"]) / policy["std"]
    for i in range(last := int(policy["layers"]) - 1):
        hidden = xp.maximum(hidden @ policy[f"kernel_{i}"] + policy[f"bias_{i}"], 0)
    return xp.tanh(hidden @ policy[f"kernel_{last}"] + policy[f"bias_{last}"])


def ours(policy, key):
    """Coordinates and velocities at the start, returns and lengths of the episodes."""
    env = envs.get_environment("ant", backend="generalized")

    def step(carry, _):
        state, running, earned, length = carry
        state = jax.vmap(env.step)(state, act(policy, state.obs, jnp))
        earned = earned + running * state.reward
        return (state, running * (1 - state.done), earned, length + running), None

    @jax.jit
    def play(keys):
        state = jax.vmap(env.reset)(keys)
        first = (state, jnp.ones(EPISODES), jnp.zeros(EPISODES), jnp.zeros(EPISODES))
        _, _, earned, length = jax.lax.scan(step, first, length=LENGTH)[0]
        return state.pipeline_state.q, state.pipeline_state.qd, earned, length

    q, qd, earned, length = map(np.asarray, play(jax.random.split(key, EPISODES)))
    return SimpleNamespace(q=q, qd=qd, earned=earned, length=length)


def theirs(policy, q, qd):
    """Return returns and lengths of MuJoCo's episodes from the same starts.

    Reward and end follow the task's description.
    """
    model = mujoco.MjModel.from_xml_path(str(ASSETS / "ant.xml"))
    model.opt.timestep = TIMESTEP
    played = [_episode(model, policy, *start) for start in zip(q, qd, strict=True)]
    earned, length = np.array(played).T
    return SimpleNamespace(earned=earned, length=length)


def _episode(model, policy, q, qd):
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, qd
    earned, length = 0.0, 0
    while length < LENGTH and 0.2 <= data.qpos[2] <= 1.0:
        x = data.qpos[0]
        data.ctrl[:] = act(policy, np.concatenate([data.qpos[2:], data.qvel]), np)
        mujoco.mj_step(model, data, N_FRAMES)
        speed = (data.qpos[0] - x) / (TIMESTEP * N_FRAMES)
        earned, length = earned + speed + 1 - 0.5 * np.sum(data.ctrl**2), length + 1
    return earned, length


@pytest.fixture(scope="module")
def played():
    policy = dict(np.load(POLICY))
    here = ours(policy, jax.random.key(0))
    return here, theirs(policy, here.q, here.qd)


@pytest.mark.slow
@pytest.mark.long
def test_a_gait_earns_the_same(played):
    here, there = played
    assert there.length.mean() > 500 and there.earned.mean() > 1000, "it walks"
    assert here.earned.mean() == pytest.approx(there.earned.mean(), rel=SHARE)


@pytest.mark.slow
def test_a_gait_lasts_as_long(played):
    here, there = played
    assert here.length.mean() == pytest.approx(there.length.mean(), rel=SHARE)
