"""Checks of the paths of spatial tendons."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from brax.builder.elements import Element
from brax.errors import ModelProblem, closest


def route(tendon: Element, there: Mapping[str, Sequence[str]]) -> Iterator[ModelProblem]:
    """Yield the sites and geoms of a path that do not exist."""
    for stretch in tendon.path:
        named = zip(("site", "site", "geom", "site"), stretch[:4], strict=True)
        for kind, name in named:
            if name and name not in there[kind]:
                yield tendon.problem(f"there is no {kind} '{name}'.{closest(name, there[kind])}")


def wrapped(tendon: Element, types: Mapping[str, Any]) -> Iterator[ModelProblem]:
    """Yield the geoms of a path that tendons cannot wrap around."""
    for stretch in tendon.path:
        kind = types.get(stretch.geom)
        if kind is not None and not kind.wrapped:
            yield tendon.problem(f"it cannot wrap around geom '{stretch.geom}', a {kind.name}")
