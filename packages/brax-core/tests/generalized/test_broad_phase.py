"""Models of which the nearest contacts are followed: the same motion as with all, or it is told."""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import both
from physics_lab import FAST_COMPILE
from scipy.spatial.transform import Rotation

from brax import contact, dynamics, kinematics
from brax.builder import ModelBuilder
from brax.colliders import bounds, broad_phase
from brax.colliders.interface import Shape, Touch
from brax.colliders.narrow_phase import frames_of, place_shapes
from brax.components import quat, vec3
from brax.contracts import UNTESTED_CONTACTS
from brax.errors import ModelError
from brax.generalized.pipeline import GENERALIZED
from brax.io import json as brax_json
from brax.io import mjcf
from brax.sensors import sensors
from brax.spring.pipeline import SPRING

BALLS = [(0, 0, 0.1), (0.3, 0, 0.1), (0, 0.3, 0.1), (0.3, 0.3, 0.1), (0.15, 0.15, 0.3)]
BOUNDS = {"opt.max_geom_pairs": 5, "opt.max_contact_points": 8}


@functools.cache
def heap():
    """Four balls on the ground and one on them, of mass one, with a sensor of touch below it."""
    builder = ModelBuilder()
    builder.set_option(timestep=0.004)
    builder.add_geom(type="plane", name="floor", size=(5, 5, 1))
    for i, pos in enumerate(BALLS):
        name = f"ball{i}"
        builder.add_body(name, pos=pos, mass=1.0, inertia=(0.004,) * 3)
        builder.add_joint(name, "free")
        builder.add_geom(name, "sphere", size=(0.1,), condim=1 if i == 3 else 3)
    builder.add_site("ball4", "belly", size=(0.11,))
    builder.add_sensor("touch", ("site", "belly"))
    return builder.build()


@functools.cache
def few():
    """Return the heap of 15 pairs, of which each collider tests the nearest 5."""
    return heap().tree_replace(BOUNDS)


def test_points_are_picked_from_each_colliders_own():
    """Three colliders with one, four and two points give what one array of all gives."""
    whole = np.arange(7 * 2, dtype=np.float32).reshape(7, 2)
    vector = vec3(jnp.stack([whole, whole + 0.25, whole + 0.5], axis=1))
    touch = Touch(jnp.asarray(whole), vector, vector)
    every = broad_phase._Points(touch, jnp.asarray(whole, int), jnp.asarray(whole, int) + 1)
    parts = [jax.tree.map(lambda x, a=a, b=b: x[a:b], every) for a, b in ((0, 1), (1, 5), (5, 7))]
    for index in itertools.product(range(7), repeat=2):
        found = broad_phase._of_parts(parts, jnp.asarray([index], jnp.int32))
        for a, b in zip(*map(jax.tree.leaves, (found, every)), strict=True):
            np.testing.assert_array_equal(a[0], b[index, np.arange(2)])


def run(sys, steps=100, pipeline=GENERALIZED):
    """Return the state after some steps."""

    def step(state, _):
        return pipeline.step(sys, state, jnp.zeros(0)), None

    move = jax.jit(
        lambda state: jax.lax.scan(step, state, length=steps)[0], compiler_options=FAST_COMPILE
    )
    return move(pipeline.init(sys, sys.init_q, jnp.zeros(sys.qd_size())))


def _bound(sys, at):
    """Return bounds on the gaps of all pairs of a collider, for free bodies (links, 7, batch)."""
    sys = jax.tree.map(lambda x: x[..., None], sys)
    local = Shape(vec3(sys.geom.transform.pos), quat(sys.geom.transform.rot), vec3(sys.geom.size))
    geoms = place_shapes(local, sys.geom_link, frames_of(vec3(at[:, :3]), quat(at[:, 3:])))
    (group,) = sys.collisions
    a, b = (bounds.BoundedShapes.of(sys, geoms, np.array(g)) for g in (group.geom1, group.geom2))
    return bounds.least_gap(a, b)


@pytest.fixture(scope="module")
def settled():
    with jax.enable_x64(True):
        return run(heap()), run(few())


@pytest.mark.slow
def test_few_pairs_give_all_there_are(settled):
    """The heap never has more than 4 contacts between balls and 5 with the ground."""
    every, nearest = settled
    np.testing.assert_allclose(nearest.q, every.q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(nearest.qd, every.qd, rtol=0, atol=1e-7)
    assert (every.overflow, float(nearest.overflow)) == (None, 0.0)


@pytest.mark.slow
def test_contacts_are_the_nearest_with_their_links_and_forces(settled):
    """The forces of the ground carry all five balls in both."""
    for sys, state, count in zip((heap(), few()), settled, (15, 5 + 4 + 1), strict=True):
        _, force = dynamics.constraint_forces(sys, state, jnp.zeros(0))
        found = contact.get(sys, state.x)
        assert found is not None
        assert found.dist.shape == found.link_idx[0].shape == (len(force),)
        assert len(force) <= count
        ground = np.asarray(found.link_idx[0]) == -1
        assert abs(force[ground, 2].sum() / (5 * 9.81) - 1) < 0.05


@pytest.mark.slow
def test_touch_feels_the_same(settled):
    """The ball on top presses the site at its belly with about its weight."""
    felt = [
        sensors(sys, state, jnp.zeros(0))
        for sys, state in zip((heap(), few()), settled, strict=True)
    ]
    assert abs(felt[0][0] / 9.81 - 1) < 0.5
    np.testing.assert_allclose(felt[1], felt[0], rtol=1e-6)


def test_touch_of_states_with_forces_is_mujocos(f64):
    """Two of four balls stand on the ground; the lists have room for two contacts."""
    ball = (
        '<body pos="{0} 0 {1}"><freejoint/><geom size=".1" mass="{2}"/>'
        '<site name="s{0}" size=".2"/></body>'
    )
    places = [(0, 0.5, 1), (1, 0.095, 2), (2, 0.5, 1), (3, 0.097, 5)]
    peer = both(
        '<mujoco><option iterations="50"/><worldbody><geom type="plane" size="9 9 1"/>'
        + "".join(ball.format(*place) for place in places)
        + "</worldbody><sensor>"
        + "".join(f'<touch site="s{k}"/>' for k in range(4))
        + "</sensor></mujoco>"
    )
    mujoco.mj_forward(peer.model, peer.data)
    want = peer.data.sensordata
    assert (want > 10).tolist() == [False, True, False, True]
    sys = peer.sys.tree_replace({"opt.max_geom_pairs": 2, "opt.max_contact_points": 2})
    start = GENERALIZED.init(sys, sys.init_q, jnp.zeros(24))
    state = GENERALIZED.with_forces(sys, start)
    read = jax.jit(sensors, compiler_options=FAST_COMPILE)
    np.testing.assert_allclose(read(sys, state, jnp.zeros(0)), want, rtol=1e-9)


@pytest.mark.slow
def test_environments_have_contacts_of_their_own():
    """In a batch of two heaps, one upside down, each has the contacts that it has alone."""
    sys = few()
    pressed = sys.init_q.reshape(5, 7).at[:, 2].add(-0.001)
    q = jnp.stack([pressed.ravel(), pressed[::-1].ravel()])
    states = jax.vmap(lambda q: GENERALIZED.init(sys, q, jnp.zeros(30)))(q)
    together: Any = jax.vmap(lambda s: contact.get(sys, s.x))(states)
    for i in range(2):
        alone = contact.get(sys, jax.tree.map(lambda x, i=i: x[i], states.x))
        for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_array_equal(a[i], b)
    assert (together.link_idx[1][0] != together.link_idx[1][1]).any()


@pytest.mark.slow
def test_what_is_left_out_is_counted():
    """Two of five sliding contacts of the heap are left out, and counted."""
    sys = heap().tree_replace({"opt.max_geom_pairs": 15, "opt.max_contact_points": 3})
    assert broad_phase.contact_widths(sys) == {3: 3}
    pressed = sys.init_q.reshape(5, 7).at[:, 2].add(-0.001).at[4, 2].set(1.0).ravel()
    state = GENERALIZED.init(sys, pressed, jnp.zeros(30))
    assert state.overflow == 0
    assert GENERALIZED.step(sys, state, jnp.zeros(0)).overflow == 4 - 3


@pytest.mark.slow
def test_derivatives_go_through_the_listed_contacts(settled):
    """By central differences, with respect to rates of balls at rest on the ground."""
    sys, (_, state) = few(), settled
    direction = jnp.asarray(np.random.default_rng(0).normal(size=30))

    @functools.partial(jax.jit, compiler_options=FAST_COMPILE)
    def moved(x):
        return GENERALIZED.step(sys, state.replace(qd=state.qd + x * direction), jnp.zeros(0)).qd

    small = 1e-6
    slope = jax.jvp(moved, (0.0,), (1.0,))[1]
    measured = (moved(small) - moved(-small)) / (2 * small)
    np.testing.assert_allclose(slope, measured, atol=1e-5)


@pytest.mark.slow
def test_a_list_of_all_contacts_gives_the_motion_and_forces_of_all_pairs(settled, monkeypatch):
    """The heap has 15 contacts, too few for a list of its own accord."""
    every, _ = settled
    sys = heap()
    with jax.enable_x64(True):
        _, wanted = dynamics.constraint_forces(sys, every, jnp.zeros(0))
        monkeypatch.setattr(broad_phase, "MIN_LISTED_POINTS", 1)
        # Another number of line searches makes another kernel than the one without a list.
        sys = sys.tree_replace({"opt.ls_iterations": sys.opt.ls_iterations + 4})
        listed = run(sys)
        _, found = dynamics.constraint_forces(sys, listed, jnp.zeros(0))
    np.testing.assert_allclose(listed.q, every.q, rtol=0, atol=1e-9)
    assert listed.overflow == 0
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4 * 9.81)


@pytest.mark.slow
def test_bits_do_not_depend_on_the_neighbours(settled, monkeypatch):
    """Heaps thrown at random: beside others in two orders, and beside copies of themselves."""
    monkeypatch.setattr(broad_phase, "MIN_LISTED_POINTS", 1)
    sys = heap().tree_replace({"opt.ls_iterations": heap().opt.ls_iterations + 2})
    rng = np.random.default_rng(3)

    @functools.partial(jax.jit, compiler_options=FAST_COMPILE)
    def thrown(rates):
        def one(qd):
            state = GENERALIZED.init(sys, sys.init_q, qd)
            step = functools.partial(GENERALIZED.step, sys, act=jnp.zeros(0))
            return jax.lax.fori_loop(0, 50, lambda _, s: step(s), state).q

        return jax.vmap(one)(rates)

    with jax.enable_x64(True):
        rates = jnp.asarray(rng.normal(size=(24, sys.qd_size())))
        together, order = thrown(rates), rng.permutation(24)
        np.testing.assert_array_equal(thrown(rates[order]), together[order])
        for i in (0, 7):
            copies = jnp.broadcast_to(rates[i], rates.shape)
            np.testing.assert_array_equal(thrown(copies)[3], together[i])


HULL = np.random.default_rng(2).normal(scale=(0.1, 0.05, 0.2), size=(12, 3))
KINDS = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "mesh")


@pytest.mark.parametrize("first", ["plane", *KINDS])
def test_the_bound_of_a_gap_is_none_too_high(first):
    """Against MuJoCo; exact of two spheres, and of a plane and anything but points."""
    rng, shape = np.random.default_rng(1), {"mesh": 'mesh="hull"', "plane": 'size="1 1 1"'}
    poses = rng.normal(size=(200, 2, 7)) * ([0.25] * 3 + [1] * 4)
    asset = f'<asset><mesh name="hull" vertex="{" ".join(map(str, HULL.ravel()))}"/></asset>'
    for second in KINDS:
        one, other = (
            f'type="{kind}" {shape.get(kind, """size=".1 .2 .15" """)}' for kind in (first, second)
        )
        xml = f"""<mujoco>{asset}<worldbody><geom {one}/>
        <body><freejoint/><geom {other}/></body></worldbody></mujoco>"""
        model, sys = mujoco.MjModel.from_xml_string(xml), mjcf.loads(xml)
        data = mujoco.MjData(model)
        at, exact = [], []
        for _, pose in poses:
            data.qpos[:] = pose / np.r_[1, 1, 1, [np.linalg.norm(pose[3:])] * 4]
            mujoco.mj_forward(model, data)
            exact.append(mujoco.mj_geomDistance(model, data, 0, 1, 9.0, None))
            at.append(data.qpos.copy())
        bound = _bound(sys, jnp.asarray(np.array(at).T)[None])[0]
        assert (bound <= np.array(exact) + 1e-6).all(), second
        if (first == "plane" and second != "mesh") or first == second == "sphere":
            np.testing.assert_allclose(bound, exact, atol=1e-6)


@pytest.mark.parametrize("kind", ["box", "mesh"])
def test_the_bound_of_what_lies_side_by_side_is_its_gap(kind):
    """Two planks of 2 m, turned alike, 5 cm apart and one moved along the other by a metre."""
    builder = ModelBuilder()
    turned = (0.6, 0.48, 0.0, 0.64)
    corners = np.array(list(itertools.product((-1.0, 1.0), (-0.1, 0.1), (-0.02, 0.02))))
    what: dict[str, Any] = {"size": (1, 0.1, 0.02)} if kind == "box" else {"points": corners}
    apart = Rotation.from_quat([0.48, 0.0, 0.64, 0.6]).apply((1.0, 0.0, 0.09))
    for name, pos in (("lower", (0, 0, 0)), ("upper", apart)):
        builder.add_body(name, pos=pos, mass=1.0, inertia=(0.1,) * 3, quat=turned)
        builder.add_joint(name, "free")
        builder.add_geom(name, kind, **what)
    sys = builder.build()
    bound = _bound(sys, sys.init_q.reshape(2, 7, 1))
    np.testing.assert_allclose(bound, 0.05, atol=1e-6)


def test_bounds_come_from_a_file_and_survive_json():
    xml = """<mujoco><custom><numeric name="max_geom_pairs" data="{}"/>
    <numeric name="max_contact_points" data="-1"/></custom><worldbody><geom type="plane"
    size="1 1 1"/><body><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    sys = mjcf.loads(xml.format(7))
    assert (sys.opt.max_geom_pairs, sys.opt.max_contact_points) == (7, 0)
    assert brax_json.loads(brax_json.dumps(sys)).opt.max_geom_pairs == 7
    with pytest.raises(ModelError, match=r"max_geom_pairs.*whole number, got 2\.5"):
        mjcf.loads(xml.format(2.5))
    builder = ModelBuilder()
    builder.set_option(max_contact_points=-1)
    with pytest.raises(ModelError, match="max_contact_points must be a whole number, 0 for"):
        builder.build()


@pytest.mark.slow
def test_other_pipelines_follow_all_contacts():
    every, nearest = (run(sys, 3, SPRING) for sys in (heap(), few()))
    np.testing.assert_array_equal(every.q, nearest.q)
    assert nearest.overflow is None
    assert (
        dict((f, s) for f, s, _ in GENERALIZED.report(few()))[UNTESTED_CONTACTS] == "approximated"
    )
    assert dict((f, s) for f, s, _ in SPRING.report(few()))[UNTESTED_CONTACTS] == "supported"


@pytest.mark.slow
def test_meshes_are_followed_too():
    """The two of three mesh boxes that touch a plate are followed.

    They are 1 mm deep, and 3 mm if all meshes are a hundredth larger.
    """
    corners = np.array(list(itertools.product((-0.1, 0.1), repeat=3)))
    builder = ModelBuilder()
    builder.set_option(max_geom_pairs=2)
    builder.add_geom(type="mesh", name="plate", points=corners * [20, 20, 1], pos=(0, 0, -0.1))
    for i, along in enumerate((0.0, 3.0, 0.5)):
        builder.add_body(f"box{i}", pos=(along, 0, 0.099), mass=1.0, inertia=(0.01,) * 3)
        builder.add_joint(f"box{i}", "free")
        builder.add_geom(f"box{i}", "mesh", points=corners)
    sys = builder.build()
    x, _ = kinematics.forward(sys, sys.init_q, jnp.zeros(sys.qd_size()))
    found: Any = jax.vmap(lambda s: contact.get(sys.replace(points=sys.points * s), x))(
        jnp.array([1.0, 1.01])
    )
    np.testing.assert_allclose(found.dist, [[-0.001] * 8, [-0.003] * 8], atol=1e-9)
    assert {*np.ravel(found.link_idx[0]).tolist()} == {-1}
    assert {*np.ravel(found.link_idx[1]).tolist()} == {0, 2}


@pytest.mark.slow
def test_geoms_vary_between_environments_and_a_pair_does_not():
    """Two balls pressed into the ground, one with friction of its own; the third is far away."""
    builder = ModelBuilder()
    builder.set_option(max_contact_points=2)
    builder.add_geom(type="plane", name="floor", size=(5, 5, 1))
    for i, height in enumerate((0.099, 0.099, 0.5)):
        builder.add_body(f"body{i}", pos=(i, 0, height), mass=1.0, inertia=(0.004,) * 3)
        builder.add_joint(f"body{i}", "free")
        builder.add_geom(f"body{i}", "sphere", f"ball{i}", size=(0.1,))
    builder.add_pair("floor", "ball0", friction=(0.7, 0.7, 0, 0, 0))
    sys = builder.build()
    x, _ = kinematics.forward(sys, sys.init_q, jnp.zeros(sys.qd_size()))

    def friction(scale):
        geom = sys.geom.replace(friction=sys.geom.friction * scale)
        found = contact.get(sys.replace(geom=geom), x)
        assert found is not None
        return found.friction[:, 0]

    found = np.sort(jax.vmap(friction)(jnp.array([1.0, 2.0])))
    np.testing.assert_allclose(found, [[0.7, 1.0], [0.7, 2.0]], rtol=1e-6)


def near_contacts(sys, poses):
    """Return tables of the contacts nearer than the sum of the margins, for poses of free bodies.

    The columns are both links, the distance, the point and the normal.
    """

    def nearest(q):
        x, _ = kinematics.forward(sys, q.reshape(-1), jnp.zeros(sys.qd_size()))
        found = contact.get(sys, x)
        assert found is not None
        return (found.dist, *found.pos.T, *found.frame[:, 0].T), found.link_idx

    run = jax.jit(jax.vmap(nearest), compiler_options=FAST_COMPILE)
    (dist, *numbers), links = run(jnp.asarray(poses))
    out = []
    for i in range(len(poses)):
        near = np.asarray(dist[i]) < 0
        first, second = (np.broadcast_to(side, dist.shape)[i][near] for side in links)
        table = np.stack([first, second, dist[i][near], *(n[i][near] for n in numbers)], axis=1)
        out.append(table[np.lexsort(np.round(table, 6).T[::-1])])
    return out


def poses_of(bodies, spread, seed):
    """Return random poses of free bodies, (8, bodies, 7)."""
    poses = np.random.default_rng(seed).normal(size=(8, bodies, 7)) * ([spread] * 3 + [1] * 4)
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    return poses


def test_boxes_tell_which_of_many_capsules_may_touch(f64):
    """Seven capsules in random places have 21 pairs; against the test of all of them."""
    builder = ModelBuilder()
    for i in range(7):
        builder.add_body(f"body{i}", mass=1.0, inertia=(0.01,) * 3)
        builder.add_joint(f"body{i}", "free")
        builder.add_geom(f"body{i}", "capsule", size=(0.05, 0.02 + 0.02 * i))
    every = builder.build()
    listed = every.tree_replace({"opt.max_contact_points": 30})
    assert len(every.collisions[0].geom1) == 21 >= broad_phase.BOXED_PAIRS
    assert [broad_phase.uses_broad_phase(s) for s in (every, listed)] == [False, True]
    poses = poses_of(7, 0.15, 7)
    tables = [near_contacts(s, poses) for s in (every, listed)]
    for wanted, found in zip(*tables, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert 15 < sum(map(len, tables[0])) < 200


@pytest.mark.slow
@pytest.mark.long
def test_one_program_of_all_convex_types_gives_what_each_pair_has(f64):
    """Four types in random places, against the colliders of their pairs."""
    builder, size = ModelBuilder(), {"mesh": {"points": HULL}}
    kinds = ("capsule", "box", "ellipsoid", "mesh")
    for kind in kinds:
        builder.add_body(kind, mass=1.0, inertia=(0.01,) * 3)
        builder.add_joint(kind, "free")
        builder.add_geom(kind, kind, **size.get(kind, {"size": (0.08, 0.12, 0.1)}))
    every = builder.build()
    # No pair of the six is left out, and the contacts fit into shorter lists than they could fill.
    listed = every.tree_replace({"opt.max_geom_pairs": 6, "opt.max_contact_points": 10})
    assert [broad_phase.uses_broad_phase(s) for s in (every, listed)] == [False, True]
    poses = poses_of(len(kinds), 0.1, 5)
    # Where edges are nearly parallel, a change of the last bit moves the point along them by 7e-6:
    # the search ends at one of several points with one distance. So poses that are equal up to
    # rounding are asked too, and what is found has to be among what they give.
    draw = np.random.default_rng(1).normal
    equal = [poses, *(poses + 1e-16 * draw(size=poses.shape) for _ in range(7))]
    answers = [near_contacts(every, p) for p in equal]
    for i, found in enumerate(near_contacts(listed, poses)):
        assert len(found) == len(answers[0][i])
        for row in found:
            # The normal of a round shape is known to the root of the gap's precision.
            errors = [np.min(np.max(abs(row - answer[i]), axis=1)) for answer in answers]
            assert min(errors) < 1e-7, (i, row, errors)
    assert sum(map(len, answers[0])) > 15


@pytest.mark.slow
@pytest.mark.parametrize(
    "places",
    [
        pytest.param(("0 0 0",), id="one"),
        pytest.param(("0 0 0", ".3 .2 .1"), id="two", marks=pytest.mark.long),
    ],
)
def test_one_program_of_a_height_field_gives_what_each_pair_has(f64, places):
    """Two types on one or two pieces of hilly ground, against the colliders of their pairs."""
    heights = " ".join(map(str, np.random.default_rng(4).random(25).round(3)))
    shapes = ('type="ellipsoid" size=".2 .1 .15"', 'type="cylinder" size=".1 .15"')
    bodies = "".join(f"<body><freejoint/><geom {shape}/></body>" for shape in shapes)
    fields = "".join(f'<geom type="hfield" hfield="hills" pos="{place}"/>' for place in places)
    every = mjcf.loads(f"""<mujoco><asset><hfield name="hills" nrow="5" ncol="5"
    size="1 1 .2 .1" elevation="{heights}"/></asset>
    <worldbody>{fields}{bodies}</worldbody></mujoco>""")
    most = 8 * len(places)
    listed = every.tree_replace({"opt.max_geom_pairs": 3, "opt.max_contact_points": most})
    assert [broad_phase.uses_broad_phase(s) for s in (every, listed)] == [False, True]
    poses, counts = poses_of(2, 0.2, 6), 0
    poses[..., 2] += 0.1
    for wanted, found in zip(
        near_contacts(every, poses), near_contacts(listed, poses), strict=True
    ):
        counts += len(wanted)
        np.testing.assert_allclose(found, wanted, atol=1e-7)
    assert counts > 8
