"""The settings of APG."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from brax.errors import ConfigError
from brax.training.config import RunConfig
from brax.training.settings import number


@dataclass(frozen=True)
class APGConfig(RunConfig):
    """The numbers of an APG run. Together with the environment they make the run repeatable."""

    unsupported: ClassVar[Mapping[str, tuple[Any, ...]]] = {"use_float64": (False,)}
    step_formula = "horizon_length * num_envs * action_repeat"

    num_envs: int = number(1, 1)
    """Environments that run in parallel, over all devices."""
    horizon_length: int = number(32, 1)
    """Actions that one gradient passes through."""
    learning_rate: float = number(1e-4, 0, open_low=True)
    """Initial learning rate of Adam."""
    adam_b: tuple[float, float] = field(default=(0.7, 0.95))
    """Adam's decay rates of the mean and of the variance of gradients, each in [0, 1)."""
    use_schedule: bool = True
    """Let the learning rate decay."""
    schedule_decay: float = number(0.997, 0, 1, open_low=True)
    """Factor on the learning rate per update."""
    max_gradient_norm: float = number(1.0, 0, open_low=True)
    """Largest norm of a gradient; larger ones are scaled down."""
    zeroth_order: float = number(0.0, 0, 1)
    """Share of the gradient that is a likelihood-ratio estimate, which sees jumps of rewards and
    ends of episodes.
    """

    @property
    def env_steps_per_training_step(self) -> int:
        """Environment steps per training step."""
        return self.horizon_length * self.num_envs * self.action_repeat

    @property
    def without_effect(self) -> dict[str, str]:
        """Settings that have no effect with these numbers, and the setting that they need."""
        needed = {} if self.use_schedule else {"schedule_decay": "use_schedule=True"}
        return super().without_effect | needed

    def check(self) -> None:
        """Reject decay rates that Adam cannot use, and `zeroth_order` with a single environment.

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
