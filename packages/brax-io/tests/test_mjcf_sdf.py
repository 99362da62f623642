"""Geoms that are known by their signed distance, beside MuJoCo's own shapes and steps."""

import jax
import jax.numpy as jnp
import mujoco
import mujoco_steps
import numpy as np
import pytest

from brax import plugins
from brax.colliders import Shape
from brax.components import Quat, Vec3
from brax.errors import ModelError
from brax.io import json, mjcf
from brax.io.mjcf.elements import distances

CUBE = "-.1 -.2 -.3 .1 -.2 -.3 -.1 .2 -.3 .1 .2 -.3 -.1 -.2 .3 .1 -.2 .3 -.1 .2 .3 .1 .2 .3"


@pytest.fixture
def f64():
    """Compute in double precision."""
    with jax.enable_x64(True):
        yield


def plugin_model(name, config="", below=""):
    return f"""<mujoco>
  <extension><plugin plugin="mujoco.sdf.{name}"><instance name="it">{config}</instance></plugin>
  </extension>
  <asset><mesh name="it"><plugin instance="it"/></mesh></asset>
  <worldbody>{below}
    <body><freejoint/><geom name="it" type="sdf" mesh="it"><plugin instance="it"/></geom></body>
  </worldbody></mujoco>"""


def key(name, value):
    return f'<config key="{name}" value="{value}"/>'


def distance(system, geom, points):
    """Return the signed distances of a geom of a system at points of its frame (n, 3)."""
    column = lambda *v: [jnp.full((1, 1), x, float) for x in v]  # noqa: E731
    size = np.asarray(system.geom.size[geom])
    heights = system.heights.reshape(-1, 1, 1) if len(system.heights) else None
    shape = Shape(
        Vec3(*column(0, 0, 0)), Quat(*column(1, 0, 0, 0)), Vec3(*column(*size)), heights=heights
    )
    at = Vec3(*(jnp.asarray(c, float)[:, None, None] for c in points.T))
    return np.asarray(system.geom_types[geom].signed_distance(shape, at))[:, 0, 0]


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("torus", key("radius1", 0.3) + key("radius2", 0.1)),
        ("bowl", key("height", 0.3) + key("radius", 0.8)),
        ("gear", key("alpha", 15) + key("teeth", 20)),
        ("nut", ""),
        ("bolt", key("radius", 0.25)),
    ],
)
def test_the_surface_is_that_of_mujoco(f64, name, config):
    """MuJoCo finds its mesh by marching cubes: most vertices are on the surface exactly.

    At edges they are off by a part of a cube. The geom's frame is turned by a gear's `alpha`.
    """
    model = mujoco.MjModel.from_xml_string(plugin_model(name, config))
    system = mjcf.load_model(model)
    place = np.asarray(system.geom.transform.rot)[0]
    points = np.zeros_like(model.mesh_vert, float)
    for point, vertex in zip(points, model.mesh_vert[::50].astype(float), strict=False):
        mujoco.mju_rotVecQuat(point, vertex, [place[0], *-place[1:]])
    off = np.abs(distance(system, 0, points[: len(model.mesh_vert[::50])]))
    assert np.median(off) < 2e-5
    assert off.max() < 0.01


def cube():
    text = f"""<mujoco><asset><mesh name="m" vertex="{CUBE}"/></asset><worldbody>
    <geom type="plane" size="1 1 1"/>
    <body><freejoint/><geom type="sdf" mesh="m"/></body></worldbody></mujoco>"""
    return mujoco.MjModel.from_xml_string(text)


def box_distance(half, points):
    """Return the signed distances of points from a box, by its closed form."""
    beyond = np.abs(points) - half
    return np.linalg.norm(np.maximum(beyond, 0), axis=1) + np.minimum(beyond.max(axis=1), 0)


def test_distances_from_the_mesh_of_a_box():
    model, half = cube(), np.abs(cube().mesh_vert).max(axis=0)
    np.testing.assert_allclose(sorted(half), (0.1, 0.2, 0.3), atol=1e-6)
    points = np.random.default_rng(0).uniform(-0.4, 0.4, (400, 3))
    triangles = model.mesh_vert[model.mesh_face].astype(float)
    found = distances.signed_distances(triangles, points, 0.01)
    np.testing.assert_allclose(found, box_distance(half, points), atol=1e-7)


@pytest.mark.slow
@pytest.mark.long
def test_the_grid_of_a_box_rounds_its_edges_off(f64):
    model, half = cube(), np.abs(cube().mesh_vert).max(axis=0)
    system = mjcf.load_model(model)
    points = np.random.default_rng(0).uniform(-1, 1, (400, 3)) * np.asarray(system.geom.size[1])
    off = np.abs(distance(system, 1, points) - box_distance(half, points))
    assert np.median(off) < 1e-4
    # Half of a cell, 2 * 0.3 m / 43 * 0.5, where the distance has an edge.
    assert off.max() < 0.007


@pytest.mark.slow
def test_a_grid_comes_back_from_json():
    """A grid that is no cube, in a file that was edited by hand, is an error."""
    system = mjcf.load_model(cube())
    back = json.loads(json.dumps(system))
    np.testing.assert_array_equal(back.heights, system.heights)
    assert back.collisions == system.collisions
    broken = system.replace(geom_grid=((0, 0), (48, 48**2)))
    with pytest.raises(ModelError, match=r"a sdf needs n \* n rows of n"):
        json.loads(json.dumps(broken))


def ball_beside(name, config, place):
    ball = f'<body name="ball" pos="{place}"><freejoint/><geom size=".1"/></body>'
    return plugin_model(name, config, ball)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("torus", "0.35 0 0.24"),
        pytest.param("bowl", "0.3 0 -0.83", marks=pytest.mark.long),
        pytest.param("gear", "1.2 0 .195", marks=pytest.mark.long),
    ],
)
def test_steps_with_these_contacts_are_those_of_mujoco(name, place):
    """A ball overlaps the shape by some millimetres."""
    model = mujoco_steps.exact(mujoco.MjModel.from_xml_string(ball_beside(name, "", place)))
    before, right = mujoco_steps.scattered(model, 3, (0.001, 0.1))
    with jax.enable_x64(True):
        system = mjcf.load_model(model)
        found = mujoco_steps.contacts_at(system, model, before)
        moved = mujoco_steps.steps(system, before)
        put, _ = mujoco_steps.with_contacts(system, model, before, found)
    assert (found.dist.min(axis=1) < 0).all()
    assert mujoco_steps.errors(before, moved.qd, put).max() < 1e-6
    assert np.abs(right.qd).max() > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend",
    ["generalized", *(pytest.param(b, marks=pytest.mark.long) for b in ("spring", "positional"))],
)
def test_a_ball_comes_to_rest_on_a_ring(f64, backend):
    """A ball of radius 0.3 m in a ring of radii 0.35 and 0.15 m rests 0.283 m above its centre.

    The centre of the ball is then 0.45 m from the circle of the ring. Derivatives are finite.
    """
    text = """<mujoco><option timestep="0.005"/>
    <extension><plugin plugin="mujoco.sdf.torus"><instance name="it"/></plugin></extension>
    <asset><mesh name="it"><plugin instance="it"/></mesh></asset>
    <worldbody><geom type="sdf" mesh="it"><plugin instance="it"/></geom>
    <body pos="0.02 0 0.3"><freejoint/><geom size=".3"/></body></worldbody></mujoco>"""
    system = mjcf.loads(text)
    engine = plugins.get("pipeline", backend)

    def height(z):
        state = engine.init(system, system.init_q.at[2].set(z), jnp.zeros(6))
        return engine.step(system, state, jnp.zeros(0), 200).q[2]

    found, slope = jax.jit(jax.value_and_grad(height))(0.3)
    assert float(found) == pytest.approx((0.45**2 - 0.35**2) ** 0.5, abs=5e-3)
    assert np.isfinite(slope)


def test_the_frame_of_a_turned_gear_is_not_read():
    sensor = '<sensor><framepos name="s" objtype="geom" objname="it"/></sensor>'
    text = plugin_model("gear", key("alpha", 1)).replace("</mujoco>", f"{sensor}</mujoco>")
    found = mjcf.report(mujoco.MjModel.from_xml_string(text))
    reasons = [f.reason for f in found if f.element == "sensor"]
    assert len(reasons) == 1 and "its geom is a gear whose alpha is not 0" in reasons[0]


def test_the_inner_diameter_of_a_gear_is_refused():
    with pytest.raises(ModelError, match="innerdiameter of a gear is not supported"):
        mjcf.loads(ball_beside("gear", key("innerdiameter", 1), "0 0 5"))
