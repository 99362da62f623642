"""Training of several seeds in parallel, as one compiled program."""

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
"""Key of the metrics under which there is a dictionary for each seed."""

_SINGLE_RUN_SETTINGS = (
    "restore_checkpoint_path",
    "restore_params",
    "save_checkpoint_path",
    "max_devices_per_host",
    "stop_at_reward",
    "max_seconds",
)
"""Settings that belong to a single run; they must be None where seeds train together."""


def train_seeds(
    agent: Agent,
    environment: Env,
    seeds: Sequence[int],
    progress_fn: Callable[[int, int, Mapping[str, Any]], None],
    folders: Sequence[Path],
    **settings: Any,
) -> list[dict[str, Any]]:
    """Train one policy for each seed, all in one program.

    Up to rounding, each seed learns what it would learn alone.

    A run whose gradients stay non-finite keeps its parameters, and the others continue.

    Args:
        agent: the agent.
        environment: environment to learn, not yet batched.
        seeds: the seeds.
        progress_fn: called with a seed's index, the environment steps so far and its metrics.
        folders: folder of checkpoints of each seed.
        **settings: other settings of the agent.

    Returns:
        The metrics of the last evaluation of each seed.

    Raises:
        ConfigError: before any long work, if a setting is unknown, unsupported or not allowed, or
            belongs to a single run.
        CheckpointError: if a checkpoint cannot be written, or there are some of another run.
        TrainingError: if the gradients of all seeds stay non-finite, or memory runs out.
    """
    config, runtime = _check_settings(agent, settings)
    # The same four keys as `Agent.train` makes of a seed, so that each seed learns what it would
    # learn alone.
    keys = [jax.random.split(jax.random.key(seed), 4) for seed in seeds]
    mesh = _seed_mesh(len(seeds))
    # This key draws systems, which seeds that train together do not have.
    learner, make_policy, record = agent.build(environment, config, runtime, mesh, keys[0][0])
    program = SeedsProgram(learner, mesh, len(seeds))
    shared = parts.make_evaluator(environment, config, runtime, make_policy, keys[0][2:])
    evaluators = [shared and shared.with_key(key[3]) for key in keys]
    evaluate = functools.partial(_evaluate_seeds, evaluators)
    hand_out = functools.partial(_publish_seeds, len(seeds), runtime, make_policy)
    progress = functools.partial(_report_seeds, len(seeds), progress_fn)
    otherwise = f"--one-by-one, since {len(seeds)} seeds take the memory of as many runs"
    with parts.explain_out_of_memory(config, otherwise), contextlib.ExitStack() as stack:
        savers = _open_savers(stack, seeds, folders, record, config)
        params = jax.eval_shape(learner.init, keys[0][1]).params
        parts.compile_all(program, shared, config.training_steps > 0, True, params)
        states = program.init(jax.device_put(jnp.stack([key[1] for key in keys])))
        reports = parts.make_reports(evaluate, hand_out, progress, savers, config)
        # Only failed updates stop these runs: no other limit is allowed.
        limits = parts.make_stopping_criteria(config, start=0.0)
        _, metrics = Loop(program, parts.make_schedule(config), reports, limits).run(states)
    return [dict(_metrics_of_seed(metrics, i)) for i in range(len(seeds))]


def _check_settings(agent: Agent, settings: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the checked settings of runs whose seeds train together.

    Raises:
        ConfigError: if a setting is wrong, or belongs to a single run.
    """
    config, runtime = agent.check(settings)
    if single := _incompatible_settings(config, runtime):
        raise ConfigError(
            f"seeds that train together cannot have {' and '.join(single)}: leave this out, or "
            "train them one after the other."
        )
    return config, runtime


def _publish_seeds(
    number: int, runtime: Runtime, make_policy: Callable[..., Any], steps: int, states: object
) -> None:
    """Pass each seed's parameters to the user's `policy_params_fn`."""
    for i in range(number):
        parts.publish_params(runtime, make_policy, steps, state_of_seed(states, i))


def _report_seeds(
    number: int,
    progress_fn: Callable[[int, int, Mapping[str, Any]], None],
    steps: int,
    metrics: Mapping[str, Any],
) -> None:
    """Report each seed's metrics under its index."""
    for i in range(number):
        progress_fn(i, steps, _metrics_of_seed(metrics, i))


def _evaluate_seeds(
    evaluators: Sequence[Evaluator | None], steps: int, states: Any, metrics: Mapping[str, object]
) -> dict[str, Any]:
    """Evaluate each seed's policy by its own evaluator."""
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
    """Open a saver for each seed's folder; `stack` closes them."""
    savers = []
    for seed, folder in zip(seeds, folders, strict=True):
        # Each checkpoint records its own seed, so that the run can be resumed alone.
        own_record = {**record, "config": {**record["config"], "seed": seed}}
        savers.append(stack.enter_context(contextlib.closing(Saver(folder, own_record, config))))
        savers[-1].start(0)
    return SaverGroup(savers, state_of_seed, _metrics_of_seed)


def can_train_together(agent: Agent, environment: Env, settings: Mapping[str, Any]) -> bool:
    """Return whether several seeds of an agent fit into one program.

    Agents with a replay buffer do not: each seed would write at a position of its own, which turns
    a write of a slice into a scatter. Neither do runs with systems that are drawn before training,
    since each seed draws its own, or with settings of a single run, such as where it starts and
    when it ends.
    """
    config, runtime = agent.check(settings)
    if _incompatible_settings(config, runtime):
        return False
    learner, *_ = agent.build(environment, config, runtime, _seed_mesh(1), jax.random.key(0))
    return not learner.has_replay_buffer


class SeedsProgram(Program):
    """A learner, compiled for several seeds at once; seeds are the first axis of its states.

    First states are made one after the other. Networks may start from orthogonal matrices, and on a
    CPU jaxlib (0.10.2) spreads a batch of factorizations over the threads that also wait for it:
    two at a time wait for each other for ever.
    """

    def __init__(self, learner: Learner, mesh: Mesh, number: int) -> None:
        """Map the learner's functions over seeds; nothing is compiled."""
        super().__init__(learner, mesh)
        self._number = number
        self._key = jax.random.split(jax.random.key(0), number)
        together = functools.partial(jax.vmap, spmd_axis_name=SEEDS_AXIS)
        self._functions = Functions(
            # `lax.map` is sequential, unlike `vmap`: see the class.
            functools.partial(jax.lax.map, learner.init),
            # The number of steps is the same for all seeds.
            together(learner.advance, in_axes=(0, None)),
            together(learner.fresh_environments),
        )

    def place(self, state: Any) -> Any:
        """Return the sharding of each leaf: all of a seed's leaves are on one device."""
        return jax.tree.map(lambda _: NamedSharding(self._mesh, PartitionSpec(SEEDS_AXIS)), state)

    def bad_updates(self, state: Any) -> int:
        """Return the number of consecutive skipped updates of the seed with the fewest."""
        # The run stops only if all of its seeds fail: the others would lose their training.
        return int(np.min(jax.device_get(state.bad_updates)))

    def metrics(self, tally: Tally) -> dict[str, Any]:
        """Return the metrics of each seed."""
        parts = [jax.tree.map(lambda x, i=i: x[i], tally) for i in range(self._number)]
        return {_PER_SEED: [super(SeedsProgram, self).metrics(part) for part in parts]}


def _incompatible_settings(config: RunConfig, runtime: Runtime) -> list[str]:
    """Return the settings that keep seeds from training together."""
    given = {**vars(config), **vars(runtime)}
    drawn = runtime.randomization_fn is not None and parts.draws_once(runtime.randomization_fn)
    # Candidates take turns, and seeds would have to agree on whose it is.
    return [
        *(name for name in _SINGLE_RUN_SETTINGS if given[name] is not None),
        *["randomization_fn"] * drawn,
        *["candidates"] * (config.candidates > 1),
    ]


def _seed_mesh(number: int) -> Mesh:
    """Return a mesh of as many devices as divide the number of seeds; nothing else is split."""
    found = jax.devices()
    count = next(n for n in range(min(len(found), number), 0, -1) if number % n == 0)
    grid = np.array(found[:count]).reshape(count, 1)
    # The second axis, of size 1, is the one that learners split environments over.
    return Mesh(grid, (SEEDS_AXIS, devices.ENVS_AXIS), axis_types=(AxisType.Auto,) * 2)


def state_of_seed(states: Any, i: int) -> Any:
    """Return one seed's state, on the device that has it.

    Indexing the states of all seeds would run a program on all devices for each leaf. On a CPU
    (jaxlib 0.10.2) many such programs in flight can wait for each other for ever.
    """

    def own(x: jax.Array) -> jax.Array:
        for shard in x.addressable_shards:
            # The seeds that this shard holds.
            rows = range(len(x))[shard.index[0]]
            if i in rows:
                return shard.data[i - rows.start]
        raise AssertionError(f"no device of this process has seed {i}")

    return jax.tree.map(own, states)


def _metrics_of_seed(metrics: Mapping[str, Any], i: int) -> dict[str, Any]:
    """Return one seed's metrics: its own, and those of all seeds."""
    common = {name: x for name, x in metrics.items() if name != _PER_SEED}
    return {**common, **metrics.get(_PER_SEED, [{}] * (i + 1))[i]}
