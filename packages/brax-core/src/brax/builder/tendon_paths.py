"""Paths of spatial tendons: from lists of sites, geoms and pulleys to segments."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from brax.builder.elements import Element


class PathSegment(NamedTuple):
    """A segment of a path between two sites, by names; an empty name stands for none."""

    first: str
    last: str
    geom: str
    side: str
    share: float


def path_segments(
    problems: list[str], what: Element, path: Sequence[str | tuple[str, str] | float]
) -> list[PathSegment]:
    """Return the segments of a path (see `add_tendon`), and record its problems."""
    found: list[PathSegment] = []
    site, around, share = "", ("", ""), 1.0
    # A last divisor closes the path, so that a geom without a site after it is found.
    for part in [*path, *([1.0] if path else [])]:
        if isinstance(part, str):
            found += [PathSegment(site, part, *around, share)] if site else []
            site, around = part, ("", "")
        elif isinstance(part, tuple):
            # A geom stands between two sites, and there is at most one between each two.
            if not site or around[0]:
                problems.append(what.problem(f"geom '{part[0]}' needs a site before and after it"))
            around = part
        else:
            if around[0]:
                problems.append(
                    what.problem(f"geom '{around[0]}' needs a site before and after it")
                )
            if not 0 < part < np.inf:
                problems.append(what.problem(f"a pulley's divisor must be > 0, got {part}"))
            # Behind a pulley the next site begins a new branch. A divisor of zero was reported
            # above.
            site, around, share = "", ("", ""), 1.0 / (part or 1.0)
    if path and not found:
        problems.append(what.problem("its path needs two sites"))
    return found
