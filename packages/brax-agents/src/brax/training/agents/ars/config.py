"""The settings of augmented random search."""

from dataclasses import dataclass

from brax.errors import ConfigError
from brax.training.config import RunConfig
from brax.training.settings import number


@dataclass(frozen=True)
class ARSConfig(RunConfig):
    """The numbers of an ARS run. Together with the environment they make the run repeatable."""

    step_formula = "2 * number_of_directions * episode_length"

    number_of_directions: int = number(60, 1)
    """Directions tried per training step, each with both signs."""
    top_directions: int = number(20, 1)
    """Directions that are learned from: those with the best return of either sign."""
    step_size: float = number(0.015, 0, open_low=True)
    """Step size, in units of the standard deviation of the returns."""
    exploration_noise_std: float = number(0.025, 0, open_low=True)
    """Standard deviation of the noise on the parameters."""
    reward_shift: float = number(0.0)
    """Subtracted from the reward of every environment step, such as a bonus for staying alive."""

    @property
    def num_envs(self) -> int:
        """Environments that run in parallel: two for each direction."""
        return 2 * self.number_of_directions

    @property
    def env_steps_per_training_step(self) -> int:
        """Environment steps per training step. Steps after the end of an episode count."""
        return self.num_envs * self.episode_length

    @property
    def needs(self) -> tuple[str, ...]:
        """Entries of the environment's `info` that ARS learns from."""
        return ("truncation", "steps") if self.reward_shift else ("truncation",)

    def check(self) -> None:
        """Reject more top directions than there are directions.

        Raises:
            ConfigError: naming both numbers.
        """
        super().check()
        if self.top_directions > self.number_of_directions:
            raise ConfigError(
                f"top_directions={self.top_directions} must not exceed "
                f"number_of_directions={self.number_of_directions}."
            )
