"""SHAC's settings."""

from dataclasses import dataclass

from brax.errors import ConfigError
from brax.training.config import RunConfig
from brax.training.settings import number


@dataclass(frozen=True)
class SHACConfig(RunConfig):
    """The numbers of a run of SHAC; with them and the environment a run can be repeated."""

    step_formula = "horizon_length * num_envs * action_repeat"

    num_envs: int = number(64, 1)
    """Environments that run side by side, over all devices."""
    horizon_length: int = number(32, 1)
    """Actions that one gradient goes through, before the critic takes over."""
    learning_rate: float = number(2e-3, 0, open_low=True)
    """Step size of Adam, for the policy."""
    critic_learning_rate: float = number(2e-3, 0, open_low=True)
    """Step size of Adam, for the critic."""
    discounting: float = number(0.99, 0, 1)
    """Discount of one action."""
    gae_lambda: float = number(0.95, 0, 1)
    """Weight of longer returns in the critic's targets."""
    critic_updates: int = number(16, 1)
    """Passes of the critic over the experience of one training step."""
    num_minibatches: int = number(4, 1)
    """Minibatches in one pass."""
    tau: float = number(0.6, 0, 1, open_low=True)
    """Share of the critic that its target takes over in each training step."""
    reward_scaling: float = number(1.0, 0, open_low=True)
    """Factor on rewards before they are learned from."""
    max_gradient_norm: float = number(1.0, 0, open_low=True)
    """Greatest norm of a gradient."""
    max_state_gradient: float | None = number(None, 0, open_low=True)
    """Greatest norm of the gradient of a return by what a step starts from; None: any."""
    entropy_cost: float = number(0.0, 0)
    """Weight of the entropy bonus: gradients alone soon leave nothing to chance."""
    zeroth_order: float = number(0.0, 0, 1)
    """Share of the gradient that is estimated from returns and probabilities: it knows of falls."""

    @property
    def env_steps_per_training_step(self) -> int:
        """Environment steps of one training step."""
        return self.horizon_length * self.num_envs * self.action_repeat

    @property
    def needs(self) -> tuple[str, ...]:
        """Entries of the environment's `info` that SHAC learns from."""
        return ("truncation", "terminal_obs")

    def check(self) -> None:
        """Refuses experience that cannot be split into minibatches evenly.

        Raises:
            ConfigError: naming the numbers and the nearest that fits.
        """
        super().check()
        rows = self.horizon_length * self.num_envs
        if rows % self.num_minibatches == 0:
            return
        legal = [n for n in range(1, rows + 1) if rows % n == 0]
        nearest = min(legal, key=lambda n: abs(n - self.num_minibatches))
        raise ConfigError(
            f"horizon_length={self.horizon_length} * num_envs={self.num_envs} = {rows} must be a "
            f"multiple of num_minibatches={self.num_minibatches}; the nearest that fits is "
            f"num_minibatches={nearest}."
        )
