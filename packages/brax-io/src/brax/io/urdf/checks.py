"""Finds the errors in a robot's text, and what is ignored in it, before MuJoCo sees it."""

from collections import Counter
from collections.abc import Iterator

from brax.errors import closest
from brax.io._nodes import Node, walk
from brax.io.mjcf.checks import MAX_FLOAT32, bad_settings
from brax.io.mjcf.errors import schema
from brax.io.mjcf.limits import MEMORY_LIMITS, STORED, stored_numbers
from brax.io.mjcf.numbers import number

JOINT_TYPES = ("continuous", "fixed", "floating", "planar", "prismatic", "revolute")
"""The supported types of joints."""

MIMIC_JOINT_TYPES = ("continuous", "fixed", "prismatic", "revolute")
"""The types of joints that can follow others and be followed. A fixed one stays at zero."""

WORLD = "world"
"""The name by which MuJoCo's reader knows the root link that is the world itself, not a body."""

_NUMBERS = {
    "origin": ("xyz", "rpy"),
    "axis": ("xyz",),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "limit": ("lower", "upper", "effort", "velocity"),
    "dynamics": ("damping", "friction"),
    "mimic": ("multiplier", "offset"),
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "mesh": ("scale",),
}
"""Attributes that contain numbers."""

_SIZES = ("box", "sphere", "cylinder", "capsule")
"""Elements whose numbers are positive."""


_KNOWN = {
    "robot": (("name", "version"), ("link", "joint", "material", "mujoco")),
    "link": (("name", "type"), ("inertial", "visual", "collision")),
    "joint": (
        ("name", "type"),
        ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
    ),
    "inertial": ((), ("origin", "mass", "inertia")),
    "visual": (("name",), ("origin", "geometry", "material")),
    "collision": (("name",), ("origin", "geometry")),
    "geometry": ((), ("box", "sphere", "cylinder", "capsule", "mesh")),
    "parent": (("link",), ()),
    "child": (("link",), ()),
    **{tag: (keys, ()) for tag, keys in _NUMBERS.items()},
    "mesh": (("filename", "scale"), ()),
    "mimic": (("joint", "multiplier", "offset"), ()),
    "mujoco": ((), ("compiler", "option", "size")),
}
"""The attributes and child elements that each element can have."""

_PASSED_OVER = {
    "material": "the viewer has its own colours",
    "visual": "only for display",
    "transmission": "only urdf.load(..., motors=True) reads it",
    "gazebo": "for another simulator",
    "ros2_control": "only urdf.load(..., motors=True) reads it",
    "sensor": "no sensor is read",
    "safety_controller": "for a controller",
    "calibration": "for a controller",
    "verbose": "for another program",
}
"""Elements of URDF that are ignored, with the reason."""


def bad(root: Node, limit: int) -> list[str]:
    """Return everything that is wrong with a robot's text, one sentence each."""
    if (macro := next(_macros(root), None)) is not None:
        plain = root.file.removesuffix(".xacro").removesuffix(".urdf")
        return [
            f"{macro.place}: {macro} is not expanded: the file is for xacro. Write the robot that "
            f"it describes with `xacro {root.file} > {plain}_expanded.urdf`, and load that"
        ]
    # Only MuJoCo's own elements have its settings; a robot's elements have other attributes.
    settings = Node("", {}, root.file, 0)
    settings.children = [n for n in root.children if n.tag == "mujoco"]
    return [
        *_bad_tree(root, limit),
        *_bad_mimics(root),
        *_bad_numbers(root),
        *bad_settings(settings),
        *_too_much_stored(root, settings),
    ]


def _too_much_stored(root: Node, settings: Node) -> Iterator[str]:
    """Yield that MuJoCo's settings ask for too much memory for as many links."""
    every = Counter(n.tag for n in walk(root))
    number = stored_numbers(list(walk(settings)), every | {"body": every["link"]})
    if number > MEMORY_LIMITS[STORED]:
        yield f"{root.file}: robot has {number:.0f} {STORED} (limit {MEMORY_LIMITS[STORED]})"


def _macros(root: Node) -> Iterator[Node]:
    """Yield the elements that xacro would replace."""
    for node in walk(root):
        values = node.attributes.values()
        if node.tag.startswith("xacro:") or any("${" in v or "$(" in v for v in values):
            yield node


def passed_over(root: Node) -> Iterator[tuple[Node, str]]:
    """Yield the elements that are ignored because they are for another purpose, with the reason."""
    for parent in (root, *root.children):
        for node in parent.children if parent.tag in ("robot", "link", "joint") else ():
            if node.tag in _PASSED_OVER:
                yield node, _PASSED_OVER[node.tag]
            elif node.tag == "mimic" and parent.attributes.get("type") == "fixed":
                yield node, "the joint is fixed"
            elif node.tag == "limit":
                low, high = _bounds(node)
                if low == high and parent.attributes.get("type") in ("revolute", "prismatic"):
                    yield node, "lower and upper are equal: the joint has no limit, as in MuJoCo"
                if "effort" in node.attributes:
                    yield node, "effort: only urdf.load(..., motors=True) reads it"
                if "velocity" in node.attributes:
                    yield node, "velocity: no actuator has a limit of velocity"


def unknown(root: Node) -> Iterator[tuple[Node, str]]:
    """Yield the elements and attributes that URDF does not have, each with a message."""
    stack = [root]
    while stack:
        node = stack.pop()
        keys, tags = _KNOWN[node.tag]
        for key in node.attributes:
            # Attributes with a namespace, such as xmlns:xacro, belong to other tools.
            if key not in keys and ":" not in key:
                yield node, f"attribute '{key}' is unknown and has no effect.{closest(key, keys)}"
        for child in node.children[::-1]:
            if child.tag in tags and child.tag in _KNOWN:
                stack.append(child)
            elif child.tag in tags and node.tag == "mujoco":
                yield from _unknown_settings(child)
            elif child.tag not in tags and child.tag not in _PASSED_OVER:
                yield child, f"is unknown and has no effect.{closest(child.tag, tags)}"


def _unknown_settings(node: Node) -> Iterator[tuple[Node, str]]:
    """Yield the attributes that MuJoCo's elements do not have.

    In an MJCF file they are errors, but MuJoCo's URDF reader skips them.
    """
    known = schema().get(node.tag, set())
    for key in node.attributes.keys() - known:
        yield node, f"attribute '{key}' is unknown and has no effect.{closest(key, known)}"


def _bad_tree(root: Node, limit: int) -> Iterator[str]:
    """Yield what is wrong with the links, and with the tree that the joints form."""
    links = [n.attributes.get("name", "") for n in root.children if n.tag == "link"]
    joints = [n for n in root.children if n.tag == "joint"]
    if not links:
        yield f"{root.place}: the robot has no <link>"
        return
    if len(links) > limit:
        yield (
            f"{root.file}: robot has {len(links)} links (limit {limit}); "
            "pass max_elements to allow more"
        )
    named: dict[tuple[str, str], Node] = {}
    for node in root.children:
        first = named.setdefault((node.tag, node.attributes.get("name", "")), node)
        if first is not node and node.tag in ("link", "joint"):
            yield f"{node.place}: {node}: the name is taken ({first.place})"
    holders: dict[str, Node] = {}
    for joint in joints:
        yield from _bad_joint(joint, links)
        first = holders.setdefault(_link(joint, "child"), joint)
        if first is not joint:
            yield (
                f"{joint.place}: {joint}: link '{_link(joint, 'child')}' is already the child of "
                f"{first} ({first.place})"
            )
    roots = [name for name in links if name not in holders]
    if len(roots) != 1:
        names = ", ".join(f"'{name}'" for name in roots) or "none"
        yield f"{root.place}: exactly one link must be the child of no joint, got {names}"


def _bad_joint(joint: Node, links: list[str]) -> Iterator[str]:
    """Yield what is wrong with a single joint."""
    kind = joint.attributes.get("type", "")
    if kind not in JOINT_TYPES:
        allowed = f"allowed: {', '.join(JOINT_TYPES)}.{closest(kind, JOINT_TYPES)}"
        yield f"{joint.place}: {joint}: type '{kind}' is not supported; {allowed}"
    for role in ("parent", "child"):
        link = _link(joint, role)
        if link not in links:
            problem = f"its {role} '{link}' is not a link.{closest(link, links)}"
            yield f"{joint.place}: {joint}: {problem}"
    if _link(joint, "child") == WORLD:
        yield (
            f"{joint.place}: {joint}: its child '{WORLD}' is the world itself, which is the child "
            "of no joint: rename that link"
        )
    parent = _link(joint, "parent")
    if kind == "floating" and parent in links and parent != WORLD:
        yield (
            f"{joint.place}: {joint}: a floating joint can only join a link to the world: its "
            f"parent must be the root link and be named '{WORLD}', got '{parent}'"
        )


def _link(joint: Node, role: str) -> str:
    """Return the link that a joint names as its parent or child."""
    return next((n.attributes.get("link", "") for n in joint.children if n.tag == role), "")


def mimics(root: Node) -> Iterator[tuple[Node, Node]]:
    """Yield the joints that follow another one, each with its `<mimic>`."""
    for joint in root.children:
        for part in joint.children:
            if joint.tag == "joint" and part.tag == "mimic":
                yield joint, part


def _bad_mimics(root: Node) -> Iterator[str]:
    """Yield the `<mimic>` elements that cannot work; MuJoCo skips them silently."""
    kinds = {
        n.attributes.get("name", ""): n.attributes.get("type", "")
        for n in root.children
        if n.tag == "joint"
    }
    seen: set[int] = set()
    for joint, mimic in mimics(root):
        where, leader = f"{mimic.place}: {joint}: <mimic>", mimic.attributes.get("joint", "")
        if id(joint) in seen:
            yield f"{where} is given twice"
        seen.add(id(joint))
        if leader not in kinds:
            yield f"{where}: there is no joint '{leader}'.{closest(leader, kinds)}"
            continue
        if leader == joint.attributes.get("name"):
            yield f"{where}: a joint cannot follow itself"
        for name in dict.fromkeys((joint.attributes.get("name", ""), leader)):
            if kinds.get(name) in JOINT_TYPES and kinds[name] not in MIMIC_JOINT_TYPES:
                yield (
                    f"{where}: joint '{name}' is of type '{kinds[name]}'; those that follow and "
                    f"are followed are {', '.join(MIMIC_JOINT_TYPES)}"
                )


def _bad_numbers(root: Node) -> Iterator[str]:
    """Yield the numbers that are not finite in single precision, or have an impossible value."""
    for node in walk(root):
        for key in _NUMBERS.get(node.tag, ()):
            yield from _bad_number(node, key)
        if node.tag == "limit":
            low, high = _bounds(node)
            if low is not None and high is not None and low > high:
                yield f"{node.place}: {node}: lower {low:g} is above upper {high:g}"


def _bounds(limit: Node) -> tuple[float | None, float | None]:
    """Return the lower and the upper bound of a limit, by default 0; None for one that is bad."""
    low, high = (number(limit.attributes.get(key) or "0") for key in ("lower", "upper"))
    return low, high


def _bad_number(node: Node, key: str) -> Iterator[str]:
    words = node.attributes.get(key, "").split()
    numbers = [x for x in map(number, words) if x is not None]
    if node.tag == "mimic" and key in node.attributes and not len(numbers) == len(words) == 1:
        yield f"{node.place}: {node} {key} must be one number, got '{node.attributes[key]}'"
    elif len(numbers) < len(words):
        return  # MuJoCo reports it
    elif not all(abs(x) <= MAX_FLOAT32 for x in numbers):
        yield f"{node.place}: {node} {key}: {node.attributes[key]} is not finite"
    elif node.tag == "mass" and any(x < 0 for x in numbers):
        yield f"{node.place}: {node} {key} must not be negative, got {numbers[0]:g}"
    elif node.tag in _SIZES and any(x <= 0 for x in numbers):
        yield f"{node.place}: {node} {key} must be positive, got {node.attributes[key]}"
