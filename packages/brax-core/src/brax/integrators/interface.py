"""What an integrator is: an order of kicks and drifts."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, TypeVar

import jax

S = TypeVar("S")


class Integrator(ABC):
    """A splitting method. Instances are stateless and live in `System` as a static field.

    Source: Hairer, Lubich, Wanner (2006), Geometric Numerical Integration, section II.5.
    """

    name: ClassVar[str]
    """The name in model files and in the registry, lower case."""
    order: ClassVar[int]
    """Order of convergence on smooth motion."""

    @abstractmethod
    def step(
        self,
        kick: Callable[[S, jax.Array], S],
        drift: Callable[[S, jax.Array], S],
        state: S,
        dt: jax.Array,
    ) -> S:
        """Advances a state by `dt`.

        Args:
            kick: changes velocities for a time by forces, joints and contacts at fixed positions.
            drift: changes positions for a time, at constant momentum.
            state: the pipeline's own state.
            dt: time step [s].
        """
