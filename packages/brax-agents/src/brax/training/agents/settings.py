"""Types of the keyword arguments of every agent's `train`.

`hatch run settings` writes this module from the agents' dataclasses, and a test compares the two.
Editors complete from it, and type checkers refuse other names and types. `docs/agents.md` has
defaults and meanings.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict

import jax


class RunSettings(TypedDict, total=False):
    """Settings of every agent."""

    episode_length: int
    action_repeat: int
    num_eval_envs: int
    eval_episode_length: int | None
    num_resets_per_eval: int
    normalize_observations: bool
    normalize_observations_std_eps: float
    normalize_until_count: int | None
    seed: int
    candidates: int
    policy_average_steps: int | None
    num_evals: int
    deterministic_eval: bool
    log_training_metrics: bool
    training_metrics_steps: int | None
    run_evals: bool
    save_interval_steps: int | None
    save_interval_seconds: float | None
    keep_checkpoints: int
    failed_save: str
    overwrite_checkpoints: bool
    failed_update: str
    stop_at_reward: float | None
    max_seconds: float | None
    max_devices_per_host: int | None
    network_factory: Callable[..., Any] | Mapping[str, Any] | None
    eval_env: Any
    progress_fn: Callable[[int, Mapping[str, Any]], None]
    policy_params_fn: Callable[..., None]
    wrap_env: bool
    wrap_env_fn: Callable[..., Any] | None
    randomization_fn: Callable[..., Any] | None
    save_checkpoint_path: str | Path | None
    restore_checkpoint_path: str | Path | None
    restore_params: Any


class APGSettings(RunSettings, total=False):
    """Settings of APG."""

    num_envs: int
    horizon_length: int
    learning_rate: float
    adam_b: tuple[float, float]
    use_schedule: bool
    schedule_decay: float
    max_gradient_norm: float
    zeroth_order: float
    use_float64: Literal[False]


class ARSSettings(RunSettings, total=False):
    """Settings of ARS."""

    number_of_directions: int
    top_directions: int
    step_size: float
    exploration_noise_std: float
    reward_shift: float


class BCSettings(RunSettings, total=False):
    """Settings of BC."""

    num_envs: int
    demo_length: int
    epochs: int
    batch_size: int
    learning_rate: float
    max_replay_size: int
    tanh_squash: bool
    teacher: str
    vision: bool
    augment_pixels: bool
    teacher_inference_fn: Callable[..., Any] | None
    dagger_beta_fn: Callable[[jax.Array], jax.Array]
    eval_length: int
    scramble_time: Literal[0]
    madrona_backend: Literal[False]
    reset: Literal[True, False]


class ESSettings(RunSettings, total=False):
    """Settings of ES."""

    population_size: int
    learning_rate: float
    perturbation_std: float
    fitness_shaping: str
    center_fitness: bool
    l2coeff: float


class PPOSettings(RunSettings, total=False):
    """Settings of PPO."""

    num_envs: int
    learning_rate: float
    learning_rate_schedule: str | None
    desired_kl: float
    learning_rate_schedule_min_lr: float
    learning_rate_schedule_max_lr: float
    entropy_cost: float
    discounting: float
    unroll_length: int
    batch_size: int
    num_minibatches: int
    num_updates_per_batch: int
    reward_scaling: float
    clipping_epsilon: float
    clipping_epsilon_value: float | None
    advantage_estimator: str
    gae_lambda: float
    recompute_targets: bool
    max_grad_norm: float | None
    normalize_observations_mode: str
    normalize_advantage: bool
    vf_loss_coefficient: float
    use_distributional_critic: bool
    bootstrap_on_timeout: bool
    memory: str | None
    memory_size: int
    memory_burn_in: int
    stagger_episodes: bool
    vision: bool
    augment_pixels: bool
    restore_value_fn: bool
    madrona_backend: Literal[False]
    use_pmap_on_reset: Literal[True, False]


class REPPOSettings(RunSettings, total=False):
    """Settings of REPPO."""

    num_envs: int
    unroll_length: int
    stagger_episodes: bool
    num_minibatches: int
    num_updates_per_batch: int
    learning_rate: float
    learning_rate_schedule: str | None
    max_grad_norm: float
    discounting: float
    td_lambda: float
    reward_scaling: float
    v_min: float
    v_max: float
    kl_bound: float
    target_entropy: float | None


class SACSettings(RunSettings, total=False):
    """Settings of SAC."""

    num_envs: int
    learning_rate: float
    alpha_learning_rate: float
    discounting: float
    batch_size: int
    grad_updates_per_step: int
    tau: float
    reward_scaling: float
    min_replay_size: int
    max_replay_size: int
    target_entropy: float | None
    checkpoint_logdir: str | Path | None


class SHACSettings(RunSettings, total=False):
    """Settings of SHAC."""

    num_envs: int
    horizon_length: int
    learning_rate: float
    critic_learning_rate: float
    discounting: float
    gae_lambda: float
    critic_updates: int
    num_minibatches: int
    tau: float
    reward_scaling: float
    max_gradient_norm: float
    max_state_gradient: float | None
    entropy_cost: float
    zeroth_order: float


class TD3Settings(RunSettings, total=False):
    """Settings of TD3."""

    num_envs: int
    learning_rate: float
    learning_rate_schedule: str | None
    weight_decay: float
    discounting: float
    batch_size: int
    grad_updates_per_step: int
    policy_delay: int
    tau: float
    n_steps: int
    num_atoms: int
    v_min: float
    v_max: float
    min_exploration_noise: float
    max_exploration_noise: float
    target_noise: float
    target_noise_clip: float
    reward_scaling: float
    min_replay_size: int
    max_replay_size: int
