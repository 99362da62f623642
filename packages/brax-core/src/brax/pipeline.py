"""The base class of pipelines: `init` and `step`, around kernels with the batch on the last axis.

A pipeline implements four kernels, `problem`, `enter`, `advance` and `leave`. `step` checks its
arguments on the host and then runs the four as one compiled function, `Pipeline._run`.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import jax
import jax.numpy as jnp

from brax import contracts, impulses, mocap
from brax.base import Force, State, System
from brax.components import rows
from brax.errors import ModelError
from brax.kernels.batch_last import batch_last
from brax.kinematics import link_frames, to_state

P = TypeVar("P")
M = TypeVar("M", bound="InnerState")


class InnerState(Protocol):
    """A pipeline's internal form of a state."""

    @property
    def acted(self) -> impulses.Impulses | None:
        """The impulses of the physics steps so far; None if they are not reported."""


class Pipeline(ABC, Generic[P, M]):
    """A method of simulation.

    A pipeline implements four kernels for arrays with a trailing batch axis. `P` is the type of all
    data that does not change during a step. `M` is the type of the internal state.
    """

    name: ClassVar[str]
    """The name in the registry and in messages."""
    has_flow: ClassVar[bool] = False
    """True if it runs integrators that need `brax.integrators.Flow`; else it rejects them."""
    lacks: ClassVar[tuple[str, ...]] = ()
    """The features of `contracts.FEATURES` that it does not compute; it rejects such models."""
    approximates: ClassVar[Mapping[str, str]] = {}
    """The features that it approximates, and how."""

    reports_forces: ClassVar[bool] = False
    """True if states report `State.forces` by default in models whose sensors read them. Else the
    sensors compute the forces at a state when they are evaluated."""

    @abstractmethod
    def problem(self, sys: System, act: jax.Array, external: Force | None) -> P:
        """Prepare the data that does not change during a step.

        Args:
            sys: the model, its leaves with a trailing batch axis.
            act: controls, shape (nu, batch).
            external: torque and force on each link at its centre of mass, world axes [N m, N], each
                (n_links, 3, batch).
        """

    @abstractmethod
    def enter(self, problem: P, state: State) -> M:
        """Convert a state to the internal form."""

    @abstractmethod
    def advance(self, problem: P, motion: M, dt: jax.Array) -> M:
        """Take one physics step.

        Args:
            problem: from `problem`.
            motion: the internal state.
            dt: time step [s], shape (1, batch).
        """

    @abstractmethod
    def leave(self, problem: P, motion: M) -> State:
        """Convert the internal form to the state that users see."""

    def contacts(self, sys: System) -> int:
        """Return the number of contacts in `State.forces`."""
        return impulses.every_contact(sys)

    def with_forces(self, sys: System, state: State) -> State:
        """Return a state that asks the steps after it for `State.forces`, zero until then.

        Args:
            sys: the model.
            state: from `init` or `step`.
        """
        return state.replace(forces=impulses.no_forces(sys, self.contacts(sys), state.q))

    def report(self, sys: System) -> list[tuple[str, str, str]]:
        """List how the pipeline treats the features that not all pipelines compute the same way.

        Args:
            sys: the model.

        Returns:
            Rows with the feature, `supported`, `approximated` or `refused`, and what is done
            instead.
        """
        rows = [
            (
                feature,
                "refused" if feature in self.lacks else "approximated",
                self.approximates.get(feature, "not computed"),
            )
            if feature in (*self.lacks, *self.approximates)
            else (feature, "supported", "")
            for feature, has in contracts.FEATURES.items()
            if has(sys)
        ]
        if sys.integrator.needs_flow and not self.has_flow:
            reason = "it needs accelerations of joint coordinates"
            rows.append((f"the integrator '{sys.integrator.name}'", "refused", reason))
        return rows

    def init(self, sys: System, q: jax.Array, qd: jax.Array) -> State:
        """Return the state of a model at given coordinates.

        Args:
            sys: the model.
            q: joint coordinates [rad or m], shape (nq,).
            qd: joint velocities [rad/s or m/s], shape (nv,).

        Returns:
            The state.

        Raises:
            ModelError: if a leaf of the model has the wrong shape or type, or the model has a
                feature that the pipeline lacks.
            ShapeError: if an array does not fit the model.
        """
        function = f"{self.name}.init"
        contracts.check_system(function, sys, self.lacks)
        self._check_integrator(function, sys)
        q = contracts.check_vector(function, "q", q, sys.q_size(), "coordinates")
        qd = contracts.check_vector(function, "qd", qd, sys.qd_size(), "degrees of freedom")
        # Checks ran on the host, before anything is traced or compiled.
        return self._completed(sys, _init(sys, q, qd))

    def step(
        self,
        sys: System,
        state: State,
        act: jax.Array | None,
        n_frames: int = 1,
        external: Force | None = None,
    ) -> State:
        """Advance a state by `n_frames` physics steps with one control.

        A NaN in the model, the state, the controls or the external forces makes everything that
        depends on it NaN. Other environments of a batch are not affected.

        Args:
            sys: the model.
            state: from `init` or `step`.
            act: controls, shape (nu,), which are clipped to their ranges; None means zeros.
            n_frames: number of physics steps, at least 1; a Python integer.
            external: torque and force on each link at its centre of mass, world axes [N m, N], each
                (n_links, 3); the same in all physics steps. MuJoCo's `xfrc_applied`.

        Returns:
            The state `n_frames * sys.opt.timestep` later.

        Raises:
            ConfigError: if `n_frames` is not a positive integer.
            ModelError: if `sys` is not a `System`, or the pipeline cannot run its integrator.
            ShapeError: if `state` is not a `State`, or an array does not fit the model.
        """
        function = f"{self.name}.step"
        if act is None and isinstance(sys, System):
            act = jnp.zeros(sys.act_size())
        act = contracts.check_step(function, sys, state, act, n_frames, external)
        self._check_integrator(function, sys)
        # Contacts are those of the old link frames.
        state = self._completed(sys, state).replace(contact=None)
        return _step(self, n_frames)(sys, state, act, external)

    def _completed(self, sys: System, state: State) -> State:
        """Return a state with all fields that the model and its sensors need."""
        state = completed(sys, state)
        read = self.reports_forces and any(t.reads_forces for t in sys.sensor_types)
        return self.with_forces(sys, state) if read and state.forces is None else state

    def _check_integrator(self, function: str, sys: System) -> None:
        """Raise `ModelError` if the pipeline cannot run the model's integrator."""
        integrator = sys.integrator
        if integrator.needs_flow and not self.has_flow:
            raise ModelError(
                f"{function}: this pipeline cannot run the integrator '{integrator.name}', which "
                "needs accelerations of joint coordinates; choose one that all pipelines run, such "
                "as 'euler' or 'variational', or the generalized pipeline"
            )
        if sys.opt.time_of_impact and not integrator.drifts_last:
            raise ModelError(
                f"{function}: impacts at their time within a step (time_of_impact) need one kick "
                f"and one drift a step, as of 'euler'; integrator '{integrator.name}' has others"
            )

    def _run(
        self, sys: System, state: State, act: jax.Array, external: Force | None, n_frames: int
    ) -> State:
        """Run all physics steps; the kernel of `step`."""
        # What follows from the model only is computed here, before the loop over physics steps.
        sys = mocap.placed(sys, state.mocap)
        problem = self.problem(sys, act, external)
        dt = sys.opt.timestep[None]
        motion = self.enter(problem, state)
        if n_frames == 1:
            motion = self.advance(problem, motion, dt)
        else:
            motion = jax.lax.fori_loop(
                0, n_frames, lambda _, m: self.advance(problem, m, dt), motion
            )
        # Mocap bodies stay where the user has put them.
        end = self.leave(problem, motion).replace(mocap=state.mocap)
        if state.forces is None or motion.acted is None:
            return end
        time = n_frames * dt
        return end.replace(forces=impulses.mean_forces(motion.acted, end.qd - state.qd, time))


def completed(sys: System, state: State) -> State:
    """Return a state with all fields that its model has; those that are not given are at rest."""
    n = len(sys.stateful_actuators())
    if state.activation is None and n:
        state = state.replace(activation=jnp.zeros(n, state.q.dtype))
    return state if state.mocap else state.replace(mocap=mocap.at_rest(sys))


@functools.lru_cache(maxsize=64)
def _step(pipeline: Pipeline[Any, Any], n_frames: int) -> Callable[..., State]:
    """Return the compiled step of a pipeline for a number of physics steps."""
    return batch_last(functools.partial(pipeline._run, n_frames=n_frames), full=(1, 2))


def _init_kernel(sys: System, q: jax.Array, qd: jax.Array) -> State:
    """Return the state at given coordinates, for arrays with a trailing batch axis."""
    # A step of length zero normalizes quaternions and does not change other coordinates.
    q = integrate(sys, q, jnp.zeros_like(qd), 0.0)
    return State(q, qd, *to_state(link_frames(sys, q, qd)))


_init = batch_last(_init_kernel, full=(1, 2))


def integrate(sys: System, q: jax.Array, qd: jax.Array, dt: jax.Array | float) -> jax.Array:
    """Return the coordinates after a motion for `dt` at the velocities `qd`.

    Quaternions have unit length in the result.

    Args:
        sys: the model.
        q: coordinates [rad or m], (nq, batch).
        qd: velocities [rad/s or m/s], (nv, batch).
        dt: time [s], a scalar or (1, batch).

    Returns:
        Coordinates (nq, batch).
    """
    # Joints of one type are integrated together, whatever link they are on.
    where, rates = _by_type(sys)
    parts = []
    for kind, mine in where.items():
        moved = tuple(rows(qd, i) for i in rates[kind])
        parts += kind.integrate(tuple(rows(q, i) for i in mine), moved, dt)
    return _ordered(where, parts)


def time_derivative(
    sys: System,
    function: Callable[[jax.Array, jax.Array], Any],
    q: jax.Array,
    qd: jax.Array,
    acceleration: jax.Array,
) -> Any:
    """Return the time derivative of a function of coordinates and velocities.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        function: a function of coordinates (nq, batch) and velocities (nv, batch).
        q: coordinates [rad or m], (nq, batch).
        qd: velocities [rad/s or m/s], (nv, batch).
        acceleration: joint accelerations [rad/s^2 or m/s^2], (nv, batch).
    """

    # A directional derivative along the motion: coordinates move by the velocities, and velocities
    # by the accelerations, so that Coriolis and centripetal terms are included.
    def at(t: jax.Array) -> Any:
        return function(integrate(sys, q, qd, t), qd + t * acceleration)

    start = jnp.zeros((), qd.dtype)
    return jax.jvp(at, (start,), (jnp.ones_like(start),))[1]


def chart_rates(sys: System, q: jax.Array, qd: jax.Array, start: jax.Array) -> jax.Array:
    """Return the rates of the coordinates `x`, where `q = integrate(sys, start, x, 1)`.

    The coordinates `x` are a chart of the configuration space around `start`, in which integrators
    may add. Their rates differ from `qd` for joints with quaternions.

    Args:
        sys: the model.
        q: coordinates [rad or m], (nq, batch).
        qd: velocities at them [rad/s or m/s], (nv, batch).
        start: coordinates at which `x` is zero [rad or m], (nq, batch).

    Returns:
        Rates (nv, batch).
    """
    where, places = _by_type(sys)
    parts: list[jax.Array] = []
    for kind, mine in where.items():
        rates = tuple(rows(qd, i) for i in places[kind])
        # Without quaternions the chart is the coordinates themselves.
        if kind.q_width == kind.qd_width:
            parts += rates
            continue
        here, origin = (tuple(rows(a, i) for i in mine) for a in (q, start))

        def seen(t: jax.Array, kind: Any = kind, at: Any = (here, rates, origin)) -> Any:
            """Return the chart coordinates a time `t` later; their derivative is the result."""
            return kind.difference(kind.integrate(at[0], at[1], t), at[2])

        t = jnp.zeros_like(rates[0])
        parts += jax.jvp(seen, (t,), (jnp.ones_like(t),))[1]
    return _ordered(places, parts)


CoordinateIndices = dict[Any, list[list[int]]]
"""For each joint type, and each of its coordinates, the rows of all joints of the type."""


def _by_type(sys: System) -> tuple[CoordinateIndices, CoordinateIndices]:
    """Return the rows of the coordinates, and of the velocities, of each joint type."""
    starts = list(zip(sys.joint_types, sys.joint_q_start(), sys.joint_qd_start(), strict=True))
    q: CoordinateIndices = {}
    qd: CoordinateIndices = {}
    for kind in dict.fromkeys(sys.joint_types):
        mine = [(a, b) for k, a, b in starts if k is kind]
        q[kind] = [[a + c for a, _ in mine] for c in range(kind.q_width)]
        qd[kind] = [[b + c for _, b in mine] for c in range(kind.qd_width)]
    return q, qd


def _ordered(places: CoordinateIndices, parts: list[jax.Array]) -> jax.Array:
    """Put rows that are sorted by joint type into the model's order."""
    index = [i for mine in places.values() for component in mine for i in component]
    at = sorted(range(len(index)), key=index.__getitem__)
    return rows(jnp.concatenate(parts, axis=0), at)
