"""The types that agents share."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import jax

Params = Any
Metrics = Mapping[str, Any]
Observation = Any
ObservationSize = int | Mapping[str, Any]
Action = jax.Array
Extra = Mapping[str, Any]
PRNGKey = jax.Array

PIXELS = "pixels/"
"""Prefix of the names of images in a dictionary of observations."""


class Transition(NamedTuple):
    """One environment step, with what the policy saw and did."""

    observation: Observation
    """Observation that the policy acted on."""
    action: Action
    """Action of the policy."""
    reward: jax.Array
    """Reward of the step."""
    discount: jax.Array
    """1, or 0 where the episode ended."""
    next_observation: Observation
    """The true observation after the step, even if the environment was reset after it."""
    extras: Any = ()
    """`policy_extras` and `state_extras`."""


class Policy(Protocol):
    """A function that chooses actions."""

    def __call__(self, observation: Observation, key: PRNGKey) -> tuple[Action, Extra]:
        """Return an action and the policy's extras, such as its log density."""


class PreprocessObservationFn(Protocol):
    """A function that prepares observations for a network."""

    def __call__(self, observation: Observation, preprocessor_params: Params) -> Observation:
        """Return the observation as the network sees it."""


def identity_observation_preprocessor(
    observation: Observation, preprocessor_params: Params
) -> Observation:
    """Leave observations as they are."""
    del preprocessor_params
    return observation


class NetworkFactory(Protocol):
    """A function that makes an agent's networks."""

    def __call__(
        self,
        observation_size: ObservationSize,
        action_size: int,
        preprocess_observations_fn: PreprocessObservationFn = identity_observation_preprocessor,
    ) -> Any:
        """Return the networks for an environment of these sizes."""
