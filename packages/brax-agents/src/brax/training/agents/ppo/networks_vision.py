"""The networks of PPO for observations with images."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flax import linen

from brax.training import types
from brax.training.agents.ppo.networks import PPONetworks as PPONetworks
from brax.training.agents.ppo.networks import make_inference_fn as make_inference_fn
from brax.training.agents.ppo.networks import of_readers
from brax.training.nn import images, networks


def make_ppo_networks_vision(
    observation_size: types.ObservationSize,
    action_size: int,
    preprocess_observations_fn: types.PreprocessObservationFn = (
        types.identity_observation_preprocessor
    ),
    policy_hidden_layer_sizes: Sequence[int] = (256, 256),
    value_hidden_layer_sizes: Sequence[int] = (256, 256),
    activation: str | networks.ActivationFn = linen.swish,
    normalise_channels: bool = False,
    policy_obs_key: str = "",
    value_obs_key: str = "",
    distribution_type: str = "tanh_normal",
    noise_std_type: str = "scalar",
    init_noise_std: float = 1.0,
    state_dependent_std: bool = False,
    policy_network_kernel_init_fn: str | Callable[..., object] = "lecun_uniform",
    policy_network_kernel_init_kwargs: Mapping[str, object] | None = None,
    value_network_kernel_init_fn: str | Callable[..., object] = "lecun_uniform",
    value_network_kernel_init_kwargs: Mapping[str, object] | None = None,
    mean_clip_scale: float | None = None,
    mean_kernel_init_fn: str | Callable[..., Any] | None = None,
    mean_kernel_init_kwargs: Mapping[str, Any] | None = None,
    cnn_output_channels: Sequence[int] = (32, 64, 64),
    cnn_kernel_size: Sequence[int] = (8, 4, 3),
    cnn_stride: Sequence[int] = (4, 2, 1),
    cnn_padding: str = "zeros",
    cnn_activation: str | networks.ActivationFn = linen.relu,
    cnn_max_pool: bool = False,
    cnn_global_pool: str = "avg",
    cnn_kernel_init_fn: str | Callable[..., Any] = "lecun_normal",
    cnn_kernel_init_kwargs: Mapping[str, Any] | None = None,
    output_kernel_init_fn: str | Callable[..., Any] | None = None,
    output_kernel_init_kwargs: Mapping[str, Any] | None = None,
    use_distributional_critic: bool = False,
    num_quantiles: int = 32,
    memory: str | None = None,
    memory_size: int | None = None,
) -> PPONetworks:
    """Return PPO's networks for a dictionary of observations with images.

    The images are the entries whose names begin with `pixels/`, (height, width, channels), floats
    in [0, 1] or uint8. Policy and value network each have a CNN for every image, with dense layers
    after it. `normalise_channels` scales each channel of each image to mean 0 and standard
    deviation 1 over its pixels. `policy_obs_key` and `value_obs_key` name vectors that the networks
    read besides the images, if any. `cnn_output_channels`, `cnn_kernel_size` and `cnn_stride` have
    one number for each convolution. `cnn_padding` is `zeros`, which keeps the edges, or `valid`,
    whose kernels lie within the image. `cnn_max_pool` takes the largest of 2 x 2 pixels after each
    convolution. `cnn_global_pool` is `avg`, the mean over the last layer's image, `max`, or `none`,
    which passes all of its pixels on. `output_kernel_init_fn` initializes the last layer of a
    `tanh_normal` policy. The other arguments are those of `make_ppo_networks`.

    Raises:
        ConfigError: if there is no image or one does not fit the layers, a name is unknown, or a
            number is not allowed.

    Source: kernels and channels of the CNN are those of Mnih et al. 2015. The mean over the last
    layer's image, instead of all of its pixels, is from Lin, Chen, Yan 2013 (1312.4400), section
    3.2.
    """

    def reader(obs_key: str) -> networks.Reader:
        return images.reader(
            observation_size,
            obs_key,
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

    return of_readers(
        reader(policy_obs_key),
        reader(value_obs_key),
        action_size,
        preprocess_observations_fn,
        policy_hidden_layer_sizes=policy_hidden_layer_sizes,
        value_hidden_layer_sizes=value_hidden_layer_sizes,
        activation=activation,
        distribution_type=distribution_type,
        noise_std_type=noise_std_type,
        init_noise_std=init_noise_std,
        state_dependent_std=state_dependent_std,
        policy_network_kernel_init_fn=policy_network_kernel_init_fn,
        policy_network_kernel_init_kwargs=policy_network_kernel_init_kwargs,
        value_network_kernel_init_fn=value_network_kernel_init_fn,
        value_network_kernel_init_kwargs=value_network_kernel_init_kwargs,
        mean_clip_scale=mean_clip_scale,
        mean_kernel_init_fn=mean_kernel_init_fn,
        mean_kernel_init_kwargs=mean_kernel_init_kwargs,
        output_kernel_init_fn=output_kernel_init_fn,
        output_kernel_init_kwargs=output_kernel_init_kwargs,
        use_distributional_critic=use_distributional_critic,
        num_quantiles=num_quantiles,
        memory=networks.memory_of(memory, memory_size),
    )
