"""Constants of a model in the form that the spring pipeline's kernels take."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.base import System
from brax.colliders.interface import Shape
from brax.colliders.narrow_phase import (
    ContactSurface,
    contact_links,
    frames_of,
    local_shapes,
    place_shapes,
    surfaces,
)
from brax.components import Vec3, rows, sqrt
from brax.forces.external import ExternalForces
from brax.maximal.links import Masses, Stack, masses, stacks
from brax.maximal.rotation import gyration
from brax.tree import Layout, layout


class SpringModel(NamedTuple):
    """Constants of all links in the layout's order, and of the stacks of joints."""

    links: Masses
    inverse: Vec3
    """Reciprocals of the principal moments of inertia."""
    gyration: Vec3
    """Coefficients of Euler's equations for links without joints, see `brax.maximal.rotation`."""
    shapes: list[tuple[Shape, Shape]]
    """Geoms in the principal frames of their links, pair by pair, by collision group."""
    surfaces: list[ContactSurface]
    """Friction and restitution of contacts, by collision group."""
    gravity: jax.Array
    """Magnitude of the gravitational acceleration [m/s^2]."""
    stacks: tuple[Stack, ...]


class SpringProblem(NamedTuple):
    """The inputs of a step apart from its state."""

    sys: System
    plan: Layout
    model: SpringModel
    act: jax.Array
    external: ExternalForces


def constants(sys: System) -> SpringModel:
    """Return the constants of a system with a trailing batch axis."""
    plan = layout(sys)
    links = masses(sys, plan)
    i = links.moments  # principal, so that the inverse is elementwise
    return SpringModel(
        links=links,
        inverse=Vec3(*(1.0 / x for x in i)),
        # Only links without joints tumble freely; see `bodies.drift`.
        gyration=gyration(rows(i, unheld(plan))),
        shapes=_shapes(sys, links, plan),
        surfaces=surfaces(sys),
        gravity=sqrt(jnp.sum(sys.opt.gravity * sys.opt.gravity, axis=0, keepdims=True)),
        stacks=stacks(sys, plan, links),
    )


def unheld(plan: Layout) -> tuple[int, ...]:
    """Return the positions of the links without joints."""
    return tuple(link for group in plan.groups if group.unconstrained for link in group.links)


def _shapes(sys: System, links: Masses, plan: Layout) -> list[tuple[Shape, Shape]]:
    frames = frames_of(*rows((links.pos, links.rot), plan.position))
    # In principal frames, because the state of a link is its principal frame.
    return [
        (place_shapes(a, first, frames), place_shapes(b, second, frames))
        for (a, b), (first, second) in zip(local_shapes(sys), contact_links(sys), strict=True)
    ]
