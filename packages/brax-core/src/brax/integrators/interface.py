"""Interface of an integrator: the order of the stages that a pipeline offers."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

import jax

S = TypeVar("S")
M = TypeVar("M", bound="Moves[Any]", contravariant=True)


class Moves(ABC, Generic[S]):
    """The stages that every pipeline offers, on its own form of the state, `S`.

    `kick` and `drift` are the halves of a step of semi-implicit Euler. `push` and `glide` split the
    motion into that of forces and that of inertia, so that only `push` changes momentum. A pipeline
    whose drift conserves momentum has one pair for both. All arrays `dt`, which are time steps [s],
    have the shape (1, batch).
    """

    @abstractmethod
    def kick(self, state: S, dt: jax.Array) -> S:
        """Update the velocities for `dt` at fixed positions; joint damping is implicit."""

    @abstractmethod
    def drift(self, state: S, dt: jax.Array) -> S:
        """Update the positions for `dt` at fixed velocities."""

    def push(self, state: S, dt: jax.Array) -> S:
        """Update the velocities as `kick` does, without Coriolis and centrifugal forces."""
        # In maximal coordinates the velocities of links are their momenta: `kick` has no forces of
        # inertia.
        return self.kick(state, dt)

    def glide(self, state: S, dt: jax.Array) -> S:
        """Move freely for `dt`, at constant momentum and energy, symmetric in time."""
        return self.drift(state, dt)


class Flow(Moves[S]):
    """Stages of a pipeline that also computes the rate at which its state changes.

    All arrays `dt`, which are time steps [s], have the shape (1, batch).
    """

    @abstractmethod
    def rates(self, state: S, start: S) -> Any:
        """Return the rate of change of a state, with nothing implicit.

        Args:
            state: the state.
            start: the state that `advance` starts from. Coordinates that do not form a vector
                space, such as quaternions, are measured from it.

        Returns:
            Arrays that can be added and scaled.
        """

    @abstractmethod
    def advance(self, start: S, rates: Any, dt: jax.Array) -> S:
        """Update everything for `dt` at constant rates."""

    def look_ahead(self, start: S, rates: Any, dt: jax.Array) -> S:
        """Return the state of an inner stage, at which only rates are asked for."""
        return self.advance(start, rates, dt)

    @abstractmethod
    def implicit_kick(self, state: S, dt: jax.Array, inertia: bool) -> S:
        """Update the velocities as `kick` does, implicit in all forces that depend on velocity.

        Args:
            state: at the start of the step.
            dt: time step [s].
            inertia: True to include the Coriolis and centrifugal forces. Without them the matrix of
                the linear system is symmetric.
        """


class Integrator(ABC, Generic[M]):
    """A rule for advancing time. Instances are stateless and are a static field of `System`.

    Source: Hairer, Lubich, Wanner (2006), Geometric Numerical Integration, chapter II.
    """

    name: ClassVar[str]
    """Name in model files and in the registry, lower case."""
    order: ClassVar[int]
    """Order of convergence on smooth motion."""
    needs_flow: ClassVar[bool] = False
    """True if the integrator calls stages of `Flow`, which not all pipelines have."""
    drifts_last: ClassVar[bool] = False
    """True if a step is one kick and then one drift, both over the whole step. Only then does
    `opt.time_of_impact` find impacts correctly; it is rejected with other integrators."""

    @abstractmethod
    def step(self, moves: M, state: Any, dt: jax.Array) -> Any:
        """Return a state after `dt`.

        Args:
            moves: the stages of the pipeline.
            state: the pipeline's own state.
            dt: time step [s], shape (1, batch).
        """
