"""Successive halving: several candidates learn side by side, and the better half continues.

Start reading at `CandidatesLearner.training_step`.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.errors import ConfigError
from brax.training.learner import Episodes, Learner, Parts, Tally
from brax.training.learning import halving

DECAY = 0.9
"""Factor of earlier returns in a candidate's score, per training step in which episodes end."""


class CandidatesState(NamedTuple):
    """Everything that one training step passes to the next."""

    params: Any
    """Parameters of the candidate with the highest score."""
    candidates: Any
    """Training states of all candidates, leaves (candidates, ...)."""
    ranking: jax.Array
    """Candidates in the order of the last choice, the best first, int32, (candidates,)."""
    running: jax.Array
    """Number of candidates, the first of `ranking`, that continue to learn, int32."""
    earned: jax.Array
    """Sum of the returns of training episodes, of which later ones weigh more, (candidates,)."""
    ended: jax.Array
    """Number of these episodes, weighed alike, (candidates,)."""
    step: jax.Array
    """Training steps so far, int32."""
    key: jax.Array
    """Key that the candidates' keys were made from."""
    bad_updates: jax.Array
    """Consecutive skipped updates of the candidate that has the fewest, int32."""


class CandidatesLearner(Learner):
    """A learner of several candidates, which differ in their seeds alone.

    They learn in turns, so that memory grows with their number and a training step does not. Of
    those that learn in a round, half continue: those with the highest mean return of training
    episodes.

    Source: Jamieson and Talwalkar 2016 (1502.07943), algorithm 1, with rounds of equal length.
    """

    split_axis = 1

    def __init__(self, parts: Parts, make: Callable[[Parts], Learner]) -> None:
        """Make the learner that each candidate has; nothing is compiled.

        Args:
            parts: the parts of the run.
            make: function that makes the agent's learner.

        Raises:
            ConfigError: if candidates cannot be compared, or have replay buffers.
        """
        super().__init__(parts)
        self._number = parts.config.candidates
        self._rounds = halving.divide(parts.config.training_steps, self._number)
        each = parts.config.env_steps_per_training_step
        # A learning rate that falls is at zero when the last candidate has learned all its steps.
        own = dataclasses.replace(parts.config, candidates=1, num_timesteps=self._rounds.own * each)
        self._learner = make(dataclasses.replace(parts, config=own))
        if self._learner.has_replay_buffer:
            raise ConfigError(
                f"candidates={self._number} would have a replay buffer each: leave it out, or use "
                "an agent without."
            )
        if "sum_reward" not in parts.info.info.get("episode_metrics", {}):
            raise ConfigError(
                f"candidates={self._number} are compared by the returns of their episodes, and the "
                "environment's info has no episode_metrics with sum_reward. Wrap it with "
                "brax.env.wrap, or leave candidates out."
            )

    @property
    def split(self) -> Mapping[str, int]:
        """The candidates' parts that devices share."""
        return {"candidates": self.config.num_envs} if self._learner.split else {}

    def init(self, key: jax.Array) -> CandidatesState:
        """Return the first training state."""
        # `lax.map` is sequential: see `SeedsProgram`.
        states = jax.lax.map(self._learner.init, jax.random.split(key, self._number))
        nothing = jnp.zeros(self._number)
        return CandidatesState(
            params=jax.tree.map(lambda x: x[0], states.params),
            candidates=states,
            ranking=jnp.arange(self._number, dtype=jnp.int32),
            running=jnp.int32(self._number),
            earned=nothing,
            ended=nothing,
            step=jnp.int32(0),
            key=key,
            bad_updates=jnp.int32(0),
        )

    def training_step(self, state: CandidatesState) -> tuple[CandidatesState, Tally]:
        """Let a candidate take a training step; choose the better half if a round is over."""
        turn = state.ranking[state.step % state.running]
        own = jax.tree.map(lambda x: x[turn], state.candidates)
        own, tally = self._learner.training_step(own)
        candidates = jax.tree.map(lambda x, new: x.at[turn].set(new), state.candidates, own)
        earned, ended = self._scored(state, turn, tally.acted)
        step = state.step + 1

        score = jnp.where(ended > 0, earned / jnp.maximum(ended, 1.0), -jnp.inf)[state.ranking]
        # Updates that fail continue to fail.
        score = jnp.where(candidates.bad_updates[state.ranking] > 0, -jnp.inf, score)
        left = jnp.arange(self._number) < state.running
        # Those that no longer learn stay behind the others.
        order = state.ranking[jnp.argsort(jnp.where(left, -score, jnp.inf), stable=True)]
        number = jnp.array(self._rounds.number, jnp.int32)
        running = number[jnp.sum(step >= jnp.array(self._rounds.ends))]
        # Longer runs have longer rounds: a run that is resumed with more steps brings nobody back.
        running = jnp.minimum(running, state.running)
        ranking = jnp.where(running < state.running, order, state.ranking)
        bad_updates = jnp.min(jnp.where(left, candidates.bad_updates[state.ranking], 2**31 - 1))
        state = CandidatesState(
            params=jax.tree.map(lambda x: x[order[0]], candidates.params),
            candidates=candidates,
            ranking=ranking,
            running=running,
            earned=earned,
            ended=ended,
            step=step,
            key=state.key,
            bad_updates=bad_updates,
        )
        return state, tally

    def _scored(
        self, state: CandidatesState, turn: jax.Array, acted: Episodes
    ) -> tuple[jax.Array, jax.Array]:
        """Return `earned` and `ended` after a training step of one candidate."""
        number = acted.episodes_ended
        weight = jnp.where(number > 0, DECAY, 1.0)
        earned = weight * state.earned[turn] + acted.episodes["sum_reward"]
        ended = weight * state.ended[turn] + number
        return state.earned.at[turn].set(earned), state.ended.at[turn].set(ended)

    def with_params(self, state: CandidatesState, params: Any) -> CandidatesState:
        """Return the first state, with these parameters in every candidate."""
        set_params = jax.vmap(self._learner.with_params, in_axes=(0, None))
        return state._replace(params=params, candidates=set_params(state.candidates, params))

    def fresh_environments(self, state: CandidatesState) -> CandidatesState:
        """Reset the environments of all candidates."""
        fresh = jax.lax.map(self._learner.fresh_environments, state.candidates)
        return state._replace(candidates=fresh)
