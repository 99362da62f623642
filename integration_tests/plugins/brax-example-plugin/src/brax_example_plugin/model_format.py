"""Pendulums described in JSON: `{"length": 1.0, "mass": 2.0}` in a file `*.pendulum`."""

import json
from pathlib import Path

from brax import System
from brax.builder import ModelBuilder
from brax.errors import ModelError


class PendulumFormat:
    """A point mass on a massless rod, hanging along -z from a hinge about y."""

    suffixes = (".pendulum",)

    def load(self, path: str | Path) -> System:
        """Build the model that a file describes."""
        told = json.loads(Path(path).read_text())
        if missing := {"length", "mass"} - told.keys():
            raise ModelError(f"{path}: a pendulum needs {' and '.join(sorted(missing))}")
        builder = ModelBuilder()
        small = 1e-6 * told["mass"] * told["length"] ** 2
        bob = (0, 0, -told["length"])
        builder.add_body("bob", mass=told["mass"], inertia=(small,) * 3, ipos=bob)
        builder.add_joint("bob", "hinge", axis=(0, 1, 0))
        return builder.build()


PENDULUM = PendulumFormat()
