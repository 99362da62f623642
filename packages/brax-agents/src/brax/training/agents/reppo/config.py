"""The settings of REPPO."""

from dataclasses import dataclass

from brax.errors import ConfigError
from brax.training.config import RunConfig
from brax.training.learning.schedules import LINEAR
from brax.training.settings import check_divides, choice, number


@dataclass(frozen=True)
class REPPOConfig(RunConfig):
    """The numbers of a REPPO run. Together with the environment they make the run repeatable."""

    step_formula = "num_envs * unroll_length * action_repeat"

    num_envs: int = number(1024, 1)
    """Environments that run in parallel, over all devices."""
    unroll_length: int = number(128, 1)
    """Actions that each environment takes per training step."""
    stagger_episodes: bool = False
    """Start the first episodes at random steps of `episode_length`, so that the time limit does not
    end them all at once.
    """
    num_minibatches: int = number(128, 1)
    """Minibatches per epoch."""
    num_updates_per_batch: int = number(4, 1)
    """Epochs: passes over the experience of one training step."""
    learning_rate: float = number(3e-4, 0, open_low=True)
    """Learning rate of Adam, for the policy, the critic and both multipliers; with a schedule, the
    initial one.
    """
    learning_rate_schedule: str | None = choice(None, LINEAR)
    """`LINEAR` lets the learning rate fall linearly to zero over `num_timesteps`; None keeps it
    fixed.
    """
    max_grad_norm: float = number(0.5, 0, open_low=True)
    """Largest norm of the policy's gradient, and of the critic's; larger ones are scaled down."""
    discounting: float = number(0.99, 0, 1)
    """Discount factor per action."""
    td_lambda: float = number(0.95, 0, 1)
    """Lambda of the critic's targets: 0 uses one-step returns, 1 whole returns."""
    reward_scaling: float = number(1.0, 0, open_low=True)
    """Factor that rewards are multiplied by before learning; reported returns are without it."""
    v_min: float = number(-100.0)
    """Smallest return that the critic represents, after `reward_scaling`."""
    v_max: float = number(100.0)
    """Largest return that the critic represents, after `reward_scaling`."""
    kl_bound: float = number(0.1, 0, open_low=True)
    """Bound of the KL divergence of the policy from the one that acted, at each observation."""
    target_entropy: float | None = number(None)
    """Target of the policy's entropy, for the temperature; None is minus half the number of
    actions.
    """

    @property
    def env_steps_per_training_step(self) -> int:
        """Environment steps of one training step."""
        return self.num_envs * self.unroll_length * self.action_repeat

    @property
    def needs(self) -> tuple[str, ...]:
        """Entries of the environment's `info` that REPPO learns from."""
        return ("truncation", "terminal_obs") + ("steps",) * self.stagger_episodes

    def check(self) -> None:
        """Reject values without a range, and experience that minibatches cannot share evenly.

        Raises:
            ConfigError: naming the numbers and what is allowed.
        """
        super().check()
        if not self.v_min < self.v_max:
            raise ConfigError(
                f"v_min={self.v_min} must be below v_max={self.v_max}: the critic "
                "is a histogram over this range."
            )
        product = f"num_envs={self.num_envs} * unroll_length={self.unroll_length}"
        rows = self.num_envs * self.unroll_length
        check_divides("num_minibatches", self.num_minibatches, product, rows)
