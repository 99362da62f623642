"""Runs of PPO with what is off by default: one run with all of it, stopped, resumed and read."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint
import pytest
from agent_toys import SMALL, STEP, Point

from brax.errors import CheckpointError
from brax.training.agents.ppo import train as ppo
from brax.training.agents.ppo.checkpoint import load_policy
from brax.training.checkpoints import checkpoint

pytestmark = pytest.mark.slow

RATE = 1e-4


class Noted(Point):
    """Tells its critic more than its policy, in a dictionary."""

    def reset(self, rng):
        return self._noted(super().reset(rng))

    def step(self, state, action):
        return self._noted(super().step(state, action))

    def _noted(self, state):
        x = state.pipeline_state
        return state.replace(obs={"state": x[:1], "privileged_state": jnp.stack([*x, x[0] * x[1]])})


OPTIONS: dict[str, Any] = {
    **SMALL,
    "run_evals": False,
    "learning_rate": RATE,
    "learning_rate_schedule": "ADAPTIVE_KL",
    "desired_kl": 100.0,
    "max_grad_norm": 1.0,
    "advantage_estimator": "gae",
    "clipping_epsilon_value": 0.2,
    "bootstrap_on_timeout": True,
    "recompute_targets": True,
    "normalize_observations_std_eps": 0.01,
    "normalize_until_count": STEP,
    "network_factory": {
        **SMALL["network_factory"],
        "value_obs_key": "privileged_state",
        "distribution_type": "normal",
        "mean_kernel_init_fn": "zeros",
    },
}


def same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Six training steps at once, and three and three more from a checkpoint."""
    folder, reports, handed = tmp_path_factory.mktemp("run"), [], []
    make_policy, whole, _ = ppo.train(
        Noted(),
        6 * STEP,
        **OPTIONS,
        num_evals=0,
        log_training_metrics=True,
        training_metrics_steps=STEP,
        progress_fn=lambda steps, metrics: reports.append((steps, metrics)),
        policy_params_fn=lambda *given: handed.append(given),
    )
    ppo.train(Noted(), 3 * STEP, **OPTIONS, save_checkpoint_path=folder)
    _, rest, _ = ppo.train(
        Noted(),
        6 * STEP,
        **OPTIONS,
        save_checkpoint_path=folder,
        restore_checkpoint_path=folder / f"{3 * STEP:012d}",
    )
    return folder, make_policy, whole, rest, reports, handed


def test_resumed_to_the_same_bits(runs):
    # T68
    _, _, whole, rest, *_ = runs
    same(whole, rest)


def test_the_network_of_the_value_sees_more_than_that_of_the_policy(runs):
    _, _, whole, *_ = runs
    assert whole.policy["params"]["trunk"]["hidden_0"]["kernel"].shape == (1, 16)
    assert whole.value["params"]["hidden_0"]["kernel"].shape == (3, 16)
    assert whole.normalizer.mean["privileged_state"].shape == (3,)


def test_reports_without_any_evaluation(runs):
    *_, reports, handed = runs
    assert [steps for steps, _ in reports[:-1]] == [STEP * i for i in range(1, 7)]
    assert all("training/sps" in metrics for _, metrics in reports)
    assert all("episode/sum_reward" in metrics for _, metrics in reports[1::2])  # two an episode
    assert not any(name.startswith("eval/") for _, m in reports for name in m)
    assert [steps for steps, *_ in handed] == [6 * STEP]


def test_the_step_size_grows_by_half_with_every_update_while_the_policy_hardly_moves(runs):
    """Eight updates in a training step; the first moves nothing, up to rounding, and counts not."""
    *_, reports, _ = runs
    mean = RATE * np.mean(1.5 ** np.arange(8))
    first = reports[0][1]["training/learning_rate"]
    assert mean * 0.999 < first < mean * 1.5 * 1.001
    assert reports[-2][1]["training/learning_rate"] == pytest.approx(0.01)


def test_the_statistics_stop_at_the_count_and_have_the_addition(runs):
    _, _, whole, *_ = runs
    assert int(whole.normalizer.count) == STEP
    std = np.sqrt(whole.normalizer.variance["state"])
    np.testing.assert_allclose(whole.normalizer.std["state"], std + 0.01, rtol=1e-5)


OBS = {"state": np.array([0.3], np.float32), "privileged_state": np.zeros(3, np.float32)}


def test_make_policy_takes_the_whole_or_two_of_three(runs):
    """As callbacks of users do; in all three the observation is normalized alike."""
    _, make_policy, whole, _, _, handed = runs
    key = jax.random.key(0)
    ((_, handed_make_policy, handed_params),) = handed
    want, _ = make_policy(whole)(OBS, key)
    for make in (make_policy, handed_make_policy):
        for given in (handed_params, whole[:2], (whole.policy, whole.value)):
            np.testing.assert_array_equal(make(given)(OBS, key)[0], want)
    other = whole._replace(
        normalizer=whole.normalizer.replace(
            std={"state": 9.0 + np.zeros(1), "privileged_state": np.ones(3)}
        )
    )
    assert not np.array_equal(make_policy(other)(OBS, key)[0], want)


def test_the_policy_comes_back_with_its_networks(runs):
    folder, make_policy, whole, *_ = runs
    assert checkpoint.available(folder) == [3 * STEP, 6 * STEP]
    want, _ = make_policy(whole, deterministic=True)(OBS, jax.random.key(0))
    got, _ = load_policy(folder)(OBS, jax.random.key(0))
    np.testing.assert_array_equal(got, want)


def test_the_policy_needs_only_what_it_reads(runs):
    folder, make_policy, whole, *_ = runs
    seen = {"state": OBS["state"]}
    for policy in (make_policy(whole, deterministic=True), load_policy(folder)):
        got, want = (policy(obs, jax.random.key(0))[0] for obs in (seen, OBS))
        np.testing.assert_array_equal(got, want)


def test_parameters_to_start_from_without_the_value(runs):
    _, _, whole, *_ = runs
    _, kept, _ = ppo.train(Noted(), 0, **OPTIONS, restore_params=whole)
    _, new, _ = ppo.train(Noted(), 0, **OPTIONS, restore_params=whole, restore_value_fn=False)
    _, first, _ = ppo.train(Noted(), 0, **OPTIONS)
    same(kept, whole)
    same(new[:2], whole[:2])
    same(new.value, first.value)


def test_parameters_that_orbax_saved_come_back_as_the_message_says(runs, tmp_path):
    _, _, whole, *_ = runs
    folder = tmp_path / "theirs"
    orbax.checkpoint.PyTreeCheckpointer().save(folder, whole)
    with pytest.raises(CheckpointError, match=r"Orbax's own checkpointer.*restore_params=orbax"):
        ppo.train(Noted(), STEP, **OPTIONS, restore_checkpoint_path=folder)
    read = orbax.checkpoint.PyTreeCheckpointer().restore(folder, item=whole)
    _, kept, _ = ppo.train(Noted(), 0, **OPTIONS, restore_params=read)
    same(kept, whole)


def test_a_distributional_critic_learns_and_comes_back(tmp_path):
    settings: dict[str, Any] = {**SMALL, "use_distributional_critic": True, "run_evals": False}
    _, params, metrics = ppo.train(Point(), 2 * STEP, **settings, save_checkpoint_path=tmp_path)
    assert params.value["params"]["hidden_1"]["kernel"].shape == (16, 32)
    assert 0 < metrics["training/v_loss"] < 10
    action, _ = load_policy(tmp_path)(np.zeros(2, np.float32), jax.random.key(0))
    assert np.isfinite(action).all()
