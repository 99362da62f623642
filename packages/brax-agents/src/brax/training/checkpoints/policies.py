"""Policies and their parameters, read from and written to checkpoints."""

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from brax.errors import CheckpointError, ConfigError, closest
from brax.plugins.outputs.trainer import load_policy
from brax.training import types
from brax.training.acme import running_statistics
from brax.training.checkpoints import checkpoint, run_directory
from brax.training.checkpoints.writer import Writer
from brax.training.nn import images, networks
from brax.training.policies import ActorCriticParams, PolicyParams, policy_part, preprocessor


class NetworkConfig(dict[str, Any]):
    """The description of networks that `save` records, whose entries are attributes too."""

    def __getattr__(self, name: str) -> Any:
        """Return the entry of a name."""
        if name not in self:
            raise AttributeError(f"{name}: there is none.{closest(name, self)}")
        return self[name]

    @property
    def normalize_observations(self) -> bool:
        """True if observations are normalized."""
        return bool(self["config"]["normalize_observations"])

    @property
    def network_factory_kwargs(self) -> "NetworkConfig":
        """The settings of the function that made the networks."""
        settings = {k: v for k, v in self["network"].items() if k != "factory"}
        return NetworkConfig(
            (name, tuple(x) if isinstance(x, list) else x) for name, x in settings.items()
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dictionary."""
        return dict(self)


def read_checkpoint(path: Path | str, agent: str) -> checkpoint.Checkpoint:
    """Read a checkpoint of an agent.

    Args:
        path: run, folder of checkpoints (the newest is taken), or checkpoint.
        agent: the agent's name.

    Raises:
        CheckpointError: if there is no such checkpoint, or it is damaged or of another agent.
    """
    found = checkpoint.load(path)
    of = found.record.get("agent")
    if of != agent:
        raise CheckpointError(f"'{found.path}' is of agent '{of}', not of '{agent}'.")
    return found


def params_from_checkpoint(found: checkpoint.Checkpoint) -> PolicyParams | ActorCriticParams:
    """Return the parameters in a checkpoint, as `train` returned them."""
    parts: dict[str, Any] = {}
    for name, leaf in found.arrays.items():
        top, *path = name.split("/")
        # Flax's parameters are nested dictionaries, so the path of a leaf is its keys.
        if top == "params" and path[0] in ("policy", "value"):
            at = parts
            for inner in path[:-1]:
                at = at.setdefault(inner, {})
            at[path[-1]] = leaf
    kind = ActorCriticParams if "value" in parts else PolicyParams
    return kind(normalizer=_normalizer(found), **parts)


def save_params(
    agent: str, path: Path | str, step: int, params: object, config: Mapping[str, Any]
) -> Path:
    """Save parameters without a training state; arguments and errors as `Agent.save`."""
    if config.get("agent") != agent or "network" not in config:
        raise ConfigError(
            f"config={dict(config)!r} is not what the network_config of '{agent}' returns: give "
            "that."
        )
    kinds = {2: PolicyParams, 3: ActorCriticParams}
    if not isinstance(params, tuple | list) or len(params) not in kinds:
        raise ConfigError(
            "params must be what train() returned: (normalizer, policy) or (normalizer, policy, "
            f"value), not {type(params).__name__}."
        )
    named = kinds[len(params)](*params)
    policy_part(named)
    # Images are never normalized: an environment that has nothing else needs no statistics.
    vectors = images.vectors(config["observation_size"])
    needs_none = isinstance(vectors, Mapping) and not vectors
    normalized = config["config"]["normalize_observations"] and not needs_none
    if normalized == (named.normalizer == ()):
        raise ConfigError(
            "normalize_observations="
            f"{config['config']['normalize_observations']}, but the parameters have "
            f"{'no' if named.normalizer == () else 'a'} normalizer: say what they were trained "
            "with."
        )
    numbers = dict(config["config"])
    if isinstance(named.normalizer, running_statistics.RunningStatisticsState):
        numbers["normalize_observations_std_eps"] = named.normalizer.std_eps
    # No old checkpoint is removed: the folder belongs to the user.
    with contextlib.closing(Writer(path, keep=sys.maxsize)) as writer:
        return writer.save(step, {"params": named}, {**config, "config": numbers})


def load_run_policy(path: Path | str) -> types.Policy:
    """Return the deterministic policy of a run or checkpoint of any agent.

    A run's folder names its trainer, which may store policies in any form.

    Raises:
        CheckpointError: if there is no such checkpoint, or it is damaged.
        UnknownNameError: if its agent is not installed.
    """
    if (Path(path) / run_directory.RUN_FILE).is_file():
        agent = run_directory.read(Path(path)).trainer
    else:
        agent = checkpoint.load(path).record.get("agent", "")
    policy: types.Policy = load_policy(agent, path)
    return policy


def restore_policy(
    found: checkpoint.Checkpoint,
    make_networks: Callable[..., Any],
    make_policy_of: Callable[[Any], Callable[..., types.Policy]],
    deterministic: bool,
) -> types.Policy:
    """Return the policy in a checkpoint.

    Args:
        found: the checkpoint.
        make_networks: function that makes the networks that it was saved with.
        make_policy_of: the agent's `make_inference_fn`.
        deterministic: take the mean action instead of drawing one.

    Raises:
        CheckpointError: if the networks differ, or a setting of theirs is a user's function.
    """
    record = found.record
    try:
        made = make_networks(
            record["observation_size"],
            record["action_size"],
            preprocess_observations_fn=preprocessor(record["config"]["normalize_observations"]),
        )
    except ConfigError as error:
        raise CheckpointError(
            f"the networks of '{found.path}' cannot be made from what it records: {error} Pass "
            "what made them as network_factory."
        ) from error
    # No weights are drawn: only their shapes are needed.
    shapes = jax.eval_shape(made.policy_network.init, jax.random.key(0))
    policy = checkpoint.restore(found, shapes, "params/policy")
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(policy)):
        raise CheckpointError(
            f"the policy in '{found.path}' (step {found.steps}) is not finite: use an earlier one."
        )
    return make_policy_of(made)((_normalizer(found), policy), deterministic)


def describe_networks(
    own: Sequence[Callable[..., object]], factory: Callable[..., object]
) -> dict[str, Any]:
    """Return a description of a network factory that JSON can represent.

    Args:
        own: the agent's own network factories, which are described with all of their settings.
        factory: the factory that is used; one that is not in `own` is described by its name only.
    """
    inner = factory.func if isinstance(factory, functools.partial) else factory
    given = factory.keywords if isinstance(factory, functools.partial) else {}
    positional = factory.args if isinstance(factory, functools.partial) else ()
    if inner not in own or positional:
        return {"factory": getattr(inner, "__qualname__", type(inner).__qualname__)}
    # Defaults are recorded too: a later version may have others.
    settings = {
        name: given.get(name, parameter.default)
        for name, parameter in inspect.signature(inner).parameters.items()
        if name not in ("observation_size", "action_size", "preprocess_observations_fn")
    }
    return {"factory": inner.__name__, **{k: to_json(v) for k, v in settings.items()}}


def recorded_factory(
    own: Sequence[Callable[..., object]], found: checkpoint.Checkpoint
) -> Callable[..., Any]:
    """Return the network factory that a checkpoint describes.

    Raises:
        CheckpointError: if it is not one of `own`, the agent's, with some settings.
    """
    settings = dict(found.record["network"])
    factory = settings.pop("factory")
    known = {make_networks.__name__: make_networks for make_networks in own}
    if factory not in known:
        raise CheckpointError(
            f"the networks of '{found.path}' were made by {factory}: pass it as network_factory."
        )
    return functools.partial(known[factory], **settings)


def to_json(value: Any) -> Any:
    """Return a setting in a form that JSON can represent."""
    if isinstance(value, Mapping):
        return {name: to_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(part) for part in value]
    if isinstance(value, functools.partial):
        bound = [*map(to_json, value.args), to_json(value.keywords)]
        return f"{to_json(value.func)} of {bound}"
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return value.tolist()
    if callable(value):
        known = {**networks.ACTIVATION, **networks.KERNEL_INITIALIZER}
        # Functions that have a name in settings are recorded by it, so that they can be found
        # again.
        names = [name for name, fn in known.items() if fn is value]
        named = value if hasattr(value, "__qualname__") else type(value)
        return names[0] if names else f"{named.__module__}.{named.__qualname__}"
    return value


def _normalizer(found: checkpoint.Checkpoint) -> Any:
    """Return the statistics of observations in a checkpoint, `()` if there are none."""
    prefix = "params/normalizer/mean"
    mean = {k.removeprefix(prefix): v for k, v in found.arrays.items() if k.startswith(prefix)}
    if not mean:
        return ()
    sample = mean[""] if "" in mean else {k.removeprefix("/"): v for k, v in mean.items()}
    eps = found.record["config"].get("normalize_observations_std_eps", 0.0)
    like = running_statistics.init_state(sample, eps)
    return checkpoint.restore(found, like, "params/normalizer")
