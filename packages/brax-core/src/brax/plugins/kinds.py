"""The kinds of plugin, and the light check that each object passes when it is first loaded."""

import importlib
import inspect
from dataclasses import dataclass
from typing import Any

from brax.errors import PluginError
from brax.plugins.records import Registered


@dataclass(frozen=True)
class Kind:
    """A kind of plugin."""

    name: str
    """Singular, as in `plugins.get(name, ...)`; the hook is `brax_<name>s`."""
    interface: str = ""
    """`"module:class"` that objects are instances of, if any."""
    members: tuple[str, ...] = ()
    """Attributes that objects have; `name` must also equal the registered name."""

    @property
    def hook(self) -> str:
        """Name of the hook."""
        return f"brax_{self.name}s"


KINDS = {
    kind.name: kind
    for kind in (
        Kind("joint_type", "brax.joints.interface:JointType", ("name", "q_width", "qd_width")),
        Kind("geometry_type", "brax.colliders.interface:GeometryType", ("name", "size_names")),
        Kind("collider", "brax.colliders.interface:Collider", ("types", "n_contacts")),
        Kind(
            "integrator", "brax.integrators.interface:Integrator", ("name", "order", "needs_flow")
        ),
        Kind("pipeline", members=("init", "step")),
        Kind("actuator", "brax.actuators.interface:ActuatorType", ("name",)),
        Kind("sensor", "brax.sensors.interface:SensorType", ("name", "width", "objects")),
        Kind("environment", members=("__call__",)),
        Kind("trainer", members=("name", "train", "load_policy")),
        Kind("model_format", members=("suffixes", "load")),
        Kind("metric_logger", members=("__call__",)),
        Kind("renderer", members=("__call__",)),
        Kind("command", "click:Command"),
    )
}


def resolve(target: str) -> Any:
    """Imports what `"module:attribute"` names."""
    module, _, path = target.partition(":")
    value: Any = importlib.import_module(module)
    for part in path.split("."):
        value = getattr(value, part)
    return value


def load(registered: Registered) -> Any:
    """Returns a registered object, imported if need be, and checked against its kind.

    Raises:
        PluginError: if it cannot be imported, or is not what its kind asks for.
    """
    target = registered.spec.target
    try:
        value = resolve(target) if isinstance(target, str) else target
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{registered} cannot be loaded: {type(error).__name__}: {error}. "
            f"Repair or update {registered.distribution}."
        ) from error
    problem = _problem(KINDS[registered.kind], registered.name, value)
    if problem:
        raise PluginError(f"{registered} {problem}. See docs/plugins.md.")
    return value


def _problem(kind: Kind, name: str, value: Any) -> str:
    """What is wrong with an object of this kind, or an empty string."""
    if kind.interface and not isinstance(value, resolve(kind.interface)):
        wanted = kind.interface.replace(":", ".").replace(".interface.", ".")
        return f"must be an instance of {wanted}, but is {_describe(value)}"
    missing = [m for m in kind.members if not hasattr(value, m)]
    if missing == ["__call__"]:
        return f"must be a class or a function, but is {_describe(value)}"
    if missing:
        return f"must have {', '.join(kind.members)}, but {_describe(value)} has no {missing[0]}"
    if "name" in kind.members and value.name != name:
        return f"is registered as '{name}', but its own name is '{value.name}'"
    return ""


def _describe(value: Any) -> str:
    if inspect.ismodule(value):
        return f"the module {value.__name__}"
    if inspect.isclass(value):
        return f"the class {value.__name__} itself"
    return f"{type(value).__name__} {value!r}"[:100]
