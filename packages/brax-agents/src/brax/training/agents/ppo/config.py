"""PPO's settings."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from brax.errors import ConfigError
from brax.training import config
from brax.training.agents.ppo.losses import LossConfig
from brax.training.settings import number

UNSUPPORTED: dict[str, Any] = {
    "vision": False,
    "augment_pixels": False,
    "normalize_observations_std_eps": 0.0,
    "normalize_observations_mode": "welford",
    "normalize_until_count": None,
    "clipping_epsilon_value": None,
    "use_distributional_critic": False,
    "desired_kl": 0.01,
    "learning_rate_schedule": None,
    "learning_rate_schedule_min_lr": 1e-5,
    "learning_rate_schedule_max_lr": 1e-2,
    "use_pmap_on_reset": True,
    "restore_value_fn": True,
}
"""Keyword arguments of Google's PPO that do nothing here, with the value that is accepted."""


@dataclass(frozen=True)
class PPOConfig(config.RunConfig):
    """The numbers of a run of PPO; with them and the environment a run can be repeated."""

    unsupported: ClassVar[Mapping[str, Any]] = UNSUPPORTED
    step_formula = "batch_size * num_minibatches * unroll_length * action_repeat"

    num_envs: int = number(1, 1)
    """Environments that run side by side, over all devices."""
    learning_rate: float = number(1e-4, 0, open_low=True)
    """Step size of Adam."""
    entropy_cost: float = number(1e-4, 0)
    """Weight of the entropy bonus."""
    discounting: float = number(0.9, 0, 1)
    """Discount of one action."""
    unroll_length: int = number(10, 1)
    """Actions in one stretch of experience."""
    batch_size: int = number(32, 1)
    """Stretches in one minibatch, over all devices."""
    num_minibatches: int = number(16, 1)
    """Minibatches in one training step."""
    num_updates_per_batch: int = number(2, 1)
    """Passes over the experience of one training step."""
    reward_scaling: float = number(1.0, 0, open_low=True)
    """Factor on rewards before they are learned from."""
    clipping_epsilon: float = number(0.3, 0, open_low=True)
    """Bound on the change of an action's probability."""
    gae_lambda: float = number(0.95, 0, 1)
    """Weight of longer returns in the advantage."""
    max_grad_norm: float | None = number(None, 0, open_low=True)
    """Greatest norm of a gradient; None leaves it unbounded."""
    normalize_advantage: bool = True
    """Scale advantages to mean 0, deviation 1 in each minibatch."""
    vf_loss_coefficient: float = number(0.5, 0)
    """Twice the weight of the value error (so by default it is a quarter)."""
    bootstrap_on_timeout: bool = False
    """Learn from truncated steps too, with the value of the true last observation."""

    @property
    def num_unrolls(self) -> int:
        """Stretches that each environment runs in one training step."""
        return self.batch_size * self.num_minibatches // self.num_envs

    @property
    def env_steps_per_training_step(self) -> int:
        """Environment steps of one training step."""
        stretches = self.batch_size * self.num_minibatches
        return stretches * self.unroll_length * self.action_repeat

    @property
    def loss(self) -> LossConfig:
        """The numbers that the loss needs."""
        return LossConfig(
            discounting=self.discounting,
            gae_lambda=self.gae_lambda,
            clipping_epsilon=self.clipping_epsilon,
            entropy_cost=self.entropy_cost,
            vf_loss_coefficient=self.vf_loss_coefficient,
            normalize_advantage=self.normalize_advantage,
        )

    @property
    def needs(self) -> tuple[str, ...]:
        """Entries of the environment's `info` that PPO cannot do without."""
        return ("truncation",) + ("terminal_obs",) * self.bootstrap_on_timeout

    def check(self) -> None:
        """Refuses batches that the environments cannot fill evenly.

        Raises:
            ConfigError: naming the numbers and the nearest that fits.
        """
        super().check()
        stretches = self.batch_size * self.num_minibatches
        if stretches % self.num_envs == 0:
            return
        legal = [n for n in range(1, stretches + 1) if stretches % n == 0]
        nearest = min(legal, key=lambda n: abs(n - self.num_envs))
        raise ConfigError(
            f"batch_size={self.batch_size} * num_minibatches={self.num_minibatches} = {stretches} "
            f"must be a multiple of num_envs={self.num_envs}; the nearest that fits is "
            f"num_envs={nearest}."
        )


parse = functools.partial(config.parse, PPOConfig)
"""Turns keyword arguments into PPO's checked settings."""
