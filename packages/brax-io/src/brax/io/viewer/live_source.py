"""The sources of `brax view --live`: an agent, random actions, or a model in passive motion."""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax import plugins
from brax.base import State
from brax.errors import ConfigError, closest
from brax.io.live import Source
from brax.io.viewer import rollout
from brax.plugins.outputs.environment import make
from brax.plugins.outputs.policy import act, first_memory

MAX_EPISODE_STEPS = 1000
"""Number of environment steps after which an episode restarts."""

Moments = Iterator[tuple[State, dict[str, Any]]]


def source(target: str, pipeline: str, seed: int, keyframe: str = "") -> Source:
    """Return the simulation of a target: a run's agent, an environment, or a passive model.

    Args:
        target: the folder of a run or of its checkpoint, a model file, or an environment's name.
        pipeline: name of the pipeline that simulates a model.
        seed: random seed.
        keyframe: name of the keyframe that a model starts at; if empty, its initial state.

    Raises:
        BraxError: if the target is none of these, or cannot be shown.
    """
    path = Path(target)
    if keyframe and not path.is_file():
        raise ConfigError(f"keyframe '{keyframe}': only model files have keyframes, not '{target}'")
    if path.is_dir():
        run = rollout.find_run(path)
        env, policy = rollout.trained(run, path)
        title, repeat = f"{run.environment}, {run.trainer}", run.action_repeat
        return _acting(env, run.environment, policy, repeat, seed, title)
    if path.is_file():
        return _passive(path, pipeline, keyframe)
    names = plugins.names("environment")
    if target not in names:
        raise ConfigError(
            f"'{target}' is not a model file, a run or an environment. Environments: "
            f"{', '.join(names)}.{closest(target, names)}"
        )
    env = make(target)
    return _acting(env, target, _random(env), 1, seed, f"{target}, random actions")


def _random(env: Any) -> Callable[..., Any]:
    """Return a policy of actions that are uniform in [-1, 1]."""
    shape = (env.action_size,)
    return lambda obs, key: (jax.random.uniform(key, shape, minval=-1.0, maxval=1.0), {})


def _acting(
    env: Any, name: str, policy: Callable[..., object], repeat: int, seed: int, title: str
) -> Source:
    rollout.check_shown(env, name)
    moments = _episodes(env, policy, repeat, jax.random.key(seed))
    return Source(env.sys, float(env.dt), title, moments)


def _episodes(env: Any, policy: Callable[..., object], repeat: int, key: jax.Array) -> Moments:
    """Yield episode after episode, each up to its end or to a state that is not finite."""
    # Step by step and not in a scan, because each frame is shown as soon as it is computed.
    reset, step = jax.jit(env.reset), jax.jit(env.step)
    choose = jax.jit(functools.partial(act, policy))
    while True:
        key, start, chance = jax.random.split(key, 3)
        state, action = reset(start), jnp.zeros(env.action_size)
        memory = first_memory(policy)
        total = 0.0
        for count in range(MAX_EPISODE_STEPS + 1):
            # The first state is shown in any case, so that one that is not finite is an error.
            if count > 0 and not _finite(state.pipeline_state):
                break
            total += float(state.reward)
            series = {"reward": state.reward, "return": total, "action": action}
            yield state.pipeline_state, series | dict(state.metrics)
            if state.done:
                break
            if count % repeat == 0:
                action, memory = choose(state.obs, jax.random.fold_in(chance, count), memory)
            state = step(state, action)


def _finite(state: State) -> bool:
    return bool(np.isfinite(state.x.pos).all() and np.isfinite(state.x.rot).all())


def _passive(path: Path, pipeline: str, keyframe: str) -> Source:
    """Return a model under constant controls, which restarts when its state is not finite."""
    engine, sys, substeps = rollout.model(path, pipeline)
    first, ctrl = rollout.start(engine, sys, keyframe)
    step = jax.jit(lambda state: engine.step(sys, state, ctrl, substeps))

    def moments() -> Moments:
        while True:
            yield first, {}
            state = step(first)
            while _finite(state):
                yield state, {}
                state = step(state)

    return Source(sys, substeps * float(sys.opt.timestep), path.name, moments())
