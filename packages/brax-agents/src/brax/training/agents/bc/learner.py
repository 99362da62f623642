"""One training step of BC, as pure functions of the training state.

The loss is in `BCLearner._learn`. Start reading at `BCLearner.training_step`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from brax.env import State
from brax.errors import ConfigError
from brax.training import types
from brax.training.checkpoints.policies import load_run_policy
from brax.training.distributed import devices
from brax.training.learner import (
    Learner,
    Parts,
    Tally,
    Updates,
    count_updates,
    descend,
    episodes,
    in_a_row,
)
from brax.training.learning.replay_buffers import ReplayBuffer, ReplayBufferState
from brax.training.nn import images
from brax.training.policies import PolicyParams, make_inference_fn
from brax.training.runner import acting


class Lesson(NamedTuple):
    """Observations and the teacher's actions for them, leaves (n, ...)."""

    observation: Any
    action: jax.Array


class BCTrainingState(NamedTuple):
    """Everything that one training step passes to the next. A checkpoint stores it whole."""

    params: PolicyParams
    optimizer_state: Any
    env_state: State
    replay: ReplayBufferState
    """The lessons of all training steps so far, as far as the buffer holds them."""
    step: jax.Array
    """Training steps so far, int32."""
    key: jax.Array
    bad_updates: jax.Array
    """Consecutive updates that were skipped because their gradient was not finite, int32."""


class BCLearner(Learner):
    """The functions of BC that are compiled: the first state and one training step."""

    def __init__(self, parts: Parts) -> None:
        """Load the teacher and make the policy, the optimizer and the buffer; nothing is compiled.

        Raises:
            CheckpointError: if the teacher cannot be loaded.
            ConfigError: if it cannot act in this environment.
        """
        super().__init__(parts)
        config = self.config
        self._make_policy = make_inference_fn(parts.networks)
        given = parts.runtime.teacher_inference_fn
        if given is None:
            # A loaded policy takes one observation; environments are batched.
            given = acting.over_batch(load_run_policy(config.teacher))
        self._teacher = given
        self._beta = parts.runtime.dagger_beta_fn
        self._optimizer = optax.adam(config.learning_rate)
        # Before the run's first compilation, which takes seconds: the teacher may be of another
        # environment.
        self._check_teacher(parts.info.obs)
        action = jnp.zeros(parts.env.action_size)
        self._buffer = ReplayBuffer(
            config.max_replay_size,
            config.num_envs,
            Lesson(self.sample_obs, action),
            config.batch_size,
            # All observations of a training step are stored at once.
            stride=config.demo_length,
        )

    def _check_teacher(self, observation: Any) -> None:
        """Check the shapes of the teacher's actions at observations like these, without computing.

        Raises:
            ConfigError: if the teacher cannot read the observations, or returns other actions.
        """
        n, action_size = self.config.num_envs, self.env.action_size
        path = self.config.teacher
        name = f"teacher '{path}'" if path else "teacher_inference_fn"
        if getattr(self._teacher, "memory_size", 0):
            raise ConfigError(
                f"{name} has memory, which BC does not carry from step to step: use a teacher "
                "without."
            )
        sizes = jax.tree.map(lambda x: x.shape, self.sample_obs)
        try:
            action, _ = jax.eval_shape(self._teacher, observation, jax.random.key(0))
        except Exception as error:
            if not path:
                raise  # by what the user wrote
            raise ConfigError(
                f"{name} cannot act on this environment's observations, of shape {sizes}: it was "
                "trained with others. Name a run in this environment."
            ) from error
        if action.shape != (n, action_size):
            raise ConfigError(
                f"{name} gives actions of shape {action.shape} for {n} environments; this "
                f"environment takes {(n, action_size)}."
            )

    @property
    def split(self) -> dict[str, int]:
        """Parts of the training state that devices share, with the length of the split axis."""
        # The buffer is a ring for each environment, so it is split like the environments.
        return {**super().split, "replay": self.config.num_envs}

    def init(self, key: jax.Array) -> BCTrainingState:
        """Return the first training state, with an empty buffer."""
        policy_key, env_key, train_key = jax.random.split(key, 3)
        policy = self.networks.policy_network.init(policy_key)
        return BCTrainingState(
            params=PolicyParams(self.first_normalizer(), policy),
            optimizer_state=self._optimizer.init(policy),
            env_state=self.reset(env_key),
            replay=self._buffer.init(),
            step=jnp.int32(0),
            key=train_key,
            bad_updates=jnp.int32(0),
        )

    def training_step(self, state: BCTrainingState) -> tuple[BCTrainingState, Tally]:
        """Act, ask the teacher for its actions, and learn from all of its actions so far."""
        key, act_key, learn_key = jax.random.split(state.key, 3)
        env_state, data = acting.generate_unroll(
            self.env,
            state.env_state,
            self._mixture(state),
            act_key,
            self.config.demo_length,
            self.extra,
        )
        lesson = Lesson(data.observation, data.extras["policy_extras"]["lesson"])
        # (time, env, ...) to (env, time, ...), as the buffer stores it.
        lesson = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), lesson)
        normalizer = self.normalizer_after(state.params.normalizer, data.observation)
        # DAgger's aggregation: the buffer keeps the lessons of earlier training steps too.
        state = state._replace(
            params=state.params._replace(normalizer=normalizer),
            env_state=env_state,
            replay=self._buffer.insert(state.replay, lesson),
            step=state.step + 1,
            key=key,
        )
        state, updates = self._learn(state, learn_key)
        return state, Tally(updates, episodes(data.extras["state_extras"]))

    def _mixture(self, state: BCTrainingState) -> types.Policy:
        """Return the policy that acts: teacher or student, drawn in every environment and step."""
        student, beta = self._make_policy(state.params), self._beta(state.step)

        def policy(observation: Any, key: jax.Array) -> tuple[jax.Array, types.Extra]:
            who_key, teacher_key, student_key = jax.random.split(key, 3)
            lesson, _ = self._teacher(observation, teacher_key)
            own, _ = student(observation, student_key)
            # beta is the teacher's probability, beta_i of Ross et al. 2011, algorithm 3.1.
            teach = jax.random.bernoulli(who_key, beta, (self.config.num_envs, 1))
            # Whoever acts, the teacher's action is the label.
            return jnp.where(teach, lesson, own), {"lesson": lesson}

        return policy

    def _lessons(self, replay: ReplayBufferState, key: jax.Array) -> Lesson:
        """Draw the lessons of one update, with shifted images if `augment_pixels` is set."""
        # Without shifts the key is not split, so that the draws are the same with and without
        # images.
        if not self.config.augment_pixels:
            return self._drawn(replay, key)
        draw_key, shift_key = jax.random.split(key)
        drawn = self._drawn(replay, draw_key)
        return drawn._replace(observation=images.randomly_shifted(drawn.observation, shift_key))

    def _drawn(self, replay: ReplayBufferState, key: jax.Array) -> Lesson:
        """Draw lessons from the buffer, split over the devices."""
        return devices.shard(self._buffer.sample(replay, key), self.mesh)

    def _learn(self, state: BCTrainingState, key: jax.Array) -> tuple[BCTrainingState, Updates]:
        """Fit the student's mean action to the teacher's, by the mean squared difference.

        Source: Ross, Gordon, Bagnell 2011 (1011.0686), algorithm 3.1.
        """
        actions = self.networks.parametric_action_distribution
        network = self.networks.policy_network

        def update(state: BCTrainingState, key: jax.Array) -> tuple[BCTrainingState, Any]:
            lesson = self._lessons(state.replay, key)

            def loss(policy: Any) -> jax.Array:
                logits = network.apply(state.params.normalizer, policy, lesson.observation)
                # After squashing: the difference is one of actions as the environment sees them.
                return jnp.mean((actions.mode(logits) - lesson.action) ** 2)

            value, grads = jax.value_and_grad(loss)(state.params.policy)
            policy, optimizer_state, finite = descend(
                self._optimizer, grads, state.optimizer_state, state.params.policy
            )
            state = state._replace(
                params=state.params._replace(policy=policy),
                optimizer_state=optimizer_state,
                bad_updates=in_a_row(state.bad_updates, finite),
            )
            return state, ({"loss": value}, finite)

        keys = jax.random.split(key, self.config.updates)
        state, (losses, finite) = jax.lax.scan(update, state, keys)
        return state, count_updates(losses, finite)
