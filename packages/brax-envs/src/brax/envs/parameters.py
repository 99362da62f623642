"""Making an environment's parameters from keyword arguments."""

import dataclasses
from typing import Any, TypeVar

from brax.errors import ConfigError, closest

P = TypeVar("P")


def make_parameters(kind: type[P], given: dict[str, Any], environment: str) -> P:
    """Makes a dataclass of parameters, naming one that does not exist.

    Raises:
        ConfigError: on a name that is not a field of `kind`.
    """
    names = [f.name for f in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for name in given:
        if name not in names:
            allowed = ["backend", "n_frames", *names]
            raise ConfigError(
                f"environment '{environment}' has no parameter '{name}'. "
                f"Parameters: {', '.join(allowed)}.{closest(name, allowed)}"
            )
    return kind(**given)
