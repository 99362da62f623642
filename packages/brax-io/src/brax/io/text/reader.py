"""The functions that users call to read Brax's own model format, or to make it in Python.

The messages are those of `config.proto`, read with protobuf's text format. See docs/models.md.
"""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax import contact, kinematics, math, plugins
from brax.base import System
from brax.errors import ConfigError, ModelError, closest
from brax.io import _arguments
from brax.io._xml import decode
from brax.io.text.builder import Builder
from brax.io.text.schema import messages
from brax.io.text.source_lines import places

IGNORED_FIELDS = {
    "dynamics_mode": "the pipeline is chosen by `backend`",
    "solver_scale_pos": "it tuned an earlier solver",
    "solver_scale_ang": "it tuned an earlier solver",
    "solver_scale_collide": "it tuned an earlier solver",
    "collider_cutoff": "every pair is tested",
    "stiffness": "joints hold as the pipeline makes them",
    "limit_strength": "limits hold as the pipeline makes them",
    "spring_damping": "joints hold as the pipeline makes them",
}
"""Fields of a `Config` and of its joints that only tuned earlier solvers."""

_MAX_TEXT_BYTES = 2**24
"""Maximum length of a text."""

_UNKNOWN = re.compile(r'Message type "brax\.(\w+)" has no field named "(\w+)"')


def Config(**fields: object) -> Any:
    """Return an empty model to fill in: `config.bodies.add(name="ball", mass=1.0)`.

    Args:
        **fields: fields of the message `Config` in `config.proto`.

    Raises:
        BraxError: if protobuf is not installed.
    """
    return messages()["Config"](**fields)


def load(path: str | os.PathLike[str], default_index: int = 0) -> System:
    """Read a file; arguments, result and errors are those of `loads`."""
    source = _arguments.path(path, error=ModelError)
    return loads(_arguments.read(source, ModelError), default_index, source.name)


def loads(text: str | bytes, default_index: int = 0, name: str = "model.textproto") -> System:
    """Return the system that a text describes.

    Args:
        text: a `Config` in protobuf's text format.
        default_index: index of the `defaults` entry with the initial state.
        name: the name of the text in messages.

    Returns:
        The system. Its time step is `dt / substeps`: an environment steps it `substeps` times.

    Raises:
        BraxError: if protobuf is not installed.
        ModelError: listing everything that is wrong or not supported, with its line.
    """
    config, decoded = _parse(text, name)
    return _build(config, default_index, places(decoded), name)


def build(config: object, default_index: int = 0) -> System:
    """Return the system of a `Config`; the rest is the same as in `loads`."""
    return _build(config, default_index, {}, "config")


def default_q(
    sys: System, angles: Mapping[str, float] | None = None, placed: Collection[str] = ()
) -> jax.Array:
    """Return initial coordinates at which nothing is below the ground.

    Every tree of links whose root can move along z is lifted by its deepest penetration of the
    world's geoms. Nothing is lowered.

    Args:
        sys: the system.
        angles: coordinates of joints of one degree of freedom, by name [rad or m]; the others are
            those of `init_q`.
        placed: names of root links that are not lifted.

    Returns:
        Coordinates [rad or m], shape (nq,).

    Raises:
        ConfigError: if there is no such joint.
    """
    _arguments.system(sys)
    angles = {} if angles is None else angles
    _arguments.mapping(angles, "angles", "numbers")
    q = np.array(sys.init_q)
    starts = dict(zip(sys.joint_names, sys.joint_q_start(), strict=True))
    for name, angle in angles.items():
        if name not in starts:
            raise ConfigError(f"there is no joint '{name}'.{closest(name, starts)}")
        q[starts[name]] = _arguments.number(angle, f"the angle of joint '{name}'")
    x, _ = kinematics.forward(sys, jnp.asarray(q), jnp.zeros(sys.qd_size()))
    touches = contact.get(sys, x)
    if touches is None:
        return jnp.asarray(q)
    roots = [-1]  # the root of the world, then that of each link
    for link, parent in enumerate(sys.link_parents):
        roots.append(link if parent < 0 else roots[parent + 1])
    first, second = (np.array(roots)[np.asarray(side) + 1] for side in touches.link_idx)
    # z of the normal that points away from the world, which can be the first or the second geom.
    up = np.asarray(touches.frame)[:, 0, 2] * np.where(first < 0, 1, -1)
    # A vertical shift by d changes the distance by d times the normal's z; 0.1 bounds the lift on
    # steep contacts.
    depth = -np.asarray(touches.dist) / np.maximum(up, 0.1)
    for root in set(roots[1:]):
        below = ((first < 0) & (second == root)) | ((second < 0) & (first == root))
        lift = max(depth[below & (up > 0.1)], default=0.0)
        at = _height(sys, root)
        if lift > 0 and at is not None and sys.link_names[root] not in placed:
            q[at] += lift
    return jnp.asarray(q)


def _height(sys: System, root: int) -> int | None:
    """Return the index of the coordinate that lifts a root along z; None if there is none."""
    for j in sys.link_joints(root):
        kind, start = sys.joint_types[j].name, sys.joint_q_start()[j]
        axis = math.rotate(sys.joint.axis[j], sys.link.transform.rot[root])
        if kind == "free":
            return start + 2
        if kind == "slide" and axis[2] > 1 - 1e-6:
            return start
    return None


def _build(config: object, default_index: int, lines: Any, name: str) -> System:
    if not isinstance(config, messages()["Config"]):
        raise ModelError(
            f"{name} must be a Config, got {_arguments.kind(config)}: make one with "
            "brax.io.text.Config(...), or read a text with loads(text) and a file with load(path)"
        )
    if type(default_index) is not int:
        raise ModelError(f"default_index must be a whole number, got {default_index!r:.60}")
    if config.defaults and not 0 <= default_index < len(config.defaults):
        raise ModelError(f"{name}: there is no default {default_index}: {len(config.defaults)} are")
    builder = Builder(config, default_index, lines, name)
    system = builder.build()
    return system.replace(init_q=default_q(system, placed=builder.qps))


def _parse(text: str | bytes, name: str) -> tuple[Any, str]:
    text = decode(text, name)
    config = Config()
    from google.protobuf import text_format  # `Config()` has checked that protobuf is installed

    if len(text) > _MAX_TEXT_BYTES:
        raise ModelError(f"{name}: {len(text)} bytes; at most {_MAX_TEXT_BYTES} are read")
    try:
        text_format.Parse(text, config)
    except text_format.ParseError as error:
        place = f"{name}:{error.GetLine()}" if error.GetLine() else name
        message = str(error).removeprefix(f"{error.GetLine()}:{error.GetColumn()} : ")
        raise ModelError(f"{place}: {_explained(message)}") from None
    except ValueError as error:  # bytes that are not text
        raise ModelError(f"{name}: not a text in UTF-8: {error}") from None
    return config, text


def _explained(message: str) -> str:
    """Return protobuf's message, with the allowed fields if it is about an unknown one."""
    unknown = _UNKNOWN.search(message)
    if not unknown:
        return message
    kind, field = unknown.groups()
    allowed = list(messages()[kind].DESCRIPTOR.fields_by_name)
    return f"{kind} has no field '{field}'. Allowed: {', '.join(allowed)}.{closest(field, allowed)}"


def report(path: Path, pipeline: str) -> Sequence[tuple[str, str, str, str]]:
    """Return rows of element, name, status and reason, for `brax report`."""
    config, _ = _parse(path.read_bytes(), path.name)
    system = load(path)
    engine = plugins.get("pipeline", pipeline)
    rows = [("body", body.name, "supported", "") for body in config.bodies]
    for kind, elements in (("model", [config]), ("joint", config.joints)):
        for element in elements:
            name = getattr(element, "name", "")
            for field in [f.name for f, _ in element.ListFields() if f.name in IGNORED_FIELDS]:
                rows.append((kind, f"{name} {field}".strip(), "ignored", IGNORED_FIELDS[field]))
    for joint in config.joints:
        if len(joint.angle_limit) == 3 and joint.angular_damping:
            reason = "angular_damping acts on each of its three angles"
            rows.append(("joint", joint.name, "approximated", reason))
        else:
            rows.append(("joint", joint.name, "supported", ""))
    if hasattr(engine, "report"):
        rows += [("model", *row) for row in engine.report(system)]
    return rows


READER = SimpleNamespace(suffixes=(".textproto",), load=load, report=report)
"""The reader, as the plugin registry uses it."""
