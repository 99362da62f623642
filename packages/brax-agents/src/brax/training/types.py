"""The types that agents share."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import jax

from brax.training._removed import explain_removed

Params = Any
PreprocessorParams = Any
Metrics = Mapping[str, Any]
Observation = Any
ObservationSize = int | Mapping[str, Any]
Action = jax.Array
Extra = Mapping[str, Any]
PRNGKey = jax.Array

NetworkType = TypeVar("NetworkType", covariant=True)

PIXELS = "pixels/"
"""Prefix of the names of images in a dictionary of observations."""


class PolicyParams(NamedTuple):
    """The parameters of a policy: those of agents without a value network."""

    normalizer: PreprocessorParams
    """Statistics of observations, `()` where they are not normalized."""
    policy: Params
    """Parameters of the policy network."""


class Transition(NamedTuple):
    """One environment step, with what the policy saw and did, of any batch shape."""

    observation: Observation
    """Observation that the policy acted on."""
    action: Action
    """Action of the policy, shape (*batch, action_size)."""
    reward: jax.Array
    """Reward of the step, shape (*batch,)."""
    discount: jax.Array
    """1, or 0 where the episode ended, shape (*batch,)."""
    next_observation: Observation
    """The true observation after the step, even if the environment was reset after it."""
    extras: Any = ()
    """`policy_extras` and `state_extras`."""


class Policy(Protocol):
    """A function that chooses actions."""

    def __call__(self, observation: Observation, key: PRNGKey) -> tuple[Action, Extra]:
        """Return an action (..., action_size) and the policy's extras, such as its log density."""


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


class NetworkFactory(Protocol[NetworkType]):
    """A function that makes an agent's networks, of type `NetworkType`."""

    def __call__(
        self,
        observation_size: ObservationSize,
        action_size: int,
        preprocess_observations_fn: PreprocessObservationFn = identity_observation_preprocessor,
    ) -> NetworkType:
        """Return the networks for an environment of these sizes."""


if not TYPE_CHECKING:  # type checkers would take any name for one of this module's
    __getattr__ = explain_removed(__name__)
