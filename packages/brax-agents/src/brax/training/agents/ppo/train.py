"""Training with PPO."""

from collections.abc import Callable
from typing import Any

from brax.env import Env
from brax.training.agents.ppo.networks import PPOParams
from brax.training.agents.ppo.trainer import PPO


def train(
    environment: Env, num_timesteps: int, **settings: Any
) -> tuple[Callable[..., Any], PPOParams, dict[str, Any]]:
    """Trains a policy with PPO.

    Args:
        environment: environment to learn, not yet batched.
        num_timesteps: environment steps to train for, rounded up to whole training steps; 0
            returns the first parameters. With `restore_checkpoint_path` it includes the steps
            that the checkpoint has behind it.
        **settings: fields of `PPOConfig` and `Runtime`; `docs/training.md` lists them.

    Returns:
        `make_policy(params, deterministic=False)`, the parameters `(normalizer, policy, value)`,
        and the metrics of the last evaluation.

    Raises:
        ConfigError: before any long work, if a setting is unknown, unsupported or not allowed.
        CheckpointError: if a checkpoint cannot be written or restored.
        TrainingError: if gradients stay without a finite value.

    Source: Schulman et al. 2017.
    """
    return PPO.train(environment, num_timesteps=num_timesteps, **settings)
