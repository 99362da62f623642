"""Equality constraints, in the frames of the links that carry the constrained bodies."""

from collections.abc import Mapping, Sequence

import numpy as np

from brax.base import Equality
from brax.builder.arrays.columns import array, column
from brax.builder.elements import IDENTITY_QUAT, WORLD, Element
from brax.builder.pose import Pose


def with_equality_data(
    equalities: Sequence[Element],
    bodies: Sequence[Element],
    carrier: Mapping[str, str],
    frame: Mapping[str, Pose],
    mocap: Mapping[str, str],
) -> list[Element]:
    """Return the equalities with MuJoCo's numbers of their types as `data`, (11,).

    Args:
        equalities: as they were described.
        bodies: all bodies, parents first.
        carrier: the link, or the world, that carries each body.
        frame: each body's frame in it.
        mocap: the mocap body that carries each body, or nothing.

    Returns:
        The same equalities between links, with the mocap bodies of both ends as `on`.
    """
    world = {WORLD: Pose(np.zeros(3), np.array(IDENTITY_QUAT))}
    for body in bodies:
        above = world.get(body.parent, world[WORLD])  # the checks report a missing parent
        world[body.name] = above.do(body.pos, body.quat)
    out = []
    for e in equalities:
        if e.type not in _BETWEEN_BODIES:
            out.append(_with(e, data=[*e.polycoef, *[0.0] * 6], on=("", "")))
            continue
        ends = [name if name in world else WORLD for name in (e.first, e.second)]
        data = _BETWEEN_BODIES[e.type](e, *(world[b] for b in ends), *(frame[b] for b in ends))
        first, second = (carrier[b] for b in ends)
        on = tuple(mocap[b] for b in ends)
        out.append(_with(e, data=data, first=first, second=second, on=on))
    return out


def _with(element: Element, **values: object) -> Element:
    """Return a copy of an element with some values replaced."""
    return Element(element.kind, element.name, element.values | values, element.line)


def _connect(e: Element, world1: Pose, world2: Pose, frame1: Pose, frame2: Pose) -> list[float]:
    """Return the data of a `connect`: the two anchors, in the links' frames, then zeros."""
    second = e.anchor2
    if second is None:
        # By default the two anchors coincide in the model as it is described.
        second = world2.inverse().do(world1.do(e.anchor).pos).pos
    # The layout of MuJoCo's `eq_data`: an anchor in each frame.
    return [*frame1.do(e.anchor).pos, *frame2.do(second).pos, *[0.0] * 5]


def _weld(e: Element, world1: Pose, world2: Pose, frame1: Pose, frame2: Pose) -> list[float]:
    """Return the data of a `weld`: both anchors, the relative rotation and the torque scale."""
    if e.relpose is None:
        relative = world1.inverse().do(world2.do(e.anchor).pos, world2.quat)
    else:
        # The bound avoids a division by zero; a quaternion of zeros stays zero.
        quat = e.relpose[3:] / max(np.linalg.norm(e.relpose[3:]), 1e-300)
        relative = Pose(e.relpose[:3], quat)
    # The rotation of the second link in the first: bodies may be rotated in their links.
    turn = frame1.do(*relative).do(np.zeros(3), frame2.inverse().quat).quat
    point = frame1.do(relative.pos).pos
    # The layout of MuJoCo's `eq_data`: anchor, relative position and rotation, torque scale.
    return [*frame2.do(e.anchor).pos, *point, *turn, e.torquescale]


_BETWEEN_BODIES = {"connect": _connect, "weld": _weld}


def equality_numbers(equalities: Sequence[Element]) -> Equality:
    """Return the numbers of all equalities."""
    return Equality(
        data=column(equalities, "data", 11),
        solref=column(equalities, "solref", 2),
        solimp=column(equalities, "solimp", 5),
        # The inverse weights need a whole system, so `build` fills them in at the end.
        invweight=array(np.zeros((len(equalities), 2)), (-1, 2)),
    )
