"""The evaluation context of sensors: lazily computed quantities of a model at a state."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax.actuators.actuator_forces import ActuatorsAtState, within_joint_limits
from brax.actuators.site_transmission import attached
from brax.actuators.spatial_tendons import has_paths
from brax.actuators.tendons import TendonsAtState, tendons_at_state
from brax.base import Forces as Acted
from brax.base import System, Transform
from brax.colliders.broad_phase import ListedContacts, contact_widths, uses_broad_phase
from brax.components import Vec3, rows, vec3
from brax.contact import normals
from brax.dynamics import link_momenta
from brax.generalized.constraints.adhesion import adhering
from brax.generalized.linalg import frontal
from brax.generalized.problem import GeneralizedProblem, StepState
from brax.generalized.reaction import contact_forces, loads
from brax.generalized.smooth_dynamics.forces import (
    actuator_force,
    actuators_at,
    borne_by_actuators,
)
from brax.generalized.smooth_dynamics.smooth import SmoothDynamics, smooth
from brax.generalized.stepper import StateForces as Forces
from brax.generalized.stepper import Stepper
from brax.kinematics import Frames, link_frames
from brax.pipeline import time_derivative
from brax.sensors.interface import Object
from brax.spatial import Spatial
from brax.tree import join


class EvaluationContext:
    """A model at a state, for sensors; arrays with a trailing batch axis, vectors in world axes.

    Each quantity is computed when a sensor first reads it.
    """

    def __init__(
        self, problem: GeneralizedProblem, motion: StepState, acted: Acted | None = None
    ) -> None:
        """Take a state as the generalized pipeline has it.

        Args:
            problem: the model and what acts on it.
            motion: coordinates, velocities and activations.
            acted: forces of the last step, if the state reports them. Without them, forces are
                those that the generalized pipeline computes at the state.
        """
        self.problem, self.motion, self.acted = problem, motion, acted
        self.sys: System = problem.sys
        self.q, self.qd = motion.q, motion.qd

    @cached_property
    def links(self) -> Frames:
        """Frames of the links, in the model's order, and their velocities."""
        return link_frames(self.sys, self.q, self.qd)

    @cached_property
    def smooth(self) -> SmoothDynamics:
        """The dynamics without constraints."""
        problem = self.problem
        return smooth(self.sys, problem.links, problem.plan.blocks, self.q, self.qd)

    @cached_property
    def forces(self) -> Forces:
        """The forces and accelerations, with the constraints."""
        return Stepper(self.problem).forces(self.motion)

    @cached_property
    def drive(self) -> ActuatorsAtState:
        """The actuators."""
        return actuators_at(self.problem, self.motion, self.smooth)

    @cached_property
    def tendons(self) -> TendonsAtState:
        """The tendons."""
        return tendons_at_state(self.sys, self.q, self.qd, self.links)

    @cached_property
    def actuator_force(self) -> jax.Array:
        """The actuators' forces along the degrees of freedom [N m or N], (nv, batch)."""
        force = actuator_force(self.problem, self.smooth, self.drive)
        borne = borne_by_actuators(self.problem, self.smooth)
        force = within_joint_limits(self.sys, force, borne)
        force = force if borne is None else force + borne
        pull = self.forces.adhesion if adhering(self.sys) else None
        return force if pull is None else force + frontal.to_model(self.problem.plan.blocks, pull)

    @cached_property
    def contact_lines(self) -> tuple[Vec3, Vec3]:
        """Points of all contacts [m], and normals from the first geom to the second.

        Components have the shape (contacts, batch).
        """
        if self._near:
            touches = [near.touch for near in self._near]
            return join([t.pos for t in touches]), join([t.normal for t in touches])
        return normals(self.sys, self.links.pos, self.links.rot)

    @cached_property
    def contact_geoms(self) -> tuple[np.ndarray | jax.Array, np.ndarray | jax.Array]:
        """First and second geom of all contacts, (contacts, 1).

        With a broad phase, which selects other pairs in each environment, (contacts, batch).
        """
        if self._near:
            return join([near.geoms for near in self._near])
        groups = [(g.geom1, g.geom2, g.collider.n_contacts) for g in self.sys.collisions]
        sides = ([g for each in groups for g in each[k] * each[2]] for k in (0, 1))
        first, second = (np.array(side, dtype=int)[:, None] for side in sides)
        return first, second

    @cached_property
    def _near(self) -> list[ListedContacts]:
        """Contacts of the broad phase; empty where all contacts are listed."""
        if self._acted_contact is not None or not uses_broad_phase(self.sys):
            return []
        if self.forces.contacts is None:
            return []
        return [near.whole() for near in self.forces.contacts.near]

    @cached_property
    def _acted_contact(self) -> jax.Array | None:
        """Forces of all candidate contacts in the last step; None if the state has none.

        With a broad phase `generalized` reports the forces of its lists, which held other contacts
        at the start of the step than they hold now. So these are not used.
        """
        if self.acted is None:
            return None
        listed = sum(contact_widths(self.sys).values()) if uses_broad_phase(self.sys) else None
        return None if len(self.acted.contact) == listed else self.acted.contact

    @cached_property
    def contact_forces(self) -> Vec3:
        """Forces of all contacts on the second geom [N], (contacts, batch)."""
        if self._acted_contact is not None:
            return vec3(self._acted_contact)
        return vec3(contact_forces(self.problem, self.motion, self.forces))

    @cached_property
    def acceleration(self) -> jax.Array:
        """Joint accelerations, with the constraints [rad/s^2 or m/s^2], (nv, batch)."""
        if self.acted is not None:
            return self.acted.acceleration
        return frontal.to_model(self.problem.plan.blocks, self.forces.acceleration)

    @cached_property
    def gravity(self) -> Vec3:
        """Gravitational acceleration [m/s^2], (1, batch)."""
        return Vec3(*(self.sys.opt.gravity[k : k + 1] for k in range(3)))

    def frames(self, objects: Sequence[Object]) -> Frames:
        """Return frames of elements, and the velocities of their origins, (elements, batch)."""
        return self._frames_on(objects, self.links)

    def accelerations(self, objects: Sequence[Object]) -> Spatial:
        """Return angular accelerations of elements, and linear ones of their origins.

        Components have the shape (elements, batch).
        """
        found = self.rate(lambda q, qd: self._frames_on(objects, link_frames(self.sys, q, qd)))
        return Spatial(found.ang, found.vel)

    def rate(self, function: Callable[[jax.Array, jax.Array], object]) -> Any:
        """Return the time derivative of a function of coordinates and velocities.

        Args:
            function: takes coordinates [rad or m], shape (nq, batch), and velocities [rad/s or
                m/s], shape (nv, batch), and returns a tree of arrays.

        Returns:
            A tree of the same structure and shapes.
        """
        return time_derivative(self.sys, function, self.q, self.qd, self.acceleration)

    @cached_property
    def bodies(self) -> tuple[Vec3, Spatial, Spatial]:
        """Centres of mass of the links, and velocities and momenta at them, (n_links, batch)."""
        return link_momenta(self.sys, self.q, self.qd)

    @cached_property
    def borne(self) -> Spatial:
        """Total torque about the world's origin, and force, that joints exert on each link."""
        centre, _, _ = self.bodies
        # Newton-Euler: what the joints exert is the change of momentum less all other forces.
        change = self.rate(lambda q, qd: link_momenta(self.sys, q, qd)[2])
        force = change.lin - self.gravity * self.sys.link.inertia.mass
        # Momenta are at the centres of mass; about the world's origin the force has an arm.
        net = Spatial(change.ang + centre.cross(force), force)
        outer = self.problem.external.external
        if outer is not None:
            outer = rows(outer, self.problem.links.position)
            net = net - Spatial(outer.ang + centre.cross(outer.lin), outer.lin)
        if self.acted is not None:
            return net - Spatial(vec3(self.acted.load.ang), vec3(self.acted.load.vel))
        # Without constraints and spatial tendons nothing else acts on the links.
        if not self.problem.plan.families and not has_paths(self.sys):
            return net
        return net - loads(self.problem, self.motion, self.forces)

    def subtree(self, thing: Object) -> list[int]:
        """Return the link of an element and all that it carries; all links for the world."""
        link = self._place(thing)[0]
        out = [link] if link >= 0 else []
        for child, parent in enumerate(self.sys.link_parents):
            # Parents come before their children, so one pass finds all descendants.
            if parent in out or (link < 0 and parent < 0):
                out.append(child)
        return out

    def _frames_on(self, objects: Sequence[Object], links: Frames) -> Frames:
        """Return frames of elements, from the frames of the links."""
        places = [self._place(thing) for thing in objects]
        local = jax.tree.map(lambda *x: jnp.concatenate(x), *(frame for _, frame in places))
        return attached(self.sys, [link for link, _ in places], local, links)

    def _place(self, thing: Object) -> tuple[int, Transform]:
        """Return the link that an element is on, and the element's frame in it."""
        sys, (kind, i) = self.sys, thing
        if kind == "site":
            return sys.site_link[i], rows(sys.site.transform, [i])
        if kind == "geom":
            return sys.geom_link[i], rows(sys.geom.transform, [i])
        if kind == "fixed":
            return sys.fixed_link[i], rows(sys.fixed, [i])
        if kind == "inertia":
            return i, rows(sys.link.inertia.transform, [i])
        # A link's own frame, or the world's, is the identity in itself.
        like = self.q[:1]
        one, zero = jnp.ones_like(like), jnp.zeros_like(like)
        context = Transform(jnp.stack([zero] * 3, axis=1), jnp.stack([one, *[zero] * 3], axis=1))
        return i, context
