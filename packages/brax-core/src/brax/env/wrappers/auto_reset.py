"""`AutoResetWrapper`: starts the next episode in the step that ends one."""

from collections.abc import Collection
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp

from brax.env.base import Env, State, Wrapper, check_once, check_state, key_shape, own_fields
from brax.env.wrappers.episode import without_records
from brax.env.wrappers.select import select
from brax.errors import ConfigError

Reset = Literal["cached", "fresh"]
"""Start of a new episode: 'cached' repeats the first start, 'fresh' calls `reset` with a new
key."""

_FRESH = ("terminal_obs", "reset_key")
_CACHED = ("terminal_obs", "first_obs", "first_info")
"""Entries of `info` that every state has in the two modes. In 'cached' there is one more, such as
`first_pipeline_state`, for each field of the environment's own."""

Start = dict[str, Any]
"""Parts of a state by name: the environment's own fields, `obs` and `info`."""


class AutoResetWrapper(Wrapper):
    """A wrapper that restarts an environment in the step in which its episode ends.

    Everything that `reset` returns is replaced: physics, observation and the environment's own
    `info`. Reward, done, metrics and the records of `EpisodeWrapper` stay those of the step that
    ended the episode; the records start again with the next step. `info['terminal_obs']` is the
    true observation after the step, also where `obs` is already that of the next episode.

    Arrays without the batch's axes, such as a counter that all environments of a batch share,
    belong to no environment. They stay as the step returns them.
    """

    def __init__(self, env: Env, reset: Reset = "cached") -> None:
        """Wrap an environment or a batch of them.

        Args:
            env: the environment.
            reset: 'cached' starts every episode of an environment in the state of its first
                episode, which is kept; 'fresh' resets with a new key, whenever any environment of
                the batch is done.

        Raises:
            ConfigError: on another `reset`, or if there is another such wrapper already.
        """
        super().__init__(env)
        check_once(self)
        if reset not in get_args(Reset):
            raise ConfigError(f"reset must be 'cached' or 'fresh', got {reset!r}")
        self._fresh = reset == "fresh"

    def reset(self, rng: jax.Array) -> State:
        """Start the first episodes."""
        later = None
        if self._fresh:
            rng, later = _split(rng)
        state = self.env.reset(rng)
        if later is not None:
            # One key may reset a whole batch (`VmapWrapper` with a `batch_size`), but each
            # environment needs its own key later.
            if key_shape(later) != state.done.shape:
                later = jax.random.split(later, state.done.shape)
            own: dict[str, Any] = {"reset_key": later}
        else:
            own = {f"first_{name}": part for name, part in _start(state).items()}
        return state.replace(info=state.info | own | {"terminal_obs": state.obs})

    def step(self, state: State, action: jax.Array) -> State:
        """Advance, and restart the environments that have ended.

        Args:
            state: from `reset` or `step`.
            action: shape (*batch, action_size).

        Raises:
            ShapeError: if the state does not come from `reset`.
        """
        check_state(self, state, *(_FRESH if self._fresh else _CACHED))
        # The inner environment must not see entries that its own `reset` did not make.
        mine = {*_FRESH, *(f"first_{name}" for name in _start(state))}
        own = {key: state.info[key] for key in mine if key in state.info}
        info = {key: value for key, value in state.info.items() if key not in mine}
        new = self.env.step(state.replace(done=jnp.zeros_like(state.done), info=info), action)
        again = self._start_fresh if self._fresh else self._start_cached
        start, own = again(new, own)
        info = new.info | start.pop("info") | own | {"terminal_obs": new.obs}
        return new.replace(**start, info=info)

    def _start_cached(self, state: State, own: dict[str, Any]) -> tuple[Start, dict[str, Any]]:
        """Return the first starts where episodes have ended."""
        now = _start(state, own["first_info"])
        first = {name: own[f"first_{name}"] for name in now}
        return select(state.done > 0, first, now, shared=now), own

    def _start_fresh(self, state: State, own: dict[str, Any]) -> tuple[Start, dict[str, Any]]:
        """Return new starts where episodes have ended, with a `reset` only if any has."""

        def restarted(current: Start, key: jax.Array) -> tuple[Start, jax.Array]:
            first, later = _split(key)
            fresh = _start(self.env.reset(first))
            mine = _start(state, fresh["info"])
            now = mine, key
            start, key = select(state.done > 0, (fresh, later), now, shared=now)
            return start | {"info": current["info"] | start["info"]}, key

        def always(done: jax.Array) -> jax.Array:
            return jnp.bool(True)

        # In a batch without an ended episode, which is most of them, `reset` is not computed at
        # all. A GPU computes it in every step: otherwise the host would wait for the device to say
        # which branch to launch. XLA drops the branch whose condition is known.
        needed = jax.lax.platform_dependent(
            state.done, cuda=always, rocm=always, default=lambda done: jnp.any(done > 0)
        )
        current, key = jax.lax.cond(
            needed, restarted, lambda *same: same, _start(state), own["reset_key"]
        )
        return current, {"reset_key": key}


def _start(state: State, made: Collection[str] | None = None) -> Start:
    """Return the parts of a state that a reset replaces.

    Args:
        state: the state.
        made: the entries of `info` that the environment's `reset` makes; None for all. Others come
            from a wrapper around this one, and stay.
    """
    info = without_records(state.info)
    if made is not None:
        info = {key: value for key, value in info.items() if key in made}
    return own_fields(state) | {"obs": state.obs, "info": info}


def _split(rng: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return two independent arrays of keys."""

    def halves(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        now, later = jax.random.split(key)
        return now, later

    for _ in key_shape(rng):
        # One `vmap` for each batch axis of the keys.
        halves = jax.vmap(halves)
    return halves(rng)
