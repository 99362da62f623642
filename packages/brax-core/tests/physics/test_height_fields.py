"""Height fields, against MuJoCo, planes and what must happen on them."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics_lab import CORNERS, FAST_COMPILE, reach, shape
from scipy.spatial import ConvexHull

from brax import contact, plugins
from brax.base import Transform
from brax.builder import ModelBuilder
from brax.colliders import Shape
from brax.colliders.dispatch import GeomShape, collider_of_geoms
from brax.components import Quat, Vec3
from brax.errors import ModelError

SIZES = {
    "sphere": (0.15, 0, 0),
    "capsule": (0.1, 0.2, 0),
    "box": (0.1, 0.15, 0.2),
    "cylinder": (0.12, 0.1, 0),
    "ellipsoid": (0.1, 0.15, 0.2),
    "mesh": (0.2, 0.2, 0.2),
}
EXTENT = (1.5, 1.0, 0.2)
"""Half-sizes and base of the field."""
BUMPS = np.random.default_rng(0).uniform(0, 0.3, (6, 8))


def collider(name, grid):
    kind, field = (plugins.get("geometry_type", n) for n in (name, "hfield"))
    points = SIZES["mesh"][0] * CORNERS if name == "mesh" else np.zeros((0, 3))
    ground = GeomShape(field, np.array(EXTENT), np.zeros((0, 3)), grid, 0.0)
    return collider_of_geoms(GeomShape(kind, np.array(SIZES[name]), points, (0, 0), 0.0), ground)


def ground(heights, n):
    """Return one field for each of n environments."""
    ones = jnp.ones((1, n))
    return Shape(
        Vec3(0 * ones, 0 * ones, 0 * ones),
        Quat(ones, 0 * ones, 0 * ones, 0 * ones),
        Vec3(*(s * ones for s in EXTENT)),
        heights=jnp.asarray(heights).reshape(-1, 1, 1),
    )


def touches(name, heights, place):
    """Distances (points, batch), normals and places (points, batch, 3) at places (batch, 7)."""
    field = ground(heights, len(place))
    found = collider(name, heights.shape).collide(field, shape(name, place, SIZES[name]))
    rows = [[jnp.stack(v)[:, 0].T for v in (p.normal, p.pos)] for p in found]
    return jnp.stack([p.dist[0] for p in found]), *(jnp.stack(r) for r in zip(*rows, strict=True))


@functools.cache
def program(name):
    return jax.jit(functools.partial(touches, name), compiler_options=FAST_COMPILE)


def turned(rng, n):
    quat = rng.normal(size=(n, 4))
    return quat / np.linalg.norm(quat, axis=1, keepdims=True)


def mujoco_model(name):
    rows = " ".join(map(str, BUMPS[::-1].ravel()))  # from the far row to the near one
    size = f"{EXTENT[0]} {EXTENT[1]} {np.ptp(BUMPS)} {EXTENT[2]}"
    return mujoco.MjModel.from_xml_string(
        '<mujoco><option ccd_tolerance="1e-10" ccd_iterations="500"/><asset>'
        f'<hfield name="h" nrow="6" ncol="8" size="{size}" elevation="{rows}"/></asset>'
        '<worldbody><geom type="hfield" hfield="h"/><body><freejoint/>'
        f'<geom type="{name}" size="{" ".join(map(str, SIZES[name]))}" margin=".05"/></body>'
        "</worldbody></mujoco>"
    )


def mujoco_nearest(model, data, place):
    """MuJoCo's least distance, its normal there, and all of its normals."""
    data.qpos[:] = place
    mujoco.mj_fwdPosition(model, data)
    if not data.ncon:
        return 1.0, None
    nearest = int(data.contact.dist.argmin())
    return float(data.contact.dist[nearest]), data.contact.frame[nearest, :3].copy()


def lowered(model, data, place, gap):
    """Return the pose at the height at which MuJoCo's least distance is `gap`."""
    low, high = 0.0, 1.2
    for _ in range(40):
        place[2] = 0.5 * (low + high)
        above = mujoco_nearest(model, data, place)[0] > gap
        low, high = (low, place[2]) if above else (place[2], high)
    return np.array(place)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sphere", "capsule", "box"])
def test_the_nearest_point_is_mujocos(f64, name):
    """2 mm apart, and 2 mm deep: both give the distance to 1e-8 and the normal to 1e-5 or so."""
    model, rng = mujoco_model(name), np.random.default_rng(1)
    data = mujoco.MjData(model)
    heights = model.hfield_data.reshape(6, 8) * model.hfield_size[0, 2]
    spots = np.column_stack([rng.uniform((-1.2, -0.7), (1.2, 0.7), (60, 2)), np.zeros(60)])
    spots = np.concatenate([spots, turned(rng, 60)], axis=1)
    places = np.stack([lowered(model, data, p, 0.002 * (-1) ** k) for k, p in enumerate(spots)])
    dist, normal, _ = map(np.asarray, program(name)(heights, places))
    expected, its_normal = zip(*(mujoco_nearest(model, data, p) for p in places), strict=True)
    least = dist.argmin(axis=0)
    np.testing.assert_allclose(dist.min(axis=0), expected, atol=1e-6)
    np.testing.assert_allclose(normal[least, np.arange(60)], its_normal, atol=1e-3)


PLATEAU = np.pad(np.ones((10, 14)), 1)
"""A hill of one metre, five times as high as the base is thick."""


@pytest.mark.parametrize(
    "name",
    [n if n in ("sphere", "capsule") else pytest.param(n, marks=pytest.mark.slow) for n in SIZES],
)
def test_a_hill_is_solid_down_to_the_bottom(f64, name):
    """However deep a shape is in it, its contact is at the surface above."""
    up = np.array([1.0, 0, 0, 0])
    reach_down = reach(name, SIZES[name], up[None], np.array([[0, 0, -1.0]]))[0]
    depths = np.array([0.05, 0.2, 0.37, 0.4])
    places = [np.array([0.1, 0.05, 1 + reach_down - depth, *up]) for depth in depths]
    dist, normal, _ = map(np.asarray, program(name)(PLATEAU, np.stack(places)))
    least = dist.argmin(axis=0)
    np.testing.assert_allclose(dist.min(axis=0), -depths, atol=1e-9)
    np.testing.assert_allclose(normal[least, np.arange(4)], [[0, 0, 1]] * 4, atol=1e-9)


def test_below_a_hill_the_bottom_is_where_mujocos_is(f64):
    rows = " ".join(map(str, PLATEAU.ravel()))
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><asset><hfield name="h" nrow="12" ncol="16" size="1.5 1 1 .2" '
        f'elevation="{rows}"/></asset><worldbody><geom type="hfield" hfield="h"/>'
        '<body><freejoint/><geom size=".15" margin=".2"/></body></worldbody></mujoco>'
    )
    place = np.array([0.1, 0.05, -0.4, 1, 0, 0, 0])
    dist, normal, _ = program("sphere")(PLATEAU, place[None])
    right, its_normal = mujoco_nearest(model, mujoco.MjData(model), place)
    assert right == pytest.approx(0.05)
    assert dist.min() == pytest.approx(right, abs=1e-9)
    np.testing.assert_allclose(normal[dist[:, 0].argmin(), 0], its_normal, atol=1e-9)


SLOPE = np.add.outer(0.2 * np.linspace(-1, 1, 6), -0.3 * np.linspace(-1.5, 1.5, 8))
"""A field that is a plane: z = 0.2 y - 0.3 x."""
UP = np.array([0.3, -0.2, 1.0]) / np.linalg.norm([0.3, -0.2, 1.0])


def over_slope(rng, name, n, gaps):
    """Return gaps in a range between turned shapes and the slope, and the shapes' poses."""
    quat = turned(rng, n)
    gap = rng.uniform(*gaps, n)
    centre = rng.uniform((-1, -0.6), (1, 0.6), (n, 2))
    centre = np.column_stack([centre, 0.2 * centre[:, 1] - 0.3 * centre[:, 0]])
    centre += UP * (gap + depth_of(name, quat))[:, None]
    return gap, np.concatenate([centre, quat], axis=1)


def depth_of(name, quat):
    """Return the support distance of each shape along -UP, by textbook functions."""
    return reach(name, SIZES[name], quat, np.tile(-UP, (len(quat), 1)))


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_an_even_field_is_a_plane(f64, name):
    """Sides that triangles share push nothing aside, at any depth down to a third of the shape.

    A normal may lean by a hundredth around an edge; measured: 5e-4 at most, of a capsule.
    """
    rng = np.random.default_rng(2)
    gap, place = over_slope(rng, name, 40, (-0.05, 0.02))
    dist, normal, _ = program(name)(SLOPE, place)
    np.testing.assert_allclose(dist.min(axis=0), gap, atol=1e-6)
    pushing = np.asarray(dist) < 0
    np.testing.assert_allclose(np.asarray(normal)[pushing] - UP, 0, atol=1e-2)


@pytest.mark.slow
def test_a_border_is_no_edge_to_lean_around(f64):
    """Beyond the field there are no triangles; once its edge counted as a step down in y and x.

    Of 4000 capsules over the plane, 17 leant by up to .13 in the cells along the border.
    """
    _, place = over_slope(np.random.default_rng(7), "capsule", 1000, (-0.05, 0.0))
    dist, normal, pos = map(np.asarray, program("capsule")(SLOPE, place))
    border = np.abs(pos[..., :2]) > np.array([1.07, 0.6])  # the cells are .43 by .4 m
    pushing = (dist < 0) & border.any(axis=-1)
    assert pushing.sum() > 100
    np.testing.assert_allclose(normal[pushing] - UP, 0, atol=1e-2)


@functools.partial(jax.jit, static_argnums=0)
def apart(name, heights, place, distance):
    """Return which shapes are told to be farther than a distance from a field, (batch,)."""
    field, reach = ground(heights, len(place)), jnp.full((1, len(place)), distance)
    return collider(name, heights.shape).are_apart(field, shape(name, place, SIZES[name]), reach)[0]


@pytest.mark.parametrize("name", ["box", "cylinder", "ellipsoid", "mesh"])
def test_which_shapes_are_above_an_even_field_is_told(name):
    """The gap along the plane's normal is the gap; what is not a number counts as near."""
    rng = np.random.default_rng(3)
    gap, place = over_slope(rng, name, 100, (-0.05, 0.15))
    for distance in (0.0, 0.1):
        sure = np.abs(gap - distance) > 1e-5
        told = np.asarray(apart(name, SLOPE, place, distance))
        np.testing.assert_array_equal(told[sure], (gap > distance)[sure])
    assert not apart(name, SLOPE, place * np.nan, 0.0).any()


def test_no_box_that_touches_bumps_is_told_to_be_apart():
    """MuJoCo finds the gaps of boxes at random heights above bumps."""
    model, rng = mujoco_model("box"), np.random.default_rng(4)
    data = mujoco.MjData(model)
    heights = model.hfield_data.reshape(6, 8) * model.hfield_size[0, 2]
    spots = rng.uniform((-1.2, -0.7, 0.0), (1.2, 0.7, 0.8), (300, 3))
    places = np.concatenate([spots, turned(rng, 300)], axis=1)
    gap = np.array([mujoco_nearest(model, data, place)[0] for place in places])
    for distance in (0.0, 0.04):
        told = np.asarray(apart("box", heights, places, distance))
        assert not told[gap < distance - 1e-5].any()
        assert told[gap > distance].mean() > 0.8  # measured .84 and .92


@pytest.mark.slow
def test_a_field_has_sides(f64):
    """A ball's middle 10 cm beside one and 10 cm below its edge, and one as far above it."""
    place = np.array([[1.6, 0.1, 0.1, 1, 0, 0, 0], [1.6, 0.1, 0.3, 1, 0, 0, 0]])
    dist, normal, pos = map(np.asarray, program("sphere")(np.full((6, 8), 0.2), place))
    least = dist.argmin(axis=0), np.arange(2)
    np.testing.assert_allclose(dist[least], [0.1 - 0.15, 0.1 * 2**0.5 - 0.15], atol=1e-12)
    aside = [[1, 0, 0], [0.5**0.5, 0, 0.5**0.5]]
    np.testing.assert_allclose(normal[least], aside, atol=1e-12)
    np.testing.assert_allclose(pos[least][0], [1.5 - 0.025, 0.1, 0.1], atol=1e-12)


@pytest.mark.slow
def test_a_ridge_that_runs_through_a_capsule_lifts_it(f64):
    """Its line lies across, 2 cm below the ridge: a radius more than that deep."""
    ridge = np.zeros((6, 8))
    ridge[:, 3] = 0.3
    x = -1.5 + 3 * 3 / 7
    place = np.array([[x, 0.1, 0.28, 0.5**0.5, 0, 0.5**0.5, 0]])
    dist, normal, _ = map(np.asarray, program("capsule")(ridge, place))
    np.testing.assert_allclose(dist.min(), -0.12, atol=1e-12)
    np.testing.assert_allclose(normal[dist.argmin(), 0], [0, 0, 1], atol=1e-12)


@pytest.mark.slow
def test_a_box_stands_on_many_fine_cells(f64):
    """Over dozens of triangles most are left out, but not those that keep the box from tipping."""
    rng, n = np.random.default_rng(4), 200
    half_turn = rng.uniform(0, np.pi, n) / 2
    place = np.zeros((n, 7))
    place[:, :2], place[:, 2] = rng.uniform(-0.3, 0.3, (n, 2)), 0.199
    place[:, 3], place[:, 6] = np.cos(half_turn), np.sin(half_turn)
    place[0] = (0.013, 0.021, 0.199, 1, 0, 0, 0)  # along the cells
    dist, normal, pos = map(np.asarray, program("box")(np.zeros((41, 61)), place))
    touching = np.abs(dist + 0.001) < 1e-9
    assert (touching.sum(axis=0) >= 3).all()
    assert touching.all(axis=0).mean() > 0.95
    np.testing.assert_allclose(normal[touching] - [0, 0, 1], 0, atol=1e-6)
    hulls = [
        ConvexHull(pos[touching[:, i], i, :2] - place[i, :2], qhull_options="QJ") for i in range(n)
    ]
    inside = np.array([-hull.equations[:, 2].max() for hull in hulls])
    share = np.array([hull.volume for hull in hulls]) / (0.2 * 0.3)
    assert (inside > 0.01).mean() > 0.95  # from the middle of the base to the hull's edges
    assert np.median(share) > 0.85
    assert touching[:, 0].all() and inside[0] > 0.05 and share[0] > 0.7


@pytest.mark.slow
def test_the_distance_falls_as_heights_rise(f64):
    """By the share that each corner of a triangle has in the point below a sphere."""
    place = np.array([[0.1, 0.3, 0.149, 1, 0, 0, 0]])
    grid = np.zeros((2, 2))  # one cell, three by two metres; the point is over its upper half
    slope = jax.grad(lambda h: touches("sphere", h, place)[0].min())(grid)
    u, v = (0.1 + 1.5) / 3, (0.3 + 1) / 2
    np.testing.assert_allclose(slope, [[-(1 - v), 0], [-(v - u), -u]], atol=1e-6)


def model(heights, **geom):
    builder = ModelBuilder()
    builder.add_geom("world", "hfield", "ground", heights=heights, size=EXTENT)
    builder.add_body("ball", pos=(0.3, 0.2, 1.0), mass=1.0, inertia=(0.01,) * 3)
    builder.add_joint("ball", "free")
    builder.add_geom("ball", **({"size": (0.1,)} | geom))
    return builder


@pytest.mark.slow
def test_each_environment_may_have_its_own_heights(f64):
    """Level fields at two heights and two places, in one batch of a whole system."""
    sys = model(np.zeros((3, 3))).build()
    levels = jnp.array([0.0, 0.25])
    pos = jnp.array([[[0.3, 0.2, 0.5]], [[-0.7, -0.1, 0.5]]])
    turn = jnp.tile(jnp.array([1.0, 0, 0, 0]), (2, 1, 1))

    def nearest(level, pos, turn):
        moved = sys.replace(heights=sys.heights + level)
        found = contact.get(moved, Transform(pos, turn))
        assert found is not None
        return found.dist.min()

    dist, slope = jax.vmap(jax.value_and_grad(nearest))(levels, pos, turn)
    np.testing.assert_allclose(dist, [0.4, 0.15], atol=1e-9)
    np.testing.assert_allclose(slope, -1, atol=1e-6)


@pytest.mark.parametrize(
    ("heights", "told"),
    [
        ((), "needs heights in at least 2 rows of at least 2"),
        (((1, 2), (3,)), "heights need rows of equally many numbers"),
        (((1, 2), (3, np.nan)), "a height is not finite"),
    ],
)
def test_what_is_no_field_is_refused(heights, told):
    with pytest.raises(ModelError, match=told):
        model(heights).build()


def test_only_fields_have_heights():
    with pytest.raises(ModelError, match="a sphere has no heights"):
        builder = model(BUMPS)
        builder.add_geom("ball", "sphere", size=(0.1,), heights=BUMPS)
        builder.build()


@pytest.mark.slow
def test_a_rover_drives_over_bumps_and_stays_on_them():
    """Four wheels with motors and a chassis, two seconds at about half a metre a second."""
    builder = ModelBuilder()
    builder.set_option(timestep=0.004)
    y, x = np.meshgrid(np.linspace(-1, 1, 9), np.linspace(-1.5, 1.5, 13), indexing="ij")
    heights = 0.03 * np.cos(4 * x) * np.cos(5 * y)
    builder.add_geom("world", "hfield", heights=heights, size=EXTENT)
    builder.add_body("chassis", pos=(-0.8, 0, 0.15), mass=2.0, inertia=(0.01, 0.02, 0.03))
    builder.add_joint("chassis", "free")
    for i in (-1, 1):
        for j in (-1, 1):
            name = f"wheel{i}{j}"
            quat = (0.5**0.5, 0.5**0.5, 0, 0)
            builder.add_body(name, "chassis", pos=(0.15 * i, 0.12 * j, 0), mass=0.2,
                             inertia=(4e-4, 7e-4, 4e-4))  # fmt: skip
            builder.add_joint(name, "hinge", name, axis=(0, 1, 0))
            builder.add_geom(name, "sphere", size=(0.08,), quat=quat)
            builder.add_actuator(name, gainprm=(0.1,), biasprm=(0, 0, -0.1))
    sys, pipeline = builder.build(), plugins.get("pipeline", "generalized")
    state = jax.jit(pipeline.init)(sys, sys.init_q, jnp.zeros(10))
    drive = jax.jit(lambda s: pipeline.step(sys, s, jnp.full(4, 6.0), n_frames=25))
    places = []
    for _ in range(20):
        state = drive(state)
        places.append(np.concatenate([state.x.pos[0], state.x.rot[0]]))
    path = np.array(places)
    ground = 0.03 * np.cos(4 * path[:, 0]) * np.cos(5 * path[:, 1])
    assert path[-1, 0] - path[0, 0] > 0.5
    assert np.abs(path[:, 1]).max() < 0.3
    # The hubs' height above what is below the middle: a wheel's radius, give or take the bumps.
    assert (np.abs(path[2:, 2] - ground[2:] - 0.08) < 0.06).all()
    assert (path[:, 3] ** 2 + path[:, 6] ** 2 > 0.9).all()  # upright
