"""TD3 as a whole, on environments that take no time."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import Counter, Point, make_learner

from brax.errors import ConfigError
from brax.training.agents.td3 import TD3
from brax.training.agents.td3 import learner as learner_module
from brax.training.agents.td3 import train as td3
from brax.training.checkpoints import checkpoint
from brax.training.config import Runtime
from brax.training.runner import parts
from brax.training.runner.program import Program

pytestmark = pytest.mark.slow

SMALL: dict[str, Any] = {
    "episode_length": 20,
    "num_envs": 16,
    "batch_size": 64,
    "grad_updates_per_step": 8,
    "n_steps": 2,
    "num_atoms": 21,
    "v_min": 0.0,
    "v_max": 10.0,
    "min_exploration_noise": 0.1,
    "max_exploration_noise": 0.5,
    "min_replay_size": 256,
    "max_replay_size": 4096,
    "num_eval_envs": 64,
    "discounting": 0.9,
    "learning_rate": 3e-3,
    "tau": 0.02,
    "normalize_observations": True,
    "network_factory": {"policy_hidden_layer_sizes": [16], "q_hidden_layer_sizes": [16]},
}


@pytest.fixture(scope="module", params=["categorical", "mean"])
def trained(request):
    """Return a run with its reports: steps and metrics."""
    reports, plain = [], {"num_atoms": 0, "n_steps": 1} if request.param == "mean" else {}
    result = td3.train(
        Point(),
        16 * 250,
        num_evals=2,
        progress_fn=lambda steps, metrics: reports.append((steps, dict(metrics))),
        **SMALL | plain,
    )
    return *result, reports


def test_it_learns(trained):
    *_, metrics, reports = trained
    assert [steps for steps, _ in reports] == [0, 4000]
    assert reports[0][1]["eval/episode_reward"] < 14
    assert metrics["eval/episode_reward"] > 17.5


def test_the_policy_takes_the_whole_params_or_its_parts_and_draws_nothing(trained):
    make_policy, params, *_ = trained
    obs, key = np.array([0.5, 0.1], np.float32), jax.random.key(0)
    normalizer, policy = params
    whole, _ = make_policy(params, deterministic=True)(obs, key)
    part, _ = make_policy((normalizer, policy))(obs, jax.random.key(1))
    assert whole == part and float(whole[0]) < -0.3


def test_learning_waits_for_the_buffer():
    """16 environments reach 273 transitions with their 18th step; until then no loss is reported.

    With 30 steps a transition, they wait for the 30th.
    """
    for settings, first in (({"min_replay_size": 273}, 18), ({"n_steps": 30}, 30)):
        reports: dict[int, Any] = {}
        seen: dict[int, Any] = {}
        noted: Any = lambda steps, metrics, to=reports: to.update({steps: metrics})  # noqa: E731
        kept: Any = lambda steps, _, params, to=seen: to.update({steps: params})  # noqa: E731
        td3.train(
            Point(),
            16 * 2 * (first - 1),
            num_evals=3,
            progress_fn=noted,
            policy_params_fn=kept,
            **SMALL | {"run_evals": False, "min_replay_size": 0} | settings,
        )
        states = [jax.tree.leaves(seen[16 * n].policy) for n in (0, first - 1, 2 * (first - 1))]
        start, waiting, end = states
        assert all(np.array_equal(a, b) for a, b in zip(start, waiting, strict=True))
        assert not any(np.array_equal(a, b) for a, b in zip(start, end, strict=True))
        assert "training/q" not in reports[16 * (first - 1)]
        assert "training/q" in reports[32 * (first - 1)]


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
    td3.train(Counter(), 8 * 6, **settings, run_evals=False, save_checkpoint_path=tmp_path)
    found = checkpoint.load(tmp_path).arrays
    kept = {k.removeprefix("replay/data/"): v for k, v in found.items() if "replay/data" in k}
    for env in range(8):
        ends = kept["observation"][env, 0, 1]
        for place, step in enumerate([4, 5]):  # the sixth step cuts or ends every episode
            count = step % (2 if ends == 2 else 3)
            assert kept["observation"][env, place].tolist() == [count, ends]
            assert kept["next_observation"][env, place].tolist() == [count + 1, ends]
            assert kept["reward"][env, place] == count + 1
            assert kept["terminated"][env, place] == (count + 1 == ends)
            assert kept["last"][env, place] == (place == 1)
    assert set(kept["observation"][..., 1].ravel()) == {2.0, 100.0}


def _states_after(learner, *numbers):
    """Return the states of a learner after some numbers of training steps."""
    start, advance = jax.jit(learner.init)(jax.random.key(3)), jax.jit(learner.advance)
    return [advance(start, jnp.int32(number))[0] for number in numbers]


def test_each_environment_has_noise_of_its_own():
    """Before the first update actions are uniform; then they spread as the state says."""
    noise = {"min_exploration_noise": 0.05, "max_exploration_noise": 0.2}
    more: dict[str, Any] = {
        "num_envs": 64,
        "max_replay_size": 64 * 400,
        "min_replay_size": 64 * 200,
    }
    # So small a rate leaves the policy where it is.
    rate = {"learning_rate": 1e-6, "grad_updates_per_step": 1}
    learner = make_learner(TD3, Point(), **SMALL | noise | more | rate)
    (state,) = _states_after(learner, 400)
    assert 0.05 <= state.noise_std.min() < 0.07 and 0.18 < state.noise_std.max() <= 0.2
    actions = np.asarray(state.replay.data.action)[..., 0]
    assert np.abs(actions[:, :200]).max() <= 1.0
    assert np.std(actions[:, :200]) == pytest.approx(1 / np.sqrt(3), rel=0.03)
    # The statistics of observations hardly move any more.
    spread = np.std(actions[:, 250:] - _policy_actions(learner, state)[:, 250:], axis=1)
    np.testing.assert_allclose(spread, state.noise_std, rtol=0.25)  # of 150 draws each: 4 sigma


def _policy_actions(learner, state):
    observations = state.replay.data.observation
    return np.asarray(learner.networks.act(*state.params, observations))[..., 0]


def test_the_policy_and_the_targets_wait_for_their_turn():
    """Five updates a step, of which the third is the policy's; the count goes on in the next."""
    settings: dict[str, Any] = SMALL | {
        "grad_updates_per_step": 5,
        "policy_delay": 3,
        "min_replay_size": 32,
    }
    learner = make_learner(TD3, Point(), **settings)
    states = _states_after(learner, *range(5))
    assert [int(s.updates_since_policy) for s in states] == [0, 0, 2, 1, 0]
    counts = [int(s.policy_optimizer_state[0].count) for s in states]
    assert counts == [0, 0, 1, 3, 5]
    assert [int(s.q_optimizer_state[0].count) for s in states] == [0, 0, 5, 10, 15]
    before, after = states[1:3]
    for name in ("target_policy", "target_q"):
        for old, moved in zip(
            *(jax.tree.leaves(getattr(s, name)) for s in states[1:3]), strict=True
        ):
            assert not np.array_equal(old, moved)
    # One update of the targets: 0.02 of the way from where they were, for both began as one.
    policy = jax.tree.leaves(after.params.policy)
    for old, now, target in zip(
        jax.tree.leaves(before.params.policy),
        policy,
        jax.tree.leaves(after.target_policy),
        strict=True,
    ):
        np.testing.assert_allclose(target, 0.98 * old + 0.02 * now, rtol=1e-5, atol=1e-7)


def test_failed_updates_of_the_policy_are_consecutive(monkeypatch):
    """The policy's turn is the second update; it fails in this one and in the six after it."""
    monkeypatch.setattr(learner_module, "compute_policy_loss", _not_finite)
    learner = make_learner(TD3, Point(), **SMALL | {"min_replay_size": 0, "n_steps": 1})
    before, after = _states_after(learner, 0, 1)
    assert (int(before.bad_updates), int(after.bad_updates)) == (0, 7)
    assert int(after.q_optimizer_state[0].count) == 8
    assert int(after.policy_optimizer_state[0].count) == 0
    for name in ("target_policy", "target_q"):
        jax.tree.map(np.testing.assert_array_equal, *(getattr(s, name) for s in (before, after)))


def _not_finite(policy, *rest):
    return jnp.nan * jnp.sum(jax.tree.leaves(policy)[0])


def test_rates_that_fall_do_so_with_each_network_s_own_updates():
    """The policy has half as many updates as the critics, of which there are two times four."""
    settings: dict[str, Any] = SMALL | {"learning_rate_schedule": "LINEAR", "num_timesteps": 2 * 16}
    settings |= {"grad_updates_per_step": 4, "min_replay_size": 0}
    learner = make_learner(TD3, Point(), **settings)
    weight = jnp.ones(1)
    for optimizer, updates in [(learner._q_optimizer, 8), (learner._policy_optimizer, 4)]:
        state = optimizer.init(weight)
        for update in range(updates + 1):
            # Adam's steps along a constant gradient are the step size.
            step, state = optimizer.update(weight, state, weight)
            rate = SMALL["learning_rate"] * (1.0 - update / updates)
            np.testing.assert_allclose(step, -rate, rtol=1e-4, atol=1e-8)


def test_parameters_to_start_from_are_those_of_the_target_policy_too():
    learner = make_learner(TD3, Point(), **SMALL)
    program = Program(learner, learner.mesh)
    program.compile_init()
    given = jax.device_get(program.init(jax.random.key(7)).params)
    state = parts.initial_state(program, jax.random.key(0), Runtime(restore_params=given), None)
    for policy in (state.state.params.policy, state.state.target_policy):
        jax.tree.map(np.testing.assert_array_equal, policy, given.policy)


def test_a_reset_of_all_environments_ends_the_episodes_in_the_buffer():
    learner = make_learner(TD3, Point(), **SMALL)
    (state,) = _states_after(learner, 5)
    fresh = learner.fresh_environments(state)
    expected = np.zeros((16, 256))
    expected[:, 4] = 1.0
    np.testing.assert_array_equal(fresh.replay.data.last, expected)
    assert not np.array_equal(fresh.env_state.obs, state.env_state.obs)


def test_a_reset_of_all_environments_leaves_the_buffer_where_it_is_in_memory():
    """There may be no room for a second one."""
    learner = make_learner(TD3, Point(), **SMALL)
    program = Program(learner, learner.mesh)
    program.compile_init()
    state = program.init(jax.random.key(7))
    address = state.replay.data.reward.unsafe_buffer_pointer()
    fresh = program.fresh_environments(state)
    assert fresh.replay.data.reward.unsafe_buffer_pointer() == address
    assert state.replay.data.reward.is_deleted()


def test_critics_of_another_size_are_rejected():
    settings: dict[str, Any] = SMALL | {"num_atoms": 0, "network_factory": {"num_atoms": 51}}
    with pytest.raises(ConfigError, match=r"critics give 51 .* num_atoms=0 needs 1: .* network_f"):
        td3.train(Point(), 1000, **settings)


class Poor(Point):
    """Its reward is so large that it overflows when it is scaled."""

    def step(self, state, action):
        return super().step(state, action).replace(reward=jnp.float32(1e9))


def test_updates_without_a_finite_gradient_change_nothing(tmp_path):
    """Fewer than would stop the run: eight, all skipped, after eight that were made."""
    more: dict[str, Any] = {"run_evals": False, "min_replay_size": 0, "num_atoms": 0, "n_steps": 1}
    settings: dict[str, Any] = SMALL | more | {"save_checkpoint_path": tmp_path}
    *_, made = td3.train(Poor(), 16, **settings, reward_scaling=1e-9)
    *_, metrics = td3.train(
        Poor(), 32, **settings, reward_scaling=1e31, restore_checkpoint_path=tmp_path
    )
    assert made["training/skipped_updates"] == 0 and metrics["training/skipped_updates"] == 8
    before, after = (checkpoint.load(tmp_path / f"{steps:012d}").arrays for steps in (16, 32))
    names = ("params/policy", "q", "target", "policy_optimizer", "updates_since")
    learned = [n for n in before if n.startswith(names)]
    assert len(learned) > 20
    assert [name for name in learned if not np.array_equal(before[name], after[name])] == []
