"""Training with several seeds side by side, as one compiled program."""

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from brax.env import Env
from brax.errors import ConfigError
from brax.training.agent import Agent
from brax.training.checkpoints.saver import Saver, SaverGroup
from brax.training.config import RunConfig, Runtime
from brax.training.distributed import devices
from brax.training.learner import Learner, Tally
from brax.training.runner import parts
from brax.training.runner.evaluator import Evaluator
from brax.training.runner.loop import Loop
from brax.training.runner.program import Functions, Program

SEEDS_AXIS = "seeds"
"""Name of the mesh axis over which seeds are split."""

_PER_SEED = "seeds"
"""Entry of the metrics with a dictionary for each seed."""

_SINGLE_RUN_SETTINGS = (
    "restore_checkpoint_path",
    "restore_params",
    "save_checkpoint_path",
    "max_devices_per_host",
    "stop_at_reward",
    "max_seconds",
)
"""Settings that are of one run, and None in those that train together."""


def train_seeds(
    agent: Agent,
    environment: Env,
    seeds: Sequence[int],
    progress_fn: Callable[[int, int, Mapping[str, Any]], None],
    folders: Sequence[Path],
    **settings: Any,
) -> list[dict[str, Any]]:
    """Trains one policy for each seed; what each learns is, up to rounding, what it learns alone.

    A run whose gradients stay without a finite value keeps its parameters, and the others go on.

    Args:
        agent: the agent.
        environment: environment to learn, not yet batched.
        seeds: the seeds.
        progress_fn: called with a seed's index, the environment steps so far and its metrics.
        folders: where the checkpoints of each go.
        **settings: other settings of the agent.

    Returns:
        The metrics of each one's last evaluation.

    Raises:
        ConfigError: before any long work, if a setting is unknown, unsupported or not allowed, or
            is of one run.
        CheckpointError: if a checkpoint cannot be written, or there are some of another run.
        TrainingError: if the gradients of all of them stay without a finite value.
    """
    config, runtime = agent.check(settings)
    if apart := _incompatible_settings(config, runtime):
        raise ConfigError(
            f"seeds that train together cannot have {' and '.join(apart)}: leave this out, or "
            "train them one after the other."
        )
    keys = [jax.random.split(jax.random.key(seed), 4) for seed in seeds]
    mesh = _seed_mesh(len(seeds))
    learner, make_policy, record = agent.build(environment, config, runtime, mesh, keys[0][0])
    program = SeedsProgram(learner, mesh, len(seeds))
    shared = parts.make_evaluator(environment, config, runtime, make_policy, keys[0][2:])
    evaluators = [shared and shared.with_key(key[3]) for key in keys]
    evaluate = functools.partial(_evaluate_seeds, evaluators)

    def hand_out(steps: int, states: Any) -> None:
        for i in range(len(seeds)):
            parts.publish_params(runtime, make_policy, steps, state_of_seed(states, i))

    def progress(steps: int, metrics: Mapping[str, Any]) -> None:
        for i in range(len(seeds)):
            progress_fn(i, steps, _metrics_of_seed(metrics, i))

    with contextlib.ExitStack() as stack:
        savers = _open_savers(stack, seeds, folders, record, config)
        params = jax.eval_shape(learner.init, keys[0][1]).params
        parts.compile_all(program, shared, config.training_steps > 0, True, params)
        states = program.init(jax.device_put(jnp.stack([key[1] for key in keys])))
        reports = parts.make_reports(evaluate, hand_out, progress, savers, config)
        # Only failed updates stop these runs: no other limit is allowed.
        limits = parts.make_stopping_criteria(config, start=0.0)
        _, metrics = Loop(program, parts.make_schedule(config), reports, limits).run(states)
    return [dict(_metrics_of_seed(metrics, i)) for i in range(len(seeds))]


def _evaluate_seeds(
    evaluators: Sequence[Evaluator | None], steps: int, states: Any, metrics: Mapping[str, Any]
) -> dict[str, Any]:
    """Evaluates each seed's policy by its own evaluator."""
    found = []
    for i, evaluator in enumerate(evaluators):
        state, own = state_of_seed(states, i), _metrics_of_seed(metrics, i)
        found.append(parts.evaluate(evaluator, steps, state, own))
    return {_PER_SEED: found}


def _open_savers(
    stack: contextlib.ExitStack,
    seeds: Sequence[int],
    folders: Sequence[Path],
    record: Mapping[str, Any],
    config: RunConfig,
) -> SaverGroup:
    """Opens a saver for each seed's folder; `stack` closes them."""
    savers = []
    for seed, folder in zip(seeds, folders, strict=True):
        own_record = {**record, "config": {**record["config"], "seed": seed}}
        savers.append(stack.enter_context(contextlib.closing(Saver(folder, own_record, config))))
        savers[-1].start(0)
    return SaverGroup(savers, state_of_seed, _metrics_of_seed)


def can_train_together(agent: Agent, environment: Env, settings: Mapping[str, Any]) -> bool:
    """Return whether several seeds of an agent fit into one program.

    Those with a replay buffer do not: each seed would write at a place of its own, which makes a
    scatter of a write. Nor do those with systems that are drawn before training, which each seed
    draws for itself, or with settings of one run, such as what it starts from and when it ends.
    """
    config, runtime = agent.check(settings)
    if _incompatible_settings(config, runtime):
        return False
    learner, *_ = agent.build(environment, config, runtime, _seed_mesh(1), jax.random.key(0))
    return set(learner.split) <= {"env_state"}


class SeedsProgram(Program):
    """A learner, compiled for several seeds at once: its states have them as their first axis.

    First states are made one after the other. Networks may begin with orthogonal matrices, and on
    a CPU jaxlib (0.10.2) spreads a batch of factorizations over the threads that also wait for it:
    two at a time wait for each other for ever.
    """

    def __init__(self, learner: Learner, mesh: Mesh, number: int) -> None:
        super().__init__(learner, mesh)
        self._number = number
        self._key = jax.random.split(jax.random.key(0), number)
        together = functools.partial(jax.vmap, spmd_axis_name=SEEDS_AXIS)
        self._functions = Functions(
            functools.partial(jax.lax.map, learner.init),
            together(learner.advance, in_axes=(0, None)),
            together(learner.fresh_environments),
        )

    def place(self, state: Any) -> Any:
        """Where each leaf lives: all of a seed's on one device."""
        return jax.tree.map(lambda _: NamedSharding(self._mesh, PartitionSpec(SEEDS_AXIS)), state)

    def bad_updates(self, state: Any) -> int:
        """Updates in a row that were skipped, of the seed with the fewest."""
        return int(np.min(jax.device_get(state.bad_updates)))

    def metrics(self, tally: Tally) -> dict[str, Any]:
        """The metrics of each seed."""
        parts = [jax.tree.map(lambda x, i=i: x[i], tally) for i in range(self._number)]
        return {_PER_SEED: [super(SeedsProgram, self).metrics(part) for part in parts]}


def _incompatible_settings(config: RunConfig, runtime: Runtime) -> list[str]:
    """Settings that keep seeds from training together."""
    given = {**vars(config), **vars(runtime)}
    drawn = runtime.randomization_fn is not None and parts.draws_once(runtime.randomization_fn)
    return [name for name in _SINGLE_RUN_SETTINGS if given[name] is not None] + [
        "randomization_fn"
    ] * drawn


def _seed_mesh(number: int) -> Mesh:
    """As many devices as divide the seeds, each for some of them; no environment is split off."""
    found = jax.devices()
    count = next(n for n in range(min(len(found), number), 0, -1) if number % n == 0)
    grid = np.array(found[:count]).reshape(count, 1)
    return Mesh(grid, (SEEDS_AXIS, devices.ENVS_AXIS), axis_types=(AxisType.Auto,) * 2)


def state_of_seed(states: Any, i: int) -> Any:
    """One seed's state, on the device that has it.

    An index into all of them would be a program for all devices, one for each leaf. On a CPU
    (jaxlib 0.10.2) many of those in flight can wait for each other for ever.
    """

    def own(x: jax.Array) -> jax.Array:
        for shard in x.addressable_shards:
            rows = range(len(x))[shard.index[0]]
            if i in rows:
                return shard.data[i - rows.start]
        raise AssertionError(f"no device of this process has seed {i}")

    return jax.tree.map(own, states)


def _metrics_of_seed(metrics: Mapping[str, Any], i: int) -> dict[str, Any]:
    """One seed's metrics: its own and those of all."""
    common = {name: x for name, x in metrics.items() if name != _PER_SEED}
    return {**common, **metrics.get(_PER_SEED, [{}] * (i + 1))[i]}
