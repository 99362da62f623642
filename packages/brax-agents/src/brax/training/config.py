"""What every agent can be told: the numbers of a run, and what it is given besides numbers."""

import abc
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from brax.errors import ConfigError
from brax.training.settings import build, choice, number, split


@dataclass(frozen=True)
class RunConfig(abc.ABC):
    """The numbers that runs of all agents have; each agent adds its own."""

    unsupported: ClassVar[Mapping[str, Any]] = {}
    """Keyword arguments of Google's agent that do nothing here, with the value that is accepted."""
    old_names: ClassVar[Mapping[str, str]] = {}
    """Keyword arguments of Google's agent that have another name here."""
    moved_defaults: ClassVar[tuple[str, ...]] = ()
    """Settings whose default was another before: a run that goes on from a checkpoint keeps what
    that was trained with, unless it is told otherwise."""
    step_formula: ClassVar[str]
    """The settings whose product is `env_steps_per_training_step`."""

    num_timesteps: int = number(0, 0)
    """Environment steps to train for, rounded up to whole training steps; 0 trains nothing."""
    episode_length: int = number(1000, 1)
    """Environment steps after which an episode is truncated."""
    action_repeat: int = number(1, 1)
    """Environment steps taken with each action."""
    num_eval_envs: int = number(128, 1)
    """Episodes of one evaluation."""
    num_resets_per_eval: int = number(0, 0)
    """Fresh resets of all environments between two evaluations."""
    normalize_observations: bool = False
    """Scale observations by their running statistics."""
    normalize_observations_std_eps: float = number(0.0, 0)
    """Added to the deviations that observations are divided by."""
    normalize_until_count: int | None = number(None, 1)
    """Observations after which their statistics stay as they are; None for never."""
    seed: int = number(0, 0, 2**32 - 1)
    """Seed of everything random, below 2^32."""
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
    save_interval_steps: int | None = number(None, 1)
    """Environment steps after which a checkpoint is saved besides those at evaluations."""
    save_interval_seconds: float | None = number(None, 0, open_low=True)
    """Seconds of training after which one is."""
    keep_checkpoints: int = number(3, 1)
    """Newest checkpoints that are kept, besides the best."""
    failed_save: str = choice("stop", "warn")
    """What follows a checkpoint that cannot be saved: `stop`, or `warn` and train on."""
    overwrite_checkpoints: bool = False
    """Remove checkpoints of later steps than the first from the folder, which is refused else."""
    failed_update: str = choice("stop", "skip")
    """What follows ten updates in a row without a finite gradient: `stop`, or `skip` them all."""
    stop_at_reward: float | None = number(None)
    """Mean return of an evaluation at which training ends."""
    max_seconds: float | None = number(None, 0, open_low=True)
    """Seconds after the call, compiling included, at which training ends, evaluated and saved."""
    max_devices_per_host: int | None = number(None, 1)
    """Devices to use; None for all, but for one of those that the command `brax` makes of a CPU's
    cores."""

    @property
    @abc.abstractmethod
    def num_envs(self) -> int:
        """Environments that run side by side, over all devices."""

    @property
    def vision(self) -> bool:
        """True if the agent's own networks read images."""
        return False

    @property
    def augment_pixels(self) -> bool:
        """True if images are shifted in updates."""
        return False

    @property
    @abc.abstractmethod
    def env_steps_per_training_step(self) -> int:
        """Environment steps of one training step."""

    @property
    def training_steps(self) -> int:
        """Training steps of the whole run."""
        return -(-self.num_timesteps // self.env_steps_per_training_step)

    @property
    def network_settings(self) -> dict[str, Any]:
        """What `network_factory` is told besides sizes and preprocessing."""
        return {}

    @property
    def needs(self) -> tuple[str, ...]:
        """Entries of the environment's `info` that the agent learns from: it is refused without
        them, but for `terminal_obs`, without which it is warned of."""
        return ("truncation",)

    def check(self) -> None:
        """Refuses numbers that do not fit each other.

        Raises:
            ConfigError: naming them, and what is allowed.
        """
        if self.action_repeat > self.episode_length:
            raise ConfigError(
                f"action_repeat={self.action_repeat} must not exceed "
                f"episode_length={self.episode_length}."
            )
        if self.augment_pixels and not self.vision:
            raise ConfigError(
                "augment_pixels=True shifts images: set vision=True, or leave it out."
            )


@dataclass(frozen=True)
class Runtime:
    """What a run is given besides numbers."""

    network_factory: Callable[..., Any] | Mapping[str, Any] | None = None
    """Makes the networks, as the agent's own function does; a dictionary changes its settings."""
    eval_env: Any = None
    """Environment to evaluate in; the training one by default."""
    progress_fn: Callable[[int, Mapping[str, Any]], None] = lambda steps, metrics: None
    """Called with the environment steps so far and the metrics."""
    policy_params_fn: Callable[..., None] = lambda steps, make_policy, params: None
    """Called at every evaluation with the steps, `make_policy` and the parameters."""
    wrap_env: bool = True
    """False if the environment is batched, wrapped and randomized already."""
    wrap_env_fn: Callable[..., Any] | None = None
    """Wraps the environment instead of `brax.env.wrap`, with the same arguments."""
    randomization_fn: Callable[..., Any] | None = None
    """Draws systems, `(sys, rng) -> (systems, in_axes)`: once, or if its attribute `resample` is
    true at each reset."""
    save_checkpoint_path: str | Path | None = None
    """Directory for checkpoints, written at every evaluation and when interrupted."""
    restore_checkpoint_path: str | Path | None = None
    """Checkpoint, or directory of checkpoints, to go on from."""
    restore_params: Any = None
    """Parameters to start from, as training returned them, or only the first of them, such as
    `(normalizer, policy)`."""

    @property
    def first_params(self) -> Any:
        """The parameters to start from that were given."""
        return self.restore_params

    def check(self, config: Any) -> None:
        """Refuses what does not go with the numbers of a run.

        Raises:
            ConfigError: naming it, and what is allowed.
        """
        if self.eval_env is not None and not hasattr(self.eval_env, "reset"):
            raise ConfigError(
                f"eval_env={self.eval_env!r} must be an environment, made as the one to learn is, "
                "or None to evaluate in that."
            )
        _check_takes("progress_fn", self.progress_fn, "steps", "metrics")
        _check_takes("policy_params_fn", self.policy_params_fn, "steps", "make_policy", "params")
        if self.wrap_env_fn is not None:
            named = ("episode_length", "action_repeat", "randomization_fn")
            _check_takes("wrap_env_fn", self.wrap_env_fn, "env", named=named)
        ways = {"wrap_env_fn": self.wrap_env_fn, "randomization_fn": self.randomization_fn}
        unused = [name for name, way in ways.items() if way is not None and not self.wrap_env]
        if unused:
            raise ConfigError(
                f"wrap_env=False takes the environment as it is, without {' and '.join(unused)}: "
                "leave one or the other out."
            )


def _check_takes(
    name: str, function: Callable[..., Any], *arguments: str, named: Sequence[str] = ()
) -> None:
    """Refuses a function that cannot be called with so many arguments, some of them by name.

    Raises:
        ConfigError: naming it and the arguments.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a builtin
        return
    try:
        signature.bind(*arguments, **dict.fromkeys(named))
    except TypeError as error:
        raise ConfigError(
            f"{name} is called with ({', '.join([*arguments, *(f'{n}=...' for n in named)])}), "
            f"which the given one does not take: {error}."
        ) from None


def parse(
    cls: type[RunConfig], settings: Mapping[str, Any], runtime: type[Runtime] = Runtime
) -> tuple[Any, Any]:
    """Turns keyword arguments into checked settings.

    Args:
        cls: the agent's numbers.
        settings: keyword arguments as a user gave them.
        runtime: what the agent is given besides numbers.

    Returns:
        The numbers, a `cls`, and the rest, a `runtime`.

    Raises:
        ConfigError: naming what is wrong and what is allowed.
    """
    settings = {cls.old_names.get(name, name): value for name, value in settings.items()}
    numbers, objects = split(settings, cls, runtime, unsupported=cls.unsupported)
    if numbers.get("episode_length", 1) is None:
        raise ConfigError("episode_length=None: there must be a limit; the usual one is 1000.")
    config = build(cls, numbers)
    config.check()
    if config.training_metrics_steps is not None and "log_training_metrics" not in settings:
        warnings.warn(
            f"training_metrics_steps={config.training_metrics_steps} has no effect without "
            "log_training_metrics=True.",
            stacklevel=5,
        )
    rest = build(runtime, objects)
    rest.check(config)
    return config, rest
