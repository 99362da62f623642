"""Trajectories for the commands: an episode of a trained agent, and a model's passive motion."""

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax import plugins
from brax.base import State, System
from brax.errors import ConfigError, ModelError, closest
from brax.io import html, image
from brax.kernels.gpu_options import gpu_options
from brax.plugins.outputs.environment import make
from brax.plugins.outputs.model_format import load
from brax.plugins.outputs.pipeline import CheckedPipeline
from brax.plugins.outputs.policy import act, first_memory
from brax.plugins.outputs.trainer import load_policy

_FRAME_SECONDS = 0.02
"""Approximate duration of a frame of a passive model [s]."""


@dataclasses.dataclass(frozen=True)
class Run:
    """The contents of a run's `run.json`."""

    folder: Path
    environment: str
    settings: dict[str, Any]
    """Keyword arguments of the environment."""
    trainer: str
    action_repeat: int = 1
    episode_length: int = 1000


@dataclasses.dataclass(frozen=True)
class Rollout:
    """A trajectory with what the page shows next to it."""

    sys: System
    states: State
    dt: float
    title: str
    series: dict[str, np.ndarray]
    forces: np.ndarray | None = None
    """Contact forces, as `html.render` takes them."""

    def save(self, path: Path) -> None:
        """Write a picture or a film, by its suffix; a page for any other suffix."""
        if is_film(path):
            image.save(path, self.sys, self.states, dt=self.dt)
        else:
            options = dict(title=self.title, series=self.series, forces=self.forces)
            html.save(path, self.sys, self.states, dt=self.dt, **options)


def is_film(path: Path) -> bool:
    """Return whether a file of that name is a picture or a film, not a page."""
    return path.suffix.lower() in (".png", ".gif", ".mp4")


def save_beside(path: Path, trajectories: Mapping[str, Rollout]) -> None:
    """Write a page with trajectories side by side, by title.

    Raises:
        ConfigError: if the times between their states differ, or the file cannot be written.
    """
    times = {name: each.dt for name, each in trajectories.items()}
    if len(set(times.values())) != 1:
        listed = ", ".join(f"{name}: {seconds:g}" for name, seconds in times.items())
        raise ConfigError(f"runs side by side need one time between states, got {listed}")
    shown = {
        f"{name}, {each.title}": html.Trajectory(each.sys, each.states, each.series)
        for name, each in trajectories.items()
    }
    html.save_compare(path, shown, dt=min(times.values()))


def find_run(path: Path) -> Run:
    """Read the `run.json` of a run, given its folder or that of one of its checkpoints.

    Raises:
        ConfigError: if there is none, or it is damaged.
    """
    # A checkpoint is in checkpoints/STEP of its run.
    folder = next((p for p in [path, *path.absolute().parents[:2]] if _is_run(p)), None)
    if folder is None:
        raise ConfigError(
            f"'{path}' is not a run: there is no run.json in it or in its two parents"
        )
    try:
        record = json.loads((folder / "run.json").read_text("utf-8"))
        config = record.get("config", {})
        return Run(
            folder,
            record["environment"],
            record.get("environment_kwargs", {}),
            record["trainer"],
            **{k: config[k] for k in ("action_repeat", "episode_length") if k in config},
        )
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ConfigError(f"'{folder / 'run.json'}' cannot be read: {error!r}") from error


def _is_run(folder: Path) -> bool:
    return (folder / "run.json").is_file()


def trained(run: Run, checkpoint: Path) -> tuple[Any, Callable[..., Any]]:
    """Return the environment of a run, and the policy that it trained.

    Raises:
        BraxError: if the environment, the trainer or the checkpoint cannot be loaded.
    """
    env = make(run.environment, **run.settings)
    return env, load_policy(run.trainer, checkpoint, env)


def check_shown(env: Any, name: str) -> None:
    """Check that a page can show an environment.

    Raises:
        ConfigError: if it has no system, or no duration of a step.
    """
    if not isinstance(getattr(env, "sys", None), System):
        raise ConfigError(f"environment '{name}' has no System, so no page can show it")
    if not hasattr(env, "dt"):
        raise ConfigError(
            f"environment '{name}' has no dt, the duration of a step [s], so no page can show it"
        )


def episode(run: Run, checkpoint: Path, steps: int | None, seed: int) -> Rollout:
    """Return one episode of a trained agent, up to its end or `steps` environment steps.

    Args:
        run: the run.
        checkpoint: the run's folder, or that of one of its checkpoints.
        steps: maximum length; None for that of the episodes that the agent was trained in.
        seed: random seed of the initial state and of the agent.

    Raises:
        BraxError: if the environment, the trainer or the checkpoint cannot be loaded.
    """
    env, policy = trained(run, checkpoint)
    check_shown(env, run.environment)
    play = functools.partial(_roll_out, env, policy, run.action_repeat, steps or run.episode_length)
    roll_out = jax.jit(play, compiler_options=gpu_options())
    rows = jax.device_get(roll_out(jax.random.key(seed)))
    length = _length(rows[0], rows[1])
    states, _, reward, metrics, action = jax.tree.map(lambda leaf: leaf[:length], rows)
    series = {"reward": reward, "return": np.cumsum(reward), "action": action, **metrics}
    title = f"{run.environment}, {run.trainer}"
    return Rollout(env.sys, states, float(env.dt), title, series)


def _roll_out(
    env: Any, policy: Callable[..., object], repeat: int, steps: int, key: jax.Array
) -> Any:
    """Return the rows of the first state and of `steps` more, stacked.

    Rewards and actions are those of the step that led to the state; the first state has none.
    """

    def shown(state: Any, action: jax.Array) -> tuple[Any, ...]:
        return state.pipeline_state, state.done, state.reward, state.metrics, action

    def step(carry: tuple[Any, ...], count: jax.Array) -> tuple[tuple[Any, ...], Any]:
        state, *before = carry
        fresh = act(policy, state.obs, jax.random.fold_in(chance, count), before[1])
        # The environment here has no wrapper that repeats actions, so they are repeated as in
        # training; a policy's memory changes only when it acts.
        action, memory = jax.tree.map(
            lambda new, old: jnp.where(count % repeat == 0, new, old), fresh, tuple(before)
        )
        return (env.step(state, action), action, memory), shown(state, before[0])

    start, chance = jax.random.split(key)
    first = env.reset(start), jnp.zeros(env.action_size), first_memory(policy)
    (last, end, _), states = jax.lax.scan(step, first, jnp.arange(steps))
    return jax.tree.map(
        lambda many, one: jnp.concatenate([many, one[None]]), states, shown(last, end)
    )


def _length(states: State, done: np.ndarray) -> int:
    """Return the number of frames up to the end of the episode or the last finite state.

    The first frame is always included, so that the page can report what is wrong with it.
    """
    numbers = np.concatenate([states.x.pos, states.x.rot], axis=-1)
    broken = ~np.isfinite(numbers).all(axis=(1, 2))
    over = np.flatnonzero(done > 0)
    lost = np.flatnonzero(broken)
    ends: list[int] = [len(done), *(over[:1] + 1).tolist(), *lost[:1].tolist()]
    return max(1, min(ends))


def passive(
    path: Path, seconds: float, pipeline: str, keyframe: str = "", forces: bool = False
) -> Rollout:
    """Return a model's motion from the state of `start`, under constant controls.

    Args:
        path: the model file.
        seconds: duration of the motion [s].
        pipeline: name of the pipeline.
        keyframe: name of the keyframe to start at; if empty, the model's initial state.
        forces: whether to compute the contact forces.

    Raises:
        BraxError: if no format reads such files, or the model is refused.
    """
    engine, sys, substeps = model(path, pipeline)
    dt = substeps * float(sys.opt.timestep)
    steps = max(1, round(seconds / dt))
    play = functools.partial(_simulate, engine, substeps, steps, sys, keyframe, forces)
    roll_out = jax.jit(play, compiler_options=gpu_options())
    states, ctrl = roll_out()
    lost = np.flatnonzero(~np.isfinite(np.asarray(states.q)).all(axis=1))
    if len(lost):
        other = "" if pipeline == "generalized" else "--pipeline generalized or "
        raise ModelError(
            f"{path.name}: the motion in {pipeline} is not finite from {lost[0] * dt:.2f} s on; "
            f"try {other}a smaller time step, and see the documentation's page on NaN"
        )
    acting = html.contact_forces(sys, states, jnp.tile(ctrl, (steps + 1, 1))) if forces else None
    return Rollout(sys, states, dt, path.name, {}, acting)


def model(path: Path, pipeline: str) -> tuple[Any, System, int]:
    """Return a pipeline, a model file's system, and the number of its steps in a frame.

    Raises:
        BraxError: if no format reads such files, there is no such pipeline, or the model is
            refused.
    """
    found = reader(path)
    engine = CheckedPipeline(pipeline)
    sys = load(found, path)
    return engine, sys, max(1, round(_FRAME_SECONDS / float(sys.opt.timestep)))


def start(engine: Any, sys: System, keyframe: str) -> tuple[State, jax.Array]:
    """Return a model's initial state and controls: those of a keyframe, if one is named.

    Raises:
        ModelError: if there is no such keyframe, or the pipeline refuses the model.
    """
    if not keyframe:
        still = jnp.zeros(sys.qd_size())
        return engine.init(sys, sys.init_q, still), jnp.zeros(sys.act_size())
    key = sys.keyframe(keyframe)
    state = engine.init(sys, key.q, key.qd)
    if state.activation is not None:
        state = state.replace(activation=key.activation)
    return state, key.ctrl


def _simulate(
    engine: Any, substeps: int, steps: int, sys: System, keyframe: str, forces: bool
) -> tuple[State, jax.Array]:
    """Return the first state and those after each of `steps` frames, stacked, and the controls."""
    first, ctrl = start(engine, sys, keyframe)
    if forces:
        first = engine.with_forces(sys, first)

    def step(state: State, _: None) -> tuple[State, State]:
        return engine.step(sys, state, ctrl, substeps), state

    _, states = jax.lax.scan(step, first, length=steps + 1)
    return states, ctrl


def reader(path: Path) -> Any:
    """Return the model format for the file's suffix.

    Raises:
        ConfigError: if there is none.
    """
    suffix = path.suffix.lower()
    found = plugins.find("model_format", suffix)
    if found is None:
        known = plugins.keys("model_format")
        raise ConfigError(
            f"'{path}': no model format reads '{suffix}' files. "
            f"Known: {', '.join(sorted(known)) or 'none'}.{closest(suffix, known)}"
        )
    return found
