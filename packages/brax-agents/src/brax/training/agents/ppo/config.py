"""The settings of PPO."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from brax.errors import ConfigError
from brax.training import config
from brax.training.acme import running_statistics
from brax.training.agents.ppo.losses import PPOLossConfig
from brax.training.agents.ppo.optimizer import LRSchedule
from brax.training.settings import check_divides, choice, number


@dataclass(frozen=True)
class PPOConfig(config.RunConfig):
    """The numbers of a PPO run. Together with the environment they make the run repeatable."""

    unsupported: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "madrona_backend": (False,),
        "use_pmap_on_reset": (True, False),
    }
    moved_defaults = ("bootstrap_on_timeout",)
    step_formula = "batch_size * num_minibatches * unroll_length * action_repeat"

    num_envs: int = number(1, 1)
    """Environments that run in parallel, over all devices."""
    learning_rate: float = number(1e-4, 0, open_low=True)
    """Learning rate of Adam; with a schedule, the initial one."""
    learning_rate_schedule: str | None = choice(None, *LRSchedule)
    """`ADAPTIVE_KL` adapts the learning rate at each update to the KL divergence, `LINEAR` lets it
    fall linearly to zero over `num_timesteps`; None or `NONE` keeps it fixed.
    """
    desired_kl: float = number(0.01, 0, open_low=True)
    """KL divergence from the policy that acted that `ADAPTIVE_KL` aims at."""
    learning_rate_schedule_min_lr: float = number(1e-5, 0, open_low=True)
    """Lower bound of the adaptive learning rate."""
    learning_rate_schedule_max_lr: float = number(1e-2, 0, open_low=True)
    """Upper bound of the adaptive learning rate."""
    entropy_cost: float = number(1e-4, 0)
    """Weight of the entropy bonus."""
    discounting: float = number(0.9, 0, 1)
    """Discount factor per action."""
    unroll_length: int = number(10, 1)
    """Actions per unroll, the stretch of experience that advantages are computed over."""
    batch_size: int = number(32, 1)
    """Unrolls per minibatch, over all devices."""
    num_minibatches: int = number(16, 1)
    """Minibatches per training step."""
    num_updates_per_batch: int = number(2, 1)
    """Epochs: passes over the experience of one training step."""
    reward_scaling: float = number(1.0, 0, open_low=True)
    """Factor that rewards are multiplied by before learning; reported returns are without it."""
    clipping_epsilon: float = number(0.3, 0, open_low=True)
    """Clipping range of the probability ratio."""
    clipping_epsilon_value: float | None = number(None, 0, open_low=True)
    """Clipping range of the change of a value in one training step; None does not clip."""
    advantage_estimator: str = choice("v_trace", "gae")
    """Advantages from value targets `V'`: `v_trace` is `r + discounting * V'[t+1] - V[t]`, `gae` is
    `V'[t] - V[t]`.
    """
    gae_lambda: float = number(0.95, 0, 1)
    """Lambda of the value targets: 0 uses one-step returns, 1 whole returns."""
    recompute_targets: bool = False
    """Compute value targets and advantages in every update, from the current critic and
    statistics, as Google's PPO does; False computes them once a training step.
    """
    max_grad_norm: float | None = number(None, 0, open_low=True)
    """Largest norm of a gradient; larger ones are scaled down. None does not clip."""
    normalize_observations_mode: str = choice(*running_statistics.MODES)
    """`welford` or `ema`, Google's words for two forms of the same statistics: the mean and the
    variance of all observations so far. They train alike.
    """
    normalize_advantage: bool = True
    """Scale advantages to mean 0 and standard deviation 1 in each minibatch."""
    vf_loss_coefficient: float = number(0.5, 0)
    """Twice the weight of the squared value error: the default weighs it by 1/4."""
    use_distributional_critic: bool = False
    """Let the value network learn quantiles of the return; the value is their mean."""
    bootstrap_on_timeout: bool = True
    """Learn from truncated steps too, with the value of the true last observation; False gives
    them no part in the policy and value losses.
    """
    memory: str | None = choice(None, "gru", "lstm")
    """Recurrent cell in front of the layers of policy and value network: `gru` or `lstm`."""
    memory_size: int = number(64, 1)
    """Units of that cell."""
    memory_burn_in: int = number(0, 0)
    """Steps at the start of each unroll that updates use only to bring memory up to date."""
    stagger_episodes: bool = False
    """Start the first episodes at random steps of `episode_length`, so that the time limit does not
    end them all at once.
    """
    vision: bool = False
    """Let the networks read images, the observations whose names begin with `pixels/`."""
    augment_pixels: bool = False
    """Shift the images by up to 4 pixels, drawn for each sample of each update."""

    @property
    def num_unrolls(self) -> int:
        """Unrolls that each environment runs in one training step."""
        return self.batch_size * self.num_minibatches // self.num_envs

    @property
    def env_steps_per_training_step(self) -> int:
        """Environment steps of one training step."""
        unrolls = self.batch_size * self.num_minibatches
        return unrolls * self.unroll_length * self.action_repeat

    @property
    def loss(self) -> PPOLossConfig:
        """The numbers that the loss needs."""
        return PPOLossConfig(
            clipping_epsilon=self.clipping_epsilon,
            entropy_cost=self.entropy_cost,
            vf_loss_coefficient=self.vf_loss_coefficient,
            normalize_advantage=self.normalize_advantage,
            gae_lambda=self.gae_lambda,
            discounting=self.discounting,
            advantage_estimator=self.advantage_estimator,
            recompute_targets=self.recompute_targets,
            clipping_epsilon_value=self.clipping_epsilon_value,
            memory_burn_in=self.memory_burn_in,
        )

    @property
    def network_settings(self) -> dict[str, Any]:
        """Settings that `network_factory` gets besides sizes and preprocessing."""
        found: dict[str, Any] = {}
        if self.use_distributional_critic:
            found["use_distributional_critic"] = True
        if self.memory is not None:
            found |= {"memory": self.memory, "memory_size": self.memory_size}
        return found

    @property
    def needs(self) -> tuple[str, ...]:
        """Entries of the environment's `info` that PPO learns from."""
        more = ("terminal_obs",) * self.bootstrap_on_timeout + ("steps",) * self.stagger_episodes
        return ("truncation", *more)

    @property
    def without_effect(self) -> dict[str, str]:
        """Settings that have no effect with these numbers, and the setting that they need."""
        found = super().without_effect
        if self.memory is None:
            found["memory_size"] = 'memory="gru" or "lstm"'
        if self.learning_rate_schedule != LRSchedule.ADAPTIVE_KL:
            limits = ("learning_rate_schedule_min_lr", "learning_rate_schedule_max_lr")
            found |= dict.fromkeys(("desired_kl", *limits), 'learning_rate_schedule="ADAPTIVE_KL"')
        return found

    def check(self) -> None:
        """Reject numbers that contradict each other and batches that environments cannot fill.

        Raises:
            ConfigError: naming the numbers and the nearest that fits.
        """
        super().check()
        least, most = self.learning_rate_schedule_min_lr, self.learning_rate_schedule_max_lr
        adaptive = self.learning_rate_schedule == LRSchedule.ADAPTIVE_KL
        if adaptive and not least <= self.learning_rate <= most:
            raise ConfigError(
                f"learning_rate={self.learning_rate} must be between learning_rate_schedule_min_lr="
                f"{least} and learning_rate_schedule_max_lr={most}; the nearest is "
                f"{min(max(self.learning_rate, least), most)}."
            )
        if self.memory_burn_in and self.memory is None:
            raise ConfigError(
                f"memory_burn_in={self.memory_burn_in} needs memory: set memory to gru or lstm, or "
                "leave it out."
            )
        if self.memory_burn_in >= self.unroll_length:
            raise ConfigError(
                f"memory_burn_in={self.memory_burn_in} must be below unroll_length="
                f"{self.unroll_length}: the steps after it are learned from."
            )
        unrolls = self.batch_size * self.num_minibatches
        # Every environment runs a whole number of unrolls in a training step, so that all of them
        # stay in step and the batch has one shape.
        product = f"batch_size={self.batch_size} * num_minibatches={self.num_minibatches}"
        check_divides("num_envs", self.num_envs, product, unrolls)


@dataclass(frozen=True)
class PPORuntime(config.Runtime):
    """The objects of a PPO run: what cannot be written as a number."""

    restore_value_fn: bool = True
    """False to take all of `restore_params` but the value network."""

    def check(self, config: object) -> None:
        """Reject a request to restore only a part of a checkpoint.

        Raises:
            ConfigError: saying how to restore a part.
        """
        super().check(config)
        if self.restore_checkpoint_path is not None and not self.restore_value_fn:
            raise ConfigError(
                "restore_value_fn=False needs restore_params: a checkpoint is a whole training "
                "state, and restore_checkpoint_path continues with all of it."
            )

    @property
    def first_params(self) -> Any:
        """The parameters to start from, without the value network if that is not wanted."""
        given = self.restore_params
        whole = self.restore_value_fn or not isinstance(given, tuple | list)
        return given if whole else given[:2]


parse = functools.partial(config.parse, PPOConfig, runtime=PPORuntime)
"""Function from keyword arguments to PPO's checked settings."""
