"""Frames, mass matrix and bias force against MuJoCo, from generic states (T27 to T32)."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import MODELS, both, generic, random_tree, stages, theirs
from physics_lab import FAST_COMPILE

from brax import dynamics


def departures(peer, rng):
    """Return the error of each stage against MuJoCo, relative to its largest number."""
    q, qd = generic(peer, rng)
    ours, wanted = stages(peer.sys, q, qd), theirs(peer, q, qd)
    # q and -q are one rotation.
    turned = np.abs(np.sum(np.asarray(ours.rot) * wanted.rot, axis=-1))
    out = {"rot": 1 - turned.min()}
    for name in ("mass", "bias", "pos"):
        a, b = np.asarray(getattr(ours, name)), getattr(wanted, name)
        out[name] = np.abs(a - b).max() / (1e-9 + np.abs(b).max())
    assert np.array_equal(np.asarray(ours.mass), np.asarray(ours.mass).T)
    assert np.linalg.eigvalsh(ours.mass).min() > 0
    return out


BARS = {"mass": (1e-11, 1e-5), "bias": (1e-10, 1e-4), "pos": (1e-12, 1e-5), "rot": (1e-12, 1e-5)}
"""In double and in single precision. Measured on all models and trees in double precision: 1e-15,
6e-15, 4e-16, 7e-16."""


def check(peer, rng, bound, *about):
    for stage, error in departures(peer, rng).items():
        assert error < bound(*BARS[stage]), (stage, error, *about)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [n if n == "ant" else pytest.param(n, marks=pytest.mark.slow) for n in MODELS],
)
def test_stages_of_a_model_are_mujocos(name, bound_slow):
    # T27, T29, T31: mass matrix, bias force, frames.
    peer, rng = both(MODELS[name]), np.random.default_rng(1)
    for _ in range(3):
        check(peer, rng, bound_slow)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 10))]
)
def test_stages_of_random_trees_are_mujocos(shape, bound_slow):
    # T27, T29, T31: a hundred trees.
    for seed in range(10):
        text = random_tree(shape, seed)
        check(both(text), np.random.default_rng(seed), bound_slow, seed, text)


def chains(depth, branch):
    """Return two equal chains on a free body, one with a branch, and another tree."""
    link = (
        '<body pos=".1 0 {}"><joint axis="{} 1 0" pos="0 0 .01" armature=".001" damping=".01"/>'
        '{}<geom type="capsule" fromto="0 0 0 .1 0 0" size=".02" contype="0"/>'
    )
    more = '<body pos="0 .05 0"><joint axis="0 0 1"/><geom size=".03" contype="0"/></body>'
    chain = "".join(link.format(".02", i % 2, more if i == branch else "") for i in range(depth))
    every = chain + "</body>" * depth
    body = '<body><freejoint/><geom size=".1" contype="0"/>'
    other = f'<body pos="0 2 0"><freejoint/><geom size=".1" contype="0"/>{more}</body>'
    return f"<mujoco><worldbody>{body}{every}{every}</body>{other}</worldbody></mujoco>"


@pytest.mark.slow
@pytest.mark.parametrize("branch", [None, 5])
@pytest.mark.long
def test_stages_of_long_chains_are_mujocos(branch, bound_slow):
    check(both(chains(20, branch)), np.random.default_rng(2), bound_slow)


@pytest.fixture(scope="module")
def tree():
    """Return a model with a stack of joints and a branch, its state, and MuJoCo's data there."""
    with jax.enable_x64(True):
        peer = both(random_tree(5, 7))
    q, qd = generic(peer, np.random.default_rng(3))
    theirs(peer, q, qd)
    return peer, q, qd


@pytest.mark.slow
def test_inverse_dynamics_is_mujocos_and_forward_dynamics_undoes_it(tree):
    # T29, T30
    peer, q, qd = tree
    qdd = np.random.default_rng(4).normal(size=peer.model.nv)
    peer.data.qacc[:] = qdd
    wanted = np.zeros(peer.model.nv)
    mujoco.mj_rne(peer.model, peer.data, 1, wanted)
    wanted += peer.model.dof_armature * qdd
    force = dynamics.inverse_dynamics(peer.sys, q, qd, qdd)
    np.testing.assert_allclose(force, wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max())
    back = dynamics.forward_dynamics(peer.sys, q, qd, force)
    np.testing.assert_allclose(back, qdd, atol=1e-10)


@pytest.mark.slow
def test_columns_of_the_mass_matrix_are_inverse_dynamics(tree):
    # T28
    peer, q, _ = tree
    still, rest = jnp.zeros(peer.model.nv), np.zeros(peer.model.nv)
    force = jax.jit(
        jax.vmap(lambda a: dynamics.inverse_dynamics(peer.sys, q, still, a)),
        compiler_options=FAST_COMPILE,
    )
    columns = force(np.vstack([np.eye(peer.model.nv), rest]))
    mass = np.asarray(dynamics.mass_matrix(peer.sys, q))
    eps = np.finfo(float).eps
    np.testing.assert_allclose(
        columns[:-1] - columns[-1], mass, atol=1e3 * eps * np.abs(mass).max()
    )


@pytest.mark.slow
def test_jacobians_are_mujocos(tree):
    # T32
    peer, q, _ = tree
    point = np.array([0.1, -0.2, 0.3])
    for body in range(1, peer.model.nbody):
        at = peer.data.xpos[body] + peer.data.xmat[body].reshape(3, 3) @ point
        linear, angular = np.zeros((2, 3, peer.model.nv))
        mujoco.mj_jac(peer.model, peer.data, linear, angular, at, body)
        ours = dynamics.jacobian(peer.sys, q, body - 1, jnp.asarray(point))
        np.testing.assert_allclose(ours.vel.T, linear, atol=1e-11)
        np.testing.assert_allclose(ours.ang.T, angular, atol=1e-11)


@pytest.mark.slow
def test_energy_and_momentum_are_mujocos(tree):
    peer, q, qd = tree
    mujoco.mj_energyPos(peer.model, peer.data)
    mujoco.mj_energyVel(peer.model, peer.data)
    mujoco.mj_subtreeVel(peer.model, peer.data)
    kinetic, potential = dynamics.energy(peer.sys, q, qd)
    np.testing.assert_allclose([potential, kinetic], peer.data.energy, rtol=1e-11)
    total = dynamics.momentum(peer.sys, q, qd)
    mass = peer.model.body_mass.sum()
    linear = mass * peer.data.subtree_linvel[0]
    np.testing.assert_allclose(total.vel, linear, atol=1e-11)
    wanted = peer.data.subtree_angmom[0] + np.cross(peer.data.subtree_com[0], linear)
    np.testing.assert_allclose(total.ang, wanted, atol=1e-11)


def test_inverse_weights_are_mujocos():
    for xml in (MODELS["humanoid"], MODELS["hopper"], random_tree(2, 1)):
        peer = both(xml)
        np.testing.assert_allclose(peer.sys.body_invweight0, peer.model.body_invweight0, rtol=1e-9)
        np.testing.assert_allclose(peer.sys.dof_invweight0, peer.model.dof_invweight0, rtol=1e-9)


SLIDES = {
    "one": ("z", ""),
    "one, with a rotor": ("z", 'armature="4"'),
    "two": ("xy", 'armature=".3"'),
    "three": ("zxy", ""),
    "beside the anchor": ("z", 'pos=".1 0 0"'),
}
AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 -1"}
BODIES = {
    "centred": ('<geom type="box" size=".1 .2 .3" mass="2"/>', ""),
    "turned": ('<geom type="box" size=".1 .2 .3" mass="2" euler="0 0 30"/>', ""),
    "off centre": ('<geom size=".1" mass="2" pos=".1 0 0"/>', ""),
    "with a welded part": ('<geom size=".1" mass="2"/>', '<body><geom size=".1"/></body>'),
    "with a child": (
        '<geom size=".1" mass="2"/>',
        '<body pos=".2 0 0"><joint axis="0 1 0"/><geom size=".1"/></body>',
    ),
}


def sliders():
    """One model of bodies that slide, in all of these ways, on the world and on a static body."""
    bodies = ""
    for axes, more in SLIDES.values():
        joints = "".join(f'<joint type="slide" axis="{AXES[a]}" {more}/>' for a in axes)
        for i, (geom, child) in enumerate(BODIES.values()):
            body = f'<body pos="{i} 1 0" euler="20 0 30">{joints}{geom}{child}</body>'
            bodies += f'<body pos="0 {i} 0">{body}</body>' if i == 1 else body
    return f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"


def test_inverse_weights_of_what_only_slides_are_mujocos():
    """One over the mass, whatever the armature, where nothing turns, hangs on it or is askew."""
    peer = both(sliders())
    model, on = peer.model, peer.model.geom_bodyid
    assert 2 in model.body_simple and 0 in model.body_simple[1:]
    np.testing.assert_allclose(peer.sys.dof_invweight0, model.dof_invweight0, rtol=1e-9)
    np.testing.assert_allclose(peer.sys.geom.invweight, model.body_invweight0[on, 0], rtol=1e-9)


@pytest.mark.slow
def test_functions_work_for_batches():
    sys = both(MODELS["hopper"]).sys
    q = jnp.stack([sys.init_q, sys.init_q + 0.1])
    many = jax.vmap(dynamics.mass_matrix, in_axes=(None, 0))(sys, q)
    np.testing.assert_allclose(many[1], dynamics.mass_matrix(sys, q[1]), rtol=1e-12)
