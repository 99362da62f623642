"""Policy networks, with the distributions of actions that their outputs describe."""

import math
import numbers
from collections.abc import Sequence

from brax.errors import ConfigError
from brax.training import types
from brax.training.nn import distribution, networks


def make_actor(
    reader: networks.Reader,
    action_size: int,
    preprocess_observations_fn: types.PreprocessObservationFn,
    hidden_layer_sizes: Sequence[int],
    activation: str | networks.ActivationFn,
    *,
    distribution_type: str,
    noise_std_type: str,
    init_noise_std: float,
    state_dependent_std: bool,
    kernel_init: networks.Initializer,
    mean_kernel_init: networks.Initializer | None = None,
    mean_clip_scale: float | None = None,
    output_kernel_init: networks.Initializer | None = None,
    layer_norm: bool = False,
    memory: networks.RecurrentCell | None = None,
) -> tuple[networks.FeedForwardNetwork, distribution.ParametricDistribution]:
    """Return a policy network and the distribution that its outputs describe.

    Args:
        reader: reader of the observation.
        action_size: number of actions.
        preprocess_observations_fn: applied to observations first.
        hidden_layer_sizes: widths of the hidden layers.
        activation: function between layers, or its name.
        distribution_type: `tanh_normal` or `normal`. All other arguments but `kernel_init`,
            `output_kernel_init`, `layer_norm` and `memory` are of the latter.
        noise_std_type: `scalar` or `log`.
        init_noise_std: standard deviation at the start.
        state_dependent_std: let the standard deviation depend on the observation.
        kernel_init: initializer of the weights.
        mean_kernel_init: initializer of the means' weights; None takes `kernel_init`.
        mean_clip_scale: bound `c` of the means `m`, which become `c m / (1 + |m|)`; None is none.
        output_kernel_init: initializer of the last layer's weights of `tanh_normal`; None takes
            `kernel_init`.
        layer_norm: normalize the output of each hidden layer.
        memory: recurrent cell in front of the layers, if any.

    Raises:
        ConfigError: if a name is unknown, or a number is not allowed.
    """
    networks.check_size("action_size", action_size)
    bound = 1.0 if mean_clip_scale is None else mean_clip_scale
    if not isinstance(bound, numbers.Real) or not 0.0 < bound < math.inf:
        raise ConfigError(f"mean_clip_scale={bound!r} must be a number above 0, or None.")
    actions = distribution.of_type(distribution_type, action_size, noise_std_type)
    if isinstance(actions, distribution.NormalDistribution):
        head = networks.NormalHead(
            action_size,
            networks.widths(hidden_layer_sizes),
            networks.activation_of(activation),
            kernel_init,
            mean_kernel_init or kernel_init,
            actions.inverse_scale(init_noise_std),
            state_dependent_std,
            layer_norm,
            mean_clip_scale,
        )
        network = networks.of_module(head, reader, preprocess_observations_fn, memory=memory)
    else:
        # A squashed distribution takes mean and deviation from the last layer of one network.
        network = networks.make_mlp(
            actions.param_size,
            reader,
            preprocess_observations_fn,
            hidden_layer_sizes,
            activation,
            layer_norm,
            kernel_init,
            output_kernel_init,
            memory,
        )
    return network, actions
