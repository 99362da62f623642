"""SAC as a whole, on environments that take no time."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import Counter, Point

from brax.training.agents.sac import train as sac
from brax.training.checkpoints import checkpoint

pytestmark = pytest.mark.slow

SMALL: dict[str, Any] = {
    "episode_length": 20,
    "num_envs": 16,
    "batch_size": 64,
    "grad_updates_per_step": 8,
    "min_replay_size": 256,
    "max_replay_size": 4096,
    "num_eval_envs": 64,
    "discounting": 0.9,
    "learning_rate": 3e-3,
    "normalize_observations": True,
    "network_factory": {"hidden_layer_sizes": [16]},
}


@pytest.fixture(scope="module")
def trained():
    """Return a run with its reports: steps and metrics."""
    reports = []
    result = sac.train(
        Point(),
        16 * 250,
        num_evals=2,
        deterministic_eval=True,
        progress_fn=lambda steps, metrics: reports.append((steps, dict(metrics))),
        **SMALL,
    )
    return *result, reports


def test_it_learns(trained):
    *_, metrics, reports = trained
    assert [steps for steps, _ in reports] == [0, 4000]
    assert reports[0][1]["eval/episode_reward"] < 14
    assert metrics["eval/episode_reward"] > 17.5


def test_the_policy_takes_the_whole_params_or_its_parts(trained):
    make_policy, params, *_ = trained
    obs, key = np.array([0.5, 0.1], np.float32), jax.random.key(0)
    normalizer, policy = params
    whole, _ = make_policy(params, deterministic=True)(obs, key)
    part, _ = make_policy((normalizer, policy), deterministic=True)(obs, key)
    assert whole == part and float(whole[0]) < -0.3


def test_learning_waits_for_the_buffer():
    """16 environments reach 273 rows with their 18th step, not with their 17th.

    Until then no loss is reported.
    """
    seen, reports = {}, {}
    sac.train(
        Point(),
        16 * 34,
        num_evals=3,
        progress_fn=lambda steps, metrics: reports.update({steps: metrics}),
        policy_params_fn=lambda steps, _, params: seen.update({steps: params}),
        **{**SMALL, "run_evals": False, "min_replay_size": 273},
    )
    start, waiting, end = (jax.tree.leaves(seen[16 * n].policy) for n in (0, 17, 34))
    assert all(np.array_equal(a, b) for a, b in zip(start, waiting, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(start, end, strict=True))
    assert int(seen[16 * 17].normalizer.count) == 16 * 17
    assert {"training/skipped_updates", "training/nan_envs"} <= reports[16 * 17].keys()
    assert "training/alpha" not in reports[16 * 17] and reports[16 * 34]["training/alpha"] > 0


def test_the_buffer_holds_the_last_steps_as_they_were(tmp_path):
    """Six steps of eight environments, of which 20 transitions and so two steps are kept.

    Episodes are truncated after 3 steps, or end of themselves after 2.
    """
    settings: dict[str, Any] = {
        "num_envs": 8,
        "episode_length": 3,
        "max_replay_size": 20,
        "batch_size": 4,
    }
    quiet: dict[str, Any] = {"run_evals": False, "network_factory": {"hidden_layer_sizes": [4]}}
    sac.train(Counter(), 8 * 6, **settings, **quiet, save_checkpoint_path=tmp_path)
    found = checkpoint.load(tmp_path).arrays
    kept = {k.removeprefix("replay/data/"): v for k, v in found.items() if "replay/data" in k}
    assert int(found["replay/position"]) == 0 and int(found["replay/filled"]) == 2
    for env in range(8):
        ends = kept["observation"][env, 0, 1]
        for place, step in enumerate([4, 5]):  # the sixth step cuts or ends every episode
            count = step % (2 if ends == 2 else 3)
            assert kept["observation"][env, place].tolist() == [count, ends]
            assert kept["next_observation"][env, place].tolist() == [count + 1, ends]
            assert kept["reward"][env, place] == count + 1
            assert kept["goes_on"][env, place] == (count + 1 != ends)
    assert set(kept["observation"][..., 1].ravel()) == {2.0, 100.0}
    assert kept["goes_on"].min() == 0 and kept["goes_on"].max() == 1
    assert (np.abs(kept["action"]) < 1).all() and len(set(kept["action"].ravel())) == 16


class Poor(Point):
    """Its reward is so large that it overflows when it is scaled."""

    def step(self, state, action):
        return super().step(state, action).replace(reward=jnp.float32(1e9))


def test_updates_without_a_finite_gradient_change_nothing(tmp_path):
    """Fewer than would stop the run: eight, all skipped, after eight that were made."""
    settings: dict[str, Any] = {
        **SMALL,
        "run_evals": False,
        "min_replay_size": 0,
        "save_checkpoint_path": tmp_path,
    }
    *_, made = sac.train(Poor(), 16, **settings, reward_scaling=1e-9)
    *_, metrics = sac.train(
        Poor(), 32, **settings, reward_scaling=1e31, restore_checkpoint_path=tmp_path
    )
    assert made["training/skipped_updates"] == 0 and metrics["training/skipped_updates"] == 8
    before, after = (checkpoint.load(tmp_path / f"{steps:012d}").arrays for steps in (16, 32))
    learned = [n for n in before if n.startswith(("params/policy", "q", "target_q", "optimizer"))]
    assert len(learned) > 20
    assert [name for name in learned if not np.array_equal(before[name], after[name])] == []
    assert not np.array_equal(
        after["q/params/critic_0/hidden_0/kernel"],
        after["target_q/params/critic_0/hidden_0/kernel"],
    )
