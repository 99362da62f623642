"""PPO's settings."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from brax.errors import ConfigError
from brax.training.agents.ppo.losses import LossConfig
from brax.training.agents.ppo.networks import make_ppo_networks
from brax.training.settings import build, number, split

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
class PPOConfig:
    """The numbers of a run of PPO; with them and the environment a run can be repeated."""

    num_timesteps: int = number(0, 0)
    """Environment steps to train for, rounded up to whole training steps; 0 trains nothing."""
    episode_length: int = number(1000, 1)
    """Environment steps after which an episode is truncated."""
    action_repeat: int = number(1, 1)
    """Environment steps taken with each action."""
    num_envs: int = number(1, 1)
    """Environments that run side by side, over all devices."""
    num_eval_envs: int = number(128, 1)
    """Episodes of one evaluation."""
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
    num_resets_per_eval: int = number(0, 0)
    """Fresh resets of all environments between two evaluations."""
    normalize_observations: bool = False
    """Scale observations by their running statistics."""
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
    seed: int = 0
    """Seed of everything random."""
    num_evals: int = number(1, 0)
    """Evaluations: the last after training, the first (from 2 on) before it; 0 for none."""
    deterministic_eval: bool = False
    """Evaluate the mean action instead of samples."""
    log_training_metrics: bool = False
    """Report metrics of the training episodes while training runs."""
    training_metrics_steps: int | None = number(None, 1)
    """Environment steps between those reports; None reports about every second."""
    run_evals: bool = True
    """False to report at the times of evaluations without evaluating."""
    max_devices_per_host: int | None = number(None, 1)
    """Devices to use; None for all."""

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


@dataclass(frozen=True)
class Runtime:
    """What a run is given besides numbers."""

    network_factory: Callable[..., Any] = make_ppo_networks
    """Makes the networks, as `make_ppo_networks` does; a dictionary of its settings does too."""
    eval_env: Any = None
    """Environment to evaluate in; the training one by default."""
    progress_fn: Callable[[int, Mapping[str, Any]], None] = lambda steps, metrics: None
    """Called with the environment steps so far and the metrics."""
    policy_params_fn: Callable[..., None] = lambda steps, make_policy, params: None
    """Called at every evaluation with the steps, `make_policy` and the parameters."""
    wrap_env: bool = True
    """False if the environment is batched and wrapped already."""
    wrap_env_fn: Callable[..., Any] | None = None
    """Wraps the environment instead of `brax.env.wrap`, with the same arguments."""
    randomization_fn: Callable[..., Any] | None = None
    """Draws systems: `(sys, rng) -> (systems, in_axes)`."""
    save_checkpoint_path: Any = None
    """Directory for checkpoints, written at every evaluation and when interrupted."""
    restore_checkpoint_path: Any = None
    """Checkpoint, or directory of checkpoints, to go on from."""
    restore_params: Any = None
    """Parameters to start from, as training returned them."""


def parse(settings: Mapping[str, Any]) -> tuple[PPOConfig, Runtime]:
    """Turns keyword arguments into checked settings.

    Raises:
        ConfigError: naming what is wrong and what is allowed.
    """
    numbers, objects = split(settings, PPOConfig, Runtime, unsupported=UNSUPPORTED)
    if numbers.get("episode_length", 1000) is None:
        raise ConfigError("episode_length=None: PPO needs a limit; the usual one is 1000.")
    config = build(PPOConfig, numbers)
    _check_batches(config)
    if config.action_repeat > config.episode_length:
        raise ConfigError(
            f"action_repeat={config.action_repeat} must not exceed "
            f"episode_length={config.episode_length}."
        )
    factory = objects.get("network_factory")
    if isinstance(factory, Mapping):
        objects["network_factory"] = functools.partial(make_ppo_networks, **factory)
    return config, Runtime(**objects)


def _check_batches(config: PPOConfig) -> None:
    """Refuses batches that the environments cannot fill evenly."""
    stretches = config.batch_size * config.num_minibatches
    if stretches % config.num_envs == 0:
        return
    legal = [n for n in range(1, stretches + 1) if stretches % n == 0]
    nearest = min(legal, key=lambda n: abs(n - config.num_envs))
    raise ConfigError(
        f"batch_size={config.batch_size} * num_minibatches={config.num_minibatches} = {stretches} "
        f"must be a multiple of num_envs={config.num_envs}; the nearest that fits is "
        f"num_envs={nearest}."
    )
