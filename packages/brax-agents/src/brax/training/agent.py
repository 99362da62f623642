"""An agent: its settings, networks and learner. The rest of a run is shared.

Start reading at `Agent.train`, which names every stage of a run in order.
"""

import contextlib
import dataclasses
import functools
import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
from jax.sharding import Mesh

from brax.env import Env
from brax.errors import ConfigError, closest
from brax.training import policies, types
from brax.training.checkpoints import policies as saved_policies
from brax.training.checkpoints import resumption
from brax.training.config import RunConfig, Runtime, parse
from brax.training.distributed import devices, hosts
from brax.training.learner import Learner, Parts
from brax.training.learning.averaging import AveragedLearner
from brax.training.learning.candidates import CandidatesLearner
from brax.training.nn import images
from brax.training.runner import consistency, parts, presets
from brax.training.runner.loop import Loop
from brax.training.runner.program import Program


@dataclass(frozen=True)
class Agent:
    """An agent, which trains policies and loads them. A trainer's plugin names an instance."""

    name: str
    """Name of the agent on the command line, in runs and in checkpoints."""
    config: type[RunConfig]
    """Class of the agent's numbers."""
    make_networks: Callable[..., Any]
    """Function of `(observation_size, action_size, preprocess_observations_fn, ...)` that makes the
    networks. They have at least `policy_network`.
    """
    learner: Callable[[Parts], Learner]
    """Function that makes the agent's learner."""
    presets: presets.Presets
    """Settings by environment and preset."""
    runtime: type[Runtime] = Runtime
    """Class of the agent's other settings, such as functions."""
    make_inference_fn: Callable[[Any], Callable[..., types.Policy]] = policies.make_inference_fn
    """Function from the networks to `make_policy`."""
    make_vision_networks: Callable[..., Any] | None = None
    """Function that makes networks for images, if the agent reads any; `config` has `vision`."""

    def check(self, settings: Mapping[str, Any]) -> tuple[Any, Any]:
        """Reject the settings that `train` would reject, without an environment.

        Returns:
            The agent's numbers and its other settings.
        """
        return parse(self.config, settings, self.runtime)

    @hosts.explain_lost_process()
    def train(
        self, environment: Env, **settings: Any
    ) -> tuple[Callable[..., Any], Any, dict[str, Any]]:
        """Train a policy.

        Args:
            environment: environment to learn, not yet batched.
            **settings: fields of the agent's `config` and `runtime`; `docs/agents.md` lists them.

        Returns:
            `make_policy(params, deterministic=False)`, the parameters, a named tuple that begins
            with `normalizer` and `policy`, and the metrics of the last evaluation.

        Raises:
            ConfigError: before any long work, if a setting is unknown, unsupported or not allowed.
            CheckpointError: if a checkpoint cannot be written or restored.
            TrainingError: if gradients stay non-finite, or another process is lost.
        """
        start = time.monotonic()
        # Whatever fails in one process before it computes with the others fails in all of them.
        with hosts.together():
            config, runtime = self.check(settings)
            # A run that continues from a checkpoint keeps the default that it was trained with.
            unset = [name for name in self.config.moved_defaults if name not in settings]
            config = replace(
                config, **resumption.recorded_settings(runtime.restore_checkpoint_path, unset)
            )
            mesh = devices.env_mesh(config.num_envs, config.max_devices_per_host)
            # One key for each use: randomized systems, first state, evaluation's systems,
            # evaluations.
            keys = jax.random.split(jax.random.key(config.seed), 4)
            learner, make_policy, record = self.build(environment, config, runtime, mesh, keys[0])
            program = Program(learner, mesh)
            evaluator = parts.make_evaluator(environment, config, runtime, make_policy, keys[2:])
        # Outside `together`, since every process raises the same error here.
        consistency.check_settings(record, runtime)
        with parts.explain_out_of_memory(config), contextlib.ExitStack() as stack:
            with hosts.together():
                saves = parts.make_saver(stack, runtime.save_checkpoint_path, record, config)
                saved = parts.read_saved_state(program, config, runtime, record)
                # The folder is checked before the program is compiled, which takes longest.
                if saves is not None:
                    saves.start(0 if saved is None else saved.step)
            consistency.check_start(program, runtime, saved)
            params, train = program.shapes().params, config.training_steps > 0
            with hosts.together():
                parts.compile_all(program, evaluator, train, saved is None, params)
            first = parts.initial_state(program, keys[1], runtime, saved)
            evaluate = functools.partial(parts.evaluate, evaluator)
            hand_out = functools.partial(parts.publish_params, runtime, make_policy)
            reports = parts.make_reports(evaluate, hand_out, runtime.progress_fn, saves, config)
            loop = Loop(
                program,
                parts.make_schedule(config),
                reports,
                parts.make_stopping_criteria(config, start),
            )
            state, metrics = loop.run(*first)
        params = jax.device_get(state.params)
        return policies.with_normalizer(make_policy, params), params, metrics

    def build(
        self, environment: Env, config: Any, runtime: Any, mesh: Mesh, key: jax.Array
    ) -> tuple[Learner, Callable[..., Any], dict[str, Any]]:
        """Make the parts of a run; nothing is compiled.

        Args:
            environment: environment to learn, not yet batched.
            config: the agent's numbers.
            runtime: the agent's other settings.
            mesh: devices.
            key: for systems that are drawn.

        Returns:
            The learner, `make_policy`, and what a checkpoint records.

        Raises:
            ConfigError: if environment, networks and settings do not go together.
        """
        parts.check_environment("environment", environment)
        env = parts.wrap_environment(environment, config, runtime, config.num_envs, key)
        info = parts.check_state(env, config)
        size = environment.observation_size
        parts.check_observation_size(size, info)
        if config.vision or config.augment_pixels:
            # The call raises an error if the environment has no image.
            images.shapes(size)
        factory = self._factory(runtime.network_factory, config)
        networks = factory(
            size,
            environment.action_size,
            preprocess_observations_fn=policies.preprocessor(config.normalize_observations),
        )
        self._check_networks(networks)
        needed = Parts(env, networks, config, runtime, mesh, info)
        make: Callable[[Parts], Learner] = self.learner
        if config.policy_average_steps is not None:
            make = functools.partial(AveragedLearner, make=make)
        learner = CandidatesLearner(needed, make) if config.candidates > 1 else make(needed)
        record = self._record(environment, size, config, factory)
        return learner, self.make_inference_fn(networks), record

    def timesteps(
        self,
        num_timesteps: int | None,
        training_steps: int | None,
        name: str,
        settings: Mapping[str, Any],
    ) -> int:
        """Return the environment steps to train for, given as such or as training steps.

        Args:
            num_timesteps: environment steps.
            training_steps: training steps, instead.
            name: what the agent calls these.
            settings: the other settings of the run.

        Raises:
            ConfigError: if both are given, or neither, or a setting is wrong.
        """
        if training_steps is None and num_timesteps is not None:
            return num_timesteps
        if training_steps is None or num_timesteps is not None:
            raise ConfigError(f"give num_timesteps or {name}, and not both.")
        config, _ = self.check(settings)
        return training_steps * int(config.env_steps_per_training_step)

    def load_policy(
        self,
        path: Path | str,
        deterministic: bool = True,
        network_factory: Callable[..., Any] | None = None,
    ) -> types.Policy:
        """Return the policy `policy(obs, key) -> (action, extras)` of a run or checkpoint.

        Args:
            path: run, folder of checkpoints (the newest is taken), or checkpoint.
            deterministic: take the mean action instead of drawing one.
            network_factory: makes the networks, where they are not the agent's own.

        Raises:
            CheckpointError: if there is no such checkpoint, or it is damaged or of another kind.
        """
        found = saved_policies.read_checkpoint(path, self.name)
        factory = network_factory or saved_policies.recorded_factory(self._own_factories, found)
        return saved_policies.restore_policy(found, factory, self.make_inference_fn, deterministic)

    def load(self, path: Path | str) -> policies.PolicyParams | policies.ActorCriticParams:
        """Return the parameters in a run or checkpoint, as `train` returned them.

        Args:
            path: run, folder of checkpoints (the newest is taken), or checkpoint.

        Raises:
            CheckpointError: if there is no such checkpoint, or it is damaged or of another kind.
        """
        return saved_policies.params_from_checkpoint(
            saved_policies.read_checkpoint(path, self.name)
        )

    def save(self, path: Path | str, step: int, params: Any, config: Mapping[str, object]) -> Path:
        """Save parameters, for `load` and `load_policy`; return when they are on disk.

        A run saves its whole training state by `save_checkpoint_path`. Parameters are not enough to
        resume a run, but another one can start from them, by `restore_params`.

        Args:
            path: folder of checkpoints; the others in it stay.
            step: environment steps of training behind the parameters; the checkpoint's name.
            params: parameters, as `train` returned them or passed them to a callback.
            config: the result of `network_config`.

        Returns:
            The checkpoint's folder.

        Raises:
            ConfigError: if these are no parameters, or of other networks, or config is another.
            CheckpointError: if the checkpoint cannot be written.
        """
        return saved_policies.save_params(self.name, path, step, params, config)

    def network_config(
        self,
        observation_size: types.ObservationSize,
        action_size: int,
        normalize_observations: bool,
        network_factory: Callable[..., Any] | None = None,
    ) -> saved_policies.NetworkConfig:
        """Return the description of networks that `save` records, to make them again.

        Args:
            observation_size: the environment's.
            action_size: the environment's.
            normalize_observations: the setting that they were trained with.
            network_factory: function that made them, with settings by `functools.partial`; by
                default the agent's own function without any.
        """
        factory = network_factory or self.make_networks
        return saved_policies.NetworkConfig(
            agent=self.name,
            config={"normalize_observations": normalize_observations},
            network=saved_policies.describe_networks(self._own_factories, factory),
            observation_size=saved_policies.to_json(observation_size),
            action_size=int(action_size),
        )

    @property
    def _own_factories(self) -> list[Callable[..., Any]]:
        """The agent's own functions that make networks."""
        return [self.make_networks, *filter(None, [self.make_vision_networks])]

    def _factory(self, given: Any, config: RunConfig) -> Callable[..., Any]:
        """Return the function that makes the networks, from the user's `network_factory`."""
        more = config.network_settings
        if given is None or isinstance(given, Mapping):
            own = self.make_vision_networks if config.vision else None
            given, more = own or self.make_networks, {**(given or {}), **more}
        try:
            signature = inspect.signature(given)
            # A trial call by its signature: a wrong function fails here, not after seconds of
            # tracing.
            signature.bind_partial("sizes", "of actions", preprocess_observations_fn=None)
        except (TypeError, ValueError) as error:  # also of a partial of what it does not take
            raise ConfigError(
                f"network_factory cannot be called: {error}. Its arguments are "
                "(observation_size, action_size, preprocess_observations_fn=...)."
            ) from error
        known = set(signature.parameters)
        anything = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
        if unknown := [] if anything else sorted(set(more) - known):
            raise ConfigError(
                f"network_factory takes no {' and no '.join(unknown)}.{closest(unknown[0], known)}"
            )
        return functools.partial(given, **more) if more else given

    def _check_networks(self, networks: Any) -> None:
        """Reject networks of another agent, and objects that are no networks.

        Raises:
            ConfigError: naming what is missing.
        """
        own = inspect.get_annotations(self.make_networks).get("return")
        fields = dataclasses.fields(own) if dataclasses.is_dataclass(own) else ()
        # The class that `make_networks` is annotated with says which fields the learner reads.
        needed = [f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING]
        if missing := [name for name in needed if not hasattr(networks, name)]:
            raise ConfigError(
                f"network_factory returned a {type(networks).__name__} without "
                f"{' and '.join(missing)}; {self.name} needs {', '.join(needed)}."
            )
        if hasattr(networks.policy_network, "memory_size") and not hasattr(self.config, "memory"):
            raise ConfigError(
                f"network_factory returned networks with memory, which {self.name} does not carry "
                "from step to step; ppo does."
            )

    def _record(
        self,
        env: Env,
        size: types.ObservationSize,
        config: RunConfig,
        factory: Callable[..., Any],
    ) -> dict[str, Any]:
        """Return the record of a checkpoint: everything that is needed to use it again."""
        networks = self.network_config(
            size, env.action_size, config.normalize_observations, factory
        )
        environment = type(env.unwrapped).__name__
        return {**networks, "environment": environment, "config": dataclasses.asdict(config)}
