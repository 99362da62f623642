"""Settings of every agent: the numbers of a run, and the objects that it is given."""

import abc
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from brax.errors import ConfigError
from brax.training.learning import halving
from brax.training.settings import build, choice, number, split


@dataclass(frozen=True)
class RunConfig(abc.ABC):
    """The numbers that runs of all agents have; each agent adds its own."""

    unsupported: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """Keyword arguments of Google's agent that do nothing here, with the values that are
    accepted.
    """
    old_names: ClassVar[Mapping[str, str]] = {}
    """Keyword arguments of Google's agent that have another name here."""
    moved_defaults: ClassVar[tuple[str, ...]] = ()
    """Settings whose default has changed. A run that continues from a checkpoint keeps the value
    that it was trained with, unless the caller sets another.
    """
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
    eval_episode_length: int | None = number(None, 1)
    """Environment steps after which an episode of an evaluation is truncated; None is
    `episode_length`.
    """
    num_resets_per_eval: int = number(0, 0)
    """Fresh resets of all environments between two evaluations."""
    normalize_observations: bool = False
    """Scale observations by their running statistics."""
    normalize_observations_std_eps: float = number(0.0, 0)
    """Added to the standard deviations that observations are divided by."""
    normalize_until_count: int | None = number(None, 1)
    """Number of observations after which the statistics stay fixed; None never fixes them."""
    seed: int = number(0, 0, 2**32 - 1)
    """Seed of all random numbers, below 2^32."""
    candidates: int = number(1, 1, 64)
    """Learners that start with seeds of their own and take turns. The better half continues, three
    times for 8 of them, until one is left. The steps of all count.
    """
    policy_average_steps: int | None = number(None, 1)
    """Environment steps over which the weights of the policy are averaged for evaluations,
    checkpoints and the result; None takes the last weights. Learning continues from the last ones.
    """
    num_evals: int = number(1, 0)
    """Number of evaluations: the last is after training; from 2 on, the first is before it."""
    deterministic_eval: bool = False
    """Evaluate the mean action instead of samples."""
    log_training_metrics: bool = False
    """Report metrics of the training episodes while training runs."""
    training_metrics_steps: int | None = number(None, 1)
    """Environment steps between those reports; None reports about once a second."""
    run_evals: bool = True
    """False reports at the times of evaluations without evaluating."""
    save_interval_steps: int | None = number(None, 1)
    """Environment steps between checkpoints, in addition to those at evaluations."""
    save_interval_seconds: float | None = number(None, 0, open_low=True)
    """Seconds of training between checkpoints, in addition to those at evaluations."""
    keep_checkpoints: int = number(3, 1)
    """Number of newest checkpoints to keep; the best one is kept too."""
    failed_save: str = choice("stop", "warn")
    """Reaction to a checkpoint that cannot be saved: `stop`, or `warn` and continue."""
    overwrite_checkpoints: bool = False
    """Remove checkpoints of later steps from the folder; without it, a folder that has any is
    rejected.
    """
    failed_update: str = choice("stop", "skip")
    """Reaction to ten consecutive updates with a non-finite gradient: `stop`, or `skip` all such
    updates.
    """
    stop_at_reward: float | None = number(None)
    """Mean return of an evaluation at which training ends."""
    max_seconds: float | None = number(None, 0, open_low=True)
    """Seconds after the call, compilation included, at which training ends with an evaluation and a
    checkpoint.
    """
    max_devices_per_host: int | None = number(None, 1)
    """Devices to use; None uses all, but only one of those that the command `brax` makes from the
    cores of a CPU.
    """

    @property
    @abc.abstractmethod
    def num_envs(self) -> int:
        """Environments that run in parallel, over all devices."""

    @property
    def vision(self) -> bool:
        """True if the agent's own networks read images."""
        return False

    @property
    def stagger_episodes(self) -> bool:
        """True if the time limit ends the first episodes at different times."""
        return False

    @property
    def augment_pixels(self) -> bool:
        """True if images are shifted in updates."""
        return False

    @property
    @abc.abstractmethod
    def env_steps_per_training_step(self) -> int:
        """Environment steps per training step."""

    @property
    def training_steps(self) -> int:
        """Training steps of the whole run."""
        # Rounded up, so that a run never trains less than it was asked to.
        return -(-self.num_timesteps // self.env_steps_per_training_step)

    @property
    def steps_before_updates(self) -> int:
        """Training steps at the start of a run that only fill a replay buffer."""
        return 0

    @property
    def network_settings(self) -> dict[str, Any]:
        """Settings that `network_factory` gets besides sizes and preprocessing."""
        return {}

    @property
    def needs(self) -> tuple[str, ...]:
        """Entries of the environment's `info` that the agent learns from.

        An environment that lacks one is rejected. `terminal_obs` is the exception: without it
        there is a warning.
        """
        return ("truncation",)

    @property
    def without_effect(self) -> dict[str, str]:
        """Settings that have no effect with these numbers, and the setting that they need."""
        found: dict[str, str] = {}
        if not self.normalize_observations:
            names = ("normalize_observations_std_eps", "normalize_until_count")
            found |= dict.fromkeys(names, "normalize_observations=True")
        if self.num_evals == 1:
            # The only evaluation is after training.
            found["stop_at_reward"] = "further evaluations, such as num_evals=10"
        return found

    def check(self) -> None:
        """Reject numbers that do not fit each other.

        Raises:
            ConfigError: naming them, and what is allowed.
        """
        if self.stop_at_reward is not None and not (self.run_evals and self.num_evals):
            raise ConfigError(
                f"stop_at_reward={self.stop_at_reward} compares the return of evaluations, and "
                f"run_evals={self.run_evals} with num_evals={self.num_evals} makes none: evaluate, "
                "or leave stop_at_reward out."
            )
        for name in ("episode_length", "eval_episode_length"):
            length = getattr(self, name)
            if length is not None and self.action_repeat > length:
                raise ConfigError(
                    f"action_repeat={self.action_repeat} must not exceed {name}={length}."
                )
        average, each = self.policy_average_steps, self.env_steps_per_training_step
        if average is not None and average < each:
            raise ConfigError(
                f"policy_average_steps={average} must be at least {self.step_formula}={each}, the "
                "environment steps of a training step: each training step adds one policy."
            )
        self._check_candidates()

    def _check_candidates(self) -> None:
        """Reject candidates that would be compared before they have played an episode.

        Raises:
            ConfigError: naming the numbers, and how many steps are enough.
        """
        if self.candidates == 1 or not self.num_timesteps:
            return
        each = self.env_steps_per_training_step
        # Training steps in which every environment of a candidate plays an episode.
        needed = -(-self.num_envs * self.episode_length // each)
        total = self.training_steps
        if halving.divide(total, self.candidates).length >= needed:
            return
        enough = needed * halving.parts(self.candidates) * each
        raise ConfigError(
            f"candidates={self.candidates} are chosen from before each has played an episode of "
            f"episode_length={self.episode_length} in num_envs={self.num_envs}: num_timesteps="
            f"{self.num_timesteps} must be at least {enough}."
        )


def renamed(cls: type[RunConfig], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with today's names in place of Google's.

    Raises:
        ConfigError: if one setting is given by both of its names.
    """
    for old, new in cls.old_names.items():
        if old in settings and new in settings:
            raise ConfigError(f"{old} is another name of {new}: give one of the two.")
    return {cls.old_names.get(name, name): value for name, value in settings.items()}


def evaluated_steps(settings: Mapping[str, Any]) -> int:
    """Return the environment steps after which a run's evaluations truncate an episode.

    Args:
        settings: numbers of the run; those that are missing have their defaults.
    """
    length = settings.get("eval_episode_length")
    return int(length or settings.get("episode_length", RunConfig.episode_length))


@dataclass(frozen=True)
class Runtime:
    """The settings of a run that are not numbers, such as functions and paths."""

    network_factory: Callable[..., Any] | Mapping[str, Any] | None = None
    """Function that makes the networks, or a dictionary of settings of the agent's own."""
    eval_env: Any = None
    """Environment to evaluate in; by default the training environment."""
    progress_fn: Callable[[int, Mapping[str, Any]], None] = lambda steps, metrics: None
    """Function that is called with the environment steps so far and the metrics."""
    policy_params_fn: Callable[..., None] = lambda steps, make_policy, params: None
    """Function that is called at every evaluation with steps, `make_policy` and parameters."""
    wrap_env: bool = True
    """False if the environment is already batched, wrapped and randomized."""
    wrap_env_fn: Callable[..., Any] | None = None
    """Function that wraps the environment in place of `brax.env.wrap`, with the same arguments."""
    randomization_fn: Callable[..., Any] | None = None
    """Function `(sys, rng) -> (systems, in_axes)` that draws systems: once, or if its attribute
    `resample` is true, at the start, at the resets of `num_resets_per_eval` and in each evaluation.
    """
    save_checkpoint_path: str | Path | None = None
    """Folder for checkpoints, written at every evaluation and when interrupted."""
    restore_checkpoint_path: str | Path | None = None
    """Checkpoint, or folder of checkpoints, to continue from."""
    restore_params: Any = None
    """Parameters to start from, as training returned them, or only the first of them, such as
    `(normalizer, policy)`.
    """

    @property
    def first_params(self) -> Any:
        """The parameters to start from, as the user gave them."""
        return self.restore_params

    def check(self, config: Any) -> None:
        """Reject objects that do not fit the numbers of a run.

        Raises:
            ConfigError: naming them, and what is allowed.
        """
        if config.augment_pixels and not (config.vision or callable(self.network_factory)):
            raise ConfigError(
                "augment_pixels=True shifts images: set vision=True, or leave it out."
            )
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
        wrappers = {"wrap_env_fn": self.wrap_env_fn, "randomization_fn": self.randomization_fn}
        unused = [
            name
            for name, function in wrappers.items()
            if function is not None and not self.wrap_env
        ]
        if unused:
            raise ConfigError(
                f"wrap_env=False takes the environment as it is, without {' and '.join(unused)}: "
                "leave one or the other out."
            )


def _check_takes(
    name: str, function: Callable[..., object], *arguments: str, named: Sequence[str] = ()
) -> None:
    """Reject a function that does not accept these positional and keyword arguments.

    Raises:
        ConfigError: naming the function and the arguments.
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
    cls: type[RunConfig], settings: Mapping[str, object], runtime: type[Runtime] = Runtime
) -> tuple[Any, Any]:
    """Turn keyword arguments into checked settings.

    Args:
        cls: class of the agent's numbers.
        settings: keyword arguments, as the user gave them.
        runtime: class of the agent's other settings.

    Returns:
        The numbers, a `cls`, and the rest, a `runtime`.

    Raises:
        ConfigError: naming what is wrong and what is allowed.
    """
    settings = renamed(cls, settings)
    numbers, objects = split(settings, cls, runtime, unsupported=cls.unsupported)
    # Google's agents take None for no limit; evaluations here need one to end.
    if numbers.get("episode_length", 1) is None:
        raise ConfigError("episode_length=None: there must be a limit; the usual one is 1000.")
    config = build(cls, numbers)
    config.check()
    if config.training_metrics_steps is not None and "log_training_metrics" not in settings:
        warnings.warn(
            f"training_metrics_steps={config.training_metrics_steps} has no effect without "
            "log_training_metrics=True.",
            # The warning points at the user's call of `train`.
            stacklevel=5,
        )
    defaults = {field.name: field.default for field in fields(cls)}
    for name, needed in config.without_effect.items():
        if getattr(config, name) != defaults[name]:
            warnings.warn(
                f"{name}={getattr(config, name)!r} has no effect without {needed}.", stacklevel=5
            )
    rest = build(runtime, objects)
    rest.check(config)
    return config, rest
