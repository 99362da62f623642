"""What passes between a body and the one that carries it, along the axes of a site on it."""

import jax

from brax.components import rows, stack, sum_first
from brax.kinematics import Frames
from brax.sensors.evaluation_context import EvaluationContext
from brax.sensors.interface import Asked, SensorType
from brax.spatial import Spatial
from brax.tree import join


class _Between(SensorType):
    """A sensor of what a body is held by."""

    width = 3
    objects = ("site",)
    own_link = True


class ForceSensor(_Between):
    """The force on a body and all that it carries, from what carries it [N]."""

    name = "force"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Along the site's axes."""
        site, load = _at_sites(context, asked)
        return stack(site.rot.inv_rotate(load.lin))


class TorqueSensor(_Between):
    """The torque about the site on a body and all that it carries [N m]."""

    name = "torque"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Along the site's axes."""
        site, load = _at_sites(context, asked)
        return stack(site.rot.inv_rotate(load.ang - site.pos.cross(load.lin)))


def _at_sites(context: EvaluationContext, asked: Asked) -> tuple[Frames, Spatial]:
    """The sites, and the loads of their bodies about the world's origin."""
    loads = [
        jax.tree.map(sum_first, rows(context.borne, context.subtree(site)))
        for site in asked.objects
    ]
    return context.frames(asked.objects), join(loads)


FORCE = ForceSensor()
TORQUE = TorqueSensor()
