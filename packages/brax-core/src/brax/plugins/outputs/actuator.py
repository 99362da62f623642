"""Output checks of actuator types."""

from collections.abc import Iterator

from brax.actuators.interface import ActuatorParams, ActuatorType
from brax.plugins.outputs.traced import Fault, call, like, numbers


def problems(kind: ActuatorType) -> Iterator[str]:
    """Yield what is wrong with an actuator type's force law and activation."""
    # The base class defines both methods, so only an override shows that a type has its own.
    has_rate = getattr(kind.rate, "__func__", None) is not ActuatorType.rate
    has_rule = getattr(kind.integrate, "__func__", None) is not ActuatorType.integrate
    if kind.stateful and not (has_rate or has_rule):
        yield "stateful is True, but it has no rate: its activation would stay zero"
    if not kind.stateful and has_rate:
        yield "it has a rate, but stateful is False: set stateful = True, or leave the rate out"
    ten = (like(),) * 10
    params = ActuatorParams(ten, ten, ten, (like(),) * 2, like())
    activated = ("rate", "integrate") if kind.stateful else ()
    arguments = {"force": 3, "rate": 4, "integrate": 3}
    for name in ("force", *activated):
        try:
            out = call(name, getattr(kind, name), params, *[like()] * arguments[name])
            yield from numbers(name, out)
        except Fault as fault:
            yield str(fault)
