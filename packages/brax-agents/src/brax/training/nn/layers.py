"""Parts of networks, as Flax has them."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen

ActivationFn = Callable[[jax.Array], jax.Array]
Initializer = Callable[..., Any]

KERNEL_INIT: Initializer = jax.nn.initializers.lecun_uniform()
"""How the weights of a layer start, where nothing else is said."""


@jax.custom_jvp
def swish(x: jax.Array, shift: jax.Array | float = 0.0) -> jax.Array:
    """`y sigmoid(y)` of `y = x + shift`, with a derivative that is made of the result.

    Of what JAX derives, which takes the argument once more, XLA's CPU compiler makes code that is
    slower than the products of matrices around it. The result is written as a sum of two products:
    as `y` times its sigmoid, `y` would be written to memory and read again twice.
    """
    share = jax.nn.sigmoid(x + shift)
    return share * x + share * shift


@swish.defjvp
def _swish_jvp(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (x, shift), (x_dot, shift_dot) = primals, tangents
    share = jax.nn.sigmoid(x + shift)
    result = share * x + share * shift
    return result, (share + result * (1.0 - share)) * (x_dot + shift_dot)


@jax.custom_jvp
def elu(x: jax.Array) -> jax.Array:
    """`x`, or `exp(x) - 1` where that is negative, with a derivative as `swish` has it."""
    return linen.elu(x)


@elu.defjvp
def _elu_jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    result = linen.elu(*primals)
    return result, jnp.where(result > 0, 1.0, result + 1.0) * tangents[0]


def _activated(activation: ActivationFn, x: jax.Array, bias: jax.Array) -> jax.Array:
    """An activation of `x + bias`, Flax's by ours where there is one."""
    if activation is linen.swish:
        return swish(x, bias)
    return (elu if activation is linen.elu else activation)(x + bias)


class Encoded(linen.Module):
    """A module that sees features which another makes."""

    encoder: linen.Module
    head: linen.Module

    def __call__(self, data: Any, *more: jax.Array) -> jax.Array:
        """Gives `head` the features of `data`, and the rest as it is."""
        return self.head(self.encoder(data), *more)


_MIN_TRANSPOSED_MULTIPLICATIONS = 2**25
"""Multiplications of a product from which on its first factor is transposed beforehand."""

_MAX_INNERMOST_INPUTS = 16
"""Inputs of a layer up to which its gradient is made with the inputs innermost."""


@jax.custom_jvp
def _transposed_product(kernel: jax.Array, data: jax.Array) -> jax.Array:
    """`kernel.T @ data`, as XLA's CPU compiler is fast with.

    It has two libraries for products. The one that is faster at large sizes is not called where the
    first factor is to be read by columns, so it is laid out by rows here.
    """
    if kernel.size * data.shape[1] < _MIN_TRANSPOSED_MULTIPLICATIONS:
        return kernel.T @ data
    return jax.lax.platform_dependent(
        kernel,
        data,
        cpu=lambda kernel, data: jax.lax.optimization_barrier(kernel.T) @ data,
        default=lambda kernel, data: kernel.T @ data,
    )


@_transposed_product.defjvp
def _transposed_product_jvp(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (kernel, data), (kernel_dot, data_dot) = primals, tangents
    transposed = kernel_dot.T
    if (
        len(kernel) <= _MAX_INNERMOST_INPUTS
    ):  # else its cotangent is computed transposed, two to three times as long
        transposed = jax.lax.optimization_barrier(transposed)
    return _transposed_product(kernel, data), transposed @ data + kernel.T @ data_dot


_MIN_INNERMOST_ROWS = 64
"""Rows from which on they are innermost.

XLA's CPU compiler multiplies small matrices faster so, and over several axes it copies what
gradients are made of. With few rows it would copy the weights, which takes up to ten times as long
as the product.
"""


class _Dense(linen.Module):
    """A dense layer, its rows innermost or first; its weights are those of Flax's `Dense`."""

    features: int
    kernel_init: Initializer
    innermost: bool

    @linen.compact
    def __call__(self, data: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Maps (inputs, rows) to (features, rows), or (rows, inputs) to (rows, features), and gives
        the bias that is to be added."""
        inputs = data.shape[0 if self.innermost else 1]
        kernel = self.param("kernel", self.kernel_init, (inputs, self.features))
        bias = self.param("bias", jax.nn.initializers.zeros, (self.features,))
        if self.innermost:
            return _transposed_product(kernel, data), bias[:, None]
        return data @ kernel, bias


class MLP(linen.Module):
    """Dense layers with an activation between them, and on request a layer norm after each."""

    layer_sizes: Sequence[int]
    activation: ActivationFn = linen.relu
    kernel_init: Initializer = KERNEL_INIT
    activate_final: bool = False
    layer_norm: bool = False

    @linen.compact
    def __call__(self, data: jax.Array) -> jax.Array:
        """Maps (..., inputs) to (..., layer_sizes[-1])."""
        before, data = data.shape[:-1], data.reshape(-1, data.shape[-1])
        innermost = len(data) >= _MIN_INNERMOST_ROWS
        axis = 0 if innermost else 1
        if innermost:
            # Laid out so at once: else each product with it is of columns far apart.
            data = jax.lax.optimization_barrier(data.T)
        for i, size in enumerate(self.layer_sizes):
            data, bias = _Dense(size, self.kernel_init, innermost, name=f"hidden_{i}")(data)
            if i == len(self.layer_sizes) - 1 and not self.activate_final:
                data = data + bias
                break
            data = _activated(self.activation, data, bias)
            if self.layer_norm:
                norm = linen.LayerNorm(reduction_axes=axis, feature_axes=axis, name=f"norm_{i}")
                data = norm(data)
        if innermost:
            data = data.T
        return data.reshape(*before, data.shape[1])


class NormalHead(linen.Module):
    """A mean that is a network of the observation, and a deviation that is learned by itself or
    depends on the observation too."""

    event_size: int
    hidden_layer_sizes: Sequence[int]
    activation: ActivationFn
    kernel_init: Initializer
    mean_kernel_init: Initializer
    first_std: float
    """What the deviation's parameter starts at, before the distribution makes a deviation of it."""
    state_dependent_std: bool

    @linen.compact
    def __call__(self, data: jax.Array) -> jax.Array:
        """Maps (..., inputs) to (..., 2 event_size): means, then what makes the deviations."""
        sizes = self.hidden_layer_sizes
        data = MLP(sizes, self.activation, self.kernel_init, activate_final=True, name="trunk")(
            data
        )
        mean = linen.Dense(self.event_size, kernel_init=self.mean_kernel_init, name="mean")(data)
        start = jax.nn.initializers.constant(self.first_std)
        std = self.param("std", start, (self.event_size,))
        if self.state_dependent_std:
            std += linen.Dense(self.event_size, kernel_init=self.kernel_init, name="std_of")(data)
        return jnp.concatenate([mean, jnp.broadcast_to(std, mean.shape)], axis=-1)


class Critics(linen.Module):
    """Several networks that judge the same observation and action."""

    number: int
    layer_sizes: Sequence[int]
    activation: ActivationFn
    layer_norm: bool

    @linen.compact
    def __call__(self, features: jax.Array, action: jax.Array) -> jax.Array:
        """Maps (..., features) and (..., actions) to (..., number)."""
        data = jnp.concatenate([features, action], axis=-1)
        networks = [
            MLP(self.layer_sizes, self.activation, layer_norm=self.layer_norm, name=f"critic_{i}")
            for i in range(self.number)
        ]
        return jnp.concatenate([network(data) for network in networks], axis=-1)
