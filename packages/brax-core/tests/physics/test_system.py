"""`System`: flat MuJoCo names, replacement, and what the contracts of the pipeline say."""

import re
from contextlib import nullcontext
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import chain

from brax import contracts
from brax.builder import ModelBuilder
from brax.errors import ModelError, ShapeError
from brax.spring.pipeline import SPRING


@pytest.fixture(scope="module")
def sys():
    """Two bodies, three joints, two actuators, two geoms."""
    model = ModelBuilder()
    model.add_body("a", pos=(0, 0, 1), mass=2.0, inertia=(1, 2, 2.5), ipos=(0.1, 0, 0))
    model.add_body("b", "a", pos=(1, 0, 0), mass=3.0, inertia=(2, 2, 2), iquat=(0, 1, 0, 0))
    model.add_joint("a", "free")
    model.add_joint("b", "hinge", "turn", range=(-1, 2), damping=0.5, stiffness=4.0, armature=0.25)
    model.add_joint("b", "slide", "shift", damping=0.75, stiffness=5.0)
    model.add_actuator("turn", gear=2.0, ctrl_range=(-1, 1))
    model.add_actuator("shift", gear=3.0, gainprm=(7.0,), biasprm=(0, -7.0))
    model.add_geom(type="plane", size=(0, 0, 1), friction=(0.5, 0.1, 0.2))
    model.add_geom("b", "sphere", size=(0.25,), friction=(0.75, 0, 0), elasticity=0.5)
    model.set_option(timestep=0.01, gravity=(0, 0, -5))
    return model.build()


def test_every_leaf_has_a_shape_that_is_checked(sys):
    """All but the parameters of third-party joint types, of which the types decide how many."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(sys):
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        if name == "joint.user":
            continue
        wrong = with_leaf(sys, path, jnp.zeros((9, *np.shape(leaf))))
        with pytest.raises(ModelError, match=re.escape(f"system leaf '{name}' has shape (9")):
            contracts.check_system("test.init", wrong)


def with_leaf(sys, path, new):
    """Return the system with one leaf replaced."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(sys)
    return jax.tree.unflatten(structure, [new if p == path else x for p, x in leaves])


def test_bounds_may_be_infinite_but_not_nan(sys):
    for name in ("actuator.ctrl_range", "actuator.force_range"):
        contracts.check_system("test.init", sys.tree_replace({name: jnp.full((2, 2), jnp.inf)}))
        with pytest.raises(ModelError, match=f"'{name}' must not be NaN"):
            contracts.check_system("test.init", sys.tree_replace({name: jnp.full((2, 2), np.nan)}))


FLAT: dict[str, Any] = {
    "body_mass": [0, 2, 3],
    "body_inertia": [[0, 0, 0], [1, 2, 2.5], [2, 2, 2]],
    "body_ipos": [[0, 0, 0], [0.1, 0, 0], [0, 0, 0]],
    "body_iquat": [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]],
    "body_pos": [[0, 0, 0], [0, 0, 0], [1, 0, 0]],
    "body_quat": [[1, 0, 0, 0]] * 3,
    "geom_friction": [[0.5, 0.1, 0.2], [0.75, 0, 0]],
    "geom_size": [[0, 0, 1], [0.25, 0, 0]],
    "elasticity": [0, 0.5],
    "jnt_axis": [[0, 0, 1]] * 3,
    "jnt_range": [[-np.inf, np.inf], [-1, 2], [-np.inf, np.inf]],
    "jnt_stiffness": [0, 4, 5],
    "dof_damping": [0] * 6 + [0.5, 0.75],
    "dof_stiffness": [0] * 6 + [4, 5],
    "dof_armature": [0] * 6 + [0.25, 0],
    "actuator_gear": [2, 3],
    "actuator_gainprm": [[1] + [0] * 9, [7] + [0] * 9],
    "actuator_biasprm": [[0] * 10, [0, -7] + [0] * 8],
    "actuator_ctrlrange": [[-1, 1], [-np.inf, np.inf]],
    "actuator_forcerange": [[-np.inf, np.inf]] * 2,
    "opt_timestep": 0.01,
    "opt_gravity": [0, 0, -5],
    "qpos0": [0, 0, 1, 1, 0, 0, 0, 0, 0],
}
"""MuJoCo's flat names and what the model's description puts there."""


@pytest.mark.parametrize("name", FLAT)
def test_flat_names_read_what_was_described(sys, name):
    np.testing.assert_allclose(getattr(sys, name), FLAT[name], rtol=1e-6)


@pytest.mark.parametrize("name", FLAT)
def test_flat_names_replace_what_they_read(sys, name):
    new = jnp.asarray(FLAT[name], float) * 2.0
    if name.endswith("quat"):
        new = new.at[0].set(jnp.array([1.0, 0, 0, 0]))  # the world's row is no number of ours
    for changed in (sys.replace(**{name: new}), sys.tree_replace({name: new})):
        np.testing.assert_array_equal(getattr(changed, name), new)
        np.testing.assert_allclose(getattr(sys, name), FLAT[name], rtol=1e-6)
        # A joint without a range gets the rows of one, whatever the numbers.
        with pytest.raises(AssertionError) if name == "jnt_range" else nullcontext():
            chex.assert_trees_all_equal_structs(changed, sys)


@pytest.mark.parametrize(
    ("flat", "ours", "take"),
    [
        ("body_mass", lambda s: s.link.inertia.mass, lambda x: x[1:]),
        ("geom_friction", lambda s: s.geom.friction, lambda x: x),
        ("dof_damping", lambda s: s.dof.damping, lambda x: x),
        ("actuator_gainprm", lambda s: s.actuator.gainprm, lambda x: x),
        ("jnt_range", lambda s: s.dof.limit[0], lambda x: x[np.array([0] * 6 + [1, 2]), 0]),
        ("jnt_stiffness", lambda s: s.dof.stiffness, lambda x: x[np.array([0] * 6 + [1, 2])]),
    ],
)
def test_a_number_is_stored_once(sys, flat, ours, take):
    new = jnp.asarray(FLAT[flat], float) + 1.0
    np.testing.assert_array_equal(ours(sys.replace(**{flat: new})), take(new))


def test_flat_names_serve_as_axes_of_a_batch(sys):
    # As domain randomization uses them: a tree of None with a 0 where the leaf is batched.
    axes = jax.tree.map(lambda x: None, sys).tree_replace(
        {"geom_friction": 0, "body_mass": 0, "jnt_range": 0}
    )
    many = sys.tree_replace(
        {
            "geom_friction": jnp.stack([sys.geom_friction, 2 * sys.geom_friction]),
            "body_mass": jnp.stack([sys.body_mass, 3 * sys.body_mass]),
            "jnt_range": jnp.stack([sys.jnt_range, 2 * sys.jnt_range]),
        }
    )

    def read(s):
        return s.body_mass, s.geom_friction, s.jnt_range, s.dof_damping

    mass, friction, limits, damping = jax.vmap(read, in_axes=(axes,))(many)
    np.testing.assert_array_equal(mass, [[0, 2, 3], [0, 6, 9]])
    np.testing.assert_array_equal(friction[1], 2 * sys.geom_friction)
    np.testing.assert_array_equal(limits[1], 2 * sys.jnt_range)
    np.testing.assert_array_equal(damping, jnp.stack([sys.dof_damping] * 2))


def test_nested_paths_replace_leaves(sys):
    new = sys.tree_replace({"opt.timestep": 0.5, "link.inertia.mass": jnp.ones(2)})
    assert new.opt.timestep == 0.5
    np.testing.assert_array_equal(new.body_mass, [0, 1, 1])
    np.testing.assert_array_equal(sys.body_mass, [0, 2, 3])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("opt.timestpe", "Option has no field 'timestpe'.*Did you mean 'timestep'"),
        ("lnik.inertia", "System has no field 'lnik'.*Did you mean 'link'"),
        ("link.inertai.mass", "Link has no field 'inertai'.*Did you mean 'inertia'"),
        ("body_mas", "System has no field 'body_mas'"),
    ],
)
def test_an_unknown_path_is_named(sys, path, message):
    with pytest.raises(ModelError, match=message):
        sys.tree_replace({path: 0.0})


def test_an_unknown_attribute_is_named(sys):
    with pytest.raises(AttributeError, match=r"'body_mas'.*Did you mean 'body_mass'"):
        _ = sys.body_mas


def test_sizes(sys):
    sizes = sys.num_links(), sys.q_size(), sys.qd_size(), sys.act_size(), sys.link_types
    assert sizes == (2, 9, 8, 2, "f2")


# What the pipeline's public functions say about arrays that do not fit.


@pytest.mark.parametrize(
    ("q", "qd", "message"),
    [
        (8, 8, r"'q' has shape \(8,\); the model has 9 coordinates, so expected \(9,\)"),
        (9, 9, r"'qd' has shape \(9,\); the model has 8 degrees of freedom"),
        ((4, 9), 8, r"'q' has shape \(4, 9\).*jax.vmap"),
    ],
)
def test_init_refuses_shapes(sys, q, qd, message):
    with pytest.raises(ShapeError, match=message):
        SPRING.init(sys, jnp.zeros(q), jnp.zeros(qd))


def test_integers_are_taken_as_floats(sys):
    whole = SPRING.init(sys, jnp.array([0, 0, 1, 1, 0, 0, 0, 0, 0]), jnp.arange(8))
    floats = SPRING.init(sys, sys.qpos0, jnp.arange(8.0))
    for one, two in zip(jax.tree.leaves(whole), jax.tree.leaves(floats), strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)
    with pytest.raises(ShapeError, match="'q' has dtype bool; expected a float"):
        SPRING.init(sys, jnp.ones(9, bool), jnp.zeros(8))


GOOGLES = {
    "dt": "opt.timestep",
    "density": "opt.density",
    "viscosity": "opt.viscosity",
    "solver_iterations": "opt.iterations",
    "solver_maxls": "opt.ls_iterations",
}
"""Names in Google's brax, and ours."""


@pytest.mark.parametrize("name", GOOGLES)
def test_options_have_googles_names_too(sys, name):
    changed = sys.replace(**{name: 3})
    assert getattr(changed, name) == getattr(changed.opt, GOOGLES[name].removeprefix("opt.")) == 3


def test_settings_of_googles_solvers_are_ignored_with_a_warning(sys):
    with pytest.warns(UserWarning, match=r"Link.constraint_stiffness has no effect: .* Leave it"):
        link = sys.link.replace(constraint_stiffness=jnp.ones(2), invweight=jnp.ones((2, 2)))
    np.testing.assert_array_equal(link.invweight, 1)
    with pytest.warns(UserWarning, match="System.collide_scale has no effect: contacts are"):
        chex.assert_trees_all_equal_structs(sys.replace(collide_scale=0.5), sys)
    assert sys.spring_mass_scale == sys.spring_inertia_scale == 0


def test_solvers_and_flags_of_mujoco(sys):
    mujoco = pytest.importorskip("mujoco")
    newton = mujoco.mjtSolver.mjSOL_NEWTON
    eulerdamp = int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
    changed = sys.tree_replace(
        {"opt.solver": newton, "opt.disableflags": eulerdamp, "opt.iterations": 1}
    )
    assert (changed.opt.eulerdamp, changed.opt.iterations) == (False, 1)
    assert changed.opt.disableflags == eulerdamp and sys.opt.disableflags == 0
    assert changed.tree_replace({"opt.disableflags": 0}).opt.eulerdamp
    with pytest.raises(ModelError, match=r"opt.solver must be 0 \(PGS\), 1 \(CG\) or 2 .* got 3"):
        sys.tree_replace({"opt.solver": 3})
    with pytest.raises(ModelError, match=r"flags other than mjDSBL_EULERDAMP .* in the model file"):
        sys.tree_replace({"opt.disableflags": eulerdamp | 1})


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (3, r"spring.step: argument 'act' has shape \(3,\); the model has 2 actuators"),
        ((5, 2), r"'act' has shape \(5, 2\).*jax.vmap"),
    ],
)
def test_step_refuses_shapes(sys, act, message):
    # B54, before anything is compiled: the state is only shapes.
    state = jax.eval_shape(SPRING.init, sys, sys.init_q, jnp.zeros(8))
    with pytest.raises(ShapeError, match=message):
        jax.eval_shape(SPRING.step, sys, state, jnp.zeros(act))


def test_step_refuses_a_state_of_another_system(sys):
    # B61
    other = chain(3)
    state = jax.eval_shape(SPRING.init, other, other.init_q, jnp.zeros(3))
    with pytest.raises(ShapeError, match=r"shape \(3, 3\); the system has 2 links.*another system"):
        jax.eval_shape(SPRING.step, sys, state, jnp.zeros(2))


def uneven(model):
    """Return a pair of a ball and the floor with different friction along the two tangents."""
    model.add_geom("world", "plane", "floor", size=(0, 0, 1))
    model.add_geom("a", "sphere", "ball", size=(0.1,))
    model.add_pair("floor", "ball", friction=(1, 2, 0, 0, 0))


def coupled_tendons(model):
    for name in ("long", "short"):
        model.add_tendon({"joint": 1.0}, name)
    model.add_coupling("long", "short", of="tendon")


def one_joint(
    kind="hinge", option=None, ball=None, floor=False, site=False, more=lambda m: None, **values
):
    model = ModelBuilder()
    model.set_option(**(option or {}))
    model.add_body("a", mass=1.0, inertia=(1, 1, 1))
    model.add_joint("a", kind, "joint", **values)
    more(model)
    if ball is not None:
        model.add_geom("a", "sphere", size=(0.1,), **ball)
    if site:
        model.add_site("a", "tip")
        model.add_actuator(site="tip")
    if floor:
        model.add_geom("world", "plane", size=(0, 0, 1))
    return model.build()


def on_mocap(model):
    model.add_body("hand", mocap=True)
    model.add_body("b", "hand", mass=1.0, inertia=(1, 1, 1))
    model.add_joint("b")


def adhering(model):
    model.add_actuator(body="a", ctrl_range=(0, 1))


LACKING: dict[str, dict[str, Any]] = {
    contracts.UNTESTED_CONTACTS: dict(
        more=lambda m: m.add_geom("a", "sphere", "more", size=(0.1,)),
        option=dict(max_geom_pairs=1),
        ball={},
        floor=True,
    ),
    contracts.TIME_OF_IMPACT: dict(option=dict(time_of_impact=True)),
    contracts.SOFTNESS: dict(range=(0, 1)),
    contracts.PYRAMID: dict(ball={}, floor=True),
    contracts.ELASTICITY: dict(ball=dict(elasticity=0.5)),
    contracts.FREE_JOINT_RESISTANCE: dict(kind="free", damping=1.0),
    contracts.SITE_LIMITS: dict(actuator_range=(-1, 1), site=True),
    contracts.DAMPING: dict(option=dict(vel_damping=-1.0)),
    contracts.BAUMGARTE: dict(option=dict(baumgarte_erp=0.2)),
    contracts.SWEEPS: dict(option=dict(sweeps=8)),
    contracts.EXPLICIT_DAMPING: dict(option=dict(eulerdamp=False)),
    contracts.IMPEDANCE_RATIO: dict(option=dict(impratio=10.0)),
    contracts.TORSIONAL_FRICTION: dict(ball=dict(condim=4), floor=True),
    contracts.ANISOTROPIC_FRICTION: dict(more=uneven),
    contracts.TENDON_EQUALITIES: dict(more=coupled_tendons),
    contracts.MOCAP_JOINTS: dict(more=on_mocap),
    contracts.ADHESION: dict(more=adhering),
    contracts.ADHESION_LIMITS: dict(more=adhering, actuator_range=(-1, 1)),
    contracts.GRAVCOMP_LIMITS: dict(
        more=lambda m: m.add_body("load", "a", mass=1.0, gravcomp=1.0),
        actuator_range=(-1, 1),
        actuator_gravcomp=True,
    ),
    contracts.ADHESIVE_SURFACES: dict(ball=dict(adhesion=1.0)),
    contracts.MOVING_SURFACES: dict(ball=dict(surface_velocity=(1, 0, 0, 0, 0, 0))),
    contracts.POLYNOMIAL_JOINTS: dict(stiffness_poly=(0.0, 1.0)),
    contracts.TENDON_ARMATURE: dict(more=lambda m: m.add_tendon({"joint": 1.0}, "t", armature=1.0)),
    contracts.TENDON_LIMITS: dict(more=lambda m: m.add_tendon({"joint": 1.0}, "t", range=(0, 1))),
}


@pytest.mark.parametrize("feature", contracts.FEATURES)
def test_what_a_pipeline_does_not_compute_is_refused(feature):
    sys = one_joint(**LACKING[feature])
    contracts.check_system("test.init", sys)
    with pytest.raises(ModelError, match=re.escape(f"test.init: the model has {feature}, which")):
        contracts.check_system("test.init", sys, tuple(contracts.FEATURES))
    contracts.check_system("test.init", one_joint(), tuple(contracts.FEATURES))
    contracts.check_system("test.init", one_joint("ball"), tuple(contracts.FEATURES))


def test_systems_and_states_print_on_one_line(sys):
    counts = "2 links, 3 joints, 8 degrees of freedom, 2 actuators, 2 geoms, 0 sensors"
    assert repr(sys) == f"System({counts}, timestep 0.01)"
    batch = sys.tree_replace({"opt.timestep": jnp.ones(3)})
    assert repr(batch) == f"System({counts}, timestep float32[3])"
    jax.eval_shape(lambda s: repr(s) and s.opt.timestep, sys)  # while it is traced
    state = SPRING.init(sys, sys.init_q, jnp.zeros(8))
    assert repr(state) == (
        "State(q: float32[9], qd: float32[8], x.pos: float32[2,3], x.rot: float32[2,4], "
        "xd.ang: float32[2,3], xd.vel: float32[2,3])"
    )
    # Trees of the same structure may hold anything, such as the axes for `jax.vmap`.
    assert repr(jax.tree.map(lambda _: 0, state)).startswith("State(q: 0, qd: 0")
