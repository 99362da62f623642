"""Hulls of meshes with more corners than a collider takes."""

import mujoco
import numpy as np

from brax import plugins
from brax.io import mjcf
from brax.io.mjcf.elements import hulls


def _ball(n):
    return hulls._directions()[:: 1000 // n]


def test_a_ball_keeps_256_of_its_1000_corners_and_its_shape():
    """Corners 7 degrees apart leave 1 - cos(7 degrees) = 7 mm of a metre between them."""
    every = _ball(1000)
    kept, inside = hulls.thin_hull(every)
    assert (len(kept), len(np.unique(kept, axis=0))) == (256, 256)
    assert (every[:, None] == kept).all(axis=-1).any(axis=0).all()
    assert inside < 0.01
    some = np.random.default_rng(0).normal(size=(500, 3))
    some /= np.linalg.norm(some, axis=1, keepdims=True)
    lacking = (some @ every.T).max(axis=1) - (some @ kept.T).max(axis=1)
    assert lacking.max() < 1.5 * inside


def test_a_plate_with_rounded_rim_keeps_its_corners():
    """Eight corners of a box that hold 1000 others between them are all that is kept."""
    box = np.array(np.meshgrid([-1, 1], [-2, 2], [-3, 3])).reshape(3, 8).T
    shares = np.random.default_rng(1).dirichlet(np.ones(8), size=1000)
    kept, inside = hulls.thin_hull(np.concatenate([shares @ box, box]))
    np.testing.assert_array_equal(np.unique(kept, axis=0), np.unique(box, axis=0))
    assert inside < 1e-12


def _model(n):
    vertices = " ".join(f"{x:.6f}" for x in _ball(n).ravel())
    return mujoco.MjModel.from_xml_string(f"""<mujoco><asset>
    <mesh name="m" vertex="{vertices}"/></asset><worldbody><geom type="plane" size="1 1 1"/>
    <body><freejoint/><geom name="ball" type="mesh" mesh="m"/></body></worldbody></mujoco>""")


def test_the_report_says_so():
    """The report mentions a hull that was thinned; one of 250 corners is left as it is."""
    for n, told in ((1000, "256 of 1000 corners, and reaches up to"), (250, "")):
        model = _model(n)
        rows = [f for f in mjcf.report(model) if f.name == "ball" and f.status == "approximated"]
        assert len(rows) == bool(told)
        assert all(told in row.reason for row in rows)
        assert sum(mjcf.load_model(model).geom_points) == min(n, 256)


def test_loading_thins_a_hull_once(monkeypatch):
    """Thinning is most of what loading a large mesh takes."""
    seen, thinned = [], hulls.thin_hull

    def noted(corners):
        seen.append(len(corners))
        return thinned(corners)

    monkeypatch.setattr(hulls, "thin_hull", noted)
    mjcf.load_model(_model(1000))
    assert seen == [1000]


FLAT = """<mujoco><asset><mesh name="label" builtin="plate" params="3 3" scale=".2 .2 .2"/></asset>
<worldbody><body pos="0 0 1"><freejoint/><geom size=".1"/>
<geom name="label" type="mesh" mesh="label" mass="0" contype="0" conaffinity="0"/></body>
{more}</worldbody></mujoco>"""


def test_a_flat_mesh_that_is_only_shown_loads():
    """MuJoCo 4.0.0 loads it too. It is drawn from both sides and has the area of its plate."""
    sys = mjcf.loads(FLAT.format(more=""))
    assert not sys.collisions
    corners, triangles = plugins.get("geometry_type", "mesh").mesh(
        np.zeros(3), np.asarray(sys.points)
    )
    a, b, c = (corners[triangles[:, i]] for i in range(3))
    normals = np.cross(b - a, c - a) / 2
    wide = np.ptp(corners, axis=0)
    area = np.prod(wide[wide > 1e-6])
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1).sum(), 2 * area, rtol=1e-5)
    np.testing.assert_allclose(normals.sum(axis=0), 0.0, atol=1e-7)
