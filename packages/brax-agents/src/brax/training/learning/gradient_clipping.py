"""Gradients through many steps that stay of a size to learn from."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from brax.env import State, Wrapper


class GradientLimit(Wrapper):
    """A batched environment that lets back through each of its steps only gradients to learn from.

    Where a simulation breaks, its step earns nothing, but its derivatives are not finite, and one
    environment would take the gradient of all: what it sends back is nothing.

    A step through a contact multiplies what comes from later by the stiffness of what was hit,
    and a few environments of a batch, after a few such steps, outweigh all others. What a step
    of one environment sends back is made shorter, its direction kept.
    """

    def __init__(self, env: Any, most: float | None = None) -> None:
        """`most`: greatest norm of the gradient by what a step starts from, action included; None
        for any that is finite.
        """
        super().__init__(env)
        self._most = most

    def step(self, state: State, action: jax.Array) -> State:
        """Advances the environment; only derivatives differ."""
        leaves, structure = jax.tree.flatten((state, action))
        smooth = [
            jnp.issubdtype(x.dtype, jnp.inexact) and x.shape[:1] == action.shape[:1] for x in leaves
        ]
        limited = iter(limit([x for x, s in zip(leaves, smooth, strict=True) if s], self._most))
        leaves = [next(limited) if s else x for x, s in zip(leaves, smooth, strict=True)]
        return super().step(*jax.tree.unflatten(structure, leaves))


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def limit(leaves: list[jax.Array], most: float | None) -> list[jax.Array]:
    """What is given; the gradient by it is at most `most` long for each entry of the first axis.

    Where it is not finite it is zero. With None it has any length.
    """
    return leaves


def _forward(leaves: list[jax.Array], most: float | None) -> tuple[list[jax.Array], None]:
    return leaves, None


def _backward(most: float | None, _: None, grads: list[jax.Array]) -> tuple[list[jax.Array]]:
    rows = [g.reshape(len(g), -1) for g in grads]
    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(g), axis=1, initial=0.0) for g in rows]), axis=0)
    finite = jnp.isfinite(largest)
    factor = jnp.ones_like(largest)
    if most is not None:
        # Divided by its greatest number first, since the square of a large one is not finite
        unit = jnp.where(finite & (largest > 0), largest, 1.0)
        norm = unit * jnp.sqrt(sum(jnp.sum((g / unit[:, None]) ** 2, axis=1) for g in rows))
        factor = most / jnp.maximum(norm, most)

    def shortened(grad: jax.Array) -> jax.Array:
        each = (len(grad),) + (1,) * (grad.ndim - 1)
        return jnp.where(finite.reshape(each), grad * factor.reshape(each), 0.0)

    return ([shortened(g) for g in grads],)


limit.defvjp(_forward, _backward)
