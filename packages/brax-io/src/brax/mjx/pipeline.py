"""The pipeline `mjx`: MuJoCo's own engine in JAX.

A system from a file is stepped with MuJoCo's own model of that file. Another one is converted to
MuJoCo's model once, when a program is compiled.
"""

from typing import Any

import jax
import jax.numpy as jnp

from brax import contracts, kinematics, math
from brax.base import Force, System, Transform
from brax.base import State as AnyState
from brax.io import _arguments
from brax.mjx.base import Contact, State
from brax.mjx.model import geom_links, library, link_bodies, mjx_model, problems

REFUSED = (contracts.TIME_OF_IMPACT, contracts.ADHESION, contracts.ADHESION_LIMITS)
"""Features that `problems` reports by element."""


class Mjx:
    """MJX's step as a pipeline."""

    name = "mjx"

    def report(self, sys: System) -> list[tuple[str, str, str]]:
        """Return rows of what is not computed as in the model: feature, status, reason."""
        _arguments.system(sys)
        rows = [
            (feature, "approximated", contracts.APPROXIMATE_IN_MUJOCOS[feature])
            if feature in contracts.APPROXIMATE_IN_MUJOCOS
            else (feature, "supported", "")
            for feature, has in contracts.FEATURES.items()
            if has(sys) and feature not in REFUSED
        ]
        return rows + [("the model", "refused", problem) for problem in problems(sys)]

    def init(
        self, sys: System, q: jax.Array, qd: jax.Array, *, ctrl: jax.Array | None = None
    ) -> State:
        """Return the state of a model at coordinates `q` (nq,) and velocities `qd` (nv,).

        MJX's data in it, such as `qfrc_actuator`, are those under the controls `ctrl` (nu,), by
        default zeros.

        Raises:
            BraxError: if mujoco-mjx is not installed.
            ModelError: listing everything that MJX or the conversion does not support.
            ShapeError: if an array does not fit the model.
        """
        _arguments.system(sys)
        contracts.check_system("mjx.init", sys)
        model = mjx_model(sys)
        q = contracts.check_vector("mjx.init", "q", q, sys.q_size(), "coordinates")
        qd = contracts.check_vector("mjx.init", "qd", qd, sys.qd_size(), "degrees of freedom")
        data = library().make_data(model)
        data = data.replace(qpos=_unit(sys, q), qvel=qd)
        if ctrl is not None:
            ctrl = contracts.check_vector("mjx.init", "ctrl", ctrl, sys.act_size(), "actuators")
            data = data.replace(ctrl=ctrl)
        return _state(sys, model, library().forward(model, data))

    def step(
        self,
        sys: System,
        state: AnyState,
        act: jax.Array | None,
        n_frames: int = 1,
        external: Force | None = None,
    ) -> State:
        """Advance a state by `n_frames` physics steps under one control (nu,).

        Arguments and errors are those of the other pipelines, and those of `init`.
        """
        if act is None and isinstance(sys, System):
            act = jnp.zeros(sys.act_size())
        act = contracts.check_step("mjx.step", sys, state, act, n_frames, external)
        model = mjx_model(sys)
        start = _data(model, state).replace(ctrl=act)
        applied = start.xfrc_applied

        def frame(_: object, data: Any) -> Any:
            if external is not None:
                wrench, bodies = _wrench(sys, model, data, external), link_bodies(sys)
                data = data.replace(xfrc_applied=applied.at[bodies].add(wrench))
            return library().step(model, data)

        end = jax.lax.fori_loop(0, n_frames, frame, start)
        return _state(sys, model, end.replace(xfrc_applied=applied))


MJX = Mjx()

init, step = MJX.init, MJX.step


def _data(model: object, state: AnyState) -> Any:
    """Return MJX's data of a state; new data if it is a state of another pipeline."""
    data = state.data if isinstance(state, State) else library().make_data(model)
    # The fields of the state count: users replace those.
    data = data.replace(qpos=state.q, qvel=state.qd)
    if state.activation is not None:
        data = data.replace(act=state.activation)
    if state.mocap is not None:
        data = data.replace(mocap_pos=state.mocap.pos, mocap_quat=state.mocap.rot)
    if state.warmstart is not None:
        data = data.replace(qacc_warmstart=state.warmstart)
    return data


def _wrench(sys: System, model: Any, data: Any, external: Force) -> jax.Array:
    """Return forces and torques of links as MuJoCo takes them, shape (n_links, 6).

    MuJoCo applies a force at the centre of mass of a body, which is not the link's where the file
    has further bodies in the link.
    """
    x, _ = kinematics.forward(sys, data.qpos, data.qvel)
    arm = sys.link.inertia.transform.pos - model.body_ipos[link_bodies(sys)]
    torque = external.ang + jnp.cross(jax.vmap(math.rotate)(arm, x.rot), external.vel)
    return jnp.concatenate([external.vel, torque], axis=1)


def _state(sys: System, model: object, data: Any) -> State:
    """Return the state with MJX's data; the links' frames are those of its coordinates."""
    q, qd = data.qpos, data.qvel
    return State(
        q,
        qd,
        *kinematics.forward(sys, q, qd),
        contact=_contact(geom_links(sys, model), data._impl.contact),
        activation=data.act if sys.stateful_actuators() else None,
        mocap=Transform(data.mocap_pos, data.mocap_quat) if sys.mocap_fixed else None,
        data=data,
    )


def _contact(links: jax.Array, found: Any) -> Contact:
    """Return MJX's contacts in the form of every pipeline's, by the link of each geom."""
    return Contact(
        dist=found.dist,
        pos=found.pos,
        frame=found.frame,
        friction=found.friction,
        elasticity=jnp.zeros_like(found.dist),
        link_idx=(links[found.geom[:, 0]], links[found.geom[:, 1]]),
        geom=found.geom,
        includemargin=found.includemargin,
    )


def _unit(sys: System, q: jax.Array) -> jax.Array:
    """Return coordinates whose quaternions have unit length."""
    for kind, start in zip(sys.joint_types, sys.joint_q_start(), strict=True):
        if kind.q_width > kind.qd_width:
            quaternion = slice(start + kind.q_width - 4, start + kind.q_width)
            q = q.at[quaternion].divide(jnp.linalg.norm(q[quaternion]))
    return q
