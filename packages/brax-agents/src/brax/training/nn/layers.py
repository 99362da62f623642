"""Flax modules that networks are made of: dense layers, heads, critics."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen

from brax.kernels import dense_layers

ActivationFn = Callable[[jax.Array], jax.Array]
Initializer = Callable[..., Any]

KERNEL_INIT: Initializer = jax.nn.initializers.lecun_uniform()
"""Default initializer of a layer's weights."""


@jax.custom_jvp
def swish(x: jax.Array) -> jax.Array:
    """Return `x sigmoid(x)`, with a derivative that is computed from the result.

    JAX's own derivative reads the argument once more; XLA's CPU compiler makes code of it that is
    slower than the matrix products around it.
    """
    return x * jax.nn.sigmoid(x)


@swish.defjvp
def _swish_jvp(
    primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """Return the activation and its derivative: s + x s (1 - s), of the sigmoid s."""
    share = jax.nn.sigmoid(*primals)
    result = share * primals[0]
    return result, (share + result * (1.0 - share)) * tangents[0]


@jax.custom_jvp
def _shifted_swish(x: jax.Array, shift: jax.Array) -> jax.Array:
    """Return `swish(x + shift)`.

    The result is a sum of two products: written as `x + shift` times its sigmoid, that sum would be
    stored in memory and read twice.
    """
    share = jax.nn.sigmoid(x + shift)
    return share * x + share * shift


@_shifted_swish.defjvp
def _shifted_swish_jvp(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """Return the activation and its derivative, as `swish` has them."""
    (x, shift), (x_dot, shift_dot) = primals, tangents
    share = jax.nn.sigmoid(x + shift)
    result = share * x + share * shift
    return result, (share + result * (1.0 - share)) * (x_dot + shift_dot)


@jax.custom_jvp
def elu(x: jax.Array) -> jax.Array:
    """Return `x`, or `exp(x) - 1` where that is negative, with a derivative from the result."""
    return linen.elu(x)


@elu.defjvp
def _elu_jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Return the activation and its derivative: the result plus 1 where that is negative."""
    result = linen.elu(*primals)
    return result, jnp.where(result > 0, 1.0, result + 1.0) * tangents[0]


_OURS: dict[ActivationFn, ActivationFn] = {linen.swish: swish, linen.elu: elu}
"""Our own activations, by those of Flax in whose place they are used."""


def _activated(activation: ActivationFn, x: jax.Array, bias: jax.Array) -> jax.Array:
    """Return the activation of `x + bias`, by our own swish and elu in place of Flax's."""
    if activation is linen.swish:
        return _shifted_swish(x, bias)
    return _OURS.get(activation, activation)(x + bias)


class Encoded(linen.Module):
    """A module whose input is the features that another module computes."""

    encoder: linen.Module
    head: linen.Module

    def __call__(self, data: object, *more: jax.Array) -> jax.Array:
        """Pass the features of `data` to `head`, with the other inputs as they are."""
        return self.head(self.encoder(data), *more)


_MIN_TRANSPOSED_MULTIPLICATIONS = 2**25
"""Number of multiplications of a product at which its first factor is transposed in advance."""

_MAX_INNERMOST_INPUTS = 16
"""Largest number of inputs of a layer whose gradient is computed with the inputs innermost."""


@jax.custom_jvp
def _transposed_product(kernel: jax.Array, data: jax.Array) -> jax.Array:
    """Return `kernel.T @ data`, in the form that XLA's CPU compiler computes fastest.

    XLA has two libraries for products. The one that is faster at large sizes is not called if the
    first factor would be read by columns, so the transpose is stored here.
    """
    if kernel.size * data.shape[1] < _MIN_TRANSPOSED_MULTIPLICATIONS:
        return kernel.T @ data
    return jax.lax.platform_dependent(
        kernel,
        data,
        # The barrier keeps XLA from folding the transpose into the product again.
        cpu=lambda kernel, data: jax.lax.optimization_barrier(kernel.T) @ data,
        default=lambda kernel, data: kernel.T @ data,
    )


@_transposed_product.defjvp
def _transposed_product_jvp(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """Return the product and its derivative."""
    (kernel, data), (kernel_dot, data_dot) = primals, tangents
    transposed = kernel_dot.T
    # Otherwise the kernel's cotangent is computed transposed, which takes 2 to 3 times as long.
    if len(kernel) <= _MAX_INNERMOST_INPUTS:
        transposed = jax.lax.optimization_barrier(transposed)
    return _transposed_product(kernel, data), transposed @ data + kernel.T @ data_dot


_MIN_INNERMOST_ROWS = 64
"""Number of rows at which they become the innermost axis.

XLA's CPU compiler multiplies small matrices faster in this layout; in the other, products over
several axes copy their operands for gradients. With few rows it would copy the weights, which takes
up to ten times as long as the product.
"""


MIN_KERNEL_ROWS = 512
"""Smallest number of rows whose layers are a kernel of their own on a CPU.

Layers of 27, 32, 32 and 16 units with their gradient took .87, .62 and .57 of XLA's time with 256,
512 and 2560 rows, on two cores with 512-bit registers; docs/performance-model.md has other widths.
"""

MAX_KERNEL_WIDTH = 128
"""Largest number of inputs or outputs of a layer in such a kernel.

With two layers of 128 units the kernels took .65, .81 and 1.05 of XLA's time with 512, 2560 and
16384 rows, with 256 units .97, 1.06 and .98.
"""


class _Dense(linen.Module):
    """The weights of a dense layer, which are those of Flax's `Dense`."""

    features: int
    kernel_init: Initializer

    @linen.compact
    def __call__(self, inputs: int) -> tuple[jax.Array, jax.Array]:
        """Return the weights (inputs, features) and the bias (features,)."""
        kernel = self.param("kernel", self.kernel_init, (inputs, self.features))
        return kernel, self.param("bias", jax.nn.initializers.zeros, (self.features,))


class MLP(linen.Module):
    """Dense layers with an activation between them, and optional normalization after each."""

    layer_sizes: Sequence[int]
    activation: ActivationFn = linen.relu
    kernel_init: Initializer = KERNEL_INIT
    activate_final: bool = False
    layer_norm: bool = False
    output_kernel_init: Initializer | None = None
    """Initializer of the last layer's weights; None takes `kernel_init`."""

    @linen.compact
    def __call__(self, data: jax.Array) -> jax.Array:
        """Map (..., inputs) to (..., layer_sizes[-1])."""
        # One batch axis: for products over several, XLA copies the operands of gradients.
        before, data = data.shape[:-1], data.reshape(-1, data.shape[-1])
        inits = [self.kernel_init] * len(self.layer_sizes)
        inits[-1] = self.output_kernel_init or self.kernel_init
        sizes = data.shape[1], *self.layer_sizes
        weights = [
            _Dense(size, init, name=f"hidden_{i}")(inputs)
            for i, (inputs, size, init) in enumerate(zip(sizes, sizes[1:], inits, strict=False))
        ]
        activation = _OURS.get(self.activation, self.activation)
        layers = dense_layers.Layers(sizes, activation, self.activate_final)
        small = len(data) >= MIN_KERNEL_ROWS and max(sizes) <= MAX_KERNEL_WIDTH
        arrays = jax.tree.leaves((data, weights))
        if small and not self.layer_norm and dense_layers.supported(layers, arrays):
            data = dense_layers.apply(layers, data, weights)
        else:
            data = self._by_xla(data, weights)
        return data.reshape(*before, data.shape[1])

    def _by_xla(self, data: jax.Array, weights: Sequence[tuple[jax.Array, jax.Array]]) -> jax.Array:
        """Map (rows, inputs) to (rows, layer_sizes[-1]), operation by operation."""
        innermost = len(data) >= _MIN_INNERMOST_ROWS
        axis = 0 if innermost else 1
        if innermost:
            # Stored in this layout once; otherwise each product with it would read columns far
            # apart.
            data = jax.lax.optimization_barrier(data.T)
        for i, (kernel, bias) in enumerate(weights):
            if innermost:
                data, bias = _transposed_product(kernel, data), bias[:, None]
            else:
                data = data @ kernel
            if i == len(weights) - 1 and not self.activate_final:
                data = data + bias
                break
            data = _activated(self.activation, data, bias)
            if self.layer_norm:
                norm = linen.LayerNorm(reduction_axes=axis, feature_axes=axis, name=f"norm_{i}")
                data = norm(data)
        return data.T if innermost else data


class NormalHead(linen.Module):
    """A network of the mean, with a standard deviation that may depend on the observation."""

    event_size: int
    hidden_layer_sizes: Sequence[int]
    activation: ActivationFn
    kernel_init: Initializer
    mean_kernel_init: Initializer
    first_std: float
    """Initial value of the parameter that the distribution maps to the standard deviation."""
    state_dependent_std: bool
    layer_norm: bool = False
    mean_clip_scale: float | None = None
    """Bound of the means; None does not bound them."""

    @linen.compact
    def __call__(self, data: jax.Array) -> jax.Array:
        """Map (..., inputs) to (..., 2 event_size): means, then unmapped standard deviations."""
        trunk = MLP(
            self.hidden_layer_sizes,
            self.activation,
            self.kernel_init,
            activate_final=True,
            layer_norm=self.layer_norm,
            name="trunk",
        )
        data = trunk(data)
        mean = linen.Dense(self.event_size, kernel_init=self.mean_kernel_init, name="mean")(data)
        if self.mean_clip_scale is not None:
            # Softsign: the means approach the bound, and their derivative at zero is the bound.
            mean = self.mean_clip_scale * jax.nn.soft_sign(mean)
        start = jax.nn.initializers.constant(self.first_std)
        std = self.param("std", start, (self.event_size,))
        if self.state_dependent_std:
            std += linen.Dense(self.event_size, kernel_init=self.kernel_init, name="std_of")(data)
        return jnp.concatenate([mean, jnp.broadcast_to(std, mean.shape)], axis=-1)


class Critics(linen.Module):
    """Several networks that evaluate the same observation and action."""

    number: int
    layer_sizes: Sequence[int]
    activation: ActivationFn
    layer_norm: bool
    kernel_init: Initializer = KERNEL_INIT

    @linen.compact
    def __call__(self, features: jax.Array, action: jax.Array) -> jax.Array:
        """Map (..., features) and (..., actions) to (..., number * width of the last layer)."""
        data = jnp.concatenate([features, action], axis=-1)
        networks = [
            MLP(
                self.layer_sizes,
                self.activation,
                self.kernel_init,
                layer_norm=self.layer_norm,
                name=f"critic_{i}",
            )
            for i in range(self.number)
        ]
        return jnp.concatenate([network(data) for network in networks], axis=-1)
