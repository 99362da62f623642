"""Geoms that a medium streams around: their numbers, and what is wrong with them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from brax.builder.elements import Element
from brax.components import Vec3
from brax.streams import added_mass


def fluid_numbers(geom: Element, kind: Any) -> list[float]:
    """Coefficients, and what a geom takes along, (11,); zeros if the medium passes it by."""
    if not geom.streamed:
        return [0.0] * 11
    added = geom.fluid_added
    if added is None:
        added = added_mass(np.array(kind.semi_axes(Vec3(*geom.size)), float))
    return [*geom.fluidcoef, *added]


def streamed(geom: Element, kind: Any) -> Iterator[str]:
    """A geom of a known type."""
    if geom.streamed and not kind.streamed:
        yield f"{geom}: a {kind.name} is no ellipsoid to a medium; leave fluidcoef out"
    if geom.streamed and (geom.fluidcoef < 0).any():
        yield f"{geom}: fluidcoef must be >= 0, got {geom.fluidcoef.tolist()}"


def mixed(
    bodies: Sequence[Element], carrier: Mapping[str, str], geoms: Sequence[Element]
) -> Iterator[str]:
    """Links of which a part is a box to the medium, and another ellipsoids.

    Args:
        bodies: as they were described.
        carrier: the link, or the world, that carries each.
        geoms: with the bodies that they were given to as `origin`.
    """
    around = {g.origin for g in geoms if g.streamed}
    links = {carrier[name] for name in around if name in carrier}
    names = {body.name for body in bodies}
    for body in bodies:
        link = carrier[body.name]
        if link in links & names and body.mass > 0 and body.name not in around:
            yield (
                f"{body}: it is part of '{link}', of which a medium takes other geoms for "
                "ellipsoids; give its geoms fluidcoef too"
            )
