"""The networks of BC."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flax import linen

from brax.errors import ConfigError
from brax.training import policies, types
from brax.training.nn import distribution, images, networks
from brax.training.policies import ActorNetworks

BCNetworks = ActorNetworks


def make_bc_networks(
    observation_size: types.ObservationSize,
    action_size: int,
    preprocess_observations_fn: types.PreprocessObservationFn = (
        types.identity_observation_preprocessor
    ),
    policy_hidden_layer_sizes: Sequence[int] = (32,) * 4,
    activation: str | networks.ActivationFn = linen.swish,
    policy_obs_key: str = "state",
    distribution_type: str = "tanh_normal",
    vision: bool = False,
) -> ActorNetworks:
    """Return the network of the student for observations that are vectors.

    Args:
        observation_size: number of features, or a dictionary of them.
        action_size: number of actions.
        preprocess_observations_fn: applied to observations first.
        policy_hidden_layer_sizes: widths of the hidden layers.
        activation: function between layers, or its name.
        policy_obs_key: observation that the student reads, where there are several.
        distribution_type: `tanh_normal`, bounded to (-1, 1), or `normal`.
        vision: must be False; `make_bc_networks_vision` makes networks that read images.

    Raises:
        ConfigError: if a name is unknown.
    """
    if vision:
        raise ConfigError("make_bc_networks reads vectors: use make_bc_networks_vision for images.")
    actions = distribution.of_type(distribution_type, action_size)
    network = networks.make_policy_network(
        actions.param_size,
        observation_size,
        preprocess_observations_fn,
        policy_hidden_layer_sizes,
        activation,
        policy_obs_key,
    )
    return ActorNetworks(network, actions)


def make_bc_networks_vision(
    observation_size: types.ObservationSize,
    action_size: int,
    preprocess_observations_fn: types.PreprocessObservationFn = (
        types.identity_observation_preprocessor
    ),
    policy_hidden_layer_sizes: Sequence[int] = (32,) * 4,
    activation: str | networks.ActivationFn = linen.swish,
    normalise_channels: bool = False,
    policy_obs_key: str = "",
    distribution_type: str = "tanh_normal",
    cnn_output_channels: Sequence[int] = (32, 64, 64),
    cnn_kernel_size: Sequence[int] = (8, 4, 3),
    cnn_stride: Sequence[int] = (4, 2, 1),
    cnn_padding: str = "zeros",
    cnn_activation: str | networks.ActivationFn = linen.relu,
    cnn_max_pool: bool = False,
    cnn_global_pool: str = "avg",
    cnn_kernel_init_fn: str | Callable[..., Any] = "lecun_normal",
    cnn_kernel_init_kwargs: Mapping[str, object] | None = None,
) -> ActorNetworks:
    """Return the network of a student that reads images.

    Arguments as `make_bc_networks`, and those of images as
    `brax.training.agents.ppo.networks_vision.make_ppo_networks_vision`.

    Raises:
        ConfigError: if there is no image or one does not fit the strides, or a name is unknown.
    """
    actions = distribution.of_type(distribution_type, action_size)
    reader = images.reader(
        observation_size,
        policy_obs_key,
        normalise_channels,
        cnn_output_channels,
        cnn_kernel_size,
        cnn_stride,
        cnn_activation,
        networks.initializer_of(cnn_kernel_init_fn, cnn_kernel_init_kwargs),
        cnn_padding,
        cnn_max_pool,
        cnn_global_pool,
    )
    network = networks.make_mlp(
        actions.param_size,
        reader,
        preprocess_observations_fn,
        policy_hidden_layer_sizes,
        activation,
    )
    return ActorNetworks(network, actions)


def make_inference_fn(agent_networks: ActorNetworks) -> Callable[..., types.Policy]:
    """Return `make_policy(params, deterministic=False, tanh_squash=None)`.

    As `brax.training.policies.make_inference_fn`. `tanh_squash` says whether actions are bounded to
    (-1, 1), in place of the networks' `distribution_type`.
    """
    own = agent_networks.parametric_action_distribution
    size = own.param_size // 2
    makers = {
        squash: policies.make_inference_fn(ActorNetworks(agent_networks.policy_network, actions))
        for squash, actions in {
            None: own,
            True: distribution.NormalTanhDistribution(size),
            False: distribution.NormalDistribution(size),
        }.items()
    }

    def make_policy(
        params: object, deterministic: bool = False, tanh_squash: bool | None = None
    ) -> types.Policy:
        return makers[tanh_squash](params, deterministic)

    return make_policy
