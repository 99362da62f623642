"""BC: who acts, what is kept, and that the student comes to do what the teacher does."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import Point

from brax.errors import ConfigError
from brax.training.agents.bc import train as bc
from brax.training.agents.bc.config import teach_first
from brax.training.checkpoints import checkpoint

SMALL: dict[str, Any] = {
    "num_envs": 16,
    "episode_length": 20,
    "demo_length": 20,
    "batch_size": 64,
    "max_replay_size": 1000,
    "epochs": 20,
    "learning_rate": 1e-2,
    "num_eval_envs": 64,
    "network_factory": {"policy_hidden_layer_sizes": [8]},
}
STEP = 320


def teacher(observation, key):
    """Goes to the origin as fast as it may."""
    return jnp.clip(-5.0 * observation[..., :1], -1.0, 1.0), {}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bc")
    *_, metrics = bc.train(
        Point(),
        dagger_steps=4,
        teacher_inference_fn=teacher,
        save_checkpoint_path=folder,
        num_evals=5,
        **SMALL,
    )
    return folder, metrics


@pytest.mark.slow
def test_the_student_does_what_the_teacher_does(run):
    """From at most 1 away, at 0.2 a step, the teacher earns 20 less 1 + 0.8 + ... = at most 3."""
    assert run[1]["training/loss"] < 0.01
    assert run[1]["eval/episode_reward"] > 17.5


@pytest.mark.slow
def test_three_steps_of_four_are_kept_with_what_the_teacher_said(run):
    """1000 rows hold three training steps of 320; the fourth goes over the first."""
    found = checkpoint.load(run[0]).arrays
    obs, action = (found[f"replay/data/{name}"] for name in ("observation", "action"))
    assert obs.shape == (16, 60, 2) and int(found["replay/filled"]) == 60
    np.testing.assert_array_equal(action, np.clip(-5.0 * obs[..., :1], -1, 1))
    # Within an episode it is the student that acted: as the teacher would, but by drawing.
    moved = np.diff(obs[:, 20:40, 0], axis=1)
    taught = 0.2 * action[:, 20:39, 0]
    assert np.corrcoef(moved.ravel(), taught.ravel())[0, 1] > 0.5 and (moved != taught).all()


@pytest.mark.slow
def test_the_teacher_acts_first(tmp_path):
    train: dict[str, Any] = {
        "teacher_inference_fn": teacher,
        "save_checkpoint_path": tmp_path,
        "run_evals": False,
    }
    bc.train(Point(), STEP, **train, **SMALL)
    found = checkpoint.load(tmp_path).arrays
    obs, action = (found[f"replay/data/{name}"] for name in ("observation", "action"))
    moved, taught = np.diff(obs[:, :20, 0], axis=1), 0.2 * action[:, :19, 0]
    np.testing.assert_allclose(moved, taught, atol=1e-6)
    assert [float(teach_first(jnp.int32(i))) for i in range(3)] == [1.0, 0.0, 0.0]


@pytest.mark.slow
def test_the_run_of_an_agent_teaches(run):
    """The student of the run above teaches another, from its folder."""
    make_policy, params, metrics = bc.train(
        Point(), STEP, teacher=str(run[0]), **{**SMALL, "run_evals": False}
    )
    assert np.isfinite(metrics["training/loss"])
    action, _ = make_policy(params, deterministic=True)(jnp.array([0.8, 0.0]), jax.random.key(0))
    assert float(action[0]) < -0.3


class Wide(Point):
    """Observes a zero more and takes two actions, of which the first counts."""

    observation_size, action_size = 3, 2

    def reset(self, rng):
        return self._wider(super().reset(rng))

    def step(self, state, action):
        return self._wider(super().step(state.replace(obs=state.obs[:2]), action[:1]))

    def _wider(self, state):
        return state.replace(obs=jnp.append(state.obs, 0.0))


@pytest.mark.slow
def test_a_teacher_of_another_environment_is_refused(run):
    with pytest.raises(ConfigError, match=r"teacher '.*' cannot act .* of shape \(3,\): it was"):
        bc.train(Wide(), STEP, teacher=str(run[0]), **SMALL)
    with pytest.raises(ConfigError, match=r"gives actions of shape \(\d+, 1\) .* takes \(\d+, 2\)"):
        bc.train(Wide(), STEP, teacher_inference_fn=teacher, **SMALL)


@pytest.mark.parametrize("given", [{}, {"teacher": "x", "teacher_inference_fn": teacher}])
def test_there_is_one_teacher(given):
    with pytest.raises(ConfigError, match="give teacher, the run of an agent, or"):
        bc.train(Point(), STEP, **SMALL, **given)
