"""Training with BC."""

from collections.abc import Callable
from typing import Any

from brax.env import Env
from brax.training.agents.bc.trainer import BC
from brax.training.policies import PolicyParams


def train(
    env: Env,
    num_timesteps: int | None = None,
    *,
    dagger_steps: int | None = None,
    **settings: Any,
) -> tuple[Callable[..., Any], PolicyParams, dict[str, Any]]:
    """Trains a policy to act as a teacher does, where its own actions lead.

    Args:
        env: environment to act in, not yet batched.
        num_timesteps: environment steps to train for, rounded up to whole training steps; 0
            returns the first parameters. With `restore_checkpoint_path` it includes the steps
            that the checkpoint has behind it.
        dagger_steps: training steps, instead of `num_timesteps`.
        **settings: fields of `BCConfig` and `BCRuntime`; `docs/training.md` lists them.

    Returns:
        `make_policy(params, deterministic=False)`, the parameters `(normalizer, policy)`, and the
        metrics of the last evaluation.

    Raises:
        ConfigError: before any long work, if a setting is unknown, unsupported or not allowed.
        CheckpointError: if a checkpoint cannot be written or restored, or the teacher not loaded.
        TrainingError: if gradients stay without a finite value.

    Source: Ross, Gordon, Bagnell 2011 (1011.0686).
    """
    num_timesteps = BC.timesteps(num_timesteps, dagger_steps, "dagger_steps", settings)
    return BC.train(env, num_timesteps=num_timesteps, **settings)
