"""Contacts at given link frames, for environments and for looking at."""

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import Contact, System, Transform
from brax.batch_last import batch_last
from brax.colliders.pairs import contact_links, contacts
from brax.components import quat, stack, tangents, vec3


def get(sys: System, x: Transform) -> Contact | None:
    """Finds the contacts of a model.

    Args:
        sys: the model.
        x: link frames in the world, shape (n_links, ...).

    Returns:
        All candidate points, near or far, shape (n_contacts, ...); None if nothing can touch.
    """
    if not sys.collisions:
        return None
    dist, pos, frame, friction, elasticity = _behind_boundary(sys, x)
    first, second = (jnp.asarray(np.asarray(side)) for side in contact_links(sys))
    return Contact(dist, pos, frame, friction, elasticity, (first, second))


def _get(sys: System, x: Transform) -> tuple[jax.Array, ...]:
    found = contacts(sys, vec3(x.pos), quat(x.rot))
    touch = found.touch
    axes = (touch.normal, *tangents(touch.normal))
    frame = jnp.stack([stack(axis) for axis in axes], axis=1)
    sliding, zero = found.friction, jnp.zeros_like(found.friction)
    friction = stack((sliding, sliding, zero, zero, zero))
    return touch.dist, stack(touch.pos), frame, friction, found.elasticity


_behind_boundary = batch_last(_get)
