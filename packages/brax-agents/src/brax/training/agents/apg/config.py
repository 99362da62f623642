"""APG's settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from brax.errors import ConfigError
from brax.training.config import RunConfig
from brax.training.settings import number


@dataclass(frozen=True)
class APGConfig(RunConfig):
    """The numbers of a run of APG; with them and the environment a run can be repeated."""

    unsupported: ClassVar[Mapping[str, Any]] = {"use_float64": False}
    step_formula = "horizon_length * num_envs * action_repeat"

    num_envs: int = number(1, 1)
    """Environments that run side by side, over all devices."""
    horizon_length: int = number(32, 1)
    """Actions that one gradient goes through."""
    learning_rate: float = number(1e-4, 0, open_low=True)
    """First step size of Adam."""
    adam_b: tuple[float, float] = field(default=(0.7, 0.95))
    """Adam's decay of the mean and of the variance of gradients, each in [0, 1)."""
    use_schedule: bool = True
    """Let the step size decay."""
    schedule_decay: float = number(0.997, 0, 1, open_low=True)
    """Factor on the step size with each update."""
    max_gradient_norm: float = number(1.0, 0, open_low=True)
    """Greatest norm of a gradient."""
    zeroth_order: float = number(0.0, 0, 1)
    """Share of the gradient that is estimated from returns and probabilities: it knows of falls."""

    @property
    def env_steps_per_training_step(self) -> int:
        """Environment steps of one training step."""
        return self.horizon_length * self.num_envs * self.action_repeat

    def check(self) -> None:
        """Refuses decays that Adam cannot use, and returns that nothing can be compared with.

        Raises:
            ConfigError: naming the numbers and what fits.
        """
        super().check()
        if self.zeroth_order > 0 and self.num_envs == 1:
            raise ConfigError(
                f"zeroth_order={self.zeroth_order} compares the returns of environments: "
                "num_envs=1 must be at least 2, or zeroth_order 0."
            )
        two = isinstance(self.adam_b, tuple | list) and len(self.adam_b) == 2
        if not (two and all(isinstance(b, int | float) and 0 <= b < 1 for b in self.adam_b)):
            raise ConfigError(f"adam_b={self.adam_b!r} must be two numbers in [0, 1).")
