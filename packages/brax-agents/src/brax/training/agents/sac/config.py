"""The settings of SAC."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from brax.training.config import RunConfig
from brax.training.learning.replay_buffers import check_sizes, steps_before_updates
from brax.training.settings import number


@dataclass(frozen=True)
class SACConfig(RunConfig):
    """The numbers of a SAC run. Together with the environment they make the run repeatable."""

    old_names: ClassVar[Mapping[str, str]] = {"checkpoint_logdir": "save_checkpoint_path"}
    step_formula = "num_envs * action_repeat"

    num_envs: int = number(1, 1)
    """Environments that run in parallel, over all devices."""
    learning_rate: float = number(1e-4, 0, open_low=True)
    """Learning rate of Adam, for the policy and the critics."""
    alpha_learning_rate: float = number(3e-4, 0, open_low=True)
    """Learning rate of Adam, for the logarithm of the temperature."""
    discounting: float = number(0.9, 0, 1)
    """Discount factor per action."""
    batch_size: int = number(256, 1)
    """Transitions per update, over all devices."""
    grad_updates_per_step: int = number(1, 1)
    """Updates per training step."""
    tau: float = number(0.005, 0, 1, open_low=True)
    """Share by which the target critics move towards the critics in each update."""
    reward_scaling: float = number(1.0, 0, open_low=True)
    """Factor that rewards are multiplied by before learning; reported returns are without it."""
    min_replay_size: int = number(0, 0)
    """Transitions in the replay buffer before the first update."""
    max_replay_size: int = number(1_048_576, 1, 2**31 - 1)
    """Capacity of the replay buffer in transitions, rounded down to whole steps of all
    environments.
    """
    target_entropy: float | None = number(None)
    """Target of the policy's entropy, for the temperature; None is minus half the number of
    actions.
    """

    @property
    def env_steps_per_training_step(self) -> int:
        """Environment steps of one training step."""
        return self.num_envs * self.action_repeat

    @property
    def steps_before_updates(self) -> int:
        """Training steps at the start of a run that only fill the replay buffer."""
        return steps_before_updates(self)

    @property
    def needs(self) -> tuple[str, ...]:
        """Entries of the environment's `info` that SAC learns from."""
        return ("truncation", "terminal_obs")

    def check(self) -> None:
        """Reject a replay buffer that cannot be filled or is too small for one step.

        Raises:
            ConfigError: naming the numbers and the nearest that fits.
        """
        super().check()
        check_sizes(self)
