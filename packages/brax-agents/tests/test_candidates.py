"""Candidates: who learns when, who goes on, and what a run of them shares with other runs."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import SMALL, STEP, Point, check_same_bits, check_two_devices_learn_what_one_learns
from test_agents_run import train

from brax import plugins
from brax.errors import ConfigError
from brax.training.agents.ppo import train as ppo
from brax.training.checkpoints import checkpoint
from brax.training.distributed.devices import env_mesh
from brax.training.learner import Episodes, Learner, Parts, Tally, Updates
from brax.training.learning import halving
from brax.training.learning.candidates import CandidatesLearner
from brax.training.runner.seeds import can_train_together


@pytest.mark.parametrize(
    "total, candidates, expected",
    [
        # 8 eighths of the one that is left, and 1 eighth of another.
        (90, 2, halving.Rounds((2, 1), 10, 80)),
        # Four for an eighth, two for an eighth and one for six: 12 eighths.
        (1200, 4, halving.Rounds((4, 2, 1), 100, 800)),
        (1211, 4, halving.Rounds((4, 2, 1), 100, 811)),
        (110, 3, halving.Rounds((3, 2, 1), 10, 80)),
        # 8 + 4 + 2 + 5 eighths.
        (190, 8, halving.Rounds((8, 4, 2, 1), 10, 80)),
        (7, 1, halving.Rounds((1,), 0, 7)),
    ],
)
def test_how_candidates_share_a_run(total, candidates, expected):
    assert halving.divide(total, candidates) == expected
    assert sum(n * expected.length for n in expected.number[:-1]) == sum(expected.ends[-1:])


class Paid(NamedTuple):
    """The state of a learner that is paid by its key."""

    params: jax.Array
    key: jax.Array
    bad_updates: jax.Array


class PaidLearner(Learner):
    """Ends an episode in every second training step, which earns what its parameter says.

    The parameter grows by 1 in each training step. Candidate `broken` has failing updates.
    """

    broken = 0

    @property
    def split(self) -> dict[str, int]:
        return {}

    def init(self, key: jax.Array) -> Paid:
        return Paid(1000.0 * jax.random.randint(key, (), 0, 1000), key, jnp.int32(0))

    def training_step(self, state: Paid) -> tuple[Paid, Tally]:
        fails = jax.random.key_data(state.key)[-1] == jnp.uint32(self.broken)
        state = Paid(state.params + 1, state.key, state.bad_updates + fails)
        ended = jnp.int32(state.params % 2)
        acted = Episodes({"sum_reward": ended * state.params}, ended, jnp.int32(0))
        return state, Tally(Updates({}, {}, jnp.int32(1), jnp.int32(0)), acted)


def paid(number, steps, broken=0):
    """Return the learner of some candidates that are paid, and its first state."""
    agent = plugins.get("trainer", "ars")
    config, runtime = agent.check(
        {
            "candidates": number,
            "num_timesteps": steps * 40,
            "episode_length": 20,
            "number_of_directions": 1,
            "top_directions": 1,
        }
    )

    def make(parts):
        learner = PaidLearner(parts)
        learner.broken = broken
        return learner

    learner = CandidatesLearner(
        Parts(Point(), None, config, runtime, env_mesh(2, 1), batched()), make
    )
    return learner, learner.init(jax.random.key(3))


def batched():
    """Return the state of two environments, as far as learners read it."""
    state = jax.eval_shape(Point().reset, jax.random.key(0))
    info = {"episode_metrics": {"sum_reward": jnp.zeros(2)}}
    return state.replace(obs=jnp.zeros((2, 2)), info=info)


def test_the_better_half_goes_on_until_one_is_left():
    learner, state = paid(4, 120)
    first = np.asarray(state.candidates.params)
    assert len(set(first)) == 4
    best = np.argsort(-first)
    advance = jax.jit(learner.advance)
    taken = []
    for steps in (40, 20, 60):
        state, tally = advance(state, steps)
        assert tally.learned.updates == steps
        taken.append(np.asarray(state.candidates.params) - first)
    assert taken[0].tolist() == [10] * 4
    # Two go on, ten steps each, then one.
    assert [taken[1][i] for i in best] == [20, 20, 10, 10]
    assert [taken[2][i] for i in best] == [80, 20, 10, 10]
    assert state.params == first[best[0]] + 80
    assert state.running == 1 and state.ranking[0] == best[0]
    # A run that is made longer brings nobody back.
    longer, _ = paid(4, 1200)
    state, _ = jax.jit(longer.advance)(state, 8)
    assert (np.asarray(state.candidates.params) - first)[best[0]] == 88


def test_a_candidate_whose_updates_fail_stays_behind():
    learner, state = paid(4, 120)
    best = int(np.argmax(state.candidates.params))
    broken = int(jax.random.key_data(state.candidates.key)[best, -1])
    learner, state = paid(4, 120, broken)
    state, _ = jax.jit(learner.advance)(state, 120)
    assert best in state.ranking[2:] and state.bad_updates == 0


def test_one_candidate_learns_as_a_run_without():
    """The one that is left has learned what its seed learns alone, for as many steps."""
    learner, state = paid(2, 18)
    state, _ = jax.jit(learner.advance)(state, 18)
    chosen = int(state.ranking[0])
    alone = PaidLearner(Parts(Point(), None, learner.config, None, learner.mesh, batched()))
    own = alone.init(jax.random.split(jax.random.key(3), 2)[chosen])
    own, _ = jax.jit(alone.advance)(own, 16)
    assert own.params == state.params


RUN: dict[str, Any] = {
    **SMALL,
    "candidates": 2,
    "num_evals": 10,
    "num_eval_envs": 4,
    "keep_checkpoints": 10,
}


@pytest.mark.slow
def test_a_run_of_candidates_resumes_to_the_last_bit(tmp_path):
    """From a checkpoint before the choice; the policy in it is that of the best so far."""
    steps = 18 * 2 * STEP
    make_policy, params, metrics = ppo.train(
        Point(), num_timesteps=steps, **RUN, save_checkpoint_path=tmp_path / "whole"
    )
    first, *_ = checkpoint.available(tmp_path / "whole")
    kept = tmp_path / "whole" / f"{first:012d}"
    *_, again = ppo.train(
        Point(),
        num_timesteps=steps,
        **RUN,
        restore_checkpoint_path=kept,
        save_checkpoint_path=tmp_path / "rest",
    )
    assert again["eval/episode_reward"] == metrics["eval/episode_reward"]
    check_same_bits(tmp_path / "whole", tmp_path / "rest")
    obs, key = np.array([0.3, 0.2], np.float32), jax.random.key(0)
    loaded = plugins.get("trainer", "ppo").load_policy(tmp_path / "whole")
    assert loaded(obs, key)[0] == make_policy(params, True)(obs, key)[0]
    with pytest.raises(ConfigError, match=r"candidates must stay what it was in .*, 2; it is 1"):
        ppo.train(
            Point(), num_timesteps=steps, **{**RUN, "candidates": 1}, restore_checkpoint_path=kept
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["apg", "ars", "es", "reppo", "shac"])
def test_agents_without_replay_buffers_have_candidates(name):
    """36 training steps are nine parts of four: one for the other, and eight for the one left."""
    _, params, metrics = train(name, number=36, candidates=2, run_evals=True, num_eval_envs=4)
    assert np.isfinite(metrics["eval/episode_reward"])
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(params))


@pytest.mark.slow
def test_two_devices_learn_what_one_learns():
    """The environments of every candidate are split, on the second axis of its arrays."""
    check_two_devices_learn_what_one_learns(**RUN, num_timesteps=18 * STEP)


def test_what_candidates_need_is_told_first():
    agent = plugins.get("trainer", "ppo")
    # An episode of 20 steps in 16 environments is 2 training steps, and a round is a ninth.
    agent.check({**RUN, "num_timesteps": 18 * STEP})
    with pytest.raises(ConfigError, match=f"num_timesteps=2720 must be at least {18 * STEP}"):
        agent.check({**RUN, "num_timesteps": 17 * STEP})
    sac = plugins.get("trainer", "sac")
    settings = {"candidates": 2, "num_timesteps": 10_000, "episode_length": 20, "num_envs": 4}
    with pytest.raises(ConfigError, match="candidates=2 would have a replay buffer each"):
        sac.train(Point(), **settings, max_replay_size=64, min_replay_size=8)
    assert not can_train_together(agent, Point(), {**RUN, "num_timesteps": 18 * STEP})
