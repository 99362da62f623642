"""Training with APG."""

from collections.abc import Callable
from typing import Any

from brax.env import Env
from brax.training.agents.apg.trainer import APG
from brax.training.policies import PolicyParams


def train(
    environment: Env,
    num_timesteps: int | None = None,
    *,
    policy_updates: int | None = None,
    **settings: Any,
) -> tuple[Callable[..., Any], PolicyParams, dict[str, Any]]:
    """Trains a policy with the gradient of the rewards through the simulator.

    Args:
        environment: environment to learn, not yet batched.
        num_timesteps: environment steps to train for, rounded up to whole training steps; 0
            returns the first parameters. With `restore_checkpoint_path` it includes the steps
            that the checkpoint has behind it.
        policy_updates: training steps, instead of `num_timesteps`.
        **settings: fields of `APGConfig` and `Runtime`; `docs/training.md` lists them.

    Returns:
        `make_policy(params, deterministic=False)`, the parameters `(normalizer, policy)`, and the
        metrics of the last evaluation.

    Raises:
        ConfigError: before any long work, if a setting is unknown, unsupported or not allowed.
        CheckpointError: if a checkpoint cannot be written or restored.
        TrainingError: if gradients stay without a finite value.

    Source: Freeman et al. 2021 (2106.13281), section 4.
    """
    num_timesteps = APG.timesteps(num_timesteps, policy_updates, "policy_updates", settings)
    return APG.train(environment, num_timesteps=num_timesteps, **settings)
