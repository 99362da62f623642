"""The parts of a run, made from its settings: environments, evaluator, saver, first state."""

import contextlib
import functools
import inspect
import numbers
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from brax.env import Env, State, wrap
from brax.env.base import check_environment_given
from brax.env.structure import declared_shape
from brax.env.wrappers.stack import inner
from brax.errors import ConfigError, TrainingError
from brax.training import policies, types
from brax.training.checkpoints import resumption
from brax.training.checkpoints.saver import Saver, StateSaver
from brax.training.config import RunConfig, Runtime, evaluated_steps
from brax.training.distributed import hosts
from brax.training.learner import environment_keys
from brax.training.runner.evaluator import Evaluator
from brax.training.runner.loop import (
    MAX_BAD_UPDATES,
    Reports,
    Schedule,
    StoppingCriteria,
)
from brax.training.runner.program import Program


def wrap_environment(
    env: Env, config: RunConfig, runtime: Runtime, num_envs: int, key: jax.Array
) -> Env:
    """Return the environment, batched, with time limit, auto-reset and randomized systems.

    Systems are drawn once, with `key`, unless `randomization_fn` asks for a draw at every call of
    `reset` or has keys of its own.
    """
    if not runtime.wrap_env:
        return env
    # Wrapped twice, an environment would be batched twice and its first states lost.
    env = inner(env)
    randomization_fn = runtime.randomization_fn
    if randomization_fn is not None and draws_once(randomization_fn):
        # One key for each environment: every environment gets its own system.
        rng = jax.random.split(key, num_envs)
        randomization_fn = functools.partial(randomization_fn, rng=rng)
    found = (runtime.wrap_env_fn or wrap)(
        env,
        episode_length=config.episode_length,
        action_repeat=config.action_repeat,
        randomization_fn=randomization_fn,
    )
    check_environment_given("what wrap_env_fn returned", found, "action_size")
    return found


def check_environment(name: str, env: Any) -> None:
    """Reject objects that are no environment, or take no actions.

    Raises:
        ConfigError: naming it and what to pass instead.
    """
    check_environment_given(name, env, "action_size")
    if not isinstance(env.action_size, numbers.Integral) or env.action_size < 1:
        raise ConfigError(f"{name}: action_size is {env.action_size}; expected at least 1.")


def draws_once(randomization_fn: Callable[..., object]) -> bool:
    """Return whether systems are drawn before training, with a key of the run."""
    has_keys = "rng" in getattr(randomization_fn, "keywords", {})  # by functools.partial
    takes_keys = "rng" in inspect.signature(randomization_fn).parameters
    return takes_keys and not has_keys and not getattr(randomization_fn, "resample", False)


def check_state(env: Env, config: RunConfig) -> State:
    """Return the shapes of the batched environment's state; reject what agents cannot use.

    Raises:
        ConfigError: if rewards, observations or entries of `info` are not what agents need.
    """
    keys = environment_keys(env, jax.random.key(0), config.num_envs)
    # Shapes only: nothing is computed or compiled.
    state = jax.eval_shape(env.reset, keys)
    # An environment that is not batched would broadcast its one reward without an error.
    if state.reward.shape != (config.num_envs,):
        raise ConfigError(
            f"the environment's reward has shape {state.reward.shape}; expected "
            f"({config.num_envs},), one for each of num_envs. Is it batched?"
        )
    for name, part in _named_entries(state.obs):
        if not hasattr(part, "ndim"):
            raise ConfigError(
                f"the environment's observation '{name}' is a {type(part).__name__}; agents read "
                "arrays, or a dictionary of arrays by name."
            )
    if not isinstance(state.obs, Mapping) and state.obs.ndim > 2:
        raise ConfigError(
            f"the environment's observation is one array of the shape {state.obs.shape[1:]}; "
            "agents read vectors. Put an image into a dictionary, by a name such as "
            f"'{types.PIXELS}view', for agents that have the setting vision."
        )
    lacking = [name for name in config.needs if name not in state.info]
    # Without `terminal_obs` training is possible: `acting.last_observation` has a substitute.
    missing = [name for name in lacking if name != "terminal_obs"]
    if missing:
        raise ConfigError(
            f"the environment's info has no {' and no '.join(missing)}. Wrap it with "
            "brax.env.wrap, or have wrap_env_fn provide it."
        )
    if "terminal_obs" in lacking:
        warnings.warn(
            "the environment's info has no terminal_obs, the true last observation of an episode: "
            "where the time limit ends one, the observation before the last step stands for it. "
            "brax.env.wrap keeps it.",
            stacklevel=5,
        )
    return state


def check_observation_size(size: types.ObservationSize, state: State) -> None:
    """Reject observations of other sizes than the environment's `observation_size`.

    Raises:
        ConfigError: with both sizes.
    """
    seen = {name: x.shape[1:] for name, x in _named_entries(state.obs)}
    declared = {name: declared_shape(x) for name, x in _named_entries(size)}
    if declared != seen:
        raise ConfigError(
            f"the environment's observation_size is {size}, but reset returns observations of the "
            f"shapes {seen}: agents read vectors, and images in a dictionary."
        )


def _named_entries(obs: object) -> Iterable[tuple[str, Any]]:
    """Return the entries of an observation by name; a single array is named `state`."""
    return obs.items() if isinstance(obs, Mapping) else [("state", obs)]


def make_schedule(config: RunConfig) -> Schedule:
    """Return the times of evaluations and resets."""
    return Schedule(
        total=config.training_steps,
        env_steps=config.env_steps_per_training_step,
        num_evals=config.num_evals,
        num_resets=config.num_resets_per_eval,
        before_updates=config.steps_before_updates,
    )


def make_stopping_criteria(config: RunConfig, start: float) -> StoppingCriteria:
    """Return the conditions that end a run early; it began at `start` of `time.monotonic`."""
    return StoppingCriteria(
        config.stop_at_reward,
        None if config.max_seconds is None else start + config.max_seconds,
        MAX_BAD_UPDATES if config.failed_update == "stop" else None,
    )


def make_saver(
    stack: contextlib.ExitStack,
    folder: Path | str | None,
    record: Mapping[str, object],
    config: RunConfig,
) -> Saver | None:
    """Return the saver of training states to a folder, or None without a folder; `stack` closes it.

    Raises:
        ConfigError: if there are times to save at, but no folder.
        CheckpointError: if the folder cannot be written to.
    """
    if folder is None:
        for name in ("save_interval_steps", "save_interval_seconds"):
            if (value := getattr(config, name)) is not None:
                raise ConfigError(f"{name}={value} needs a folder: set save_checkpoint_path.")
        return None
    return stack.enter_context(contextlib.closing(Saver(folder, record, config)))


def read_saved_state(
    program: Program, config: RunConfig, runtime: Runtime, record: Mapping[str, object]
) -> resumption.StartingPoint | None:
    """Return the saved state to continue from, if any; check the parameters to start from, if any.

    A warning is issued if the state already has all steps that were asked for, unless that is 0.
    """
    if runtime.restore_checkpoint_path is not None and runtime.restore_params is not None:
        raise ConfigError("give restore_checkpoint_path or restore_params, not both.")
    shapes = program.shapes()
    if runtime.restore_params is not None:
        # Before the program is compiled; `initial_state` puts them into the state.
        resumption.check_params(runtime.first_params, shapes.params)
    if runtime.restore_checkpoint_path is None:
        return None
    saved = resumption.read_starting_point(runtime.restore_checkpoint_path, shapes, record, config)
    # A run that asks for no steps only wants the parameters, so that it gets no warning.
    if config.training_steps and saved.step >= config.training_steps:
        behind = saved.step * config.env_steps_per_training_step
        warnings.warn(
            f"num_timesteps={config.num_timesteps} trains nothing, since '"
            f"{runtime.restore_checkpoint_path}' has {behind} steps already, which count too: ask "
            "for more.",
            stacklevel=4,
        )
    return saved


def make_reports(
    evaluate: Callable[..., dict[str, Any]],
    hand_out: Callable[[int, Any], None],
    progress: Callable[[int, Mapping[str, Any]], None],
    saves: StateSaver | None,
    config: RunConfig,
) -> Reports:
    """Return the functions that receive the loop's results, with their intervals."""
    return Reports(
        evaluate,
        hand_out,
        progress,
        saves,
        # 0 is after every call of the program, about once a second.
        every=(config.training_metrics_steps or 0) if config.log_training_metrics else None,
        save_steps=config.save_interval_steps if saves else None,
        save_seconds=config.save_interval_seconds if saves else None,
    )


@contextlib.contextmanager
def explain_out_of_memory(config: RunConfig, otherwise: str = "more devices") -> Iterator[None]:
    """Explain what to make smaller if the devices run out of memory.

    Args:
        config: settings of the run.
        otherwise: what to use where nothing can be smaller.

    Raises:
        TrainingError: in place of JAX's error.
    """
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise TrainingError(
            f"the memory of the devices is full with num_envs={config.num_envs}: use fewer, such "
            f"as {max(config.num_envs // 2, 1)}, smaller batches, networks or replay buffers, or "
            f"{otherwise}."
        ) from error


def compile_all(
    program: Program, evaluator: Evaluator | None, train: bool, fresh: bool, params: Any
) -> None:
    """Compile all programs of a run at the same time, so that all cores have work.

    Args:
        program: the agent's program.
        evaluator: the evaluator, if any.
        train: whether there is anything to train.
        fresh: whether a first state is needed.
        params: shapes of the parameters that are evaluated.
    """
    tasks: list[Callable[[], None]] = []
    if train:
        tasks.append(program.compile_advance)
    if fresh:
        tasks.append(program.compile_init)
    if evaluator is not None:
        tasks.append(lambda: evaluator.compile((params.normalizer, params.policy)))
    # XLA compiles outside Python's lock, so that threads suffice. They trace in turn.
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(task) for task in tasks]:
            # Raises what a compilation raised.
            done.result()


def initial_state(
    program: Program, key: jax.Array, runtime: Runtime, saved: resumption.StartingPoint | None
) -> resumption.StartingPoint:
    """Return the starting point of the run, with its state on the devices."""
    places = program.place(program.shapes())
    if saved is not None:
        return saved._replace(state=hosts.place(saved.state, places))
    # Also with parameters to start from: optimizer, environments and keys come from the first
    # state.
    state = program.init(key)
    if runtime.restore_params is not None:
        given = resumption.check_params(runtime.first_params, state.params)
        params = hosts.place(state.params._replace(**given), places.params)
        state = program.with_params(state, params)
    return resumption.StartingPoint(state)


def make_evaluator(
    environment: Env,
    config: RunConfig,
    runtime: Runtime,
    make_policy: Callable[..., Any],
    keys: jax.Array,
) -> Evaluator | None:
    """Return the evaluator, or None if nothing is evaluated.

    Raises:
        ConfigError: if `eval_env` is no environment, or of other sizes than the policy.
    """
    if not (config.run_evals and config.num_evals):
        return None
    eval_env = environment
    if runtime.eval_env is not None:
        eval_env = runtime.eval_env
        check_environment("eval_env", eval_env)
        for name in ("observation_size", "action_size"):
            own, of_training = (getattr(env, name) for env in (eval_env, environment))
            if own != of_training:
                raise ConfigError(
                    f"eval_env has {name} {own}; the policy is trained for {of_training}."
                )
    length = evaluated_steps(vars(config))
    return Evaluator(
        # The systems of the evaluation are drawn with a key of their own.
        wrap_environment(
            eval_env, replace(config, episode_length=length), runtime, config.num_eval_envs, keys[0]
        ),
        functools.partial(make_policy, deterministic=config.deterministic_eval),
        config.num_eval_envs,
        length,
        config.action_repeat,
        keys[1],
    )


def evaluate(
    evaluator: Evaluator | None, steps: int, state: Any, metrics: Mapping[str, Any]
) -> dict[str, Any]:
    """Evaluate, or return the training metrics alone without an evaluator."""
    if evaluator is None:
        return dict(metrics)
    evaluator.reseed(steps)
    params = jax.device_get(state.params)  # from wherever training has them
    return evaluator.run_evaluation((params.normalizer, params.policy), metrics)


def publish_params(
    runtime: Runtime, make_policy: Callable[..., object], steps: int, state: Any
) -> None:
    """Pass the parameters to the user's `policy_params_fn`."""
    params = jax.device_get(state.params)  # the next training step uses up those of the device
    runtime.policy_params_fn(steps, policies.with_normalizer(make_policy, params), params)
