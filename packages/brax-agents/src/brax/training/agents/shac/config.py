"""The settings of SHAC."""

from dataclasses import dataclass

from brax.training.config import RunConfig
from brax.training.settings import check_divides, number


@dataclass(frozen=True)
class SHACConfig(RunConfig):
    """The numbers of a SHAC run. Together with the environment they make the run repeatable."""

    step_formula = "horizon_length * num_envs * action_repeat"

    num_envs: int = number(64, 1)
    """Environments that run in parallel, over all devices."""
    horizon_length: int = number(32, 1)
    """Actions that one gradient passes through, before the critic's value stands for the rest."""
    learning_rate: float = number(2e-3, 0, open_low=True)
    """Learning rate of Adam, for the policy."""
    critic_learning_rate: float = number(2e-3, 0, open_low=True)
    """Learning rate of Adam, for the critic."""
    discounting: float = number(0.99, 0, 1)
    """Discount factor per action."""
    gae_lambda: float = number(0.95, 0, 1)
    """Lambda of the critic's targets: 0 uses one-step returns, 1 whole returns."""
    critic_updates: int = number(16, 1)
    """Epochs of the critic: passes over the experience of one training step."""
    num_minibatches: int = number(4, 1)
    """Minibatches per epoch."""
    tau: float = number(0.6, 0, 1, open_low=True)
    """Share by which the target critic moves towards the critic in each training step."""
    reward_scaling: float = number(1.0, 0, open_low=True)
    """Factor that rewards are multiplied by before learning; reported returns are without it."""
    max_gradient_norm: float = number(1.0, 0, open_low=True)
    """Largest norm of a gradient; larger ones are scaled down."""
    max_state_gradient: float | None = number(None, 0, open_low=True)
    """Largest norm of the gradient of a return by the state and action that a step starts from;
    None does not clip.
    """
    entropy_cost: float = number(0.0, 0)
    """Weight of the entropy bonus, without which the noise of the policy soon vanishes."""
    zeroth_order: float = number(0.0, 0, 1)
    """Share of the gradient that is a likelihood-ratio estimate, which sees jumps of rewards and
    ends of episodes.
    """

    @property
    def env_steps_per_training_step(self) -> int:
        """Environment steps per training step."""
        return self.horizon_length * self.num_envs * self.action_repeat

    @property
    def needs(self) -> tuple[str, ...]:
        """Entries of the environment's `info` that SHAC learns from."""
        return ("truncation", "terminal_obs")

    def check(self) -> None:
        """Reject experience that cannot be split into minibatches evenly.

        Raises:
            ConfigError: naming the numbers and the nearest that fits.
        """
        super().check()
        product = f"horizon_length={self.horizon_length} * num_envs={self.num_envs}"
        rows = self.horizon_length * self.num_envs
        check_divides("num_minibatches", self.num_minibatches, product, rows)
