"""Checks of the paths of spatial tendons."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from brax.builder.elements import Element
from brax.errors import closest


def route(tendon: Element, there: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the sites and geoms of a path that do not exist."""
    for stretch in tendon.path:
        named = zip(("site", "site", "geom", "site"), stretch[:4], strict=True)
        for kind, name in named:
            if name and name not in there[kind]:
                yield f"{tendon}: there is no {kind} '{name}'.{closest(name, there[kind])}"


def wrapped(tendon: Element, types: Mapping[str, Any]) -> Iterator[str]:
    """Yield the geoms of a path that tendons cannot wrap around."""
    for stretch in tendon.path:
        kind = types.get(stretch.geom)
        if kind is not None and not kind.wrapped:
            yield f"{tendon}: it cannot wrap around geom '{stretch.geom}', a {kind.name}"
