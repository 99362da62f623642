"""Checks of described geoms, and of pairs of them."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from brax.builder.elements import WORLD, Element
from brax.colliders.shapes.flatness import is_flat
from brax.errors import ModelProblem, Reason


def geom(geom: Element, kind: Any) -> Iterator[ModelProblem]:
    """Yield the problems of a geom of a known type."""
    for name, value in zip(kind.size_names, geom.size, strict=False):
        if not value > 0:
            yield geom.problem(f"{name} must be > 0, got {value}")
    # A geom without bits is only drawn, so its mesh may be flat.
    if geom.contype or geom.conaffinity:
        yield from solid(geom, kind)
    if len(geom.points) and not kind.least_points:
        yield geom.problem(Reason.of(f"a {kind.name} has no points", remedy="leave them out"))
    if kind.has_heights and min(geom.heights.shape) < 2:
        yield geom.problem(
            f"a {kind.name} needs heights in at least 2 rows of at least 2, got "
            f"{' x '.join(map(str, geom.heights.shape))}"
        )
    if kind.has_grid:
        yield from _grid(geom, kind)
    elif geom.heights.size and not kind.has_heights:
        yield geom.problem(Reason.of(f"a {kind.name} has no heights", remedy="leave them out"))
    if kind.only_static and geom.body != WORLD:
        yield geom.problem(f"a {kind.name} is only allowed on the world, not on '{geom.body}'")
    if (geom.friction < 0).any():
        yield geom.problem(f"friction must be >= 0, got {geom.friction.tolist()}")
    if geom.condim not in (1, 3, 4, 6):
        yield geom.problem(f"condim must be 1, 3, 4 or 6, got {geom.condim}")
    if not 0 <= geom.solmix < np.inf:
        yield geom.problem(f"solmix must be >= 0, got {geom.solmix}")
    yield from _reach(geom)
    if not 0 <= geom.elasticity <= 1:
        yield geom.problem(f"elasticity must lie in [0, 1], got {geom.elasticity}")


def _grid(geom: Element, kind: Any) -> Iterator[ModelProblem]:
    """Yield the problem of a grid of distances that is no cube of at least three points a side."""
    n = geom.heights.shape[1]
    if n < 3 or geom.heights.shape != (n * n, n):
        yield geom.problem(
            f"a {kind.name} needs heights in n * n rows of n, with n >= 3, got "
            f"{' x '.join(map(str, geom.heights.shape))}"
        )


def solid(geom: Element, kind: Any) -> Iterator[ModelProblem]:
    """Yield the problems of a geom that can touch others."""
    if kind.least_points and is_flat(geom.points):
        yield geom.problem(
            f"a {kind.name} that can touch needs at least {kind.least_points} points that "
            f"are not all in one plane, got {len(geom.points)}. If it is only shown, set its "
            "contype and conaffinity to 0"
        )


def pair(pair: Element, bodies: Mapping[str, str]) -> Iterator[ModelProblem]:
    """Yield the problems of a pair of geoms, given the body that each geom moves with."""
    ends = [bodies.get(geom) for geom in (pair.geom1, pair.geom2)]
    if None not in ends and ends[0] == ends[1]:
        yield pair.problem(
            f"geoms '{pair.geom1}' and '{pair.geom2}' do not move against each other"
        )
    if pair.condim not in (1, 3, 4, 6):
        yield pair.problem(f"condim must be 1, 3, 4 or 6, got {pair.condim}")
    if (pair.friction < 0).any():
        yield pair.problem(f"friction must be >= 0, got {pair.friction.tolist()}")
    yield from _reach(pair)


def _reach(element: Element) -> Iterator[ModelProblem]:
    """Yield the problems of a margin and a gap."""
    if not np.isfinite(element.margin):
        yield element.problem(f"margin is not finite: {element.margin}")
    if not 0 <= element.gap < np.inf:
        yield element.problem(f"gap must be >= 0, got {element.gap}")
    if not 0 <= element.adhesion < np.inf:
        yield element.problem(f"adhesion must be finite and >= 0, got {element.adhesion}")


def streamed(geom: Element, kind: Any) -> Iterator[ModelProblem]:
    """Yield the problems that a geom of a known type has in the fluid's ellipsoid model."""
    if geom.streamed and not kind.streamed:
        yield geom.problem(f"a {kind.name} has no ellipsoid model in a fluid; leave fluidcoef out")
    elif geom.streamed and kind.least_points and not (geom.size > 0).all():
        yield geom.problem("its ellipsoid model in a fluid needs three semi-axes as its size")
    if geom.streamed and (geom.fluidcoef < 0).any():
        yield geom.problem(f"fluidcoef must be >= 0, got {geom.fluidcoef.tolist()}")
