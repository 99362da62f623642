"""What an integrator is: an order of moves that a pipeline brings."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

import jax

S = TypeVar("S")
M = TypeVar("M", bound="Moves[Any]", contravariant=True)


class Moves(ABC, Generic[S]):
    """What every pipeline can do with its own form of the state, `S`.

    `kick` and `drift` are the halves of a step of semi-implicit Euler. `push` and `glide` split
    the motion into that of forces and that of inertia, so that momentum changes in one alone; a
    pipeline whose drift keeps momentum has one pair for both.
    """

    @abstractmethod
    def kick(self, state: S, dt: jax.Array) -> S:
        """Changes velocities for a time at fixed positions; joint damping is implicit."""

    @abstractmethod
    def drift(self, state: S, dt: jax.Array) -> S:
        """Changes positions for a time."""

    def push(self, state: S, dt: jax.Array) -> S:
        """As `kick`, but without the forces of inertia: changes momentum at fixed positions."""
        return self.kick(state, dt)

    def glide(self, state: S, dt: jax.Array) -> S:
        """Free motion for a time, at constant momentum and energy, symmetric in time."""
        return self.drift(state, dt)


class Flow(Moves[S]):
    """Moves of a pipeline that also knows the rate at which its state changes."""

    @abstractmethod
    def rates(self, state: S, start: S) -> Any:
        """The rate of change of a state, without any implicitness.

        Args:
            state: where it is asked for.
            start: the state that `advance` will start from; coordinates that are not plain
                numbers, such as quaternions, are measured from it.

        Returns:
            Arrays that can be added up and scaled.
        """

    @abstractmethod
    def advance(self, start: S, rates: Any, dt: jax.Array) -> S:
        """Changes everything for a time at constant rates."""

    def look_ahead(self, start: S, rates: Any, dt: jax.Array) -> S:
        """As `advance`, to a place within the step where only rates are asked for."""
        return self.advance(start, rates, dt)

    @abstractmethod
    def implicit_kick(self, state: S, dt: jax.Array, inertia: bool) -> S:
        """As `kick`, but implicit in all forces that depend on velocity.

        Args:
            state: at the start of the step.
            dt: time step [s].
            inertia: whether also in the Coriolis and centrifugal forces. If not, the matrix that
                is solved with is symmetric.
        """


class Integrator(ABC, Generic[M]):
    """A way of advancing time. Instances are stateless and live in `System` as a static field.

    Source: Hairer, Lubich, Wanner (2006), Geometric Numerical Integration, chapter II.
    """

    name: ClassVar[str]
    """The name in model files and in the registry, lower case."""
    order: ClassVar[int]
    """Order of convergence on smooth motion."""
    needs_flow: ClassVar[bool] = False
    """True if it calls for `Flow`, which not all pipelines have, rather than `Moves`."""
    drifts_last: ClassVar[bool] = False
    """True if a step is one kick and then one drift, both over all of it. Only then do impacts at
    their time within a step (`opt.time_of_impact`) come out right; with others they are refused."""

    @abstractmethod
    def step(self, moves: M, state: Any, dt: jax.Array) -> Any:
        """Advances a state by `dt`.

        Args:
            moves: what the pipeline can do.
            state: the pipeline's own state.
            dt: time step [s].
        """
