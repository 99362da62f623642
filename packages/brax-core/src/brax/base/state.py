"""The state of a simulation, and the contacts and forces that it reports."""

from typing import Self

import jax

from brax.base.pytree import Base, dataclass, shown
from brax.base.quantities import Force, Motion, Transform


@dataclass
class Contact(Base):
    """Contact points of pairs of geoms that touch or nearly touch; `dist < 0` is penetration."""

    dist: jax.Array
    """Distance between the surfaces [m], shape (n_contacts,)."""
    pos: jax.Array
    """Midpoint between the surfaces, world [m], shape (n_contacts, 3)."""
    frame: jax.Array
    """Contact frame, (n_contacts, 3, 3). Its rows are the normal from geom 1 to geom 2, and the two
    tangents that the first two coefficients of friction belong to."""
    friction: jax.Array
    """Two sliding, one torsional [m] and two rolling [m] coefficients, shape (n_contacts, 5). The
    sliding ones are zero where `condim` is 1. Torsional friction acts where `condim` is 4 or 6, and
    rolling friction where it is 6."""
    elasticity: jax.Array
    """Coefficient of restitution, shape (n_contacts,)."""
    link_idx: tuple[jax.Array, jax.Array]
    """Links of geom 1 and geom 2, -1 for the world, each (n_contacts,)."""
    force: jax.Array | None = None
    """Mean force on geom 2 over the last step, world axes [N], shape (n_contacts, 3); None if the
    state does not report it."""


@dataclass
class Forces(Base):
    """Mean forces and accelerations of the last step: impulses over the step's length."""

    acceleration: jax.Array
    """Mean joint accelerations [rad/s^2 or m/s^2], the change of `State.qd` over the step's length,
    shape (nv,)."""
    contact: jax.Array
    """Mean force on the second geom of each contact of `brax.contact.get`, world axes [N], shape
    (n_contacts, 3)."""
    load: Force
    """Mean torque about the world's origin, and mean force, of contacts, equality constraints and
    spatial tendons on each link, world axes [N m, N], each (n_links, 3)."""


@dataclass
class State(Base):
    """The state of a simulation, which is the same type for every pipeline."""

    q: jax.Array
    """Joint coordinates [rad or m], as MuJoCo's `qpos`, shape (nq,); a rotation is a quaternion."""
    qd: jax.Array
    """Joint velocities [rad/s or m/s], as MuJoCo's `qvel`, shape (nv,)."""
    x: Transform
    """Link frames in the world, shape (n_links, ...)."""
    xd: Motion
    """Velocities of the link frames' origins, world axes [rad/s, m/s], each (n_links, 3)."""
    contact: Contact | None = None
    """Contacts at `x`; None unless they were asked for."""
    warmstart: jax.Array | None = None
    """Joint accelerations of the last step [rad/s^2 or m/s^2], with which the solver of the
    generalized pipeline starts, shape (nv,)."""
    activation: jax.Array | None = None
    """Activations of the stateful actuators, MuJoCo's `act`, shape (na,), in the order of
    `System.stateful_actuators`. None if the model has none; zero if it is not given."""
    overflow: jax.Array | None = None
    """Largest number of contacts within their margins that the lists of the generalized pipeline
    left out in a physics step of the last call of `step`, shape (). Under `rk4` the number of a
    step is the weighted mean of its four stages. None if no contacts are listed; they are with a
    broad phase, and in models with 48 possible contacts or more."""
    mocap: Transform | None = None
    """Frames of the mocap bodies in the world, MuJoCo's `mocap_pos` and `mocap_quat`, shape
    (n_mocap, ...), in the order of `System.mocap_fixed`. Users set them, and steps do not change
    them. None if the model has no mocap bodies; the model's frames if they are not given."""
    forces: Forces | None = None
    """Mean forces and accelerations of the last step, zero before the first one. `spring` and
    `positional` report them in models with a sensor of forces or accelerations. Every pipeline
    reports them if the state asks for them (`Pipeline.with_forces`). Else it is None."""

    def __repr__(self) -> str:
        """Return types and shapes on one line, of the fields that are not None."""
        leaves, _ = jax.tree_util.tree_flatten_with_path(self)
        parts = [f"{jax.tree_util.keystr(path)[1:]}: {shown(leaf)}" for path, leaf in leaves]
        return f"State({', '.join(parts)})"

    @property
    def qpos(self) -> jax.Array:
        """MuJoCo's name of `q`, shape (nq,)."""
        return self.q

    @property
    def qvel(self) -> jax.Array:
        """MuJoCo's name of `qd`, shape (nv,)."""
        return self.qd

    def replace(self, **changes: object) -> Self:
        """Return a copy with fields replaced, `q` and `qd` by MuJoCo's names as well.

        Raises:
            ModelError: if there is no field of a name.
        """
        return super().replace(**{_MUJOCO_NAMES.get(name, name): changes[name] for name in changes})


_MUJOCO_NAMES = {"qpos": "q", "qvel": "qd"}
"""MuJoCo's names of fields of a state."""
