"""Gradients through many steps that stay of a size to learn from."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from brax.env import State, Wrapper


class GradientClippingWrapper(Wrapper):
    """A batched environment that lets back through each of its steps only gradients to learn from.

    Where a simulation breaks, its step earns nothing, but its derivatives are not finite, and one
    environment would take the gradient of all: what it sends back is nothing.

    A step through a contact multiplies what comes from later by the stiffness of what was hit,
    and a few environments of a batch, after a few such steps, outweigh all others. What a step
    of one environment sends back is made shorter, its direction kept.
    """

    def __init__(self, env: Any, max_norm: float | None = None) -> None:
        """Takes the batched environment.

        Args:
            env: the environment.
            max_norm: greatest norm of the gradient by what a step starts from, action included;
                None for any that is finite.
        """
        super().__init__(env)
        self._max_norm = max_norm

    def step(self, state: State, action: jax.Array) -> State:
        """Advances the environment; only derivatives differ."""
        leaves, structure = jax.tree.flatten((state, action))
        smooth = [
            jnp.issubdtype(x.dtype, jnp.inexact) and x.shape[:1] == action.shape[:1] for x in leaves
        ]
        clipped = iter(
            clip_gradient([x for x, s in zip(leaves, smooth, strict=True) if s], self._max_norm)
        )
        leaves = [next(clipped) if s else x for x, s in zip(leaves, smooth, strict=True)]
        return super().step(*jax.tree.unflatten(structure, leaves))


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def clip_gradient(leaves: list[jax.Array], max_norm: float | None) -> list[jax.Array]:
    """Returns `leaves`; clips the gradient by each entry of the first axis to `max_norm`.

    A gradient that is not finite becomes zero. With None as `max_norm` it has any length.
    """
    return leaves


def _forward(leaves: list[jax.Array], max_norm: float | None) -> tuple[list[jax.Array], None]:
    return leaves, None


def _backward(max_norm: float | None, _: None, grads: list[jax.Array]) -> tuple[list[jax.Array]]:
    rows = [g.reshape(len(g), -1) for g in grads]
    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(g), axis=1, initial=0.0) for g in rows]), axis=0)
    finite = jnp.isfinite(largest)
    factor = jnp.ones_like(largest)
    if max_norm is not None:
        # Divided by its greatest number first, since the square of a large one is not finite
        unit = jnp.where(finite & (largest > 0), largest, 1.0)
        norm = unit * jnp.sqrt(sum(jnp.sum((g / unit[:, None]) ** 2, axis=1) for g in rows))
        factor = max_norm / jnp.maximum(norm, max_norm)

    def rescaled(grad: jax.Array) -> jax.Array:
        each = (len(grad),) + (1,) * (grad.ndim - 1)
        return jnp.where(finite.reshape(each), grad * factor.reshape(each), 0.0)

    return ([rescaled(g) for g in grads],)


clip_gradient.defvjp(_forward, _backward)
