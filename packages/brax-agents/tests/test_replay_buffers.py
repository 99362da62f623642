"""The replay buffer against what a list that forgets its oldest entries would hold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.training.agents.sac.config import SACConfig
from brax.training.agents.td3.config import TD3Config
from brax.training.learning.replay_buffers import ReplayBuffer

SAMPLE = {"x": jax.ShapeDtypeStruct((2,), jnp.float32), "n": jax.ShapeDtypeStruct((), jnp.int32)}


def _steps(first, number, envs=3):
    """Return steps of all environments; each sample contains its environment and step."""
    env, step = np.meshgrid(np.arange(envs), first + np.arange(number), indexing="ij")
    x = np.stack([env, step * 0.5], axis=-1).astype(np.float32)
    return {"x": x, "n": (100 * env + step).astype(np.int32)}


@pytest.mark.parametrize(
    ("asked", "stride", "steps"), [(21, 1, 7), (23, 1, 7), (3, 1, 1), (18, 2, 6), (23, 2, 6)]
)
def test_it_holds_the_last_steps_of_every_environment(asked, stride, steps):
    """The sample of step s is at index s modulo the number of steps; no more is kept than asked."""
    # T91
    buffer = ReplayBuffer(asked, 3, SAMPLE, 4, stride)
    state = buffer.init()
    assert state.data["x"].shape == (3, steps, 2) and 3 * steps <= asked
    for inserted in range(stride, 20, stride):
        state = buffer.insert(state, _steps(inserted - stride, stride))
        newest = range(max(inserted - steps, 0), inserted)
        assert int(buffer.size(state)) == 3 * len(newest)
        for env in range(3):
            for s in newest:
                assert int(state.data["n"][env, s % steps]) == 100 * env + s
                assert state.data["x"][env, s % steps].tolist() == [env, s * 0.5]


@pytest.mark.parametrize(("inserted", "length"), [(4, 3), (7, 1), (9, 3), (9, 7)])
def test_windows_are_consecutive_steps_of_one_environment(inserted, length):
    """Each window of what is there is drawn, and none leads from the newest step to the oldest."""
    buffer = ReplayBuffer(21, 3, SAMPLE, 900)
    state = buffer.init()
    for step in range(inserted):
        state = buffer.insert(state, _steps(step, 1))
    env, places = buffer.draw_windows(state, jax.random.key(1), length)
    assert env.shape == (900,) and places.shape == (900, length)
    drawn = np.asarray(state.data["n"][env[:, None], places])
    np.testing.assert_array_equal(drawn, drawn[:, :1] + np.arange(length))
    starts = range(max(inserted - 7, 0), inserted - length + 1)
    assert set(drawn[:, 0]) == {100 * env + start for env in range(3) for start in starts}


def test_samples_are_drawn_evenly_and_only_from_what_is_there():
    # T91
    buffer = ReplayBuffer(300, 3, SAMPLE, 60_000, stride=4)
    state = buffer.insert(buffer.init(), _steps(1, 4))
    drawn = buffer.sample(state, jax.random.key(0))
    numbers, counts = np.unique(np.asarray(drawn["n"]), return_counts=True)
    assert numbers.tolist() == [1, 2, 3, 4, 101, 102, 103, 104, 201, 202, 203, 204]
    chi2 = ((counts - 5000) ** 2 / 5000).sum()
    assert chi2 < 31.26  # the 0.999 quantile of chi2 with 11 degrees of freedom
    np.testing.assert_array_equal(drawn["x"][:, 0], drawn["n"] // 100)  # samples stay whole
    np.testing.assert_array_equal(drawn["x"][:, 1], drawn["n"] % 100 * 0.5)


@pytest.mark.parametrize(
    ("config", "steps"),
    [
        (SACConfig(num_envs=16), 0),
        (SACConfig(num_envs=16, min_replay_size=16), 0),
        # 17 steps of 16 transitions are 272.
        (SACConfig(num_envs=16, min_replay_size=272), 16),
        (SACConfig(num_envs=16, min_replay_size=273), 17),
        (TD3Config(num_envs=16, min_replay_size=273), 17),
        (TD3Config(num_envs=16, min_replay_size=33, n_steps=3), 2),
        (TD3Config(num_envs=16, min_replay_size=33, n_steps=5), 4),
    ],
)
def test_the_step_that_fills_the_buffer_is_the_first_with_updates(config, steps):
    assert config.steps_before_updates == steps
