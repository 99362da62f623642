"""Contacts of a model at given link frames, for environments and for inspection."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import Contact, System, Transform
from brax.colliders.broad_phase import (
    links_of,
    listed_contacts,
    lists_contacts,
    uses_broad_phase,
)
from brax.colliders.narrow_phase import Contacts, contact_links, contacts, frames_of, surfaces
from brax.components import Quat, Vec3, quat, stack, vec3, zero_vec
from brax.impulses import every_contact
from brax.kernels.batch_last import batch_last
from brax.kernels.gather import picked
from brax.mocap import placed
from brax.tree import join


def get(sys: System, x: Transform, mocap: Transform | None = None) -> Contact | None:
    """Find the contacts of a model.

    Args:
        sys: the model.
        x: link frames in the world, shape (n_links, ...).
        mocap: frames of the mocap bodies, `State.mocap`, shape (n_mocap, ...); None means the
            model's.

    Returns:
        All candidate points, near or far, shape (n_contacts, ...); None if the model has none. If
        the model uses a broad phase (see `Option.max_contact_points`), only points within their
        margin and gap are returned, and `link_idx` differs between environments. They come first;
        rows that are left over are at a distance of 1 km.
    """
    if not sys.collisions:
        return None
    if uses_broad_phase(sys):
        return Contact(*_listed_behind_boundary(sys, x, mocap))
    dist, pos, frame, friction, elasticity = _behind_boundary(sys, x, mocap)
    # Links are static without a broad phase, so they are not computed in the kernel.
    links: list[list[int]] = [[], []]
    for group, sides in zip(sys.collisions, contact_links(sys), strict=True):
        for out, side in zip(links, sides, strict=True):
            out += side * group.collider.n_contacts
    first, second = (jnp.asarray(np.asarray(side)) for side in links)
    return Contact(dist, pos, frame, friction, elasticity, (first, second))


def touching(
    sys: System, x: Transform, mocap: Transform | None = None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return which contacts of a model touch, and where.

    Of models with many pairs of geoms, only the few that overlap are looked at. So it compiles in
    a fraction of the time that `get` takes.

    Args:
        sys: the model.
        x: link frames in the world, shape (n_links, ...).
        mocap: frames of the mocap bodies, shape (n_mocap, ...); None means the model's.

    Returns:
        Whether each contact of `get` has a distance of zero or less, (n_contacts,), and, zero for
        those that do not touch, points [m] and unit normals, world axes, (n_contacts, 3).
    """
    if uses_broad_phase(sys) or not lists_contacts(sys):
        found = get(sys, x, mocap)
        if found is None:
            return jnp.zeros(0, bool), jnp.zeros((0, 3)), jnp.zeros((0, 3))
        touches = found.dist <= 0
        pos, normal = (jnp.where(touches[:, None], a, 0.0) for a in (found.pos, found.frame[:, 0]))
        return touches, pos, normal
    number, pos, normal = _touching_behind_boundary(sys, x, mocap)
    count = every_contact(sys)
    none = jnp.zeros((count, 3), pos.dtype)
    # Rows of the list that are not filled have no number, and nowhere to go.
    pos, normal = (none.at[number].set(a, mode="drop") for a in (pos, normal))
    return jnp.zeros(count, bool).at[number].set(True, mode="drop"), pos, normal


def normals(sys: System, pos: Vec3, rot: Quat) -> tuple[Vec3, Vec3]:
    """Return the points of all candidate contacts, and their normals.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        pos: positions of the link frames in the world [m], in the model's order, components shaped
            (n_links, batch).
        rot: orientations of the link frames, in the same order, of the same shape.

    Returns:
        Points [m] and unit normals, world axes, components shaped (n_contacts, batch).
    """
    if not sys.collisions:
        none = zero_vec(pos.x[:0])
        return none, none
    found = [_table(f) for f in contacts(sys, frames_of(pos, rot))]
    table = [
        jnp.concatenate(part) for part in zip(*((f[1], f[2][:, 0]) for f in found), strict=True)
    ]
    return vec3(table[0]), vec3(table[1])


def _get(sys: System, x: Transform, mocap: Transform | None) -> tuple[jax.Array, ...]:
    """Find all candidate points, for arrays with a trailing batch axis."""
    found = contacts(placed(sys, mocap), frames_of(vec3(x.pos), quat(x.rot)))
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *(_table(f) for f in found))


def _listed(sys: System, x: Transform, mocap: Transform | None) -> tuple[Any, ...]:
    """Find the listed points and their links, for arrays with a trailing batch axis."""
    sys = placed(sys, mocap)
    surface = join(surfaces(sys))
    reach = surface.margin + surface.gap
    tables = []
    for listed in listed_contacts(sys, reach, frames_of(vec3(x.pos), quat(x.rot))):
        near = listed.whole()
        found = Contacts(near.touch, picked(surface, near.pair))
        links = tuple(links_of(sys, geoms) for geoms in near.geoms)
        tables.append((*_table(found), links))
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *tables)


def _touching(sys: System, x: Transform, mocap: Transform | None) -> tuple[jax.Array, ...]:
    """List the points that touch, by their numbers, for arrays with a trailing batch axis."""
    sys = placed(sys, mocap)
    reach = jnp.zeros((sum(len(group.geom1) for group in sys.collisions), 1), x.pos.dtype)
    tables = []
    for listed in listed_contacts(sys, reach, frames_of(vec3(x.pos), quat(x.rot))):
        near = listed.whole()
        # Rows that are empty are far.
        none = jnp.iinfo(jnp.int32).max
        number = jnp.where(near.touch.dist <= 0, near.number, none)
        tables.append((number, stack(near.touch.pos), stack(near.touch.normal)))
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *tables)


def _table(found: Contacts) -> tuple[jax.Array, ...]:
    """Return the fields of `Contact` with one row for each point, (points * pairs, ..., batch)."""
    touch, surface = found
    axes = (touch.normal, *touch.across())
    shape = jnp.broadcast_shapes(touch.dist.shape, touch.pos.x.shape)

    def flat(a: jax.Array) -> jax.Array:
        """Merge the axes of points and pairs."""
        return jnp.broadcast_to(a, shape).reshape(-1, shape[-1])

    normal_first = jnp.stack([stack([flat(a) for a in axis]) for axis in axes], axis=1)
    friction = stack([flat(f) for f in (surface.friction, surface.sideways, *surface.turning)])
    pos = stack([flat(a) for a in touch.pos])
    return flat(touch.dist), pos, normal_first, friction, flat(surface.elasticity)


_behind_boundary = batch_last(_get)
_listed_behind_boundary = batch_last(_listed)
_touching_behind_boundary = batch_last(_touching)
