"""The interface between physics, environments and agents: `State`, `Env` and `Wrapper`.

Everything is functional: `reset` and `step` take and return states and change nothing. They return
new `metrics` and `info` and never write into those that they were given.
"""

import abc
import copy
import dataclasses
import numbers
from collections.abc import Mapping
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import Base, System, dataclass
from brax.errors import ConfigError, ShapeError

Observation = jax.Array | Mapping[str, jax.Array]
"""The input of a policy: one array, or arrays by name."""

ObservationSize = int | Mapping[str, tuple[int, ...]]
"""Length of the observation, or the shapes of its arrays by name."""


@dataclass
class State(Base):
    """An environment at one moment, as `reset` and `step` return it."""

    pipeline_state: Any
    """State of the physics, a `brax.base.State`, or whatever the environment keeps instead."""
    obs: Any
    """The policy's input: an array (n,), or arrays by name."""
    reward: jax.Array
    """Reward of the step that ended here, float32 (float64 with `jax_enable_x64`), shape ()."""
    done: jax.Array
    """1 if the episode is over, else 0; a float of the reward's type, shape ()."""
    metrics: dict[str, jax.Array] = dataclasses.field(default_factory=dict)
    """Numbers to report, each of shape (); the same names in `reset` and `step`."""
    info: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Further values of the environment, such as targets and keys, and records of the wrappers."""


class Env(abc.ABC):
    """An environment: `reset` and `step` for one instance; batches come from `jax.vmap`."""

    sys: System
    """The model, where there is one."""

    @abc.abstractmethod
    def reset(self, rng: jax.Array) -> State:
        """Start an episode.

        Args:
            rng: a key, of `jax.random.key` or `jax.random.PRNGKey`.
        """

    @abc.abstractmethod
    def step(self, state: State, action: jax.Array) -> State:
        """Advance by one step of the environment.

        Args:
            state: a state from `reset` or `step`; its `info` is carried over to the result.
            action: shape (action_size,).
        """

    @property
    @abc.abstractmethod
    def action_size(self) -> int:
        """Length of an action."""

    @property
    def observation_size(self) -> ObservationSize:
        """Length of an observation, or the shapes of its parts.

        It is found by tracing `reset`, without computing an observation.
        """
        obs = jax.eval_shape(self.reset, jax.random.key(0)).obs
        if isinstance(obs, Mapping):
            return {name: part.shape for name, part in obs.items()}
        return int(obs.shape[-1])

    @property
    def backend(self) -> str:
        """Name of the pipeline that computes the physics; empty where there is none."""
        return ""

    @property
    def unwrapped(self) -> "Env":
        """The environment inside all wrappers."""
        return self

    def with_sys(self, sys: System) -> Self:
        """Return a copy of this environment with another system.

        Raises:
            ConfigError: if it has no system.
        """
        if not hasattr(self, "sys"):
            raise ConfigError(f"{type(self).__name__} has no system that could be replaced")
        # A copy, because the original may be in use elsewhere: under `jax.vmap`, the copies have
        # tracers as systems.
        new = copy.copy(self)
        new.sys = sys
        return new


class Wrapper(Env):
    """An environment around another one, which provides what the wrapper does not define."""

    def __init__(self, env: Env) -> None:
        check_environment_given(f"{type(self).__name__}: env", env)
        self.env = env

    def reset(self, rng: jax.Array) -> State:
        """Start an episode of the inner environment."""
        return self.env.reset(rng)

    def step(self, state: State, action: jax.Array) -> State:
        """Advance the inner environment by an action of the shape that it takes."""
        return self.env.step(state, action)

    @property
    def observation_size(self) -> ObservationSize:
        """Observation size of the inner environment."""
        return self.env.observation_size

    @property
    def action_size(self) -> int:
        """Action size of the inner environment."""
        return self.env.action_size

    @property
    def backend(self) -> str:
        """Name of the inner environment's pipeline."""
        return self.env.backend

    @property
    def unwrapped(self) -> Env:
        """The environment inside all wrappers."""
        # An environment of another package need not be an `Env`.
        unwrapped: Env = getattr(self.env, "unwrapped", self.env)
        return unwrapped

    @property
    def sys(self) -> System:
        """System of the inner environment."""
        return self.env.sys

    @sys.setter
    def sys(self, _: System) -> None:
        """Raise an error: the system is that of the environment inside.

        Raises:
            ConfigError: always.
        """
        # A setter that reached the inner environment would change it for all of its other users.
        raise ConfigError(
            f"{type(self).__name__} has the system of the environment inside: use "
            "env.with_sys(sys), or set env.unwrapped.sys"
        )

    def with_sys(self, sys: System) -> Self:
        """Return this wrapper around the inner environment with another system."""
        new = copy.copy(self)
        new.env = self.env.with_sys(sys)
        return new

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the inner environment."""
        if name == "env" or name.startswith("__"):  # a copy in the making has no `env` yet
            raise AttributeError(name)
        return getattr(self.env, name)


def check_once(wrapper: Wrapper) -> None:
    """Raise if an environment has two wrappers of one class.

    Raises:
        ConfigError: naming the wrapper.
    """
    name, inner = type(wrapper).__name__, wrapper.env
    while isinstance(inner, Wrapper):
        if type(inner) is type(wrapper):
            raise ConfigError(
                f"{name}: the environment is in a {name} already, as brax.envs.create and "
                "brax.env.wrap make it; one is enough"
            )
        inner = inner.env


def check_environment_given(by: str, env: Any, *attributes: str) -> None:
    """Raise if an argument is not an environment but, for example, a class or a name.

    Args:
        by: the argument, for the message.
        env: its value.
        attributes: what it must have besides `reset` and `step`.

    Raises:
        ConfigError: naming what was given, and what to give instead.
    """
    if isinstance(env, type):
        raise ConfigError(
            f"{by} is the class {env.__name__}: give an instance, {env.__name__}(...)"
        )
    if isinstance(env, str):
        raise ConfigError(
            f"{by} is the name {env!r}: give the environment, brax.envs.get_environment({env!r})"
        )
    # Any object with these members will do; it need not be a subclass.
    missing = [name for name in ("reset", "step") if not callable(getattr(env, name, None))]
    missing += [name for name in attributes if not hasattr(env, name)]
    if missing:
        raise ConfigError(
            f"{by}={env!r:.80} is not an environment: give a brax.env.Env, such as "
            "brax.envs.get_environment('ant') makes; this has no method or property "
            f"{' and no '.join(missing)}"
        )


CONTRACT = ("obs", "reward", "done", "metrics", "info")
"""The fields of a state that wrappers and agents use. The others belong to the environment."""


def is_state(value: Any) -> bool:
    """Return whether a value can be an environment's state.

    That is a dataclass with the fields of `CONTRACT` and a method `replace`. It need not be a
    `brax.env.State`: environments of other packages have states of their own, for example with
    `data` in place of `pipeline_state`.
    """
    return (
        dataclasses.is_dataclass(value)
        and not isinstance(value, type)
        and callable(getattr(value, "replace", None))
        and all(hasattr(value, name) for name in CONTRACT)
    )


def own_fields(state: Any) -> dict[str, Any]:
    """Return the fields of a state that belong to the environment, such as `pipeline_state`."""
    names = [field.name for field in dataclasses.fields(state)]
    return {name: getattr(state, name) for name in names if name not in CONTRACT}


def check_state(env: Env, state: Any, *entries: str) -> None:
    """Raise if a value is not a state, or does not come from this environment's `reset`.

    Args:
        env: the environment whose `step` was called.
        state: the given value.
        entries: entries of `info` that its `reset` makes.

    Raises:
        ShapeError: saying what was given, and what to give instead.
    """
    name = type(env).__name__
    if not is_state(state):
        raise ShapeError(
            f"{name}.step needs the state that its reset returned, such as a brax.env.State, not a "
            f"{type(state).__module__}.{type(state).__qualname__}"
        )
    missing = [entry for entry in entries if entry not in state.info]
    if missing:
        raise ShapeError(
            f"{name}.step: the state has no info['{missing[0]}']: pass what reset of the same "
            "environment, in the same wrappers, returned"
        )


def check_count(name: str, value: Any) -> int:
    """Return a number of steps or environments as an integer.

    Raises:
        ConfigError: unless it is an integer of at least 1.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ConfigError(f"{name} must be an integer >= 1, got {value!r}")
    return int(value)


def is_typed_key(rng: Any) -> bool:
    """Return whether this is a `jax.random.key`, not a `PRNGKey` of plain integers."""
    return isinstance(rng, jax.Array) and jnp.issubdtype(rng.dtype, jax.dtypes.prng_key)


def key_shape(rng: Any) -> tuple[int, ...]:
    """Return the shape of an array of keys of either kind: () for a single one.

    Raises:
        ConfigError: if these are not keys.
    """
    if is_typed_key(rng):
        return rng.shape
    if getattr(rng, "ndim", 0) and rng.dtype == jnp.uint32:
        # The last axis of a `PRNGKey` is that of its words.
        return rng.shape[:-1]
    # A plain seed is the usual mistake, so the message shows the key of that seed.
    seed = rng if isinstance(rng, int) else "seed"
    raise ConfigError(f"reset needs a key, not {rng!r:.60}: pass jax.random.key({seed})")


def number_of_keys(rng: Any) -> int:
    """Return the number of keys in a batch of them.

    Raises:
        ConfigError: if these are not keys, or not a batch of them.
    """
    shape = key_shape(rng)
    if len(shape) != 1:
        raise ConfigError(
            "reset needs a batch of keys: pass jax.random.split(rng, num_envs), to an environment "
            "that is wrapped once"
        )
    return shape[0]


def check_array(env: Env, action: Any, shape: tuple[Any, ...]) -> None:
    """Raise if an action is not an array.

    Args:
        env: the environment whose `step` was called.
        action: the given value.
        shape: the shape that it should have.

    Raises:
        ShapeError: saying what was given, and what to give instead.
    """
    if not isinstance(action, jax.Array | np.ndarray):
        raise ShapeError(
            f"{type(env).__name__}.step needs an action, an array of shape {shape}, got "
            f"{action!r:.60}: use jnp.array(...), or jnp.zeros({shape}) for none"
        )


def check_batch_given(env: Env, state: Any, action: Any, *entries: str) -> None:
    """Raise unless there is a batch of states, with one action for each environment.

    Args:
        env: the environment whose `step` was called.
        state: the given states.
        action: the given actions.
        entries: entries of `info` that its `reset` makes.

    Raises:
        ShapeError: naming what was given and what is needed.
    """
    check_state(env, state, *entries)
    if jnp.ndim(state.done) == 0:
        raise ShapeError(
            f"{type(env).__name__}.step got a single state; pass the batch that its reset returned"
        )
    count = state.done.shape[0]
    # An environment of another package need not say the size of its actions.
    shape = (count, getattr(env, "action_size", "..."))
    check_array(env, action, shape)
    if action.shape[:1] != (count,):
        raise ShapeError(
            f"step got actions of shape {action.shape} for {count} environments: pass one for "
            f"each, ({', '.join(map(str, shape))})"
        )


def check_key(rng: jax.Array) -> jax.Array:
    """Return a key as it is, for the first line of a `reset`.

    Args:
        rng: a single key; its shape is (), or (2,) as a `PRNGKey`.

    Returns:
        The same key, of the same shape.

    Raises:
        ConfigError: if this is not a single key.
    """
    shape = key_shape(rng)
    if shape:
        raise ConfigError(f"reset needs one key, got {shape}: use jax.vmap or brax.env.wrap")
    return rng
