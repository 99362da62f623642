"""Training with augmented random search."""

from collections.abc import Callable
from typing import Any

from brax.env import Env
from brax.training.agents.ars.trainer import ARS
from brax.training.policies import PolicyParams


def train(
    environment: Env, num_timesteps: int, **settings: Any
) -> tuple[Callable[..., Any], PolicyParams, dict[str, Any]]:
    """Trains a policy with augmented random search.

    Args:
        environment: environment to learn, not yet batched.
        num_timesteps: environment steps to train for, rounded up to whole training steps; 0
            returns the first parameters. With `restore_checkpoint_path` it includes the steps
            that the checkpoint has behind it.
        **settings: fields of `ARSConfig` and `Runtime`; `docs/training.md` lists them.

    Returns:
        `make_policy(params, deterministic=False)`, the parameters `(normalizer, policy)`, and the
        metrics of the last evaluation.

    Raises:
        ConfigError: before any long work, if a setting is unknown, unsupported or not allowed.
        CheckpointError: if a checkpoint cannot be written or restored.
        TrainingError: if gradients stay without a finite value.

    Source: Mania et al. 2018.
    """
    return ARS.train(environment, num_timesteps=num_timesteps, **settings)
