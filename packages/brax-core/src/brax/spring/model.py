"""The constants of a model as the spring pipeline's kernels want them."""

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
    """One over the principal moments of inertia, one by one."""
    gyration: Vec3
    """Of `brax.maximal.rotation`, of the links that nothing holds."""
    shapes: list[tuple[Shape, Shape]]
    """Geoms in the principal frames of their links, pair by pair, by collision group."""
    surfaces: list[ContactSurface]
    """What contacts are like, by collision group."""
    gravity: jax.Array
    """Its magnitude."""
    stacks: tuple[Stack, ...]


class SpringProblem(NamedTuple):
    """All that a step knows beside its state."""

    sys: System
    plan: Layout
    model: SpringModel
    act: jax.Array
    external: ExternalForces


def constants(sys: System) -> SpringModel:
    """Takes a system with a trailing batch axis apart."""
    plan = layout(sys)
    links = masses(sys, plan)
    i = links.moments
    return SpringModel(
        links=links,
        inverse=Vec3(*(1.0 / x for x in i)),
        gyration=gyration(rows(i, unheld(plan))),
        shapes=_shapes(sys, links, plan),
        surfaces=surfaces(sys),
        gravity=sqrt(jnp.sum(sys.opt.gravity * sys.opt.gravity, axis=0, keepdims=True)),
        stacks=stacks(sys, plan, links),
    )


def unheld(plan: Layout) -> tuple[int, ...]:
    """Positions of the links that nothing holds."""
    return tuple(link for group in plan.groups if group.unconstrained for link in group.links)


def _shapes(sys: System, links: Masses, plan: Layout) -> list[tuple[Shape, Shape]]:
    frames = frames_of(*rows((links.pos, links.rot), plan.position))
    return [
        (place_shapes(a, first, frames), place_shapes(b, second, frames))
        for (a, b), (first, second) in zip(local_shapes(sys), contact_links(sys), strict=True)
    ]
