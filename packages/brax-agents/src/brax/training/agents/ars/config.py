"""The settings of augmented random search."""

from dataclasses import dataclass

from brax.errors import ConfigError
from brax.training.config import RunConfig
from brax.training.settings import number


@dataclass(frozen=True)
class ARSConfig(RunConfig):
    """The numbers of a run of ARS; with them and the environment a run can be repeated."""

    step_formula = "2 * number_of_directions * episode_length"

    number_of_directions: int = number(60, 1)
    """Directions tried in one training step, each forwards and backwards."""
    top_directions: int = number(20, 1)
    """Directions that are learned from: those with the best return either way."""
    step_size: float = number(0.015, 0, open_low=True)
    """Step size, in units of the deviation of the returns."""
    exploration_noise_std: float = number(0.025, 0, open_low=True)
    """Deviation of the noise on the parameters."""
    reward_shift: float = number(0.0)
    """Taken off the reward of every environment step, such as what staying alive earns."""

    @property
    def num_envs(self) -> int:
        """Environments that run side by side: two for each direction."""
        return 2 * self.number_of_directions

    @property
    def env_steps_per_training_step(self) -> int:
        """Environment steps of one training step, those after the end of an episode included."""
        return self.num_envs * self.episode_length

    @property
    def needs(self) -> tuple[str, ...]:
        """Entries of the environment's `info` that ARS cannot do without."""
        return ("truncation", "steps") if self.reward_shift else ("truncation",)

    def check(self) -> None:
        """Refuses more top directions than there are.

        Raises:
            ConfigError: naming both numbers.
        """
        super().check()
        if self.top_directions > self.number_of_directions:
            raise ConfigError(
                f"top_directions={self.top_directions} must not exceed "
                f"number_of_directions={self.number_of_directions}."
            )
