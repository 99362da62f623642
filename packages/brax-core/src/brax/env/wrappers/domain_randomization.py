"""`DomainRandomizationVmapWrapper`: a batch of environments, each with its own system."""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from brax.base import System
from brax.base.gates import built_in, with_flags
from brax.env.base import Env, State, Wrapper, check_batch_given, number_of_keys
from brax.errors import ConfigError

RandomizationFn = Callable[..., tuple[System, System]]
"""`(sys) -> (systems, in_axes)`, or `(sys, rng) -> (systems, in_axes)` with `rng` (batch,) keys."""


class DomainRandomizationVmapWrapper(Wrapper):
    """A wrapper that maps `reset` and `step` over environments whose systems differ.

    `reset` draws the systems. The numbers that differ travel in `info['randomized']`, so the
    environment itself never changes. A reset by `AutoResetWrapper` draws them again in the mode
    'fresh', if `randomization_fn` takes `rng`.
    """

    def __init__(self, env: Env, randomization_fn: RandomizationFn) -> None:
        """Wrap an environment.

        Args:
            env: one environment with a system.
            randomization_fn: a function of the system, and of one key for each key of `reset` if it
                has a second argument without a default. It returns a system in which some leaves
                have a leading axis (batch,), and the same tree with the axis for those and None for
                the others.

        Raises:
            ConfigError: if the environment has no system, or `randomization_fn` is not a function.
        """
        super().__init__(env)
        if not callable(randomization_fn):
            raise ConfigError(f"randomization_fn={randomization_fn!r:.60} must be a function")
        if not hasattr(env, "sys"):
            raise ConfigError(
                f"{type(self.unwrapped).__name__} has no system that could be randomized"
            )
        self._draw = randomization_fn
        self._takes_rng = _required_arguments(randomization_fn) > 1

    def reset(self, rng: jax.Array) -> State:
        """Draw the systems and start one episode per key.

        Raises:
            ConfigError: as `draw` does.
        """
        drawn, rng = self.draw(rng)
        state = jax.vmap(lambda mine, key: self._env(mine).reset(key))(drawn, rng)
        return state.replace(info=state.info | {"randomized": drawn})

    def draw(self, rng: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
        """Return the numbers that differ from the model's, by path, and the keys to reset with.

        Args:
            rng: keys, (batch,).

        Returns:
            Arrays by path, each of the leaf's shape behind a leading axis, (batch, ...); and as
            many keys as were given.

        Raises:
            ConfigError: if `randomization_fn` does not return systems and their axes, if the number
                of keys is not that of the systems, if no numbers differ, or if more than numbers
                differs.
        """
        keys = number_of_keys(rng)
        systems, in_axes, rng = self._systems(rng)
        plain = systems
        if isinstance(systems, System) and isinstance(self.env.sys, System):
            plain = with_flags(systems, self.env.sys)  # what is built in may be more
        structures: list[Any] = [jax.tree.structure(sys) for sys in (plain, self.env.sys)]
        if structures[0] != structures[1]:
            raise ConfigError(
                "randomization_fn must change only numbers of the system; its names, types and "
                "parents must stay"
            )
        drawn = _mapped(systems, in_axes)
        _check_batch(drawn, keys)
        # Leaves that are replaced without an axis travel as well, since the environment keeps its
        # model.
        return drawn | _same_in_all(systems, self.env.sys, drawn, keys), rng

    def step(self, state: State, action: jax.Array) -> State:
        """Advance every environment by its own action, (batch, action_size).

        Raises:
            ShapeError: if the state does not come from `reset`, or the number of actions is not
                that of the environments.
        """
        check_batch_given(self, state, action, "randomized")
        drawn = state.info["randomized"]
        inner = state.replace(info={k: v for k, v in state.info.items() if k != "randomized"})
        new = jax.vmap(lambda mine, s, a: self._env(mine).step(s, a))(drawn, inner, action)
        return new.replace(info=new.info | {"randomized": drawn})

    def _systems(self, rng: jax.Array) -> tuple[System, Any, jax.Array]:
        """Return the systems, their axes, and keys for `reset` that are independent of the draw."""
        given: tuple[jax.Array, ...] = ()
        if self._takes_rng:
            # Split, because the systems and the first states would be correlated under one key.
            draw_keys, rng = jax.vmap(jax.random.split, out_axes=1)(rng)
            given = (draw_keys,)
        drawn = self._draw(self.env.sys, *given)
        if not (isinstance(drawn, tuple) and len(drawn) == 2):
            raise ConfigError(
                f"randomization_fn returned one {type(drawn).__name__}; it must return two, "
                "(systems, in_axes)"
            )
        return *drawn, rng

    def _env(self, drawn: dict[str, jax.Array]) -> Env:
        """Return the environment with the drawn numbers in place of the model's."""
        paths, tree = jax.tree_util.tree_flatten_with_path(self.env.sys)
        leaves = [drawn.get(_name(path), leaf) for path, leaf in paths]
        mine = jax.tree.unflatten(tree, leaves)
        return self.env.with_sys(built_in(self.env.sys, mine) if isinstance(mine, System) else mine)


def _required_arguments(function: Callable[..., Any]) -> int:
    """Return the number of positional arguments without a default."""
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is p.empty for p in parameters)


def _mapped(systems: System, in_axes: Any) -> dict[str, jax.Array]:
    """Return the leaves that differ between systems, by path, with a leading batch axis."""

    def is_none(x: Any) -> bool:
        return x is None

    axes = jax.tree.leaves(jax.tree.broadcast(in_axes, systems, is_leaf=is_none), is_leaf=is_none)
    leaves = jax.tree_util.tree_leaves_with_path(systems)
    return {
        _name(path): jnp.moveaxis(leaf, axis, 0)
        for (path, leaf), axis in zip(leaves, axes, strict=True)
        if axis is not None
    }


def _same_in_all(
    systems: System, model: System, drawn: dict[str, jax.Array], batch: int
) -> dict[str, jax.Array]:
    """Return the leaves that were replaced without an axis, repeated for each system."""
    replaced = zip(
        jax.tree_util.tree_leaves_with_path(systems), jax.tree.leaves(model), strict=True
    )
    return {
        _name(path): jnp.broadcast_to(leaf, (batch, *jnp.shape(leaf)))
        for (path, leaf), old in replaced
        # Identity is enough: leaves that the function did not replace are the model's own arrays.
        if leaf is not old and _name(path) not in drawn
    }


def _name(path: Any) -> str:
    """Return a leaf's path as text."""
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _check_batch(drawn: dict[str, jax.Array], batch: int) -> None:
    """Raise if no leaf differs, or one has another number of values than there are keys."""
    if not drawn:
        raise ConfigError("randomization_fn returned in_axes without any axis: nothing differs")
    for name, leaf in drawn.items():
        if leaf.shape[0] != batch:
            raise ConfigError(
                f"randomization_fn made {leaf.shape[0]} values of {name}, reset got {batch} keys"
            )
