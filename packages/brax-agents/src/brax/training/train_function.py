"""The function `train` of each agent, such as `brax.training.agents.ppo.train.train`."""

import inspect
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from brax.env import Env
from brax.training.agent import Agent

P = TypeVar("P", covariant=True)

DOCSTRING = """{summary}

Args:
    {environment}: environment to learn, not yet batched.
    num_timesteps: environment steps to train for, rounded up to whole training steps; 0 returns
        the first parameters. With `restore_checkpoint_path` it includes the steps that the
        checkpoint has behind it.{alternative}
    **settings: fields of `{config}` and `{runtime}`; `docs/training.md` lists them.

Returns:
    `make_policy(params, deterministic=False)`, the parameters `({params})`,
    and the metrics of the last evaluation.

Raises:
    ConfigError: before any long work, if a setting is unknown, unsupported or not allowed.
    CheckpointError: if a checkpoint cannot be read, written or restored.
    TrainingError: if gradients stay non-finite, or another process is lost.

Source: {source}.
"""
"""The docstring that all agents share."""


class TrainFunction(Protocol, Generic[P]):
    """The type of an agent's `train`: what editors and type checkers show of it."""

    def __call__(
        self, environment: Env, num_timesteps: int | None = None, **settings: Any
    ) -> tuple[Callable[..., Any], P, dict[str, Any]]:
        """Train a policy.

        Args:
            environment: environment to learn, not yet batched.
            num_timesteps: environment steps to train for; 0 returns the first parameters.
            **settings: fields of the agent's config and runtime; `docs/training.md` lists them.

        Returns:
            `make_policy(params, deterministic=False)`, the parameters, and the metrics of the last
            evaluation.

        Raises:
            ConfigError: before any long work, if a setting is unknown, unsupported or not allowed.
            CheckpointError: if a checkpoint cannot be read, written or restored.
            TrainingError: if gradients stay non-finite, or another process is lost.
        """


def make_train_function(
    agent: Agent,
    params: type[P],
    summary: str,
    source: str,
    training_steps: str | None = None,
    environment: str = "environment",
) -> TrainFunction[P]:
    """Return an agent's `train`, with a signature and a docstring of its own.

    Args:
        agent: the agent that trains.
        params: named tuple of the parameters that `train` returns.
        summary: first lines of the docstring.
        source: paper that describes the agent.
        training_steps: keyword argument that gives the length of the run in training steps. An
            agent that has it takes either this or `num_timesteps`; the others need `num_timesteps`.
        environment: name of the first parameter. BC calls it `env`, as in Google's brax.
    """
    signature = _signature(params, training_steps, environment)

    def train(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"train() {error}") from None
        given.apply_defaults()
        settings, num_timesteps = given.kwargs, given.arguments["num_timesteps"]
        if training_steps is not None:
            steps = settings.pop(training_steps)
            num_timesteps = agent.timesteps(num_timesteps, steps, training_steps, settings)
        return agent.train(given.args[0], num_timesteps=num_timesteps, **settings)

    alternative = f"\n    {training_steps}: training steps, instead of `num_timesteps`."
    train.__doc__ = DOCSTRING.format(
        summary=summary,
        environment=environment,
        alternative=alternative if training_steps else "",
        config=agent.config.__name__,
        runtime=agent.runtime.__name__,
        params=", ".join(inspect.get_annotations(params)),
        source=source,
    )
    # `inspect.signature` and `help` read this attribute, so that they show the names that the
    # agent takes in place of `*args, **kwargs`.
    train.__signature__ = signature  # type: ignore[attr-defined]
    return train


def _signature(params: Any, training_steps: str | None, environment: str) -> inspect.Signature:
    """Return the signature of `train`; `num_timesteps` has a default if it may be left out."""
    word, name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter
    steps = name("num_timesteps", word, annotation=int)
    others = []
    if training_steps is not None:
        steps = steps.replace(default=None, annotation=int | None)
        more = name(training_steps, name.KEYWORD_ONLY, default=None, annotation=int | None)
        others.append(more)
    return inspect.Signature(
        [
            name(environment, word, annotation=Env),
            steps,
            *others,
            name("settings", name.VAR_KEYWORD, annotation=Any),
        ],
        return_annotation=tuple[Callable[..., Any], params, dict[str, Any]],
    )
