"""Random search over linear policies: keep the best, try neighbours."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax.env import Env

Policy = Callable[[jax.Array, jax.Array], tuple[jax.Array, dict[str, Any]]]

FILE = "linear_policy.npz"


class RandomSearch:
    """Needs no gradient and no neural network."""

    name = "random_search"

    def train(
        self,
        environment: Env,
        rounds: int = 10,
        candidates: int = 64,
        episode_length: int = 100,
        seed: int = 0,
        run_dir: Path | None = None,
    ) -> tuple[Callable[[jax.Array], Policy], jax.Array, dict[str, float]]:
        """Search for weights with a high return.

        Args:
            environment: one environment, not wrapped.
            rounds: how often the best is replaced.
            candidates: how many neighbours of the best are tried in a round.
            episode_length: environment steps of an episode.
            seed: seed of all random numbers.
            run_dir: where to leave the best weights, for `load_policy`.

        Returns:
            A function from weights to a policy, the best weights, and its return.
        """
        evaluate = jax.jit(jax.vmap(partial(_return, environment, episode_length), (0, None)))
        best = jnp.zeros((environment.observation_size, environment.action_size))
        for key in jax.random.split(jax.random.key(seed), rounds):
            key_noise, key_reset = jax.random.split(key)
            noise = jax.random.normal(key_noise, (candidates, *best.shape)).at[0].set(0.0)
            returns = evaluate(best + noise, jax.random.split(key_reset, 8))
            best = (best + noise)[returns.argmax()]
        if run_dir is not None:
            np.savez(run_dir / FILE, weights=best)
        return _make_policy, best, {"eval/episode_reward": float(returns.max())}

    def load_policy(self, path: str | Path, deterministic: bool = True) -> Policy:
        """Return the policy that `train` left in a run's directory; it is deterministic."""
        return _make_policy(jnp.asarray(np.load(Path(path) / FILE)["weights"]))


def _make_policy(weights: jax.Array) -> Policy:
    def policy(obs: jax.Array, key: jax.Array) -> tuple[jax.Array, dict[str, Any]]:
        return jnp.tanh(obs @ weights), {}

    return policy


def _return(environment: Env, length: int, weights: jax.Array, keys: jax.Array) -> jax.Array:
    """Return the mean return over the episodes that `keys` start."""

    def step(state: Any, _: None) -> tuple[Any, jax.Array]:
        state = jax.vmap(environment.step)(state, jnp.tanh(state.obs @ weights))
        return state, state.reward.mean()

    return jax.lax.scan(step, jax.vmap(environment.reset)(keys), None, length)[1].sum()


RANDOM_SEARCH = RandomSearch()
