"""Links: from bodies with joints to the arrays of a `System`."""

from collections.abc import Sequence

import numpy as np

from brax.base import Box, Inertia, Link, Transform
from brax.builder.arrays.columns import array, column, transform
from brax.builder.elements import IDENTITY_QUAT, Element


def link_numbers(bodies: Sequence[Element], free: set[str]) -> Link:
    """Return the links. The pose of a free one is in `q`, so its own frame is the identity."""
    pos = [(0.0, 0.0, 0.0) if b.name in free else b.pos for b in bodies]
    quat = [IDENTITY_QUAT if b.name in free else b.quat for b in bodies]
    frame = Transform(column(bodies, "ipos", 3), column(bodies, "iquat", 4))
    inertia = Inertia(frame, column(bodies, "inertia", 3), column(bodies, "mass", 1)[:, 0])
    frame = Transform(array(pos, (-1, 3)), array(quat, (-1, 4)))
    return Link(
        frame,
        inertia,
        invweight=array(np.zeros((len(pos), 2)), (-1, 2)),
        gravcomp=column(bodies, "gravcomp", 1)[:, 0],
        gravcomp_arm=column(bodies, "gravcomp_arm", 3),
    )


def box_numbers(boxes: Sequence[Element], links: Sequence[Element]) -> Box:
    """Return the boxes of the inertia-box model, as shares of their links' mass and inertia."""
    each = list(zip(boxes, links, strict=True))
    return Box(
        transform(boxes),
        # As shares, the boxes follow when a link's mass is randomized.
        i=array([box.inertia / np.sum(link.inertia) for box, link in each], (-1, 3)),
        mass=array([box.mass / link.mass for box, link in each], (-1,)),
    )
