"""`EpisodeWrapper`: counts steps, truncates episodes, and ends those whose numbers diverge."""

from typing import Any

import jax
import jax.numpy as jnp

from brax.env.base import (
    CONTRACT,
    Env,
    State,
    Wrapper,
    check_count,
    check_once,
    check_state,
    is_state,
    own_fields,
)
from brax.env.structure import check_same_structure
from brax.env.wrappers.select import select
from brax.errors import ConfigError, ShapeError
from brax.kernels.fusion_barrier import fusion_barrier

MAX_SANE_NUMBER = 1e10
"""Absolute value beyond which a simulation counts as diverged."""

EPISODE_KEYS = (
    "steps",
    "truncation",
    "termination",
    "nan",
    "episode_metrics",
    "episode_done",
)
"""Entries of `info` that belong to `EpisodeWrapper`."""


class EpisodeWrapper(Wrapper):
    """A wrapper that truncates episodes, repeats actions and keeps records of each episode.

    The records are entries of `info`:

    - `steps`: steps of the inner environment in this episode, int32.
    - `termination`: 1 if the episode was ended by its task, or because the simulation diverged.
    - `truncation`: 1 if it was ended by time.
    - `nan`: 1 if it ended because a number was not finite or beyond `MAX_SANE_NUMBER`. The state
      then stays as it was before the step, which has no reward. `termination` is 1 as well, so
      agents take the value of what would follow as zero.
    - `episode_metrics`: `sum_reward`, `length` and the sum of each metric, in this episode.
    - `episode_done`: the same as `done`.

    They replace entries of these names that the environment's own `reset` makes.

    Where a broad phase selects the candidate pairs, the metric `contact_overflow` is one in a step
    in which there were more contacts than selected.

    With `action_repeat`, reward and metrics are sums over the repeats. An environment that has
    ended stays as it is and has no further reward, within a repeat and after it, until a wrapper
    such as `AutoResetWrapper` restarts it and sets `done` to zero. The records then start anew.
    """

    def __init__(self, env: Env, episode_length: int, action_repeat: int = 1) -> None:
        """Wrap an environment or a batch of them.

        Args:
            env: the environment.
            episode_length: steps of `env` after which an episode is truncated.
            action_repeat: steps of `env` that one action lasts.

        Raises:
            ConfigError: unless these are integers and 1 <= action_repeat <= episode_length, or if
                another such wrapper counts the steps already.
        """
        super().__init__(env)
        check_once(self)
        self.episode_length = check_count("episode_length", episode_length)
        self.action_repeat = check_count("action_repeat", action_repeat)
        if action_repeat > episode_length:
            raise ConfigError(
                "action_repeat must be at most episode_length, got "
                f"episode_length={episode_length}, action_repeat={action_repeat}"
            )

    def reset(self, rng: jax.Array) -> State:
        """Start episodes, with all records at zero.

        Raises:
            ShapeError: if the result is not a state, or reward, done and metrics are not one number
                for each environment.
        """
        state = self.env.reset(rng)
        self._check_numbers("reset", state)
        state = state.replace(
            reward=_float(state.reward),
            done=_flag(state.done),
            metrics=state.metrics | _overflow(state),
        )
        zero = jnp.zeros(state.done.shape, jnp.float32)
        records = {
            "steps": jnp.zeros(state.done.shape, jnp.int32),
            "truncation": zero,
            "termination": zero,
            "nan": zero,
            "episode_metrics": {"sum_reward": jnp.zeros_like(state.reward), "length": zero}
            | {name: jnp.zeros_like(value) for name, value in state.metrics.items()},
            "episode_done": state.done,
        }
        return state.replace(info=state.info | records)

    def step(self, state: State, action: jax.Array) -> State:
        """Advance by `action_repeat` steps, or up to the end of the episode.

        Args:
            state: from `reset` or `step`.
            action: shape (*batch, action_size).

        Raises:
            ShapeError: if the state does not come from `reset`, or the environment's step returns
                another structure than it was given.
        """
        check_state(self, state, *EPISODE_KEYS)
        # A wrapper that restarts an environment sets `done` to zero. The records of the step that
        # ended its episode stay readable until here.
        restarted = (state.info["episode_done"] > 0) & (state.done == 0)
        state = state.replace(info=_reset_records(state.info, restarted))
        if self.action_repeat == 1:
            return self._step_once(state, action)

        def repeat(now: State, _: None) -> tuple[State, tuple[Any, Any]]:
            new = self._step_once(now, action)
            # Reward and metrics are stacked and summed, so the carried ones stay as they are.
            return new.replace(reward=now.reward, metrics=now.metrics), (new.reward, new.metrics)

        last, earned = jax.lax.scan(repeat, state, length=self.action_repeat)
        reward, metrics = jax.tree.map(lambda x: jnp.sum(x, axis=0, dtype=x.dtype), earned)
        return last.replace(reward=reward, metrics=metrics)

    def _step_once(self, state: State, action: jax.Array) -> State:
        """Return the state after one step of the inner environments that have not ended."""
        running = state.done == 0
        new = self.env.step(state, action)
        self._check_numbers("step", new)
        new = new.replace(
            reward=jnp.asarray(new.reward, state.reward.dtype),
            metrics=_as_before(new.metrics, state.metrics) | _overflow(new),
        )
        summed = _own_metrics(state.info["episode_metrics"], new.metrics)
        # A wrapper around this one may have added metrics, which the environment returns or drops.
        metrics = {k: v for k, v in new.metrics.items() if k in summed or k not in state.metrics}
        check_same_structure(
            type(self.unwrapped).__name__,
            _carried(state) | {"metrics": summed},
            _carried(new) | {"metrics": metrics},
        )
        # Without the barrier XLA would recompute the test for each of the many numbers that depend
        # on it.
        sane = fusion_barrier(_is_sane(new))
        moved = running & sane
        # Environments that had ended or that diverged keep the state before the step.
        kept = select(moved, _carried(new), _carried(state))
        # A step that diverged has no reward: the reward may be infinite as well.
        reward = jnp.where(moved, new.reward, 0.0)
        metrics = {k: jnp.where(moved, v, jnp.zeros_like(v)) for k, v in new.metrics.items()}
        records = self._records(state.info, running, (new.done > 0) | ~sane, reward, metrics)
        records["nan"] = jnp.where(running, _flag(~sane), state.info["nan"])
        records["episode_done"] = fusion_barrier(
            jnp.maximum(records["termination"], records["truncation"])
        )
        info = kept.pop("info") | records
        done = records["episode_done"]
        return new.replace(**kept, reward=reward, done=done, metrics=metrics, info=info)

    def _check_numbers(self, function: str, state: Any) -> None:
        """Raise if a value is no state, or its reward and metrics do not have the shape of done."""
        if not is_state(state):
            raise ShapeError(
                f"{type(self.unwrapped).__name__}.{function} must return a brax.env.State, or "
                f"another dataclass with replace and the fields {', '.join(CONTRACT)}, but "
                f"returned {type(state).__name__}"
            )
        shape = jnp.shape(state.done)
        for name, x in {"reward": state.reward, **state.metrics}.items():
            if jnp.shape(x) != shape:
                raise ShapeError(
                    f"{type(self.unwrapped).__name__}: '{name}' has shape {jnp.shape(x)} and done "
                    f"{shape}; reward, done and each metric are one number, of shape ()"
                )

    def _records(
        self,
        info: dict[str, Any],
        running: jax.Array,
        terminated: jax.Array,
        reward: jax.Array,
        metrics: dict[str, jax.Array],
    ) -> dict[str, Any]:
        """Return the records after a step of the environments that are running."""
        steps = info["steps"] + running.astype(jnp.int32)
        # A termination in the last step is a termination: the value of its final state is zero.
        truncated = (steps >= self.episode_length) & ~terminated
        step = {"sum_reward": reward, "length": _flag(running)} | metrics
        return {
            "steps": steps,
            "truncation": jnp.where(running, _flag(truncated), info["truncation"]),
            "termination": jnp.where(running, _flag(terminated), info["termination"]),
            "episode_metrics": {k: v + step[k] for k, v in info["episode_metrics"].items()},
        }


def _reset_records(info: dict[str, Any], where: jax.Array) -> dict[str, Any]:
    """Set the records of the environments in `where` to zero, for an episode that starts."""
    records = {key: info[key] for key in EPISODE_KEYS if key in info}
    return info | select(where, jax.tree.map(jnp.zeros_like, records), records)


def without_records(info: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of `info` that are the environment's own."""
    return {key: value for key, value in info.items() if key not in EPISODE_KEYS}


def _carried(state: State) -> dict[str, Any]:
    """Return the parts of a state, by name, that stay as they are after an ended episode."""
    return own_fields(state) | {"obs": state.obs, "info": without_records(state.info)}


def _own_metrics(sums: dict[str, jax.Array], metrics: dict[str, jax.Array]) -> dict[str, jax.Array]:
    """Return the sums over an episode of the environment's own metrics."""
    return {k: v for k, v in sums.items() if k in metrics or k not in ("sum_reward", "length")}


def _overflow(state: State) -> dict[str, jax.Array]:
    """Return the metric of omitted contacts, where contacts can be omitted."""
    left = getattr(getattr(state, "pipeline_state", None), "overflow", None)
    return {} if left is None else {"contact_overflow": _flag(left > 0)}


def _flag(condition: jax.Array) -> jax.Array:
    """Return a condition as 0 or 1, float32."""
    return jnp.asarray(condition, jnp.float32)


def _float(number: jax.Array) -> jax.Array:
    """Return a number as a float, of its own type if it is one."""
    floating = jnp.issubdtype(jnp.result_type(number), jnp.floating)
    return jnp.asarray(number, None if floating else jnp.float32)


def _as_before(metrics: dict[str, jax.Array], before: dict[str, jax.Array]) -> dict[str, jax.Array]:
    """Return metrics whose floats have the type that they had in the state before.

    With `jax_enable_x64`, float32 and float64 mix easily; a scan carries one type only.
    """

    def cast(name: str, value: jax.Array) -> jax.Array:
        types = [jnp.result_type(x) for x in (value, before.get(name, value))]
        both = all(jnp.issubdtype(t, jnp.floating) for t in types)
        return jnp.asarray(value, types[1]) if both else value

    return {name: cast(name, value) for name, value in metrics.items()}


def _is_sane(state: State) -> jax.Array:
    """Return whether all numbers of each environment are finite and not huge, shape (*batch,)."""
    batch = state.done.ndim
    sane = jnp.ones(state.done.shape, bool)
    for x in jax.tree.leaves((own_fields(state), state.obs, state.reward, state.done)):
        # A leaf without the axes of the batch is the same for all environments.
        if jnp.issubdtype(jnp.result_type(x), jnp.inexact) and x.shape[:batch] == sane.shape:
            # NaN fails this comparison as well.
            sane &= jnp.all(jnp.abs(x) <= MAX_SANE_NUMBER, axis=tuple(range(batch, x.ndim)))
    return sane
