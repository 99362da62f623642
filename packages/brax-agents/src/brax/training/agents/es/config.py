"""The settings of evolution strategies."""

import enum
from dataclasses import dataclass

from brax.errors import ConfigError
from brax.training.config import RunConfig
from brax.training.settings import choice, number


class FitnessShaping(enum.StrEnum):
    """The ways to turn returns into the weights of the noise."""

    ORIGINAL = "original"
    """The returns themselves."""
    CENTERED_RANK = "centered_rank"
    """Ranks, evenly from -1/2 for the worst return to 1/2 for the best."""
    WIERSTRA = "wierstra"
    """Utilities that ignore the worse half (Wierstra et al. 2014)."""


@dataclass(frozen=True)
class ESConfig(RunConfig):
    """The numbers of an ES run. Together with the environment they make the run repeatable."""

    step_formula = "population_size * episode_length"

    population_size: int = number(128, 2)
    """Policies tried per training step, in pairs with noise of opposite sign."""
    learning_rate: float = number(1e-3, 0, open_low=True)
    """Learning rate of Adam."""
    perturbation_std: float = number(0.1, 0, open_low=True)
    """Standard deviation of the noise on the parameters."""
    fitness_shaping: str = choice(*FitnessShaping)
    """Weights of the noise, from returns: `original`, `centered_rank` or `wierstra`."""
    center_fitness: bool = False
    """Scale returns to mean 0 and standard deviation 1 before they are shaped."""
    l2coeff: float = number(0.0, 0)
    """Weight decay: strength of the pull of all parameters towards zero."""

    @property
    def num_envs(self) -> int:
        """Environments that run in parallel: one for each policy."""
        return self.population_size

    @property
    def env_steps_per_training_step(self) -> int:
        """Environment steps per training step. Steps after the end of an episode count."""
        return self.population_size * self.episode_length

    def check(self) -> None:
        """Reject a population that does not consist of pairs.

        Raises:
            ConfigError: naming the nearest sizes.
        """
        super().check()
        if self.population_size % 2:
            raise ConfigError(
                f"population_size={self.population_size} must be even, for policies are tried in "
                f"pairs; the nearest are {self.population_size - 1} and {self.population_size + 1}."
            )
