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
"""What the names of images begin with in a dictionary of observations."""


class Transition(NamedTuple):
    """What one environment step produced."""

    observation: Observation
    """What the policy saw."""
    action: Action
    """What it did."""
    reward: jax.Array
    """What it got."""
    discount: jax.Array
    """One, or zero where the episode ended."""
    next_observation: Observation
    """The true observation after the step, also where the environment was then reset."""
    extras: Any = ()
    """`policy_extras` and `state_extras`."""


class Policy(Protocol):
    """Chooses actions."""

    def __call__(self, observation: Observation, key: PRNGKey) -> tuple[Action, Extra]:
        """Returns an action and what the policy knows about it."""


class PreprocessObservationFn(Protocol):
    """Prepares observations for a network."""

    def __call__(self, observation: Observation, preprocessor_params: Params) -> Observation:
        """Returns the observation as the network sees it."""


def identity_observation_preprocessor(
    observation: Observation, preprocessor_params: Params
) -> Observation:
    """Leaves observations as they are."""
    del preprocessor_params
    return observation


class NetworkFactory(Protocol):
    """Makes an agent's networks."""

    def __call__(
        self,
        observation_size: ObservationSize,
        action_size: int,
        preprocess_observations_fn: PreprocessObservationFn = identity_observation_preprocessor,
    ) -> Any:
        """Returns the networks for an environment of these sizes."""
