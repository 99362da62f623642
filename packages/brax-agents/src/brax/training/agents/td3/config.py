"""The settings of TD3."""

from dataclasses import dataclass
from typing import Any

from brax.errors import ConfigError
from brax.training.config import RunConfig
from brax.training.learning.replay_buffers import check_sizes, steps_before_updates
from brax.training.learning.schedules import LINEAR
from brax.training.settings import choice, number


@dataclass(frozen=True)
class TD3Config(RunConfig):
    """The numbers of a TD3 run. Together with the environment they make the run repeatable."""

    step_formula = "num_envs * action_repeat"

    num_envs: int = number(1, 1)
    """Environments that run in parallel, over all devices."""
    learning_rate: float = number(3e-4, 0, open_low=True)
    """Learning rate of Adam, for the policy and the critics; with a schedule, the initial one."""
    learning_rate_schedule: str | None = choice(None, LINEAR)
    """`LINEAR` lets the learning rate fall linearly to zero over `num_timesteps`; None keeps it
    fixed.
    """
    weight_decay: float = number(0.0, 0)
    """Decoupled weight decay of Adam, for the policy and the critics."""
    discounting: float = number(0.99, 0, 1)
    """Discount factor per action."""
    batch_size: int = number(256, 1)
    """Transitions per update, over all devices."""
    grad_updates_per_step: int = number(1, 1)
    """Updates of the critics per training step."""
    policy_delay: int = number(2, 1)
    """Updates of the critics for each update of the policy and of the target networks."""
    tau: float = number(0.005, 0, 1, open_low=True)
    """Share by which the target networks move towards the networks in each of their updates."""
    n_steps: int = number(1, 1)
    """Actions whose rewards a target adds up before the value of the target critics."""
    num_atoms: int = number(0, 0)
    """Atoms of categorical critics, which learn the distribution of the return; 0 learns its mean.
    """
    v_min: float = number(-10.0)
    """Smallest return that categorical critics represent, after `reward_scaling`."""
    v_max: float = number(10.0)
    """Largest return that categorical critics represent, after `reward_scaling`."""
    min_exploration_noise: float = number(0.1, 0)
    """Lower bound of the standard deviation of the noise on actions; each environment draws its
    own.
    """
    max_exploration_noise: float = number(0.1, 0)
    """Upper bound of the standard deviation of the noise on actions."""
    target_noise: float = number(0.2, 0)
    """Standard deviation of the noise on the actions of targets."""
    target_noise_clip: float = number(0.5, 0)
    """Bound of the noise on the actions of targets."""
    reward_scaling: float = number(1.0, 0, open_low=True)
    """Factor that rewards are multiplied by before learning; reported returns are without it."""
    min_replay_size: int = number(0, 0)
    """Transitions in the replay buffer before the first update; until then actions are drawn
    uniformly.
    """
    max_replay_size: int = number(1_048_576, 1, 2**31 - 1)
    """Capacity of the replay buffer in transitions, rounded down to whole steps of all
    environments.
    """

    @property
    def env_steps_per_training_step(self) -> int:
        """Environment steps of one training step."""
        return self.num_envs * self.action_repeat

    @property
    def network_settings(self) -> dict[str, Any]:
        """Settings that `network_factory` gets besides sizes and preprocessing."""
        return {"num_atoms": self.num_atoms} if self.num_atoms else {}

    @property
    def steps_before_updates(self) -> int:
        """Training steps at the start of a run that only fill the replay buffer."""
        return steps_before_updates(self, self.n_steps)

    @property
    def needs(self) -> tuple[str, ...]:
        """Entries of the environment's `info` that TD3 learns from."""
        return ("truncation", "terminal_obs")

    @property
    def without_effect(self) -> dict[str, str]:
        """Settings that have no effect with these numbers, and the setting that they need."""
        needed = {} if self.num_atoms else dict.fromkeys(("v_min", "v_max"), "num_atoms")
        return super().without_effect | needed

    def check(self) -> None:
        """Reject noise, atoms and a replay buffer that cannot be.

        Raises:
            ConfigError: naming the numbers and what is allowed.
        """
        super().check()
        if self.min_exploration_noise > self.max_exploration_noise:
            raise ConfigError(
                f"min_exploration_noise={self.min_exploration_noise} must not exceed "
                f"max_exploration_noise={self.max_exploration_noise}."
            )
        if self.num_atoms == 1:
            raise ConfigError(
                "num_atoms=1 cannot represent a distribution: use at least 2, or 0 for critics of "
                "the mean."
            )
        if self.num_atoms and self.v_min >= self.v_max:
            raise ConfigError(f"v_min={self.v_min} must be below v_max={self.v_max}.")
        check_sizes(self, self.n_steps)
