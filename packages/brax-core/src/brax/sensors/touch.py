"""Touch sensors and rangefinders: normal forces at a site, and the distance ahead of one.

Source: MuJoCo's documentation, chapter XML reference, sensor/touch and sensor/rangefinder.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from brax.components import Vec3, rows, vec3
from brax.kinematics import Frames
from brax.sensors.evaluation_context import EvaluationContext
from brax.sensors.interface import Asked, SensorType

RAY_AXIS = (0.0, 0.0, 1.0)
"""Direction of a rangefinder's ray, in the site's axes."""


class TouchSensor(SensorType):
    """Sum of the normal forces of contacts of a site's body [N].

    A contact counts if its point is within the site's shape, or if the ray from it along the
    outward normal meets the shape.
    """

    name = "touch"
    objects = ("site",)
    sees_site = True

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the sums of the normal forces."""
        sites = context.frames(asked.objects)
        every = [self._at(context, i, rows(sites, [k])) for k, (_, i) in enumerate(asked.objects)]
        return jnp.stack(every)[:, None]

    def _at(self, context: EvaluationContext, site: int, frame: Frames) -> jax.Array:
        """Return the sum of the normal forces at one site."""
        sys, body = context.sys, context.sys.site_body[site]
        on = np.array([b == body for b in sys.geom_body], dtype=bool)
        first, second = (_among(on, geoms) for geoms in context.contact_geoms)
        touched = first | second
        mine = list(range(len(touched)))
        # Without a broad phase the geoms of a contact are static, and only contacts of the body are
        # read.
        if isinstance(touched, np.ndarray):
            mine = np.flatnonzero(touched[:, 0]).tolist()
        if not mine:
            return jnp.zeros(context.qd.shape[-1], context.qd.dtype)
        point, normal = rows(context.contact_lines, mine)
        first, touched = (jnp.asarray(x)[np.array(mine)] for x in (first, touched))
        # Normals point from the first geom to the second: away from the body if it has the first.
        away = normal * jnp.where(first, 1.0, -1.0)
        local = [frame.rot.inv_rotate(v) for v in (point - frame.pos, away)]
        size = vec3(rows(sys.site.size, [site]))
        # From a point inside a shape every ray meets its surface, so one test covers both cases.
        seen = jnp.isfinite(sys.site_types[site].ray(size, *local))
        # The force on the second geom along the normal is positive when the contact presses, and
        # negative where adhesion holds it.
        pressed = jnp.maximum(rows(context.contact_forces, mine).dot(normal), 0.0)
        return jnp.sum(jnp.where(seen & touched, pressed, 0.0), axis=0)


class RangeFinder(SensorType):
    """Distance to the nearest geom along a site's z axis [m]; -1 if there is none.

    Geoms of the site's own body, and invisible geoms, do not count.
    """

    name = "rangefinder"
    reads_forces = False
    objects = ("site",)
    sees_geoms = True

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the smallest distances."""
        sys = context.sys
        pairs = [
            (k, g)
            for k, (_, site) in enumerate(asked.objects)
            for g, body in enumerate(sys.geom_body)
            if body != sys.site_body[site]
        ]
        sites = context.frames(asked.objects)
        kinds = {sys.geom_types[g]: None for _, g in pairs}
        far = jnp.full((1, context.qd.shape[-1]), jnp.inf, context.qd.dtype)
        # The first row, at infinity, serves sensors without any geom, and keeps the minimum
        # defined.
        tables, places = [far], []
        for kind in kinds:
            mine = [pair for pair in pairs if sys.geom_types[pair[1]] is kind]
            tables.append(_distances(context, sites, kind, mine))
            places += [k for k, _ in mine]
        table = jnp.concatenate(tables)
        nearest = [
            jnp.min(rows(table, [0, *(1 + i for i, p in enumerate(places) if p == k)]), axis=0)
            for k in range(len(asked.objects))
        ]
        found = jnp.stack(nearest)[:, None]
        return jnp.where(jnp.isfinite(found), found, -1.0)


def _among(marked: np.ndarray, index: np.ndarray | jax.Array) -> np.ndarray | jax.Array:
    """Return whether the elements at given places, static or traced, are marked."""
    known = isinstance(index, np.ndarray)
    return marked[index] if known else jnp.asarray(marked)[index]


def _distances(
    context: EvaluationContext, sites: Frames, kind: object, pairs: Sequence[tuple[int, int]]
) -> jax.Array:
    """Return the distances of geoms of one type ahead of sites, (pairs, batch)."""
    at, geoms = [k for k, _ in pairs], [g for _, g in pairs]
    site, geom = rows(sites, at), context.frames([("geom", g) for g in geoms])
    one = jnp.ones_like(site.pos.x)
    ahead = site.rot.rotate(Vec3(*(x * one for x in RAY_AXIS)))
    local = [geom.rot.inv_rotate(v) for v in (site.pos - geom.pos, ahead)]
    found = kind.ray(vec3(rows(context.sys.geom.size, geoms)), *local)  # type: ignore[attr-defined]
    # As in MuJoCo, a ray passes through geoms whose colour has no opacity.
    return jnp.where(rows(context.sys.geom.rgba, geoms)[:, 3] > 0, found, jnp.inf)


TOUCH = TouchSensor()
RANGE_FINDER = RangeFinder()
