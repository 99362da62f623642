"""Training with PPO."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax

from brax.env import Env, State, wrap
from brax.errors import ConfigError
from brax.training import acting, checkpoint, devices
from brax.training.acme import running_statistics
from brax.training.agents.ppo import checkpoint as ppo_checkpoint
from brax.training.agents.ppo import networks as ppo_networks
from brax.training.agents.ppo.config import PPOConfig, Runtime, parse
from brax.training.agents.ppo.learner import Learner, TrainingState
from brax.training.agents.ppo.networks import PPONetworks, PPOParams
from brax.training.agents.ppo.program import PPOProgram
from brax.training.loop import Loop, Reports, Schedule
from brax.training.types import identity_observation_preprocessor


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
    config, runtime = parse({"num_timesteps": num_timesteps, **settings})
    mesh = devices.env_mesh(config.num_envs, config.max_devices_per_host)
    keys = jax.random.split(jax.random.key(config.seed), 4)
    env = _wrapped(environment, config, runtime, config.num_envs, keys[0])
    info = _check_env(env, config)
    networks = _networks(environment, config, runtime)
    make_policy = ppo_networks.make_inference_fn(networks)

    record = ppo_checkpoint.describe(environment, config, runtime)
    program = PPOProgram(Learner(env, networks, config, mesh, info), mesh, config.num_envs)
    evaluator = _evaluator(environment, config, runtime, make_policy, keys[2:])
    with contextlib.ExitStack() as stack:
        save = _saving(stack, runtime, record, config)
        saved = _saved(program, runtime, record)
        _compile(program, evaluator, train=config.num_timesteps > 0, fresh=saved is None)
        state, step = _first_state(program, keys[1], runtime, saved)
        evaluate = functools.partial(_evaluate, evaluator, runtime, make_policy)
        every = (config.training_metrics_steps or 0) if config.log_training_metrics else None
        reports = Reports(evaluate, runtime.progress_fn, save, every)
        state, metrics = Loop(program, _schedule(config), reports).run(state, step)
    return make_policy, jax.device_get(state.params), metrics


def _schedule(config: PPOConfig) -> Schedule:
    """When to evaluate and to start afresh; timesteps rounded up to whole training steps."""
    per_step = config.env_steps_per_training_step
    return Schedule(
        total=-(-config.num_timesteps // per_step),
        env_steps=per_step,
        num_evals=config.num_evals,
        num_resets=config.num_resets_per_eval,
    )


def _saving(
    stack: contextlib.ExitStack, runtime: Runtime, record: Mapping[str, Any], config: PPOConfig
) -> Callable[[int, TrainingState, Mapping[str, Any]], None] | None:
    """What saves checkpoints, if they are wanted; refuses a folder that cannot be written."""
    if runtime.save_checkpoint_path is None:
        return None
    writer = checkpoint.Writer(runtime.save_checkpoint_path)
    stack.callback(writer.close)

    def save(step: int, state: TrainingState, metrics: Mapping[str, Any]) -> None:
        env_steps = step * config.env_steps_per_training_step
        ppo_checkpoint.save(writer, record, env_steps, step, state, metrics)

    return save


def _wrapped(env: Env, config: PPOConfig, runtime: Runtime, num_envs: int, key: jax.Array) -> Env:
    """The environment, batched, with time limit, resets and randomized systems."""
    if not runtime.wrap_env:
        return env
    randomization_fn = runtime.randomization_fn
    if randomization_fn is not None and "rng" in inspect.signature(randomization_fn).parameters:
        rng = jax.random.split(key, num_envs)
        randomization_fn = functools.partial(randomization_fn, rng=rng)
    return (runtime.wrap_env_fn or wrap)(
        env,
        episode_length=config.episode_length,
        action_repeat=config.action_repeat,
        randomization_fn=randomization_fn,
    )


def _check_env(env: Env, config: PPOConfig) -> State:
    """The shapes of the batched environment's state; refuses one that PPO cannot learn from."""
    keys = jax.random.split(jax.random.key(0), config.num_envs)
    state = jax.eval_shape(env.reset, keys)
    if state.reward.shape != (config.num_envs,):
        raise ConfigError(
            f"the environment's reward has shape {state.reward.shape}; expected "
            f"({config.num_envs},), one for each of num_envs. Is it batched?"
        )
    needed = ["truncation"] + ["terminal_obs"] * config.bootstrap_on_timeout
    missing = [name for name in needed if name not in state.info]
    if missing:
        raise ConfigError(
            f"the environment's info has no {' and no '.join(missing)}. Wrap it with "
            "brax.env.wrap, or have wrap_env_fn provide it."
        )
    return state


def _networks(env: Env, config: PPOConfig, runtime: Runtime) -> PPONetworks:
    """The networks for this environment."""
    preprocess = (
        running_statistics.normalize
        if config.normalize_observations
        else identity_observation_preprocessor
    )
    return runtime.network_factory(
        env.observation_size, env.action_size, preprocess_observations_fn=preprocess
    )


def _saved(
    program: PPOProgram, runtime: Runtime, record: Mapping[str, Any]
) -> tuple[TrainingState, int] | None:
    """The saved state to go on from, if any; checks the parameters to start from, if any."""
    if runtime.restore_checkpoint_path is not None and runtime.restore_params is not None:
        raise ConfigError("give restore_checkpoint_path or restore_params, not both.")
    shapes = program.shapes()
    if runtime.restore_params is not None:
        ppo_checkpoint.check_params(runtime.restore_params, shapes.params)
    if runtime.restore_checkpoint_path is None:
        return None
    return ppo_checkpoint.resume(runtime.restore_checkpoint_path, shapes, record)


def _compile(
    program: PPOProgram, evaluator: acting.Evaluator | None, train: bool, fresh: bool
) -> None:
    """Compiles what will run, all at once, so that all cores have work."""
    params = program.shapes().params
    tasks: list[Callable[[], None]] = []
    if train:
        tasks.append(program.compile_advance)
    if fresh:
        tasks.append(program.compile_init)
    if evaluator is not None:
        tasks.append(lambda: evaluator.compile((params.normalizer, params.policy)))
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(task) for task in tasks]:
            done.result()


def _first_state(
    program: PPOProgram,
    key: jax.Array,
    runtime: Runtime,
    saved: tuple[TrainingState, int] | None,
) -> tuple[TrainingState, int]:
    """The state to start from and the training steps behind it."""
    places = program.place(program.shapes())
    if saved is not None:
        return jax.device_put(saved[0], places), saved[1]
    state = program.init(key)
    if runtime.restore_params is not None:
        params = jax.device_put(PPOParams(*runtime.restore_params), places.params)
        state = state._replace(params=params)
    return state, 0


def _evaluator(
    environment: Env,
    config: PPOConfig,
    runtime: Runtime,
    make_policy: Callable[..., Any],
    keys: jax.Array,
) -> acting.Evaluator | None:
    """What evaluates the policy, if that is wanted."""
    if not (config.run_evals and config.num_evals):
        return None
    eval_env = runtime.eval_env or environment
    return acting.Evaluator(
        _wrapped(eval_env, config, runtime, config.num_eval_envs, keys[0]),
        functools.partial(make_policy, deterministic=config.deterministic_eval),
        config.num_eval_envs,
        config.episode_length,
        config.action_repeat,
        keys[1],
    )


def _evaluate(
    evaluator: acting.Evaluator | None,
    runtime: Runtime,
    make_policy: Callable[..., Any],
    steps: int,
    state: TrainingState,
    metrics: Mapping[str, Any],
) -> dict[str, Any]:
    """Evaluates, and hands the parameters to whoever asked for them."""
    params = jax.device_get(state.params)  # the next training step uses up those of the device
    found = dict(metrics)
    if evaluator is not None:
        found = evaluator.run_evaluation((params.normalizer, params.policy), metrics)
    runtime.policy_params_fn(steps, make_policy, params)
    return found
