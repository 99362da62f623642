"""One training step of augmented random search: what ARS adds to `SearchLearner`."""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from brax.training.agents.ars.gradient import best_direction
from brax.training.learner import Parts
from brax.training.learning.population import SearchLearner


class ARSLearner(SearchLearner):
    """The functions of ARS that are compiled."""

    def __init__(self, parts: Parts) -> None:
        """Set the noise, the reward shift and the optimizer; nothing is compiled."""
        super().__init__(parts)
        self.noise_std = self.config.exploration_noise_std
        self.reward_shift = self.config.reward_shift
        # Plain descent: the division by the returns' standard deviation already sets the step's
        # size.
        self.optimizer = optax.sgd(self.config.step_size)

    def gradient(
        self, policy: object, noise: object, plus: jax.Array, minus: jax.Array
    ) -> tuple[Any, dict[str, jax.Array]]:
        """Return the negated direction of ascent, and its norm."""
        ascent = best_direction(noise, plus, minus, self.config.top_directions)
        return jax.tree.map(jnp.negative, ascent), {"grad_norm": optax.tree.norm(ascent)}
