"""Images in observations: networks that read them, and random shifts."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen

from brax.errors import ConfigError, closest
from brax.training import types
from brax.training.nn import networks

MAX_SHIFT = 4
"""Largest random shift of an image along either axis [pixels]."""


PADDINGS = {"zeros": "SAME", "valid": "VALID"}
"""Flax's names of `cnn_padding`: `zeros` around the image, or only whole kernels."""

POOLS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "avg": lambda image: jnp.mean(image, axis=(-3, -2)),
    "max": lambda image: jnp.max(image, axis=(-3, -2)),
    "none": lambda image: image.reshape(*image.shape[:-3], -1),
}
"""Functions of `cnn_global_pool`, from the last layer's image to features."""


class CNN(linen.Module):
    """Convolutions with an activation after each, then features of the remaining pixels.

    With `padding="zeros"` a layer has as many rows as its input, divided by its stride and rounded
    up; with `valid` its kernels lie within the input. `max_pool` halves the rows of each layer,
    rounded up.
    """

    output_channels: Sequence[int]
    kernel_size: Sequence[int]
    stride: Sequence[int]
    activation: networks.ActivationFn
    kernel_init: networks.Initializer
    padding: str
    max_pool: bool
    global_pool: str

    @linen.compact
    def __call__(self, image: jax.Array) -> jax.Array:
        """Map (..., height, width, channels) to (..., features)."""
        layers = zip(self.output_channels, self.kernel_size, self.stride, strict=True)
        for i, (channels, size, stride) in enumerate(layers):
            convolution = linen.Conv(
                channels,
                (size, size),
                (stride, stride),
                padding=PADDINGS[self.padding],
                kernel_init=self.kernel_init,
                name=f"conv_{i}",
            )
            image = self.activation(convolution(image))
            if self.max_pool:
                image = linen.max_pool(image, (2, 2), (2, 2), "SAME")
        return POOLS[self.global_pool](image)


class Views(linen.Module):
    """Features of every image by a CNN of its own, followed by the vectors as they are."""

    make_cnn: Callable[..., CNN]
    """Function that makes a CNN of a given `name`."""
    normalise_channels: bool
    """Scale each channel of each image to mean 0 and standard deviation 1 over its pixels."""

    @linen.compact
    def __call__(self, seen: Mapping[str, jax.Array]) -> jax.Array:
        """Map images (..., height, width, channels) and vectors (..., m), by name, to (..., n)."""
        # Sorted: the order of the features must not depend on that of the observation's entries.
        names = sorted(filter(is_image, seen))
        images = [as_floats(name, seen[name]) for name in names]
        if self.normalise_channels:
            images = [jax.nn.standardize(image, axis=(-3, -2)) for image in images]
        found = [self.make_cnn(name=f"view_{i}")(image) for i, image in enumerate(images)]
        vectors = [seen[name] for name in sorted(seen) if not is_image(name)]
        return jnp.concatenate([*found, *vectors], axis=-1)


def is_image(name: str) -> bool:
    """Return whether an entry of a dictionary of observations is an image, by its name."""
    return name.startswith(types.PIXELS)


def vectors(obs: object) -> Any:
    """Return an observation without its images."""
    if not isinstance(obs, Mapping):
        return obs
    return {name: part for name, part in obs.items() if not is_image(name)}


def shapes(obs_size: types.ObservationSize) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all images by name.

    Raises:
        ConfigError: if there is none.
    """
    sizes = obs_size if isinstance(obs_size, Mapping) else {}
    found = {name: tuple(sizes[name]) for name in sizes if is_image(name)}
    if not found:
        have = ", ".join(sizes) or "one array"
        raise ConfigError(
            f"the environment has no image: no observation's name begins with '{types.PIXELS}'. It "
            f"has: {have}. Name the images so, or set vision=False."
        )
    return found


def as_floats(name: str, image: jax.Array) -> jax.Array:
    """Return an image as floats in [0, 1]; bytes are scaled, floats stay as they are.

    Raises:
        ConfigError: if it is neither.
    """
    if image.dtype == jnp.uint8:
        return image / jnp.float32(255)
    if jnp.issubdtype(image.dtype, jnp.floating):
        return image
    raise ConfigError(
        f"the image '{name}' is {image.dtype}; images are floats in [0, 1] or uint8 up to 255."
    )


def reader(
    obs_size: types.ObservationSize,
    obs_key: str,
    normalise_channels: bool,
    output_channels: Sequence[int],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    activation: str | networks.ActivationFn,
    kernel_init: networks.Initializer,
    padding: str,
    max_pool: bool,
    global_pool: str,
) -> networks.Reader:
    """Return a reader of all images of an observation, and optionally of one of its vectors.

    Args:
        obs_size: shapes of observations by name; those of images are (height, width, channels).
        obs_key: name of the vector, or an empty string.
        normalise_channels: scale each channel of each image to mean 0 and standard deviation 1
            over its pixels.
        output_channels: channels of each convolution, for each image.
        kernel_size: rows and columns of each convolution's kernel.
        stride: rows and columns that each kernel moves by.
        activation: function after each convolution, or its name.
        kernel_init: initializer of the convolutions' weights.
        padding: `zeros` or `valid`, see `CNN`.
        max_pool: take the largest of 2 x 2 pixels after each convolution.
        global_pool: features of the last layer's image: the mean over its pixels, `avg`, their
            maximum, `max`, or all pixels, `none`.

    Raises:
        ConfigError: if there is no image, one does not fit the layers, there is no such vector, or
            a word is unknown.
    """
    _check_word("cnn_padding", padding, PADDINGS)
    _check_word("cnn_global_pool", global_pool, POOLS)
    found = _fitting_shapes(obs_size, output_channels, kernel_size, stride, padding, max_pool)
    example = {name: jnp.zeros((1, *shape)) for name, shape in found.items()}
    if obs_key:
        example[obs_key] = jnp.zeros((1, networks.observation_width(obs_size, obs_key)))
    make_cnn = functools.partial(
        CNN,
        tuple(output_channels),
        tuple(kernel_size),
        tuple(stride),
        networks.activation_of(activation),
        kernel_init,
        padding,
        max_pool,
        global_pool,
    )
    return networks.Reader(
        example,
        lambda obs: {name: obs[name] for name in example},
        Views(make_cnn, normalise_channels),
    )


def shifted(image: jax.Array, by: jax.Array) -> jax.Array:
    """Move an image up and to the left; the edge is repeated.

    Args:
        image: (height, width, channels).
        by: rows and columns, int, shape (2,).
    """
    height, width, _ = image.shape
    # Indices beyond the image are clipped to its last row, which repeats the edge.
    rows = jnp.clip(jnp.arange(height) + by[0], 0, height - 1)
    columns = jnp.clip(jnp.arange(width) + by[1], 0, width - 1)
    return image[rows[:, None], columns]


def randomly_shifted(obs: Mapping[str, jax.Array], key: jax.Array) -> dict[str, jax.Array]:
    """Shift the images of every sample by up to `MAX_SHIFT` random pixels along each axis.

    All images of a sample are shifted alike; the vectors stay as they are.

    Args:
        obs: observations with any leading axes.
        key: random key of the draw.

    Source: Kostrikov, Yarats, Fergus 2020 (2004.13649): padding by 4 pixels that repeats the edge,
    followed by a random crop to the old size, has the same effect.
    """
    batch = next(obs[name].shape[:-3] for name in obs if is_image(name))
    by = jax.random.randint(key, (*batch, 2), -MAX_SHIFT, MAX_SHIFT + 1)
    move = shifted
    # One `vmap` for each leading axis.
    for _ in batch:
        move = jax.vmap(move)
    return {name: move(part, by) if is_image(name) else part for name, part in obs.items()}


def _check_word(name: str, value: object, words: Mapping[str, object]) -> None:
    """Reject a setting that is none of some words.

    Raises:
        ConfigError: naming the words.
    """
    if not isinstance(value, str) or value not in words:
        raise ConfigError(
            f"unknown {name} '{value}'. Allowed: {', '.join(words)}.{closest(str(value), words)}"
        )


def _fitting_shapes(
    obs_size: types.ObservationSize,
    output_channels: Sequence[int],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: str,
    max_pool: bool,
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all images by name; reject those that do not fit the layers."""
    if not len(output_channels) == len(kernel_size) == len(stride):
        raise ConfigError(
            f"cnn_output_channels={output_channels}, cnn_kernel_size={kernel_size} and "
            f"cnn_stride={stride} must be of the same length: one number for each convolution."
        )
    found = shapes(obs_size)
    if padding == "zeros":
        # Each stride divides the size; what is left must be at least one pixel.
        least, why = math.prod(stride), "the product of cnn_stride"
    else:
        least, why = _least_size(kernel_size, stride, max_pool), "what the kernels cover"
    problems = [_shape_problem(name, shape, least, why) for name, shape in found.items()]
    if any(problems):
        raise ConfigError(" ".join(filter(None, problems)))
    return found


def _least_size(kernel_size: Sequence[int], stride: Sequence[int], max_pool: bool) -> int:
    """Return the smallest size of an image of which unpadded layers leave a pixel."""
    least = 1
    # From the last layer to the first: each needs the pixels that the next one needs.
    for kernel, step in zip(reversed(kernel_size), reversed(stride), strict=True):
        if max_pool:
            least = 2 * least - 1
        least = (least - 1) * step + kernel
    return least


def _shape_problem(name: str, shape: tuple[int, ...], least: int, why: str) -> str:
    """Return a description of what is wrong with the shape of an image, or an empty string."""
    if len(shape) != 3:
        return f"the image '{name}' has the shape {shape}; it must be (height, width, channels)."
    if min(shape[:2]) < least:
        return (
            f"the image '{name}' is {shape[0]} x {shape[1]} pixels; {why}, "
            f"{least}, must not exceed either: use smaller strides or larger images."
        )
    return ""
