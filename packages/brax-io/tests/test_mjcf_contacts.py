"""Pairs of geoms that are tested for contact: MuJoCo's, on random trees."""

import random

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from brax import contact, kinematics
from brax.colliders.narrow_phase import surfaces
from brax.io import mjcf
from brax.io.mjcf.elements.collision_filter import can_collide


def random_model(seed: int) -> str:
    """Spheres that all overlap, in a random tree of moving and fixed bodies."""
    rng = random.Random(seed)

    def geom() -> str:
        bits = f'contype="{rng.choice((0, 1, 1, 2, 3))}" conaffinity="{rng.choice((0, 1, 1, 2))}"'
        return f'<geom size="{rng.uniform(0.5, 1)}" {bits}/>'

    def body(depth: int, names: list[str]) -> str:
        names.append(f"b{len(names)}")
        name = names[-1]
        joint = rng.choice(("", "<joint/>", "<joint/>"))
        below = "".join(body(depth - 1, names) for _ in range(rng.randint(0, 2))) if depth else ""
        return f'<body name="{name}">{joint}{geom()}{geom()}{below}</body>'

    names: list[str] = []
    bodies = "".join(body(3, names) for _ in range(2))
    moving = f'<body name="m"><joint/>{geom()}</body>'
    excludes = "".join(
        '<exclude body1="{}" body2="{}"/>'.format(*pair)
        for pair in {tuple(sorted(rng.sample([*names, "m"], 2))) for _ in range(3)}
    )
    return (
        f"<mujoco><worldbody>{geom()}{bodies}{moving}</worldbody>"
        f"<contact>{excludes}</contact></mujoco>"
    )


@pytest.mark.parametrize("seed", range(20))
def test_pairs_are_mujocos(seed):
    model = mujoco.MjSpec.from_string(random_model(seed)).compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    theirs = {frozenset(pair) for pair in data.contact.geom.tolist()}
    ours = {
        frozenset(pair)
        for group in mjcf.load_model(model).collisions
        for pair in zip(group.geom1, group.geom2, strict=True)
    }
    assert ours == theirs
    assert {frozenset(pair) for pair in np.argwhere(can_collide(model)).tolist()} == theirs
    assert theirs


@pytest.mark.parametrize("seed", range(10))
def test_a_pairs_parameters_are_mujocos(seed):
    rng = np.random.default_rng(seed)

    def ball(where: float) -> str:
        solref = rng.choice([".01 .5", ".03 1", "-100 -5"])
        numbers = " ".join(f"{x:.3f}" for x in rng.uniform(0.1, 0.9, 3))
        return (
            f'<body pos="0 0 {where}"><freejoint/><geom size=".1" solref="{solref}" '
            f'solimp="{numbers} .5 2" solmix="{rng.uniform(0, 3):.2f}" '
            f'priority="{rng.integers(2)}" condim="{rng.choice([1, 3])}" '
            f'friction="{rng.uniform():.3f}" margin="{rng.uniform(0, 0.1):.3f}"/></body>'
        )

    xml = f"<mujoco><worldbody>{ball(0)}{ball(0.15)}</worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    system, theirs = mjcf.load_model(model), data.contact
    (ours,) = surfaces(jax.tree.map(lambda leaf: leaf[..., None], system))
    assert system.collisions[0].condim == theirs.dim[0]
    friction = theirs.friction[0, 0] if theirs.dim[0] > 1 else 0
    for mine, expected in (
        (ours.friction, friction),
        (ours.solref, theirs.solref[0]),
        (ours.solimp, theirs.solimp[0]),
        (ours.margin, theirs.includemargin[0]),
    ):
        np.testing.assert_allclose(np.ravel(mine), np.ravel(expected), rtol=1e-5, err_msg=xml)


@pytest.mark.parametrize("few", [0, 2])
def test_contacts_are_mujocos_with_their_tangents_and_friction(few):
    """A leaning capsule, a ball and a box on a floor, all or the nearest of each collider."""
    xml = """<mujoco><worldbody>
    <geom type="plane" size="1 1 1" friction=".7 .02 .003" condim="6"/>
    <body pos="0 0 .09" euler="0 88 30"><freejoint/><geom type="capsule" size=".1 .2"/></body>
    <body pos="1 0 .09"><freejoint/><geom size=".1" friction="1.2 .01 .004" condim="4"/></body>
    <body pos="0 1 .09" euler="0 0 20"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    </worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    system = mjcf.load_model(model).tree_replace({"opt.max_geom_pairs": few})
    x, _ = kinematics.forward(system, system.init_q, jnp.zeros(18))
    found = contact.get(system, x)
    assert found is not None
    assert len(data.contact.dist) == 7
    for theirs in data.contact:
        near = np.argmin(np.abs(np.asarray(found.pos) - theirs.pos).sum(axis=1))
        np.testing.assert_allclose(found.dist[near], theirs.dist, atol=1e-6)
        np.testing.assert_allclose(np.ravel(found.frame[near]), theirs.frame, atol=1e-5)
        np.testing.assert_allclose(found.friction[near], theirs.friction, rtol=1e-6)
