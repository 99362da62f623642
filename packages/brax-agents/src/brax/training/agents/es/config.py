"""The settings of evolution strategies."""

import enum
from dataclasses import dataclass

from brax.errors import ConfigError
from brax.training.config import RunConfig
from brax.training.settings import choice, number


class FitnessShaping(enum.StrEnum):
    """What returns are made into before they weigh the noise."""

    ORIGINAL = "original"
    """Nothing: the returns themselves."""
    CENTERED_RANK = "centered_rank"
    """Their ranks, evenly from -1/2 for the worst to 1/2 for the best."""
    WIERSTRA = "wierstra"
    """Utilities that leave out the worse half (Wierstra et al. 2014)."""


@dataclass(frozen=True)
class ESConfig(RunConfig):
    """The numbers of a run of ES; with them and the environment a run can be repeated."""

    step_formula = "population_size * episode_length"

    population_size: int = number(128, 2)
    """Policies tried in one training step, half of them mirror images of the others."""
    learning_rate: float = number(1e-3, 0, open_low=True)
    """Step size of Adam."""
    perturbation_std: float = number(0.1, 0, open_low=True)
    """Deviation of the noise on the parameters."""
    fitness_shaping: str = choice(*FitnessShaping)
    """What returns are made into: `original`, `centered_rank` or `wierstra`."""
    center_fitness: bool = False
    """Scale returns to mean 0, deviation 1 before they are shaped."""
    l2coeff: float = number(0.0, 0)
    """Weight of the pull of all parameters to zero."""

    @property
    def num_envs(self) -> int:
        """Environments that run side by side: one for each policy."""
        return self.population_size

    @property
    def env_steps_per_training_step(self) -> int:
        """Environment steps of one training step, those after the end of an episode included."""
        return self.population_size * self.episode_length

    def check(self) -> None:
        """Refuses a population that is not made of pairs.

        Raises:
            ConfigError: naming the nearest sizes.
        """
        super().check()
        if self.population_size % 2:
            raise ConfigError(
                f"population_size={self.population_size} must be even, for policies are tried in "
                f"pairs; the nearest are {self.population_size - 1} and {self.population_size + 1}."
            )
