"""Sensors of subtrees: centre of mass and momenta of a body and all that it carries.

Source: MuJoCo's documentation, chapter XML reference, sensor/subtreecom to sensor/subtreeangmom.
"""

import jax

from brax.components import Vec3, rows, stack, sum_first
from brax.sensors.evaluation_context import EvaluationContext
from brax.sensors.interface import Asked, Object, SensorType
from brax.tree import join


class _Subtree(SensorType):
    """A sensor of a whole subtree, or of the whole model."""

    width = 3
    reads_forces = False
    objects = ("body",)
    own_link = True


class SubtreeCentre(_Subtree):
    """Centre of mass [m]."""

    name = "subtreecom"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the centres of mass."""
        return stack(join([_mean(context, thing, context.bodies[0]) for thing in asked.objects]))


class SubtreeVelocity(_Subtree):
    """Velocity of the centre of mass [m/s]."""

    name = "subtreelinvel"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the velocities of the centres of mass."""
        return stack(
            join([_mean(context, thing, context.bodies[1].lin) for thing in asked.objects])
        )


class SubtreeAngularMomentum(_Subtree):
    """Angular momentum about the centre of mass [N m s]."""

    name = "subtreeangmom"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the angular momenta about the centres of mass."""
        return stack(join([self._of(context, thing) for thing in asked.objects]))

    def _of(self, context: EvaluationContext, thing: Object) -> Vec3:
        """Return the angular momentum of one subtree."""
        centre, _, momenta = rows(context.bodies, context.subtree(thing))
        # L = Σ I ω + (c - C) × p: spin of each link, and its momentum about the common centre C.
        about = centre - _mean(context, thing, context.bodies[0])
        return jax.tree.map(sum_first, momenta.ang + about.cross(momenta.lin))


def _mean(context: EvaluationContext, thing: Object, values: Vec3) -> Vec3:
    """Return the mean over a subtree, weighted by mass, (1, batch)."""
    mine = context.subtree(thing)
    mass = rows(context.sys.link.inertia.mass, mine)
    return jax.tree.map(lambda x: sum_first(rows(x, mine) * mass) / sum_first(mass), values)


SUBTREE_CENTRE = SubtreeCentre()
SUBTREE_VELOCITY = SubtreeVelocity()
SUBTREE_ANGULAR_MOMENTUM = SubtreeAngularMomentum()
