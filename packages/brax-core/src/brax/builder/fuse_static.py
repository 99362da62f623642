"""Fusion of static bodies into the links, or the world, that carry them."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from brax.builder.arrays.equality import with_equality_data
from brax.builder.elements import IDENTITY_QUAT, WORLD, Element
from brax.builder.pose import Pose
from brax.components import Quat
from brax.generalized.constraints.inverse_weights import InertialFrames


class FusedDescription(NamedTuple):
    """A description without static bodies."""

    links: list[Element]
    boxes: list[Element]
    """Bodies that the inertia-box model treats separately: principal frames in the link (`body`),
    masses and moments."""
    geoms: list[Element]
    sites: list[Element]
    cameras: list[Element]
    fixed: list[Element]
    """The static bodies: their frames in the link that carries them."""
    equalities: list[Element]
    rest: InertialFrames


def fuse_static(
    bodies: Sequence[Element],
    joints: Sequence[Element],
    geoms: Sequence[Element],
    sites: Sequence[Element],
    cameras: Sequence[Element],
    equalities: Sequence[Element],
) -> FusedDescription:
    """Return the description with static bodies fused into the nearest body that has joints.

    Args:
        bodies: all bodies, parents first.
        joints: all joints.
        geoms: all geoms.
        sites: all sites.
        cameras: all cameras.
        equalities: all equalities.

    Returns:
        The same elements in the frames of the links. A geom or site keeps the name of its own body
        as `origin`. Geoms, sites, links and fixed bodies have as `on` the mocap body that carries
        them.
    """
    carriers = _carriers(bodies, {j.body for j in joints})
    parts = carriers.parts
    links = [_with_mass(link, parts[link.name]) for link in carriers.links]
    streamed = {g.body for g in geoms if g.streamed}
    return FusedDescription(
        links,
        [b for link in links for b in _boxes(link.name, parts[link.name], streamed)],
        [carriers.attach(g) for g in geoms],
        [carriers.attach(s) for s in sites],
        [
            carriers.attach(
                c,
                target=carriers.carrier.get(c.target, WORLD),
                aim=carriers.mocap.get(c.target, ""),
            )
            for c in cameras
        ],
        carriers.fixed,
        with_equality_data(equalities, bodies, carriers.carrier, carriers.frame, carriers.mocap),
        _rest(carriers, geoms, equalities),
    )


class _Carriers(NamedTuple):
    """The link, or the world, that carries each body; mappings by the body's name."""

    links: list[Element]
    fixed: list[Element]
    carrier: dict[str, str]
    frame: dict[str, Pose]
    """Frame of each body in its carrier."""
    mocap: dict[str, str]
    """The mocap body that carries each static body, or an empty name."""
    parts: dict[str, list[tuple[Pose, Element]]]
    """Bodies of each carrier, by its name, with their principal frames in it."""

    def attach(self, part: Element, **more: str) -> Element:
        """Return a geom, site or camera in the frame of its carrier."""
        on = part.body if part.body in self.carrier else WORLD
        pose = self.frame[on].do(part.pos, part.quat)
        carrier, mocap = self.carrier[on], self.mocap[on]
        return _moved(part, "body", carrier, pose, origin=part.body, on=mocap, **more)


def _carriers(bodies: Sequence[Element], moving: Collection[str]) -> _Carriers:
    """Return the carriers of all bodies; those in `moving` have joints and carry themselves."""
    carrier, frame = {WORLD: WORLD}, {WORLD: Pose(np.zeros(3), np.array(IDENTITY_QUAT))}
    found = _Carriers([], [], carrier, frame, mocap={WORLD: ""}, parts={})
    for body in bodies:
        # A parent that does not exist is reported by the checks, which need the other elements.
        above = body.parent if body.parent in carrier else WORLD
        pose = frame[above].do(body.pos, body.quat)
        on = body.name if body.mocap else found.mocap[above]
        moved = _moved(body, "parent", carrier[above], pose, on=on)
        if body.name in moving:
            found.links.append(moved)
            # A link's own frame is the identity in itself, as that of the world is.
            carrier[body.name], frame[body.name] = body.name, frame[WORLD]
            found.mocap[body.name] = ""
        else:
            found.fixed.append(moved)
            carrier[body.name], frame[body.name] = carrier[above], pose
            found.mocap[body.name] = on
        inertial = frame[body.name].do(body.ipos, body.iquat)
        found.parts.setdefault(carrier[body.name], []).append((inertial, body))
    return found


def _rest(
    carriers: _Carriers, geoms: Sequence[Element], equalities: Sequence[Element]
) -> InertialFrames:
    """Return the frames at rest that the inverse weights depend on."""
    centres = {WORLD: np.zeros(3)} | {
        body.name: pose.pos for each in carriers.parts.values() for pose, body in each
    }
    world, links = {WORLD: carriers.frame[WORLD]}, carriers.links
    for link in links:
        world[link.name] = world[link.parent].do(link.pos, link.quat)
    at_geoms = [centres.get(geom.body, centres[WORLD]) for geom in geoms]
    at_ends = [[centres.get(b, centres[WORLD]) for b in (e.first, e.second)] for e in equalities]
    return InertialFrames(
        np.array(at_geoms).reshape(-1, 3),
        np.array(at_ends).reshape(-1, 2, 3),
        np.array([world[link.name].pos for link in links]).reshape(-1, 3),
        np.array([world[link.name].quat for link in links]).reshape(-1, 4),
        tuple(len(carriers.parts[link.name]) for link in links),
    )


def _moved(element: Element, key: str, carrier: str, pose: Pose, **more: str) -> Element:
    """Return an element with another carrier and its pose there."""
    values = element.values | {key: carrier, "pos": pose.pos, "quat": pose.quat} | more
    return Element(element.kind, element.name, values, element.line)


def _with_mass(link: Element, parts: list[tuple[Pose, Element]]) -> Element:
    """Return the link with the mass distribution of all its parts.

    Source: parallel-axis theorem, for example Featherstone (2008), eq. 2.63.
    """
    # A link without any mass keeps its own frame; the checks reject it by name.
    massive = [(pose, b) for pose, b in parts if b.mass > 0] or parts[:1]
    masses = [b.mass for _, b in massive]
    total = float(np.sum(masses))
    # One part keeps its own axes and moments exactly, in the order in which they were given.
    if len(massive) == 1:
        ((pose, body),) = massive
        pos, quat, moments = *pose, body.inertia
    else:
        pos = sum(b.mass * pose.pos for pose, b in massive) / total
        tensor = sum(_tensor(p.quat, b.inertia) + b.mass * _offset(p.pos - pos) for p, b in massive)
        # `eigh` raises on numbers that are not finite; the checks report them with a better
        # message.
        finite = np.where(np.isfinite(tensor).all(), tensor, np.eye(3))
        moments, vectors = np.linalg.eigh(finite)
        axes: np.ndarray = np.array(vectors)
        # Eigenvectors may form a left-handed frame, which no quaternion describes.
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        quat = _quaternion(axes)
    # The compensated weight of a body acts at that body's centre of mass, so it has an arm about
    # the link's.
    borne = [(b.gravcomp * b.mass / max(total, 1e-300), pose.pos - pos) for pose, b in massive]
    values = dict(mass=total, ipos=pos, iquat=quat, inertia=moments)
    values |= dict(
        gravcomp=float(np.sum([share for share, _ in borne])),
        gravcomp_arm=np.sum([share * arm for share, arm in borne], axis=0),
    )
    return Element(link.kind, link.name, link.values | values, link.line)


def _boxes(
    link: str, parts: list[tuple[Pose, Element]], streamed: Collection[str]
) -> Iterator[Element]:
    """Yield the parts of a link that are boxes of the fluid's inertia-box model.

    There are none if the whole link is one box.

    Args:
        link: name of the link.
        parts: its bodies and their principal frames in it.
        streamed: names of the bodies with geoms of the ellipsoid model.
    """
    massive = [(pose, body) for pose, body in parts if body.mass > 0]
    # A single body is the whole link, and its box is computed from the link's inertia.
    if len(massive) < 2 and not any(body.name in streamed for _, body in parts):
        return
    for pose, body in massive:
        if body.name not in streamed:
            values = dict(body=link, pos=pose.pos, quat=pose.quat)
            values |= dict(mass=body.mass, inertia=body.inertia)
            yield Element(body.kind, body.name, values, body.line)


def _tensor(quat: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Return the inertia tensor of principal moments along rotated axes."""
    axes: np.ndarray = np.array(Quat(*quat).matrix()).T
    return axes @ np.diag(moments) @ axes.T


def _offset(d: np.ndarray) -> np.ndarray:
    """Return the inertia tensor of a unit point mass at `d`."""
    return np.dot(d, d) * np.eye(3) - np.outer(d, d)


def _quaternion(m: np.ndarray) -> np.ndarray:
    """Return the quaternion of a rotation matrix: an eigenvector, without any special case.

    Source: Bar-Itzhack (2000), New method for extracting the quaternion from a rotation matrix.
    """
    k = np.zeros((4, 4))
    k[0, 0] = np.trace(m)
    k[0, 1:] = k[1:, 0] = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    k[1:, 1:] = m + m.T - np.trace(m) * np.eye(3)
    # `eigh` sorts eigenvalues in ascending order, and the largest one is wanted.
    return np.linalg.eigh(k)[1][:, -1]
