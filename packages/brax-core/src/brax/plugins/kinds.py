"""The kinds of objects that plugins register, and the checks of an object when it is loaded."""

import importlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from brax.errors import PluginError, describe_error
from brax.plugins.records import Registered, Spec


@dataclass(frozen=True)
class Kind:
    """A kind of object that plugins register."""

    name: str
    """Name in the singular, as in `plugins.get(name, ...)`; the hook is `brax_<name>s`."""
    interface: str = ""
    """`"module:class"` of which objects are instances, if any."""
    members: tuple[str, ...] = ()
    """Attributes that objects must have; a `name` must also equal the registered name."""
    chosen_by: str = ""
    """The attribute with an object's keys, if objects are found by keys and not by their names."""
    outputs: str = ""
    """`"module:function"` that yields the problems of what an object's functions return."""

    @property
    def hook(self) -> str:
        """Name of the hook."""
        return f"brax_{self.name}s"


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "joint_type",
            "brax.joints.interface:JointType",
            ("name", "q_width", "qd_width"),
            outputs="brax.plugins.outputs.joint:problems",
        ),
        Kind(
            "geometry_type",
            "brax.colliders.interface:GeometryType",
            ("name", "size_names"),
            outputs="brax.plugins.outputs.geometry:problems",
        ),
        Kind(
            "collider",
            "brax.colliders.interface:Collider",
            ("types", "n_contacts"),
            "types",
            outputs="brax.plugins.outputs.collider:problems",
        ),
        Kind(
            "integrator",
            "brax.integrators.interface:Integrator",
            ("name", "order", "needs_flow"),
            outputs="brax.plugins.outputs.integrator:problems",
        ),
        # The kinds without `outputs` are checked where they are used: their functions need a model,
        # an environment or a file.
        Kind("pipeline", members=("init", "step")),
        Kind(
            "actuator",
            "brax.actuators.interface:ActuatorType",
            ("name",),
            outputs="brax.plugins.outputs.actuator:problems",
        ),
        Kind(
            "sensor",
            "brax.sensors.interface:SensorType",
            ("name", "width", "objects"),
            outputs="brax.plugins.outputs.sensor:problems",
        ),
        Kind("environment", members=("__call__",)),
        Kind("trainer", members=("name", "train", "load_policy")),
        Kind("model_format", members=("suffixes", "load"), chosen_by="suffixes"),
        Kind("metric_logger", members=("__call__",)),
        Kind("renderer", members=("__call__",)),
        Kind("command", "click:Command"),
    )
}


def resolve(target: str) -> Any:
    """Return the object that `"module:attribute"` names, importing its module."""
    module, _, path = target.partition(":")
    value: Any = importlib.import_module(module)
    for part in path.split("."):
        value = getattr(value, part)
    return value


def keys(kind: str, given: Sequence[str]) -> tuple[str, ...]:
    """Return an object's keys in the form in which they are compared.

    Args:
        kind: kind of object.
        given: keys as objects and specs state them: one pair of geometry types, in either order, or
            any number of suffixes.
    """
    if KINDS[kind].chosen_by == "types":
        # Sorted, because a collider serves its pair in either order.
        return (" and ".join(sorted(given)),) if given else ()
    return tuple(suffix.lower() for suffix in given)


def declared(kind: str, spec: Spec) -> tuple[str, ...]:
    """Return the keys that are known without an import."""
    own = spec.keys
    if not own and not isinstance(spec.target, str) and KINDS[kind].chosen_by:
        # An object in place of a text shows its keys without an import.
        own = getattr(spec.target, KINDS[kind].chosen_by, ())
    return () if key_problem(kind, own) else keys(kind, own)


def load(registered: Registered) -> Any:
    """Return a registered object, imported if need be, and checked against its kind.

    Raises:
        PluginError: if it cannot be imported, or is not what its kind asks for.
    """
    target = registered.spec.target
    try:
        value = resolve(target) if isinstance(target, str) else target
    # A module that calls `sys.exit` when it is imported must not end the program.
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{registered} cannot be loaded: {describe_error(error)}. "
            f"Repair or update {registered.distribution}."
        ) from error
    problem = _problem(KINDS[registered.kind], registered.spec, value)
    if problem:
        raise PluginError(f"{registered} {problem}. See docs/plugins.md.")
    if not registered.ours:  # ours pass the same checks in their tests
        _check_outputs(registered, value)
    return value


def _check_outputs(registered: Registered, value: Any) -> None:
    """Check what an object's functions return, once for each object."""
    outputs = KINDS[registered.kind].outputs
    # By identity, since objects need not be hashable. The table holds them, so that no id is used
    # again.
    if not outputs or _checked_kinds.get(id(value)) is value:
        return
    if problems := list(dict.fromkeys(resolve(outputs)(value))):
        listed = "".join(f"\n  {problem}" for problem in problems)
        one = f" {problems[0]}" if len(problems) == 1 else listed
        raise PluginError(
            f"{registered} breaks the contract of its kind:{one}. See docs/plugins.md."
        )
    _checked_kinds[id(value)] = value


_checked_kinds: dict[int, Any] = {}
"""Objects whose outputs passed their checks, by identity."""


def _problem(kind: Kind, spec: Spec, value: Any) -> str:
    """Return what is wrong with an object of this kind, or an empty string."""
    if kind.interface and not isinstance(value, resolve(kind.interface)):
        # The path by which plugins import the class.
        wanted = kind.interface.replace(":", ".").replace(".interface.", ".")
        return f"must be an instance of {wanted}, but is {_describe(value)}"
    missing = [m for m in kind.members if not hasattr(value, m)]
    if missing == ["__call__"]:
        return f"must be a class or a function, but is {_describe(value)}"
    if missing:
        return f"must have {', '.join(kind.members)}, but {_describe(value)} has no {missing[0]}"
    if unbound := [m for m in kind.members if _is_unbound(value, m)]:
        return f"must be an instance, but is {_describe(value)}, whose {unbound[0]} needs one"
    # `Registry.name_of` finds an object by its own name.
    if "name" in kind.members and value.name != spec.name:
        return f"is registered as '{spec.name}', but its own name is '{value.name}'"
    if not kind.chosen_by:
        return ""
    own = getattr(value, kind.chosen_by)
    if problem := key_problem(kind.name, own):
        return f"must have as its {kind.chosen_by} {problem}, but has {own!r}"
    if spec.keys and keys(kind.name, spec.keys) != keys(kind.name, own):
        return f"is registered with the keys {spec.keys}, but its {kind.chosen_by} are {own}"
    return ""


def _is_unbound(value: Any, member: str) -> bool:
    """Return whether a value is a class, and a member of it a method of its instances."""
    return inspect.isclass(value) and inspect.isfunction(
        inspect.getattr_static(value, member, None)
    )


def key_problem(kind: str, given: Any) -> str:
    """Return what the keys of an object must be; an empty string if they are valid."""
    texts = isinstance(given, tuple | list) and all(isinstance(key, str) for key in given)
    if not KINDS[kind].chosen_by:
        return f"left out: a {kind} is found by its name only"
    if KINDS[kind].chosen_by == "types":
        return "" if texts and len(given) == 2 else "a tuple of the names of two geometry types"
    fine = texts and given and all(key.startswith(".") for key in given)
    return "" if fine else "a tuple of suffixes, such as ('.xml',)"


def _describe(value: Any) -> str:
    """Return how a message describes an object that is not what its kind asks for."""
    if inspect.ismodule(value):
        return f"the module {value.__name__}"
    if inspect.isclass(value):
        return f"the class {value.__name__} itself"
    if " at 0x" in repr(value):  # an address in memory says nothing
        return f"an instance of {type(value).__name__}"
    return f"{type(value).__name__} {value!r}"[:100]
