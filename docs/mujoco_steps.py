"""Single steps of models beside MuJoCo's, in double precision.

`compatibility.py` and the tests of model files compare steps with these functions.
"""

import copy
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from brax import contact, plugins, sensors
from brax.base import System
from brax.colliders.broad_phase import uses_broad_phase
from brax.io.mjcf.names import body_names, names

CLOSE = 1e-3
"""Bound of the error of a step that counts as MuJoCo's."""
RK4 = int(mujoco.mjtIntegrator.mjINT_RK4)
_UNSTABLE = tuple(
    int(getattr(mujoco.mjtWarning, f"mjWARN_{name}"))
    for name in ("INERTIA", "BADQPOS", "BADQVEL", "BADQACC")
)
SECONDS = 1.0
"""Time over which states are taken from a simulation."""
MEMORY = 2**28
"""Least memory for contacts and constraints [bytes]; files may reserve too little for ours."""
QUICK = {"xla_backend_optimization_level": "0", "xla_llvm_disable_expensive_passes": True}
"""Each program runs a few steps only."""


class Before(NamedTuple):
    """States, one in each row."""

    q: np.ndarray
    qd: np.ndarray
    activation: np.ndarray
    ctrl: np.ndarray


class After(NamedTuple):
    """Velocities and activations after a step, one state in each row."""

    qd: np.ndarray
    activation: np.ndarray


class Found(NamedTuple):
    """Contacts of the states that are compared, each (states, n_contacts, ...)."""

    dist: np.ndarray
    pos: np.ndarray
    frame: np.ndarray
    first: np.ndarray
    """The links of the first geoms, or their numbers in MuJoCo; `second` is of the second geoms."""
    second: np.ndarray
    are_geoms: bool
    """True if `first` and `second` are geoms. Those of a broad phase are links."""


def exact(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return a copy whose solvers have enough steps and memory, and whose bodies stay awake."""
    model = _with_memory(model, max(MEMORY, model.narena))
    model.opt.tolerance, model.opt.ls_tolerance, model.opt.ccd_tolerance = 0, 1e-6, 1e-14
    model.opt.iterations, model.opt.ls_iterations, model.opt.ccd_iterations = 200, 100, 1000
    model.opt.noslip_iterations = 0
    # PGS converges so slowly that 200 iterations leave errors of a tenth.
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    model.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    return model


def _with_memory(model: mujoco.MjModel, size: int) -> mujoco.MjModel:
    """Return a copy with so much memory for contacts and constraints [bytes].

    Only a model's file or its stored form can set it.
    """
    stored = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, stored)
    sizes = stored[4:1028].view(np.int64)  # they follow the first four bytes
    sizes[sizes == model.narena] = size
    made = mujoco.MjModel.from_binary_path("model.mjb", {"model.mjb": stored.tobytes()})
    assert made.narena == size, "this version of MuJoCo stores its models in another form"
    return made


def simulated(model: mujoco.MjModel, states: int) -> tuple[Before, After]:
    """Return states that MuJoCo simulates under random controls, and what a step makes of each."""
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    low, high = np.where(model.actuator_ctrllimited[:, None], model.actuator_ctrlrange, (-1, 1)).T

    def walk() -> Iterator[mujoco.MjData]:
        for _ in range(states):
            data.ctrl[:] = rng.uniform(low, high)
            mujoco.mj_step(model, data, max(1, int(SECONDS / states / model.opt.timestep)))
            yield data

    return _stepped(model, walk())


def scattered(
    model: mujoco.MjModel, states: int, spread: tuple[float, float]
) -> tuple[Before, After]:
    """Return random states, and what MuJoCo's step makes of each.

    Args:
        model: MuJoCo's model.
        states: the number of states. Their controls and activations are random too.
        spread: standard deviations of the coordinates and of the velocities.
    """
    data, rng = mujoco.MjData(model), np.random.default_rng(0)

    def walk() -> Iterator[mujoco.MjData]:
        for _ in range(states):
            mujoco.mj_resetData(model, data)
            mujoco.mj_integratePos(model, data.qpos, spread[0] * rng.normal(size=model.nv), 1.0)
            data.qvel[:] = spread[1] * rng.normal(size=model.nv)
            data.ctrl[:], data.act[:] = 2 * rng.normal(size=model.nu), rng.uniform(size=model.na)
            yield data

    return _stepped(model, walk())


def _stepped(model: mujoco.MjModel, walk: Iterator[mujoco.MjData]) -> tuple[Before, After]:
    """Return the states of a walk, and the velocities and activations one step after each.

    Raises:
        FloatingPointError: if MuJoCo warns that the simulation is unstable.
    """
    before, after = [], []
    for data in walk:
        before.append([a.copy() for a in (data.qpos, data.qvel, data.act, data.ctrl)])
        mujoco.mj_step(model, data)
        after.append([a.copy() for a in (data.qvel, data.act)])
        if any(data.warning[kind].number for kind in _UNSTABLE):
            raise FloatingPointError("unstable in MuJoCo too")
    return Before(*map(np.array, zip(*before, strict=True))), After(
        *map(np.array, zip(*after, strict=True))
    )


def steps(sys: System, before: Before) -> After:
    """Return what a step of `generalized` makes of states, with enough steps of its solver."""
    sys, engine = _exact(sys), plugins.get("pipeline", "generalized")

    def step(
        q: jax.Array, qd: jax.Array, activation: jax.Array, ctrl: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        state = engine.init(sys, q, qd)
        if len(activation):
            state = state.replace(activation=activation)
        state = engine.step(sys, state, ctrl)
        return state.qd, state.activation if len(activation) else activation

    after = jax.jit(jax.vmap(step), compiler_options=QUICK)(*map(jnp.asarray, before))
    return After(*map(np.asarray, after))


def _exact(sys: System) -> System:
    """Return the system with enough steps of its solver."""
    return sys.tree_replace({"opt.iterations": 40, "opt.ls_iterations": 15})


def errors(before: Before, found: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the error of each step's change of the velocities, over its largest change."""
    return np.abs(found - right).max(axis=1) / largest_change(before, right)


def largest_change(before: Before, qd: np.ndarray) -> np.ndarray:
    """Return the largest change of a velocity in each step, bounded away from zero."""
    return np.maximum(np.abs(qd - before.qd).max(axis=1), 1e-9)


class Errors(NamedTuple):
    """Relative errors of accelerations, one for each state, and the readings of sensors."""

    steps: np.ndarray
    with_contacts: np.ndarray | None
    """Errors against a step of MuJoCo that is given the contacts of `generalized`."""
    sensordata: np.ndarray | None
    """MuJoCo's readings before that step (states, nsensordata)."""


def both_errors(sys: System, model: mujoco.MjModel, before: Before, after: After) -> Errors:
    """Return the errors of steps, and where some are large those with the contacts exchanged.

    The latter are None if all steps are close, if nothing collides, or if MuJoCo integrates by
    Runge-Kutta, whose stages cannot be given contacts.
    """
    moved = steps(sys, before).qd
    error = errors(before, moved, after.qd)
    if error.max() < CLOSE or not sys.collisions or model.opt.integrator == RK4:
        return Errors(error, None, None)
    put, read = with_contacts(sys, model, before, contacts_at(sys, model, before))
    put_error = np.abs(moved - put).max(axis=1) / largest_change(before, after.qd)
    return Errors(error, put_error, read)


def depth(model: mujoco.MjModel, before: Before) -> float:
    """Return the depth of MuJoCo's deepest contact at some states [m]; zero for none."""
    data, deepest = mujoco.MjData(model), 0.0
    for q in before.q:
        _collide(model, data, q)
        deepest = max([deepest, *(-c.dist for c in data.contact)])
    return deepest


def _collide(model: mujoco.MjModel, data: mujoco.MjData, q: np.ndarray) -> None:
    """Find MuJoCo's contacts at a configuration, and no constraints, which take more memory."""
    data.qpos[:] = q
    mujoco.mj_kinematics(model, data)
    mujoco.mj_collision(model, data)


def sensor_error(
    sys: System, model: mujoco.MjModel, before: Before, right: np.ndarray | None = None
) -> float | None:
    """Return the largest error of a sensor at some states; None for a model without sensors.

    An error is relative to the largest number of the sensor at all states, if that is above 1.
    Sensors that are not supported are left out.

    Args:
        sys: the model.
        model: MuJoCo's model.
        before: the states.
        right: MuJoCo's readings (states, nsensordata); None for those with its own contacts.
    """
    if not sys.sensor_names:
        return None
    sys = _exact(sys)
    engine = plugins.get("pipeline", "generalized")

    def look(q: jax.Array, qd: jax.Array, activation: jax.Array, ctrl: jax.Array) -> jax.Array:
        state = engine.init(sys, q, qd)
        if len(activation):
            state = state.replace(activation=activation)
        return sensors.sensors(sys, state, ctrl)

    found = jax.jit(jax.vmap(look), compiler_options=QUICK)(*map(jnp.asarray, before))
    right = _sensordata(model, before) if right is None else right
    worst = 0.0
    for name, mine in sensors.slices(sys).items():
        sensor = names(model, "sensor").index(name)
        theirs = right[:, model.sensor_adr[sensor] :][:, : model.sensor_dim[sensor]]
        error = np.abs(np.asarray(found)[:, mine] - theirs).max()
        worst = max(worst, float(error / max(1.0, np.abs(theirs).max())))
    return worst


def _sensordata(model: mujoco.MjModel, before: Before) -> np.ndarray:
    """Return the readings of MuJoCo's sensors at some states (states, nsensordata)."""
    data, read = mujoco.MjData(model), []
    for at in zip(*before, strict=True):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = at
        mujoco.mj_forward(model, data)
        read.append(data.sensordata.copy())
    return np.array(read)


def contacts_at(sys: System, model: mujoco.MjModel, before: Before) -> Found:
    """Return the contacts at some states."""
    if uses_broad_phase(sys):
        dist, pos, frame, *links = _contacts_at(sys, before)
        return Found(dist, pos, frame, links[0], links[1], are_geoms=False)
    # Without a broad phase the contacts of each group are there, in the groups' order. XLA compiles
    # one group after another in a fraction of the time that it takes for all at once.
    parts, known = [], names(model, "geom")
    number = np.array([known.index(name) for name in sys.geom_names])
    for group in sys.collisions:
        *found, _, _ = _contacts_at(sys.replace(collisions=(group,)), before)
        sides = (number[list(side)] for side in (group.geom1, group.geom2))
        each = (np.tile(side, group.collider.n_contacts) for side in sides)
        parts.append((*found, *(np.broadcast_to(side, found[0].shape) for side in each)))
    dist, pos, frame, first, second = (np.concatenate(f, axis=1) for f in zip(*parts, strict=True))
    return Found(dist, pos, frame, first, second, are_geoms=True)


def _contacts_at(sys: System, before: Before) -> list[np.ndarray]:
    """Return the distances, positions, frames and links of all groups' contacts, by one program."""
    engine = plugins.get("pipeline", "generalized")

    def look(q: jax.Array, qd: jax.Array) -> tuple[jax.Array, ...]:
        found = contact.get(sys, engine.init(sys, q, qd).x)
        assert found is not None, "a model without candidate pairs has no contacts to compare"
        pairs = (jnp.broadcast_to(side, found.dist.shape) for side in found.link_idx)
        return found.dist, found.pos, found.frame, *pairs

    out = jax.jit(jax.vmap(look), compiler_options=QUICK)(*map(jnp.asarray, before[:2]))
    return [np.asarray(each) for each in out]


def with_contacts(
    sys: System, model: mujoco.MjModel, before: Before, found: Found
) -> tuple[np.ndarray, np.ndarray]:
    """Return the velocities after a step of MuJoCo with exchanged contacts, and its sensors before.

    Depths, positions and normals are exchanged. All else of a contact is that of the nearest of
    MuJoCo's between the same geoms, or the same links where the geoms are not known. Where MuJoCo
    has none between them it is that of one in another state, or where the geoms may be a metre
    apart; where there is none either there is no contact.
    """
    data, after, read = mujoco.MjData(model), [], []
    # The side of a contact that each geom is: itself, or its link.
    side_of = np.arange(model.ngeom) if found.are_geoms else _links(sys, model)[model.geom_bodyid]
    others, theirs_data = _contacts_of_pairs(model, before, side_of), mujoco.MjData(model)
    alone = copy.copy(model)
    alone.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    for i, at in enumerate(zip(*before, strict=True)):
        _collide(model, theirs_data, at[0])
        theirs = [(c, side_of[c.geom].tolist()) for c in theirs_data.contact]
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = at
        mujoco.mj_step1(alone, data)
        for dist, pos, frame, *pair in zip(*(part[i] for part in found[:5]), strict=True):
            same = [(c, side) for c, side in theirs if side in (pair, pair[::-1])]
            same = same or others.get(frozenset(pair), [])
            if not same:
                continue
            like, side = min(same, key=lambda c: np.abs(c[0].pos - pos).sum())
            if dist < like.includemargin + _gap(model, like):
                made = copy.copy(like)
                made.dist, made.pos[:] = dist, pos
                made.exclude = int(dist >= like.includemargin)  # 1 is MuJoCo's "in the gap"
                made.frame[:] = np.ravel(frame) * ([1] * 9 if side == pair else [-1] * 6 + [1] * 3)
                if model.geom_surfacevel.any():
                    made.surfacevel[:] = _surface_velocity(model, data, made)
                mujoco.mj_addContact(model, data, made)
        mujoco.mj_makeConstraint(model, data)
        mujoco.mj_transmission(model, data)  # adhesion acts at contacts
        mujoco.mj_projectConstraint(model, data)
        mujoco.mj_fwdVelocity(model, data)
        # MuJoCo's solver may stop short of its tolerance, so it continues from its first result.
        mujoco.mj_fwdActuation(model, data)
        mujoco.mj_fwdAcceleration(model, data)
        mujoco.mj_fwdConstraint(model, data)
        data.qacc_warmstart[:] = data.qacc
        mujoco.mj_fwdConstraint(model, data)
        for look in (mujoco.mj_sensorPos, mujoco.mj_sensorVel, mujoco.mj_sensorAcc):
            look(model, data)
        read.append(data.sensordata.copy())
        mujoco.mj_step2(model, data)
        after.append(data.qvel.copy())
    return np.array(after), np.array(read)


def _gap(model: mujoco.MjModel, contact: mujoco.MjContact) -> float:
    """Return the distance beyond its margin at which MuJoCo still lists a contact [m]."""
    geoms = sorted(contact.geom)
    listed = np.sort(np.stack([model.pair_geom1, model.pair_geom2], axis=1)) == geoms
    own = model.pair_gap[listed.all(axis=1)]
    return float(own[0] if own.size else model.geom_gap[geoms].sum())


def _surface_velocity(
    model: mujoco.MjModel, data: mujoco.MjData, at: mujoco.MjContact
) -> np.ndarray:
    """Return the velocity of the second surface over the first one at a contact (3,).

    Its components are along the two tangents [m/s] and about the normal [rad/s].
    """
    slide, turn = np.zeros(3), np.zeros(3)
    for sign, geom in zip((-1, 1), at.geom, strict=True):
        turned = data.geom_xmat[geom].reshape(3, 3)
        linear, angular = (turned @ v for v in model.geom_surfacevel[geom].reshape(2, 3))
        slide += sign * (linear + np.cross(angular, at.pos - data.geom_xpos[geom]))
        turn += sign * angular
    normal, *tangents = at.frame.reshape(3, 3)
    return np.array([*(t @ slide for t in tangents), normal @ turn])


def _contacts_of_pairs(
    model: mujoco.MjModel, before: Before, side_of: np.ndarray
) -> dict[frozenset[int], list[tuple[mujoco.MjContact, list[int]]]]:
    """Return a contact of MuJoCo's for each two sides between which it finds any in some state.

    MuJoCo's search for contacts of signed distances starts from few points, and may miss some.
    """
    out: dict[frozenset[int], list[tuple[mujoco.MjContact, list[int]]]] = {}
    wide = copy.copy(model)
    wide.geom_margin[:] += 1.0
    for which in (model, wide):
        data = mujoco.MjData(which)
        for q in before.q:
            _collide(which, data, q)
            for c in data.contact:
                side = side_of[c.geom].tolist()
                if frozenset(side) not in out:
                    like = copy.copy(c)
                    if which is wide:
                        like.includemargin -= wide.geom_margin[c.geom].sum()
                        like.includemargin += model.geom_margin[c.geom].sum()
                    out[frozenset(side)] = [(like, side)]
    return out


def _links(sys: System, model: mujoco.MjModel) -> np.ndarray:
    """Return the link that each of MuJoCo's bodies is part of, -1 for the world."""
    out, named = np.full(model.nbody, -1), body_names(model)
    for body in range(1, model.nbody):
        name = named[body]
        known = name in sys.link_names
        out[body] = sys.link_names.index(name) if known else out[model.body_parentid[body]]
    return out
