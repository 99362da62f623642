"""What a simulation's state is made of."""

import jax

from brax.base.pytree import Base, dataclass
from brax.base.quantities import Force, Motion, Transform


@dataclass
class Contact(Base):
    """Points where two geoms touch or nearly touch; `dist < 0` is penetration."""

    dist: jax.Array
    """Distance between the surfaces [m], shape (n_contacts,)."""
    pos: jax.Array
    """Midpoint between the surfaces, world [m], shape (n_contacts, 3)."""
    frame: jax.Array
    """Rows are the contact axes, (n_contacts, 3, 3): the normal from geom 1 to geom 2, and the two
    tangents that the first two coefficients of friction are for."""
    friction: jax.Array
    """Two sliding, one torsional [m], two rolling coefficients [m], shape (n_contacts, 5); those of
    sliding are zero where `condim` is 1, the others act where it is 4 or 6."""
    elasticity: jax.Array
    """Coefficient of restitution, shape (n_contacts,)."""
    link_idx: tuple[jax.Array, jax.Array]
    """Links of geom 1 and geom 2, -1 for the world, each (n_contacts,)."""
    force: jax.Array | None = None
    """Mean force on geom 2 over the last step, world axes [N], shape (n_contacts, 3); None where
    the state does not report it."""


@dataclass
class Forces(Base):
    """What acted during the last step: impulses and changes of velocity over its length."""

    acceleration: jax.Array
    """Mean joint accelerations, the change of `State.qd` over the step's length, shape (nv,)."""
    contact: jax.Array
    """Mean force of each contact of `brax.contact.get` on its second geom, world axes [N], shape
    (n_contacts, 3)."""
    load: Force
    """Mean torque about the world's origin and force of contacts and equality constraints on each
    link, world axes [N m, N], each (n_links, 3)."""


@dataclass
class State(Base):
    """The part of a simulation's state that every pipeline has."""

    q: jax.Array
    """Joint coordinates, as MuJoCo's `qpos`, shape (nq,)."""
    qd: jax.Array
    """Joint velocities, as MuJoCo's `qvel`, shape (nv,)."""
    x: Transform
    """Link frames in the world, shape (n_links, ...)."""
    xd: Motion
    """Velocities of the link frames' origins, world axes, shape (n_links, 3)."""
    contact: Contact | None = None
    """Contacts at `x`, where they were asked for."""
    warmstart: jax.Array | None = None
    """Accelerations of the last step, where the generalized pipeline's solver starts, (nv,)."""
    activation: jax.Array | None = None
    """Activations of the actuators that are stateful, MuJoCo's `act`, shape (na,), in the order of
    `System.stateful_actuators`; None where the model has none, zero where it is not given."""
    overflow: jax.Array | None = None
    """Where the generalized pipeline follows the nearest contacts alone: how many more there were
    within their margins at a physics step, shape (); None where it follows all."""
    mocap: Transform | None = None
    """Frames in the world of the bodies that nothing moves but who sets this, MuJoCo's `mocap_pos`
    and `mocap_quat`, shape (n_mocap, ...), in the order of `System.mocap_fixed`; None where the
    model has none, where the model has them if it is not given."""
    forces: Forces | None = None
    """What acted during the last step; zero before the first one. `spring` and `positional` report
    it in models with a sensor of forces or accelerations, and every pipeline where a state asks for
    it (`Pipeline.with_forces`); None elsewhere."""
