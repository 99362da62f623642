"""`check_actuator`: verifies that an actuator type follows the interface of `brax.actuators`."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from brax.actuators import ActuatorParams, ActuatorType
from brax.testing.faults import in_turn, interface, outputs, raise_problems


def check_actuator(kind: ActuatorType) -> None:
    """Check one actuator type.

    Its laws must keep shape and precision. Force, rate and their derivatives must be finite, also
    at zero control and at rest. `integrate` must change nothing in no time.

    Args:
        kind: the actuator type.

    Raises:
        PluginError: naming everything that is wrong.
    """
    raise_problems(
        kind, "actuators", in_turn(kind, interface("actuator"), outputs("actuator"), _numbers)
    )


def _numbers(kind: ActuatorType) -> Iterator[str]:
    """Yield the problems of the laws' values, at random numbers and at zero."""
    ten = tuple(jnp.full((1, 3), 0.5, jnp.float32) for _ in range(10))
    span = (jnp.full((1, 3), 0.2, jnp.float32), jnp.full((1, 3), 1.2, jnp.float32))
    params = ActuatorParams(ten, ten, ten, span, span[0])
    # Zero and both signs: laws with an absolute value or a square root fail at one of them.
    x = jnp.asarray([[0.0, 0.7, -0.4]], jnp.float32)
    laws = {"force": lambda c, l, v: kind.force(params, c, l, v)}
    if kind.stateful:
        laws["rate"] = lambda c, l, v: kind.rate(params, c, 0.5 * c, l, v)
        same = kind.integrate(params, x, jnp.ones_like(x), jnp.zeros_like(x))
        if not np.allclose(same, x, atol=1e-6):
            yield "integrate over no time must change nothing"
    for name, law in laws.items():
        for where, at in (("random numbers", (x, x, x)), ("zero", (0 * x,) * 3)):
            slopes = jax.grad(lambda *a, law=law: jnp.sum(law(*a)), argnums=(0, 1, 2))(*at)
            if not all(np.isfinite(leaf).all() for leaf in (law(*at), *slopes)):
                yield f"{name} or a derivative of it is not finite at {where}"
