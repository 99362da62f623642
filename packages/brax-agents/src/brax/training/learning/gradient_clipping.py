"""Gradient clipping through time: bounds what each simulation step passes back."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from brax.env import State, Wrapper


class GradientClippingWrapper(Wrapper):
    """A batched environment whose steps pass back clipped gradients only.

    Where a simulation breaks, the step's derivatives are not finite, and one environment would make
    the gradient of all others useless. Such an environment passes back zero.

    A step through a contact multiplies the gradient by the stiffness of the contact. After a few
    such steps, a few environments of a batch outweigh all others. With `max_norm` the gradient that
    a step of one environment passes back is scaled down to that norm; its direction stays.
    """

    def __init__(self, env: Any, max_norm: float | None = None) -> None:
        """Store the batched environment.

        Args:
            env: the environment.
            max_norm: largest norm of the gradient by what a step starts from, action included;
                None for any that is finite.
        """
        super().__init__(env)
        self._max_norm = max_norm

    def step(self, state: State, action: jax.Array) -> State:
        """Advance the environment; only the derivatives differ."""
        leaves, structure = jax.tree.flatten((state, action))
        # Leaves of one row for each environment that have derivatives. Integers and leaves shared
        # by all environments pass as they are.
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
    """Return `leaves`; clip the gradient by each entry of the first axis to `max_norm`.

    A gradient that is not finite becomes zero. With None as `max_norm` any length is kept.
    """
    # The identity: only its derivative, `_backward`, does anything.
    return leaves


def _forward(leaves: list[jax.Array], max_norm: float | None) -> tuple[list[jax.Array], None]:
    """Return the leaves; the backward pass needs nothing of them."""
    return leaves, None


def _backward(max_norm: float | None, _: None, grads: list[jax.Array]) -> tuple[list[jax.Array]]:
    """Return the gradients, each environment's clipped to `max_norm` or zeroed if not finite."""
    # One row for each environment: the norm is over all leaves of an environment together.
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
        # `where` and not a product: 0 times infinity is NaN.
        return jnp.where(finite.reshape(each), grad * factor.reshape(each), 0.0)

    return ([rescaled(g) for g in grads],)


clip_gradient.defvjp(_forward, _backward)
