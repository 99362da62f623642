"""What presses on a body, and how far what is in front of a site is."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.components import Vec3, rows, vec3
from brax.kinematics import Frames
from brax.sensors.here import Here
from brax.sensors.interface import Asked, Object, SensorType

FORWARD = (0.0, 0.0, 1.0)


class Touch(SensorType):
    """The normal forces of contacts of a site's body, in sum [N].

    A contact counts if its point is within the site's shape, or the shape lies ahead of it, seen
    away from the body.
    """

    name = "touch"
    objects = ("site",)
    sees_site = True

    def read(self, here: Here, asked: Asked) -> jax.Array:
        """Off the forces of contacts."""
        sites = here.frames(asked.objects)
        every = [self._at(here, i, rows(sites, [k])) for k, (_, i) in enumerate(asked.objects)]
        return jnp.stack(every)[:, None]

    def _at(self, here: Here, site: int, frame: Frames) -> jax.Array:
        sys, body = here.sys, here.sys.site_body[site]
        sides = [_bodies(sys, side) for side in (0, 1)]
        mine = [k for k, pair in enumerate(zip(*sides, strict=True)) if body in pair]
        if not mine:
            return jnp.zeros(here.qd.shape[-1], here.qd.dtype)
        away = np.array([[1.0 if sides[0][k] == body else -1.0] for k in mine])
        point, normal = rows(here.contact_lines, mine)
        local = [frame.rot.inv_rotate(v) for v in (point - frame.pos, normal * away)]
        size = vec3(rows(sys.site.size, [site]))
        seen = jnp.isfinite(sys.site_types[site].ray(size, *local))
        pressed = rows(here.contact_forces, mine).dot(normal)
        return jnp.sum(jnp.where(seen, pressed, 0.0), axis=0)


class RangeFinder(SensorType):
    """How far the nearest geom is along a site's z axis [m]; -1 if there is none.

    Geoms of the site's own body and those that cannot be seen do not count.
    """

    name = "rangefinder"
    objects = ("site",)
    sees_geoms = True

    def read(self, here: Here, asked: Asked) -> jax.Array:
        """The least of the distances of all geoms."""
        sys = here.sys
        pairs = [
            (k, g)
            for k, (_, site) in enumerate(asked.objects)
            for g, body in enumerate(sys.geom_body)
            if body != sys.site_body[site]
        ]
        sites = here.frames(asked.objects)
        kinds = {sys.geom_types[g]: None for _, g in pairs}
        far = jnp.full((1, here.qd.shape[-1]), jnp.inf, here.qd.dtype)
        tables, places = [far], []
        for kind in kinds:
            mine = [pair for pair in pairs if sys.geom_types[pair[1]] is kind]
            tables.append(_distances(here, sites, kind, mine))
            places += [k for k, _ in mine]
        table = jnp.concatenate(tables)
        nearest = [
            jnp.min(rows(table, [0, *(1 + i for i, p in enumerate(places) if p == k)]), axis=0)
            for k in range(len(asked.objects))
        ]
        found = jnp.stack(nearest)[:, None]
        return jnp.where(jnp.isfinite(found), found, -1.0)


def _bodies(sys: System, side: int) -> list[Object]:
    """The body of the first or second geom of each contact."""
    groups = [((g.geom1, g.geom2)[side], g.collider.n_contacts) for g in sys.collisions]
    return [sys.geom_body[g] for geoms, count in groups for g in geoms * count]


def _distances(
    here: Here, sites: Frames, kind: object, pairs: Sequence[tuple[int, int]]
) -> jax.Array:
    """How far geoms of one type are ahead of sites, (pairs, batch)."""
    at, geoms = [k for k, _ in pairs], [g for _, g in pairs]
    site, geom = rows(sites, at), here.frames([("geom", g) for g in geoms])
    one = jnp.ones_like(site.pos.x)
    ahead = site.rot.rotate(Vec3(*(x * one for x in FORWARD)))
    local = [geom.rot.inv_rotate(v) for v in (site.pos - geom.pos, ahead)]
    found = kind.ray(vec3(rows(here.sys.geom.size, geoms)), *local)  # type: ignore[attr-defined]
    return jnp.where(rows(here.sys.geom.rgba, geoms)[:, 3] > 0, found, jnp.inf)


TOUCH = Touch()
RANGE_FINDER = RangeFinder()
