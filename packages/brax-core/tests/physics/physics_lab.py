"""Small models and their motion, for tests of physics.

A model's structure and the precision decide what is compiled, so tests that ask for the same
structure share one program: numbers (time step, gravity, masses) are its arguments.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax import plugins
from brax.base import State, System
from brax.builder import ModelBuilder
from brax.colliders import GeometryType, Shape
from brax.components import Quat, Vec3, normalize_quat, sqrt
from brax.spring.pipeline import SPRING

G = 9.81
BOX = (0.13 / 3, 0.1 / 3, 0.05 / 3)
"""Principal moments of a box with sides .1, .2 and .3 of T08, scaled as the table has them."""

SAMPLES = 100
"""States that one call of the compiled program gives back."""


class Ring(GeometryType):
    """A torus that says nothing of itself but its signed distance."""

    name = "ring"
    size_names = ("ring radius", "tube radius")

    def signed_distance(self, shape, point):
        aside = sqrt(point.x * point.x + point.y * point.y) - shape.size.x
        return sqrt(aside * aside + point.z * point.z) - shape.size.y


RING = Ring()

FAST_COMPILE = {
    "xla_backend_optimization_level": "0",
    "xla_llvm_disable_expensive_passes": True,
}
"""Tests run each program a few times only."""


PIPELINES = [
    name for name, spec in plugins.specs("pipeline").items() if spec.distribution == "brax-core"
]
"""Names of the pipelines of this distribution."""


SIZES = {
    "plane": (0, 0, 0),
    "sphere": (0.2, 0, 0),
    "capsule": (0.15, 0.3, 0),
    "box": (0.2, 0.3, 0.25),
    "cylinder": (0.2, 0.3, 0),
    "ellipsoid": (0.2, 0.3, 0.25),
    "mesh": (0.3, 0.3, 0.3),
}
"""One of each type of geometry, of about the same size [m]."""

CORNERS = np.random.default_rng(5).normal(size=(12, 3))
CORNERS /= np.linalg.norm(CORNERS, axis=1, keepdims=True)
"""Corners of a mesh of size one, all on a sphere, so that none is within their hull."""


class Motion(NamedTuple):
    """A recorded motion: NumPy arrays with time first, without the initial state."""

    q: np.ndarray
    qd: np.ndarray
    pos: np.ndarray
    rot: np.ndarray
    vel: np.ndarray
    ang: np.ndarray


PIPELINE = SPRING
"""The pipeline that `record` runs; tests of another put theirs here."""


@functools.partial(jax.jit, static_argnames=("n_frames", "pipeline"))
def _record(sys: System, state: State, act: jax.Array, stride: int, n_frames: int, pipeline):
    def step(_, state):
        return pipeline.step(sys, state, act, n_frames)

    def sample(state, _):
        state = jax.lax.fori_loop(0, stride, step, state)
        return state, state

    return jax.lax.scan(sample, state, None, length=SAMPLES)


_init = jax.jit(lambda sys, q, qd, pipeline: pipeline.init(sys, q, qd), static_argnames="pipeline")


def record(sys: System, q=None, qd=None, act=(), *, steps: int, every: int = 1, n_frames: int = 1):
    """Run a model for `steps * n_frames` physics steps, keeping each `every`-th call of `step`."""
    q = sys.init_q if q is None else jnp.asarray(q, float)
    qd = jnp.zeros(sys.qd_size()) if qd is None else jnp.asarray(qd, float)
    state, act = _init(sys, q, qd, PIPELINE), jnp.asarray(act, float)
    parts = []
    for _ in range(-(-steps // (SAMPLES * every))):
        state, kept = _record(sys, state, act, every, n_frames, PIPELINE)
        x, xd = kept.x, kept.xd
        parts.append(
            jax.tree.map(np.asarray, Motion(kept.q, kept.qd, x.pos, x.rot, xd.vel, xd.ang))
        )
    joined = Motion(*(np.concatenate(p) for p in zip(*parts, strict=True)))
    # Comparisons of arrays take one NaN for another.
    assert all(np.isfinite(x).all() for x in joined), "the motion is not finite"
    return Motion(*(x[: steps // every] for x in joined))


def settings(sys: System, dt: float | None = None, gravity=None, **more) -> System:
    """Return the model with other numbers."""
    changes = dict(more)
    if dt is not None:
        changes["opt.timestep"] = dt
    if gravity is not None:
        changes["opt.gravity"] = gravity
    return sys.tree_replace({k: jnp.asarray(np.asarray(v, float)) for k, v in changes.items()})


def free_body(mass=1.0, inertia=BOX) -> System:
    """Return a body that nothing holds and that touches nothing."""
    model = ModelBuilder()
    model.add_body("body", mass=mass, inertia=inertia)
    model.add_joint("body", "free")
    return model.build()


def rail(mass=1.0, axis=(1, 0, 0), actuators=(), **joint) -> System:
    """Return a mass on one slide, with actuators described by keywords."""
    model = ModelBuilder()
    model.add_body("cart", mass=mass, inertia=(0.1, 0.1, 0.1))
    model.add_joint("cart", "slide", name="slide", axis=axis, **joint)
    for i, actuator in enumerate(actuators):
        model.add_actuator("slide", name=f"drive{i}", **actuator)
    model.set_option(gravity=(0, 0, 0))
    return model.build()


def pendulum(mass=1.0, moment=0.4 * 0.05**2, length=1.0, joint=None) -> System:
    """Return a body whose centre hangs `length` below a hinge along y; by default a small ball."""
    model = ModelBuilder()
    model.add_body("bob", mass=mass, inertia=(moment,) * 3, ipos=(0, 0, -length))
    model.add_joint("bob", "hinge", axis=(0, 1, 0), **(joint or {}))
    return model.build()


def chain(links=2, moment=1e-3, actuated=False, free=False, **joint) -> System:
    """Links of mass and length one, each hinged at the end of the last; the first may be free.

    The hinges turn about y and x in turn.
    """
    model = ModelBuilder()
    for i in range(links):
        model.add_body(
            f"link{i}",
            f"link{i - 1}" if i else "world",
            pos=(0, 0, -1.0 if i else 0),
            mass=1.0,
            inertia=(moment, 1.1 * moment, 0.9 * moment),
            ipos=(0.0, 0.0, -1.0 if not free else -0.5),
        )
        if free and not i:
            model.add_joint("link0", "free")
            continue
        name = model.add_joint(
            f"link{i}", "hinge", axis=(0, 1, 0) if not free or i % 2 else (1, 0, 0), **joint
        )
        if actuated:
            model.add_actuator(name)
    return model.build()


def ball_on_plane(mass=0.1, radius=0.05, friction=1.0, elasticity=0.0) -> System:
    """Return a solid ball at rest on the plane z = 0; gravity's direction makes a slope of it."""
    model = ModelBuilder()
    model.add_body("ball", pos=(0, 0, radius), mass=mass, inertia=(0.4 * mass * radius**2,) * 3)
    model.add_joint("ball", "free")
    surface: dict[str, Any] = dict(friction=(friction, 0, 0), elasticity=elasticity)
    model.add_geom(type="plane", name="floor", size=(0, 0, 1), **surface)
    model.add_geom("ball", "sphere", name="skin", size=(radius,), **surface)
    return model.build()


def box_on_plane(friction):
    """Return a box of half-sizes .1, .1, .05 that stands on the plane z = 0."""
    model = ModelBuilder()
    model.add_body("box", pos=(0, 0, 0.05), mass=1.0, inertia=(0.0125 / 3, 0.0125 / 3, 0.02 / 3))
    model.add_joint("box", "free")
    surface: dict[str, Any] = dict(friction=(friction, 0, 0))
    model.add_geom(type="plane", name="floor", size=(0, 0, 1), **surface)
    model.add_geom("box", "box", name="skin", size=(0.1, 0.1, 0.05), **surface)
    return model.build()


def slope(degrees: float) -> tuple[float, float, float]:
    """Gravity in the axes of a plane that falls towards x."""
    a = np.radians(degrees)
    return (G * np.sin(a), 0.0, -G * np.cos(a))


def shape(name, place, size):
    """Shapes (1, batch) at places and quaternions (batch, 7), of size (3,) or (batch, 3)."""
    size = jnp.broadcast_to(jnp.asarray(size, place.dtype), (len(place), 3))
    turn = normalize_quat(Quat(*place.T[3:, None]))
    plain = Shape(Vec3(*place.T[:3, None]), turn, Vec3(*size.T[:, None]))
    points = Vec3(*(jnp.asarray(c)[:, None, None] * plain.size.x for c in CORNERS.T))
    return plain._replace(points=points) if name == "mesh" else plain


def nearest(points):
    """Return the least distance (batch,), and the normal and position there (batch, 3)."""
    dist = jnp.stack([p.dist[0] for p in points])
    least = jnp.argmin(dist, axis=0)[None, :, None]

    def rows(vectors):
        every = jnp.stack([jnp.stack([c[0] for c in v], axis=-1) for v in vectors])
        return jnp.take_along_axis(every, least, axis=0)[0]

    return jnp.min(dist, axis=0), rows([p.normal for p in points]), rows([p.pos for p in points])


def reach(name, size, turn, along):
    """Return support distances along unit vectors (batch, 3) of shapes turned by quaternions.

    The support functions are the textbook's, in NumPy; `turn` is (batch, 4).
    """
    x, y, z = size
    w, u = turn[:, :1], turn[:, 1:]
    n = along - 2 * w * np.cross(u, along) + 2 * np.cross(u, np.cross(u, along))
    across = np.hypot(n[:, 0], n[:, 1])
    return {
        "sphere": lambda: x * np.ones(len(n)),
        "capsule": lambda: x + y * np.abs(n[:, 2]),
        "box": lambda: np.abs(n) @ [x, y, z],
        "cylinder": lambda: x * across + y * np.abs(n[:, 2]),
        "ellipsoid": lambda: np.linalg.norm(n * [x, y, z], axis=1),
        "mesh": lambda: x * (n @ CORNERS.T).max(axis=1),
    }[name]()
