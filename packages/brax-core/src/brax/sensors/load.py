"""Force and torque sensors: the load between a body and the one that carries it.

Source: MuJoCo's documentation, chapter XML reference, sensor/force and sensor/torque.
"""

import jax

from brax.components import rows, stack, sum_first
from brax.kinematics import Frames
from brax.sensors.evaluation_context import EvaluationContext
from brax.sensors.interface import Asked, SensorType
from brax.spatial import Spatial
from brax.tree import join


class _Between(SensorType):
    """A sensor of the load on a body."""

    width = 3
    objects = ("site",)
    own_link = True


class ForceSensor(_Between):
    """Force on a body and all that it carries, from the body below, along the site's axes [N]."""

    name = "force"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return forces along the sites' axes."""
        site, load = _at_sites(context, asked)
        return stack(site.rot.inv_rotate(load.lin))


class TorqueSensor(_Between):
    """Torque about the site on a body and all that it carries, along the site's axes [N m]."""

    name = "torque"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return torques along the sites' axes."""
        site, load = _at_sites(context, asked)
        return stack(site.rot.inv_rotate(load.ang - site.pos.cross(load.lin)))


def _at_sites(context: EvaluationContext, asked: Asked) -> tuple[Frames, Spatial]:
    """Return the sites, and the loads of their bodies about the world's origin."""
    # Forces between the bodies of a subtree cancel in the sum, which leaves the joint below the
    # subtree.
    loads = [
        jax.tree.map(sum_first, rows(context.borne, context.subtree(site)))
        for site in asked.objects
    ]
    return context.frames(asked.objects), join(loads)


FORCE = ForceSensor()
TORQUE = TorqueSensor()
