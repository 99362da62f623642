"""The parts that all agents' `train` share: the type of the result and the docstring."""

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from brax.training.agent import Agent

F = TypeVar("F", bound=Callable[..., Any])
P = TypeVar("P")

Trained: TypeAlias = tuple[Callable[..., Any], P, dict[str, Any]]
"""`make_policy(params, deterministic=False)`, the parameters, and the metrics of the last
evaluation.
"""

DOCSTRING = """{summary}

Args:
    {environment}: environment to learn, not yet batched.
    num_timesteps: environment steps to train for, rounded up to whole training steps; 0 returns
        the first parameters. With `restore_checkpoint_path` it includes the steps that the
        checkpoint has behind it.{alternative}
    **settings: fields of `{config}` and `{runtime}`; `docs/agents.md` lists them.

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


def documented(agent: Agent, params: type[Any], source: str) -> Callable[[F], F]:
    """Give an agent's `train` the rest of its docstring, of which it has the first lines.

    Args:
        agent: the agent that trains.
        params: named tuple of the parameters that `train` returns.
        source: paper that describes the agent.
    """

    def document(train: F) -> F:
        # BC calls the environment `env`, as in Google's brax; APG and BC take training steps too.
        environment, *others = list(inspect.signature(train).parameters)
        train.__doc__ = DOCSTRING.format(
            summary=train.__doc__,
            environment=environment,
            alternative="".join(
                f"\n    {name}: training steps, instead of `num_timesteps`."
                for name in others
                if name not in ("num_timesteps", "settings")
            ),
            config=agent.config.__name__,
            runtime=agent.runtime.__name__,
            params=", ".join(inspect.get_annotations(params)),
            source=source,
        )
        return train

    return document
