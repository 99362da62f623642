"""The evaluator: measures a policy over whole episodes."""

import copy
import functools
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from brax.env import Env, EvalWrapper, State
from brax.kernels.gpu_options import gpu_options
from brax.plugins.outputs.policy import act, first_memory
from brax.training import types
from brax.training.learner import environment_keys
from brax.training.runner.program import trace_and_compile


class Evaluator:
    """An evaluator of policies over whole episodes, each from a fresh reset."""

    def __init__(
        self,
        eval_env: Env,
        eval_policy_fn: Callable[[types.Params], types.Policy],
        num_eval_envs: int,
        episode_length: int,
        action_repeat: int,
        key: jax.Array,
    ) -> None:
        """Store the parts; nothing is computed until the first evaluation.

        Args:
            eval_env: batched environment, wrapped as for training.
            eval_policy_fn: function from parameters to policy.
            num_eval_envs: number of episodes.
            episode_length: their maximum length in environment steps.
            action_repeat: environment steps taken with each action.
            key: random key of all evaluations.
        """
        self._env = EvalWrapper(eval_env)
        self._policy_fn = eval_policy_fn
        self._num_envs = num_eval_envs
        # Rounded up: the last action of an episode may be repeated fewer times than the others.
        self._length = -(-episode_length // action_repeat)
        self._action_repeat = action_repeat
        self._seed = self._key = key
        self._rollout: Any = jax.jit(self._unroll, compiler_options=gpu_options())
        self.walltime = 0.0
        """Seconds spent in evaluations so far, compilation included."""

    def _unroll(self, params: types.Params, key: jax.Array) -> tuple[Any, jax.Array]:
        """Play until every episode has ended; return the counts and the number of steps."""
        reset_key, policy_key = jax.random.split(key)
        policy = self._policy_fn(params)
        first = self._env.reset(environment_keys(self._env, reset_key, self._num_envs))
        memory = first_memory(policy, self._num_envs)

        def running(carry: tuple[State, object, jax.Array, jax.Array]) -> jax.Array:
            state, _, _, step = carry
            # Policies whose episodes are short are evaluated in few steps.
            return (step < self._length) & jnp.any(state.info["eval_metrics"].active_episodes > 0)

        def step(carry: tuple[State, Any, jax.Array, jax.Array]) -> tuple[Any, ...]:
            state, memory, key, step = carry
            key, now = jax.random.split(key)
            # Memory is kept over an episode's end: what comes after it does not count.
            action, memory = act(policy, state.obs, now, memory)
            return self._env.step(state, action), memory, key, step + 1

        start = first, memory, policy_key, jnp.int32(0)
        last, *_, steps = jax.lax.while_loop(running, step, start)
        return last.info["eval_metrics"], steps

    def with_key(self, key: jax.Array) -> Self:
        """Return this evaluator with another key; the compiled program is shared."""
        # A shallow copy, so that the compiled rollout is the same object.
        other = copy.copy(self)
        other._seed = other._key = key
        return other

    def reseed(self, steps: int) -> None:
        """Make the next evaluation that of a number of environment steps, whatever came before.

        A resumed run thus has the same evaluations as a run that never stopped.
        """
        # `fold_in` takes 32 bits, and a run can have more steps.
        high, low = divmod(steps, 2**32)
        self._key = jax.random.fold_in(jax.random.fold_in(self._seed, high), low)

    def compile(self, policy_params: types.Params) -> None:
        """Compile the evaluation for parameters of these shapes, in advance of the first one."""
        trace = functools.partial(self._rollout.lower, policy_params, self._key)
        self._rollout = trace_and_compile(trace)

    def run_evaluation(
        self,
        policy_params: types.Params,
        training_metrics: Mapping[str, float],
        aggregate_episodes: bool = True,
    ) -> dict[str, Any]:
        """Evaluate one set of parameters.

        Args:
            policy_params: parameters to evaluate.
            training_metrics: metrics that are added to the result.
            aggregate_episodes: report means and standard deviations, not one number per episode.

        Returns:
            `eval/episode_<metric>`, standard deviations `eval/episode_<metric>_std`, the lengths
            `eval/avg_episode_length` and `eval/std_episode_length`, and `eval/epoch_eval_time`,
            `eval/sps`, `eval/walltime`. A metric whose name ends in `per_step` is divided by the
            length of its episode.
        """
        self._key, key = jax.random.split(self._key)
        start = time.perf_counter()
        # JAX computes asynchronously: without waiting, the time would be that of the call.
        tally, steps = jax.block_until_ready(self._rollout(policy_params, key))
        seconds = time.perf_counter() - start
        self.walltime += seconds
        # Environments whose episode has ended are stepped until the last one ends; these steps
        # count.
        env_steps = int(steps) * self._action_repeat * self._num_envs
        return {
            **_episode_metrics(jax.device_get(tally), aggregate_episodes),
            "eval/epoch_eval_time": seconds,
            "eval/sps": env_steps / max(seconds, 1e-9),
            "eval/walltime": self.walltime,
            **training_metrics,
        }


def _episode_metrics(tally: Any, aggregate: bool) -> dict[str, Any]:
    """Return the metrics of finished episodes by their public names."""
    # In float64 on the host, since means over many episodes round in float32.
    lengths = np.asarray(tally.episode_steps, np.float64)
    found: dict[str, Any] = {}
    for name, values in tally.episode_metrics.items():
        values = np.asarray(values, np.float64)
        if name.endswith("per_step"):
            values = values / np.maximum(lengths, 1)
        found[f"eval/episode_{name}"] = float(values.mean()) if aggregate else values
        if aggregate:
            found[f"eval/episode_{name}_std"] = float(values.std())
    found["eval/avg_episode_length"] = float(lengths.mean())
    found["eval/std_episode_length"] = float(lengths.std())
    return found
