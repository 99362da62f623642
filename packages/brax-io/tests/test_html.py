"""The page as text: what is in it, and what is refused."""

import base64
import dataclasses
import hashlib
import math
import os
import re
import types
from html import unescape
from importlib import resources
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scenes import EVIL, glide, turn, unpack, walk, walker

from brax import env, plugins
from brax.base import Motion, State, Transform
from brax.builder import ModelBuilder
from brax.colliders.interface import GeometryType
from brax.errors import BraxError, ConfigError, ModelError
from brax.io import html
from brax.kinematics import forward
from brax.plugins import Spec, hookimpl


@pytest.fixture(scope="module")
def sys():
    return walker()


def test_the_page_holds_every_pose(sys):
    states = walk(30)
    model, arrays = unpack(html.render(sys, states, series={"reward": np.arange(30) / 7}))
    assert (model["frames"], model["links"]) == (30, ["torso", "leg", "arm"])
    assert model["dt"] == pytest.approx(0.05)
    np.testing.assert_array_equal(arrays["pos"][:, 0, 0], [np.float32(0.05 * i) for i in range(30)])
    np.testing.assert_array_equal(arrays["rot"][7], states[7].x.rot)
    np.testing.assert_array_equal(arrays["series/reward"], np.float32(np.arange(30) / 7))


def test_a_list_and_a_batch_make_the_same_page(sys):
    states = walk(5)
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    assert html.render(sys, states) == html.render(sys, batch)


def test_dt_is_the_time_step_unless_given(sys):
    model, _ = unpack(html.render(sys, walk(2), dt=0.125))
    assert model["dt"] == 0.125
    with pytest.raises(ConfigError, match="dt must be a positive"):
        html.render(sys, walk(2), dt=0.0)


def matrix(rot):
    w, x, y, z = rot
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def world_axes(model, arrays):
    """Anchor and axis of each joint in the world, as the page finds them, in the first frame."""
    rows = []
    for joint in model["joints"]:
        local = [joint["anchor"], joint["axis"]]
        if joint["row"] >= 0:
            local = arrays["axes"][0, joint["row"]].reshape(2, 3)
        turned = np.array(local) @ matrix(arrays["rot"][0, joint["link"]]).T
        rows.append([*turned[0] + arrays["pos"][0, joint["link"]], *turned[1]])
    return np.array(rows)


def test_a_joint_in_a_stack_turns_from_its_ref():
    """At its ref the second hinge has not turned, so the first stands as it is described."""
    made = ModelBuilder()
    made.add_body("arm", mass=1.0, inertia=(0.1, 0.1, 0.1))
    made.add_joint("arm", "hinge", axis=(0, 0, 1))
    made.add_joint("arm", "hinge", axis=(0, 1, 0), ref=0.4)
    state = plugins.get("pipeline", "spring").init(made.build(), np.array([0, 0.4]), np.zeros(2))
    first, second = world_axes(*unpack(html.render(made.build(), [state])))
    np.testing.assert_allclose(first[3:], [0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(second[3:], [0, 1, 0], atol=1e-6)


def test_links_and_joints_are_described(sys):
    model, _ = unpack(html.render(sys, walk(1)))
    assert (model["parents"], model["masses"]) == ([-1, 0, 0], [1, 1, 1])
    told = [(j["name"], j["type"], j["link"], j["q"], j["unit"]) for j in model["joints"]]
    assert told == [
        ("torso_free0", "free", 0, [0, 7], ""),
        ("knee", "hinge", 1, [7, 1], "rad"),
        ("swing", "hinge", 2, [8, 1], "rad"),
        ("lift", "hinge", 2, [9, 1], "rad"),
    ]


@pytest.mark.parametrize(
    ("bounds", "shown"), [((0.0, math.inf), [0, 9e9]), ((-math.inf, 1.0), [-9e9, 1])]
)
def test_a_joint_may_be_bounded_on_one_side(bounds, shown):
    made = ModelBuilder()
    made.add_body("arm", mass=1.0, inertia=(1, 1, 1))
    made.add_joint("arm", "slide", range=bounds)
    still: Any = np.zeros((1, 3), np.float32)
    upright: Any = np.array([[1, 0, 0, 0]], np.float32)
    state = State(still[0, :1], still[0, :1], Transform(still, upright), Motion(still, still))
    model, _ = unpack(html.render(made.build(), [state]))
    assert model["joints"][0]["range"] == shown


def test_bodies_that_the_state_places_are_shown_where_it_has_them(sys):
    made = ModelBuilder()
    half = math.sqrt(0.5)
    made.add_body("hand", pos=(1, 2, 3), quat=(half, 0, 0, half), mocap=True)
    made.add_geom("hand", "box", "palm", pos=(0.1, 0, 0), size=(0.1, 0.2, 0.3))
    made.add_body("ball", pos=(0, 0, 1), mass=1.0, inertia=(0.1, 0.1, 0.1))
    made.add_joint("ball", "free")
    built = made.build()
    first = plugins.get("pipeline", "generalized").init(built, built.init_q, jnp.zeros(6))
    assert first.mocap is not None
    second = first.replace(mocap=first.mocap.replace(pos=jnp.array([[4.0, 5.0, 6.0]])))
    model, arrays = unpack(html.render(built, [first, second, first.replace(mocap=None)]))
    assert model["links"] == ["ball", "hand"] and model["masses"] == [1.0, 0.0]
    (palm,) = model["geoms"]
    assert palm["link"] == 1
    np.testing.assert_allclose(palm["pos"], [0.1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(palm["rot"], [1, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(arrays["pos"][:, 1], [[1, 2, 3], [4, 5, 6], [1, 2, 3]])
    np.testing.assert_allclose(arrays["rot"][:, 1], [[half, 0, 0, half]] * 3, atol=1e-6)


def test_forces_stand_at_their_contacts(sys):
    """The ball lies 1 cm in the plane; four more contacts that there might be do not touch."""
    forces = np.arange(30.0).reshape(2, 5, 3)
    _, arrays = unpack(html.render(sys, walk(2), forces=forces))
    assert arrays["contacts"].shape == (2, 1, 7)
    np.testing.assert_array_equal(arrays["forces"], forces[:, :1])
    with pytest.raises(ConfigError, match=r"forces have shape \(2, 3\); expected \(2, 5, 3\)"):
        html.render(sys, walk(2), forces=np.zeros((2, 3)))
    with pytest.raises(ConfigError, match="forces are not finite"):
        html.render(sys, walk(2), forces=forces * np.nan)


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", ["spring", "generalized"])
def test_forces_at_rest_carry_the_weight(pipeline):
    """A ball of 2 kg, where a second has brought it to rest in its contact's softness."""
    made = ModelBuilder()
    made.add_body("ball", pos=(0, 0, 0.1), mass=2.0, inertia=(0.01, 0.01, 0.01))
    made.add_joint("ball", "free")
    made.add_geom(type="plane")
    made.add_geom("ball", "sphere", size=(0.1,))
    system, engine = made.build(), plugins.get("pipeline", pipeline)
    state = engine.init(system, system.init_q, np.zeros(6))
    if engine.reports_forces:
        with pytest.raises(ConfigError, match="do not report their forces; start the trajectory"):
            html.contact_forces(system, [state])
        state = engine.with_forces(system, state)
    state = jax.jit(engine.step, static_argnums=3)(system, state, np.zeros(0), 500)
    found = html.contact_forces(system, [state, state])
    assert found.shape == (2, 1, 3)
    np.testing.assert_allclose(found[1, 0], [0, 0, 2 * 9.81], atol=1e-2)


def test_forces_need_a_trajectory_of_the_system(sys):
    with pytest.raises(ConfigError, match="empty"):
        html.contact_forces(sys, [])
    with pytest.raises(ModelError, match="not finite"):
        html.contact_forces(sys, [glide(float("nan"))])


def test_joint_axes_follow_the_stack(sys):
    """The first hinge of a stack is not turned by the second; the second is, by the first."""
    swing, lift = 0.7, 0.4
    state = glide(2.0)
    # R = Rz(swing) Ry(lift); the anchors are 0.05 and 0.1 along x in the link frame at rest.
    rotation_z = np.array([[math.cos(swing), -math.sin(swing)], [math.sin(swing), math.cos(swing)]])
    first = np.array([1.7 + 0.05, 0.0, 0.24])
    second = first + np.array([*(rotation_z @ [0.05, 0.0]), 0.0])
    # The second hinge turns the link about its anchor, 0.1 ahead of the link's origin.
    forward = np.array([*(rotation_z @ [math.cos(lift), 0.0]), -math.sin(lift)])
    a, b = turn((0, 0, 1), swing), turn((0, 1, 0), lift)
    both = np.array([a[0] * b[0], -a[3] * b[2], a[0] * b[2], a[3] * b[0]])
    pos: Any = np.array(state.x.pos)
    rot: Any = np.array(state.x.rot)
    pos[2], rot[2] = second - 0.1 * forward, both
    q = np.array(state.q)
    q[-2:] = swing, lift
    model, arrays = unpack(html.render(sys, [state.replace(x=Transform(pos, rot), q=q)]))
    free, knee, z, y = world_axes(model, arrays)
    np.testing.assert_allclose(free, [2, 0, 0.24, 0, 0, 0], atol=1e-6)  # no one axis: none drawn
    np.testing.assert_allclose(knee, [2.3, 0, 0.24, 0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(z, [*first, 0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(y, [*second, -math.sin(swing), math.cos(swing), 0], atol=1e-6)


def test_contacts_are_those_that_touch(sys):
    """The ball sinks 1 cm into the plane; the leg, 8 cm thick at 24 cm, does not reach it."""
    _, arrays = unpack(html.render(sys, [glide(3.0)]))
    np.testing.assert_allclose(arrays["contacts"], [[[1, 3, 0, -0.005, 0, 0, 1]]], atol=1e-6)


@pytest.mark.parametrize("height", ["<img onerror=alert(1)>", 0, -3, 480.0, True, None])
def test_height_is_a_whole_number(sys, height):
    with pytest.raises(ConfigError, match="height must be a positive whole number"):
        html.render(sys, walk(1), height=height)


def test_what_is_no_trajectory_is_refused(sys):
    states = walk(20)
    with pytest.raises(ConfigError, match="trajectory is empty"):
        html.render(sys, [])
    with pytest.raises(ConfigError, match="trajectory is empty"):
        html.render(sys, jax.tree.map(lambda a: np.stack([a])[:0], states[0]))
    with pytest.raises(ConfigError, match=r"shape \(3, 3\).*list of states"):
        html.render(sys, states[0])
    batch = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    with pytest.raises(ConfigError, match=r"frame 0: .*\(20, 3, 3\)"):
        html.render(sys, [batch])
    for shape in ((19,), (20, 2, 2), (20, 0)):
        with pytest.raises(
            ConfigError, match=r"'reward' has shape .* expected \(20,\) or \(20, n\)"
        ):
            html.render(sys, states, series={"reward": np.zeros(shape)})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: [s[0], s[1].replace(q=np.zeros(4))], "frame 1 has coordinates or mocap bodies"),
        (lambda s: [s[0], s[1].replace(mocap=s[1].x)], "frame 1 has coordinates or mocap bodies"),
        (
            lambda s: [s[0], env.State(s[1], np.zeros(3), jnp.zeros(()), jnp.zeros(()), {}, {})],
            r"frame 1 must be a sta.*"
            "got brax.env.base.State: .*`pipeline_state`",
        ),
        (lambda s: [s[0], None], "frame 1 must be a state, got None"),
        (lambda s: (state for state in s), "must be a list of states, or one state, got generator"),
        (lambda s: None, "states must be a list of states, or one state, got None"),
        (lambda s: np.zeros((2, 3, 3)), "states must be a list of states.*got numpy.ndarray"),
        (lambda s: "walk", "frame 0 must be a state, got str"),
    ],
)
def test_what_is_no_list_of_states_is_told(sys, tmp_path, change, said):
    with pytest.raises(ConfigError, match=said):
        html.render(sys, change(walk(2)))
    with pytest.raises(ConfigError, match=said):
        html.save(tmp_path / "a.html", sys, change(walk(2)))


@pytest.mark.parametrize("wrong", [walk(2), walk(2)[0], None])
def test_the_system_comes_first(sys, tmp_path, wrong):
    with pytest.raises(ConfigError, match=r"sys must be a System, got .*: give the system first"):
        html.render(wrong, sys)
    with pytest.raises(ConfigError, match="sys must be a System"):
        html.save(tmp_path / "a.html", wrong, sys)
    with pytest.raises(ConfigError, match="sys must be a System"):
        html.compare({"a": html.Trajectory(wrong, sys)})


@pytest.mark.parametrize("title", [5, b"walk", ["walk"]])
def test_a_title_is_text(sys, title):
    with pytest.raises(ConfigError, match="title must be text, got "):
        html.render(sys, walk(1), title=title)


def test_a_title_may_be_the_name_of_a_file_that_is_not_text(sys, tmp_path):
    """Python has such bytes of a file's name as lone surrogates."""
    html.save(tmp_path / "page.html", sys, walk(1), title=os.fsdecode(b"bad\xff.xml"))
    assert "<title>bad?.xml</title>" in (tmp_path / "page.html").read_text("utf-8")


def test_trajectories_side_by_side_need_one_time(sys):
    one, other = html.Trajectory(sys, walk(3)), html.Trajectory(walker(timestep=0.01), walk(3))
    with pytest.raises(ConfigError, match=r"one time between states, got a: 0.05, b: 0.01: give"):
        html.compare({"a": one, "b": other})
    assert html.compare({"a": one, "b": other}, dt=0.1).count('class="brax-viewer"') == 2
    with pytest.raises(ConfigError, match="got none"):
        html.compare({})


def test_what_is_not_finite_is_named(sys):
    states = walk(20)
    pos: Any = np.array(states[17].x.pos)
    pos[0, 2] = np.nan
    states[17] = states[17].replace(x=Transform(pos, states[17].x.rot))
    with pytest.raises(ModelError, match="frame 17, link 'torso': not finite"):
        html.render(sys, states)


def test_states_of_another_system_are_refused(sys):
    alone = jax.tree.map(lambda a: a, glide(0.0))
    alone = alone.replace(x=Transform(alone.x.pos[:2], alone.x.rot[:2]))
    with pytest.raises(ModelError, match=r"states have 2 links .* system has 3"):
        html.render(sys, [alone])


def test_names_cannot_leave_their_text():
    page = html.render(walker(EVIL), walk(1), title=EVIL)
    assert EVIL not in page
    assert unpack(page)[0]["links"][0] == EVIL


def test_only_this_script_may_run(sys):
    page = html.render(sys, walk(1))
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)[0]
    code = re.findall(r"<script>(.*)</script>\n</body>", page, re.S)[0]
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert policy == f"default-src 'none'; script-src 'sha256-{digest}'; img-src data:"


def test_the_licence_of_three_is_in_the_page(sys):
    page = html.render(sys, walk(1))
    assert "three.js authors" in page
    assert "The above copyright notice and this permission notice shall be included in" in page


@pytest.mark.slow
def test_five_thousand_frames_of_the_humanoid_are_less_than_four_megabytes():
    """Random poses, actions and rewards: nothing in them repeats."""
    envs, rng = pytest.importorskip("brax.envs"), np.random.default_rng(0)
    system = envs.get_environment("humanoid").sys
    q = np.array(system.init_q) + 0.02 * rng.normal(size=(5000, system.q_size())).cumsum(axis=0)
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    still = jnp.zeros((5000, system.qd_size()))
    x, xd = jax.jit(jax.vmap(forward, (None, 0, 0)))(system, jnp.asarray(q, jnp.float32), still)
    action = rng.uniform(-1, 1, size=(5000, system.act_size()))
    page = html.render(
        system,
        State(jnp.asarray(q, jnp.float32), still, x, xd),
        series={"reward": action.sum(axis=1), "action": action},
    )
    assert len(page) < 4e6  # 3.36e6


class Wedge(GeometryType):
    """A shape that the viewer does not know."""

    name = "wedge"
    size_names = ("width",)


class DrawnWedge(Wedge):
    """The same, with triangles."""

    def mesh(self, size, points=None):
        w = size[0]
        return np.array([[0, 0, 0], [w, 0, 0], [0, w, 0]]), np.array([[0, 1, 2]])


def with_shape(sys, shape):
    return dataclasses.replace(sys, geom_types=(*sys.geom_types[:3], shape), collisions=())


def test_a_strange_shape_is_drawn_by_its_mesh(sys):
    model, _ = unpack(html.render(with_shape(sys, DrawnWedge()), walk(1)))
    mesh = model["geoms"][3]["mesh"]
    np.testing.assert_allclose(
        mesh["vertices"], np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0]]), atol=1e-7
    )
    assert mesh["faces"] == [[0, 1, 2]]


def test_a_strange_shape_without_a_mesh_is_named(sys):
    with pytest.raises(ModelError, match=r"geom 'arm_sphere3': .*'wedge'.*mesh\(size\)"):
        html.render(with_shape(sys, Wedge()), walk(1))


@pytest.mark.parametrize(
    ("mesh", "told"),
    [
        (lambda self, size: np.zeros((3, 3)), "mesh must return vertices"),
        (lambda self, size: [][0], "mesh raised IndexError: list index out"),
    ],
)
def test_a_mesh_that_cannot_be_drawn_names_its_package(sys, mesh, told):
    shape = type("Wrong", (Wedge,), {"mesh": mesh})()
    plugin: Any = types.ModuleType("acme")
    plugin.BRAX_PLUGIN_API = 1
    plugin.brax_geometry_types = hookimpl(lambda: [Spec("wedge", shape)])
    plugin.brax_geometry_types.__name__ = "brax_geometry_types"
    plugins.register(plugin, "acme")
    try:
        with pytest.raises(ModelError, match=rf"geom 'arm_sphere3': .*'wedge' of acme .*{told}"):
            html.render(with_shape(sys, shape), walk(1))
    finally:
        plugins.unregister("acme")


def test_a_size_that_is_not_finite_is_named(sys):
    size = sys.geom.size.at[1, 0].set(jnp.inf)
    with pytest.raises(ModelError, match="geom 'ball': size is not finite"):
        html.render(sys.tree_replace({"geom.size": size}), walk(1))


def test_a_page_is_text_that_a_notebook_shows(sys):
    """In the frame's attribute the page is escaped once, so that a browser reads the same page."""
    page = html.render(sys, walk(1), height=321)
    cell = page._repr_html_()
    assert isinstance(page, str) and page == html.render(sys, walk(1), height=321)
    inside = re.fullmatch(r'<iframe sandbox="allow-scripts" srcdoc="([^"]*)" (.*)></iframe>', cell)
    assert inside
    assert unescape(inside[1]) == page
    assert 'height="321"' in inside[2]


def test_save_writes_a_page_that_fills_the_window(sys, tmp_path):
    html.save(tmp_path / "a.html", sys, walk(2))
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "data-height" not in page
    assert 'data-height="480"' in html.render(sys, walk(2))
    with pytest.raises(ConfigError, match="cannot write"):
        html.save(tmp_path / "no" / "a.html", sys, walk(2))


def test_a_missing_bundle_says_how_to_build_it(sys, tmp_path, monkeypatch):
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)
    with pytest.raises(BraxError, match=r"hatch_build\.py"):
        html.render(sys, walk(1))
