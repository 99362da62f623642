"""Averaging of a policy's weights over training steps."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from brax.training.learner import Learner, Parts, Tally


class AveragedState(NamedTuple):
    """Everything that one training step passes to the next."""

    params: Any
    """Parameters of the learner, with the average of its policies in place of the last one."""
    learner: Any
    """Training state of the learner."""
    number: jax.Array
    """Number of policies so far, int32."""

    @property
    def key(self) -> jax.Array:
        """Return the learner's random key."""
        key: jax.Array = self.learner.key
        return key

    @property
    def bad_updates(self) -> jax.Array:
        """Return the learner's number of consecutive skipped updates."""
        bad_updates: jax.Array = self.learner.bad_updates
        return bad_updates


class AveragedLearner(Learner):
    """A learner whose parameters have the average of its last policies' weights.

    A policy may be worse than those before and after it, in states that its recent experience did
    not have. The average is steadier. It is exponential, with a decay that `policy_average_steps`
    sets, and the plain mean of all policies while these are fewer. Learning does not depend on it.

    Source: Polyak and Juditsky 1992, Acceleration of stochastic approximation by averaging;
    Izmailov et al. 2018 (1803.05407), for networks.
    """

    def __init__(self, parts: Parts, make: Callable[[Parts], Learner]) -> None:
        """Make the learner whose policies are averaged; nothing is compiled.

        Args:
            parts: the parts of the run.
            make: function that makes the agent's learner.
        """
        super().__init__(parts)
        self._learner = make(parts)
        config = parts.config
        self._weight = config.env_steps_per_training_step / config.policy_average_steps

    @property
    def split(self) -> Mapping[str, int]:
        """The learner's parts that devices share."""
        return {"learner": self.config.num_envs} if self._learner.split else {}

    @property
    def has_replay_buffer(self) -> bool:
        """True if the learner's training state has experience of earlier training steps."""
        return self._learner.has_replay_buffer

    def init(self, key: jax.Array) -> AveragedState:
        """Return the first training state."""
        state = self._learner.init(key)
        return AveragedState(state.params, state, jnp.int32(0))

    def training_step(self, state: AveragedState) -> tuple[AveragedState, Tally]:
        """Let the learner take a training step, and add its policy to the average."""
        learner, tally = self._learner.training_step(state.learner)
        number = state.number + 1
        # In single precision, so that weights of single and of double precision keep theirs.
        weight = jnp.maximum(self._weight, 1.0 / jnp.float32(number))
        policy = optax.incremental_update(learner.params.policy, state.params.policy, weight)
        return AveragedState(learner.params._replace(policy=policy), learner, number), tally

    def with_params(self, state: AveragedState, params: Any) -> AveragedState:
        """Return the first state, with these parameters in the learner and in the average."""
        # A copy, since a training step takes over the memory of each leaf.
        own = jax.tree.map(jnp.copy, params)
        return state._replace(params=own, learner=self._learner.with_params(state.learner, params))

    def fresh_environments(self, state: AveragedState) -> AveragedState:
        """Reset all environments."""
        return state._replace(learner=self._learner.fresh_environments(state.learner))
