"""The spring pipeline.

State is kept in maximal coordinates, each link's frame and velocity. A step is: forces and motors;
all joints of all trees at once, as springs as stiff as the step can carry, exactly along their
degrees of freedom; sweeps over limits and contacts at the level of velocity; then free motion.
Impulses act in pairs at one point, so linear and angular momentum are conserved to round-off.

Source: Freeman et al. (2021), Brax: A Differentiable Physics Engine for Large Scale Rigid Body
Simulation, section 3. Departures: the joint springs are solved implicitly over the tree, with
armature and damping, rather than one by one and explicitly; contacts see the inertia of the whole
tree; bodies keep their angular momentum.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brax import contracts
from brax.base import State, System
from brax.batch_last import batch_last
from brax.components import quat, rows, vec3
from brax.fusion import fence
from brax.kinematics import Frames, link_frames, to_state
from brax.spring.bodies import Bodies, drift
from brax.spring.joints import advance
from brax.spring.kick import Problem, kick, link_poses
from brax.spring.model import GroupModel, group_models
from brax.tree import Group, join, layout


class Spring:
    """`init` and `step` of the spring pipeline."""

    name = "spring"

    def init(self, sys: System, q: jax.Array, qd: jax.Array) -> State:
        """Makes the state of a model at given coordinates.

        Args:
            sys: the model.
            q: joint coordinates, shape (nq,).
            qd: joint velocities, shape (nv,).

        Returns:
            The state.

        Raises:
            ModelError: if a leaf of the model is not what it may be.
            ShapeError: if an array does not fit the model.
        """
        contracts.check_system("spring.init", sys)
        contracts.check_vector("spring.init", "q", q, sys.q_size(), "coordinates")
        contracts.check_vector("spring.init", "qd", qd, sys.qd_size(), "degrees of freedom")
        return _init(sys, jnp.asarray(q), jnp.asarray(qd))

    def step(self, sys: System, state: State, act: jax.Array, n_frames: int = 1) -> State:
        """Advances a state by `n_frames` physics steps under one control.

        Args:
            sys: the model.
            state: from `init` or `step`.
            act: controls, shape (nu,).
            n_frames: number of physics steps.

        Returns:
            The state `n_frames * sys.opt.timestep` later.

        Raises:
            ShapeError: if an array does not fit the model.
        """
        contracts.check_vector("spring.step", "act", act, sys.act_size(), "actuators")
        contracts.check_state("spring.step", sys, state)
        return _step(n_frames)(sys, state.replace(contact=None), jnp.asarray(act))


SPRING = Spring()


def _init_kernel(sys: System, q: jax.Array, qd: jax.Array) -> State:
    frames = link_frames(sys, q, qd)
    return State(_normalized(sys, q), qd, *to_state(frames))


_init = batch_last(_init_kernel, full=(1, 2))


def _normalized(sys: System, q: jax.Array) -> jax.Array:
    """Coordinates with their quaternions at unit length."""
    parts = []
    for start, kind in zip(sys.joint_q_start(), sys.joint_types, strict=True):
        mine = tuple(q[start + c : start + c + 1] for c in range(kind.q_width))
        still = tuple(jnp.zeros_like(mine[0]) for _ in range(kind.qd_width))
        parts += kind.integrate(mine, still, 0.0)
    return jnp.concatenate(parts, axis=0)


@functools.lru_cache(maxsize=64)
def _step(n_frames: int) -> Callable[..., State]:
    return batch_last(functools.partial(_advance, n_frames=n_frames), full=(1, 2))


def _advance(sys: System, state: State, act: jax.Array, n_frames: int) -> State:
    """All physics steps, for arrays with a trailing batch axis."""
    # A model that is a constant of the program would be folded, which costs more than it saves.
    sys = jax.lax.optimization_barrier(sys)
    problem = Problem(sys, layout(sys), fence(group_models(sys)), act)
    bodies = _from_state(problem, state)

    def physics_step(_: int, bodies: list[Bodies]) -> list[Bodies]:
        return sys.integrator.step(
            lambda s, dt: kick(problem, s, dt),
            lambda s, dt: _drift(problem, s, dt),
            bodies,
            sys.opt.timestep[None],
        )

    if n_frames == 1:
        bodies = physics_step(0, bodies)
    else:
        bodies = jax.lax.fori_loop(0, n_frames, physics_step, bodies)
    return _to_state(problem, bodies)


def _drift(problem: Problem, bodies: Sequence[Bodies], dt: jax.Array) -> list[Bodies]:
    return [
        _follow(group, drift(model, body, dt, not group.unconstrained), dt)
        for group, model, body in zip(problem.plan.groups, problem.models, bodies, strict=True)
    ]


def _follow(group: Group, body: Bodies, dt: jax.Array) -> Bodies:
    """Moves the joints' coordinates at their rates."""
    if group.unconstrained:
        return body
    return body._replace(q=advance(group.types, body.q, body.rates, dt))


def _from_state(problem: Problem, state: State) -> list[Bodies]:
    plan = problem.plan
    out = []
    for group, model in zip(plan.groups, problem.models, strict=True):
        links = [plan.order[p] for p in group.links]
        link_rot = quat(rows(state.x.rot, links))
        rot = link_rot.mul(model.link_rot.conj)
        arm = rot.rotate(-model.link_pos)
        ang = vec3(rows(state.xd.ang, links))
        out.append(
            Bodies(
                pos=vec3(rows(state.x.pos, links)) + arm,
                rot=rot,
                axes=rot.matrix(),
                vel=vec3(rows(state.xd.vel, links)) + ang.cross(arm),
                ang=ang,
                q=()
                if group.unconstrained
                else tuple(rows(state.q, index) for place in group.q for index in place),
                rates=()
                if group.unconstrained
                else tuple(rows(state.qd, index) for index in group.qd),
            )
        )
    return out


def _to_state(problem: Problem, bodies: Sequence[Bodies]) -> State:
    plan = problem.plan
    pos, rot = link_poses(problem.models, bodies)
    vel = [b.vel + b.ang.cross(p - b.pos) for b, p in zip(bodies, pos, strict=True)]
    frames = fence(
        [Frames(p, r, b.ang, v) for p, r, b, v in zip(pos, rot, bodies, vel, strict=True)]
    )
    x, xd = rows(join([to_state(f) for f in frames]), plan.position)
    return State(*_coordinates(problem, bodies, frames), x, xd)


def _coordinates(
    problem: Problem,
    bodies: Sequence[Bodies],
    frames: Sequence[Frames],
) -> tuple[jax.Array, jax.Array]:
    """Joint coordinates and velocities, in the model's order."""
    by_q: dict[int, jax.Array] = {}
    by_qd: dict[int, jax.Array] = {}
    for i, group in enumerate(problem.plan.groups):
        q, rates = bodies[i].q, bodies[i].rates
        if group.unconstrained:
            model = problem.models[i]
            q, rates = _free_coordinates(group, model, frames[i])
        flat = [index for place in group.q for index in place]
        for table, indices, values in ((by_q, flat, q), (by_qd, group.qd, rates)):
            for index, value in zip(indices, values, strict=True):
                table |= {j: value[k : k + 1] for k, j in enumerate(index)}
    return _in_order(by_q), _in_order(by_qd)


def _in_order(table: dict[int, jax.Array]) -> jax.Array:
    return jnp.concatenate([table[j] for j in range(len(table))], axis=0)


def _free_coordinates(
    group: Group, model: GroupModel, frames: Frames
) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    """Coordinates and rates of links that hang on the world by one six-dimensional joint."""
    kind: Any = group.types[0]
    q = kind.coordinates(model.params[0], frames.pos, frames.rot)
    twists = kind.motion_subspace(model.params[0], q)
    pairs = [((t.ang, frames.ang), (t.vel, frames.vel)) for t in twists]
    return q, tuple(sum(a.dot(b) for a, b in pair if a is not None) for pair in pairs)
