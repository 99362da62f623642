"""Runs that learn from images: stopped, resumed, read again; and that they learn."""

import json
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import Dot

from brax import cli, plugins
from brax.plugins import Spec, hookimpl
from brax.training.agents.bc import train as bc
from brax.training.agents.bc.checkpoint import load_policy as load_student
from brax.training.agents.ppo import train as ppo
from brax.training.agents.ppo.checkpoint import load_policy

pytestmark = pytest.mark.slow

TINY: dict[str, Any] = {
    "cnn_output_channels": [16, 16],
    "cnn_kernel_size": [4, 3],
    "cnn_stride": [2, 1],
    "policy_hidden_layer_sizes": [32],
    "value_hidden_layer_sizes": [32],
}
SETTINGS: dict[str, Any] = {
    "vision": True,
    "augment_pixels": True,
    "normalize_observations": True,
    "episode_length": 20,
    "num_envs": 4,
    "batch_size": 4,
    "num_minibatches": 2,
    "num_updates_per_batch": 2,
    "unroll_length": 5,
    "num_eval_envs": 8,
    "network_factory": {**TINY, "policy_obs_key": "state", "normalise_channels": True},
}
STEP = 40
QUIET: dict[str, Any] = {**SETTINGS, "run_evals": False}


def same(one, other):
    leaves = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in leaves)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Four training steps at once, and two and two more from a checkpoint."""
    folder = tmp_path_factory.mktemp("run")
    make_policy, whole, _ = ppo.train(Dot(), 4 * STEP, **QUIET)
    ppo.train(Dot(), 2 * STEP, **QUIET, save_checkpoint_path=folder)
    _, rest, _ = ppo.train(
        Dot(), 4 * STEP, **QUIET, save_checkpoint_path=folder, restore_checkpoint_path=folder
    )
    return folder, make_policy, whole, rest


@pytest.mark.long
def test_resumed_to_the_same_bits(runs):
    assert same(runs[2], runs[3])


def test_the_normalizer_knows_the_vector_alone(runs):
    normalizer = runs[2].normalizer
    assert normalizer.mean.keys() == normalizer.std.keys() == {"state"}
    assert int(normalizer.count) == 4 * STEP


def test_the_policy_comes_back_from_the_folder(runs):
    folder, make_policy, whole, _ = runs
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 1), np.uint8)
    obs, key = {"pixels/view": pixels, "state": np.ones(2, np.float32)}, jax.random.key(0)
    for deterministic in (True, False):
        got, _ = load_policy(folder, deterministic)(obs, key)
        assert got == make_policy(whole, deterministic)(obs, key)[0]


def test_shifts_change_what_is_learned(runs):
    _, plain, _ = ppo.train(Dot(), 4 * STEP, **{**QUIET, "augment_pixels": False})
    assert not same(plain, runs[2])


class Preset(Dot):
    """Brings settings of its own."""

    presets = {"ppo": {"default": {**QUIET, "num_timesteps": 2 * STEP}}}  # noqa: RUF012


def test_a_run_of_the_command_is_evaluated(monkeypatch, tmp_path, capsys):
    plugin: Any = types.ModuleType("dots")
    plugin.BRAX_PLUGIN_API = 1
    plugin.brax_environments = hookimpl(lambda: [Spec("toy_dot", Preset)])
    plugin.brax_environments.__name__ = "brax_environments"
    plugins.register(plugin, "dots")
    monkeypatch.chdir(tmp_path)
    try:
        assert cli.main(["train", "toy_dot", "--name", "seen"]) == 0
        capsys.readouterr()
        assert cli.main(["eval", "runs/seen", "--episodes", "4", "--json"]) == 0
    finally:
        plugins.unregister("dots")
    found = json.loads(capsys.readouterr().out)
    assert found["avg_episode_length"] == 20
    assert np.isfinite(found["episode_reward"])


LEARN: dict[str, Any] = {
    "vision": True,
    "deterministic_eval": True,
    "episode_length": 20,
    "num_envs": 32,
    "batch_size": 32,
    "num_minibatches": 4,
    "num_updates_per_batch": 4,
    "unroll_length": 5,
    "num_eval_envs": 32,
    "discounting": 0.0,
    "learning_rate": 1e-3,  # with 2e-3 one seed in twenty falls back for a while
    "max_grad_norm": 0.5,
    "entropy_cost": 1e-3,
    "network_factory": TINY,
}
BLIND = 3 / 7
"""The best mean reward of a step without seeing the dot."""


def earned(environment, seed):
    _, _, metrics = ppo.train(environment, 10_000, **LEARN, seed=seed)
    return metrics["eval/episode_reward"] / 20


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_it_learns_where_the_dot_is(seed):
    """The policy learns the position of the dot: 0.80 to 0.93 of 1 with forty seeds."""
    assert earned(Dot(), seed) > 0.75


@pytest.mark.long
def test_where_nothing_can_be_seen_it_does_not():
    """The deviation of this mean of 640 rewards is below 0.02."""
    assert earned(Dot(colour=0), 0) < BLIND + 0.1


def looks(obs, key):
    """Says where the dot is."""
    column = jnp.argmax(obs["pixels/view"].sum(axis=(-3, -1)), axis=-1)
    return (column[..., None] - 3.0) / 3.0, {}


STUDENT: dict[str, Any] = {
    "teacher_inference_fn": looks,
    "vision": True,
    "demo_length": 20,
    "num_envs": 16,
    "epochs": 10,
    "batch_size": 64,
    "episode_length": 20,
    "learning_rate": 3e-3,
    "num_eval_envs": 32,
    "deterministic_eval": True,
    "network_factory": {k: v for k, v in TINY.items() if k != "value_hidden_layer_sizes"},
}


@pytest.mark.long
def test_a_student_learns_to_see(tmp_path):
    _, params, metrics = bc.train(Dot(), 20 * 320, **STUDENT, save_checkpoint_path=tmp_path)
    assert metrics["eval/episode_reward"] / 20 > 0.8
    obs = Dot().reset(jax.random.key(0)).obs
    action, _ = load_student(tmp_path)(obs, jax.random.key(0))
    assert abs(float(action[0]) - float(looks(obs, None)[0][0])) < 0.3
    assert params.normalizer.mean.keys() == {"state"}


def test_a_student_of_shifted_images_learns_something_else():
    """The teacher says where the dot was before."""
    _, plain, _ = bc.train(Dot(), 320, **{**STUDENT, "run_evals": False})
    _, shifted, _ = bc.train(Dot(), 320, **{**STUDENT, "run_evals": False}, augment_pixels=True)
    assert not same(plain, shifted)
