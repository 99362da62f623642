"""One training step of evolution strategies: what ES adds to `SearchLearner`."""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from brax.training.agents.es.gradient import search_gradient, shape_fitness
from brax.training.learner import Parts
from brax.training.learning.population import SearchLearner


class ESLearner(SearchLearner):
    """The functions of ES that are compiled."""

    def __init__(self, parts: Parts) -> None:
        """Set the noise and the optimizer; nothing is compiled."""
        super().__init__(parts)
        self.noise_std = self.config.perturbation_std
        self.optimizer = optax.adam(self.config.learning_rate)

    def gradient(
        self, policy: object, noise: object, plus: jax.Array, minus: jax.Array
    ) -> tuple[Any, dict[str, jax.Array]]:
        """Return the negated gradient of the fitness plus the weight decay, and its norm."""
        # Ranks and means are taken over the whole population, both signs of the noise together.
        returns = jnp.concatenate([plus, minus])
        if self.config.center_fitness:
            returns = (returns - jnp.mean(returns)) / (jnp.std(returns) + 1e-8)
        fitness = shape_fitness(returns, self.config.fitness_shaping)
        plus, minus = jnp.split(fitness, 2)
        ascent = search_gradient(noise, plus, minus, self.noise_std)
        # The optimizer descends: the fitness is maximized, the weight decay pulls towards zero.
        grads = jax.tree.map(lambda g, p: self.config.l2coeff * p - g, ascent, policy)
        return grads, {"grad_norm": optax.tree.norm(grads)}
