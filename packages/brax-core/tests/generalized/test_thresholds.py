"""Models on both sides of each size from which on the solver works otherwise, against MuJoCo."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import both
from physics_lab import FAST_COMPILE

from brax import components, tree
from brax.colliders import broad_phase
from brax.generalized import newton
from brax.generalized.constraints import constraint_layout
from brax.generalized.pipeline import GENERALIZED
from brax.generalized.smooth_dynamics import structure

THRESHOLDS = {
    (tree, "MIN_COLUMN_SUM_OWNERS"): 0,
    (tree, "MIN_CHAIN_DEPTHS"): 2,
    (structure, "MAX_UNROLLED_DOFS"): 1,
    (constraint_layout, "MAX_DENSE_JACOBIAN_ENTRIES"): 0,
    (newton, "MAX_UNROLLED_SUM_ROWS"): 1,
    (newton, "MAX_UNROLLED_LINE_SEARCH"): 0,
    (broad_phase, "MIN_LISTED_POINTS"): 1,
    (broad_phase, "BOXED_PAIRS"): 1,
    (components, "MOST_SLICES"): 0,
}
"""Values at which a model of a few degrees of freedom counts as large."""


@pytest.fixture
def everything_is_large(monkeypatch):
    """Lowers all thresholds."""
    for (module, name), value in THRESHOLDS.items():
        monkeypatch.setattr(module, name, value)
    tree._layout.cache_clear()
    yield
    tree._layout.cache_clear()


@pytest.mark.parametrize("n", [tree.MIN_COLUMN_SUM_OWNERS, tree.MIN_COLUMN_SUM_OWNERS + 1])
def test_rows_of_no_owner_sum_to_zero(n):
    """On both sides of the size from which on sums are taken by columns."""
    assert tree.sum_rows(jnp.ones((0, 2)), (), n).tolist() == [[0.0, 0.0]] * n
    some = tree.sum_rows(jnp.ones((2, 1)), (1, 1), n)
    assert some.ravel().tolist() == [0.0, 2.0] + [0.0] * (n - 2)


def hinges(n: int, chained: bool, joint: str, sections: str) -> str:
    """Return bodies on one hinge each, beside one another or in a chain.

    The first and the last have names and touch the floor.
    """
    bodies, tail = "", ""
    for i in range(n):
        name = {0: "first", n - 1: "last"}.get(i, f"b{i}")
        axis = ("0 1 0", "1 0 .2", ".1 1 1")[i % 3]
        bodies += f"""<body name="{name}" pos="{0.3 if chained else 0.5 * i} 0 0">
<joint name="{name}" axis="{axis}" {joint}/><geom size=".05" pos=".1 .02 .03" mass="1"
contype="0" conaffinity="{int(name in ("first", "last"))}"/><site name="{name}" pos=".1 0 .2"/>"""
        bodies, tail = (bodies, tail + "</body>") if chained else (bodies + "</body>", tail)
    return f"""<mujoco><compiler angle="radian"/><worldbody>
<geom type="plane" size="9 9 1" pos="0 0 -.03"/>{bodies}{tail}</worldbody>{sections}</mujoco>"""


TENDONS = """<fixed name="fixed" {}><joint joint="first" coef="2"/><joint joint="last" coef="-1"/>
</fixed><spatial name="spatial" {}><site site="first"/><site site="last"/></spatial>"""
PLAIN = f"<tendon>{TENDONS.format('', '')}</tendon>"
DRIVEN = {
    "fixed tendon": f'{PLAIN}<actuator><motor tendon="fixed" gear="2"/></actuator>',
    "spatial tendon": f'{PLAIN}<actuator><motor tendon="spatial"/></actuator>',
    "site": '<actuator><motor site="last" gear="1 2 3 .1 .2 .3"/></actuator>',
    "reference site": """<actuator><position site="last" refsite="first" kp="3"
gear="1 0 0 0 0 0"/></actuator>""",
    "passive tendons": "<tendon>{}</tendon>".format(
        TENDONS.format(*2 * ['stiffness="5" damping=".5" springlength="0 .01"'])
    ),
}
"""Actuation of a model in which no actuator is on a joint."""

HELD = f"""<tendon>{
    TENDONS.format(
        'range="-.01 .01" frictionloss=".2"', 'range="0 .1" margin=".1" frictionloss=".3"'
    )
}</tendon>
<equality><connect body1="first" body2="last" anchor="0 0 .1"/><weld body1="last" body2="first"/>
<joint joint1="first" joint2="last" polycoef=".1 2 0 0 0"/><joint joint1="b1"/>
<tendon tendon1="fixed" tendon2="spatial"/></equality>
<actuator><motor joint="first"/><motor tendon="fixed"/><motor tendon="spatial"/>
<motor site="last" gear="1 2 3 .1 .2 .3"/><muscle joint="last" lengthrange="-1 1"/>
<adhesion body="first" ctrlrange="0 1" gain="5"/></actuator>"""
"""Every kind of constraint and transmission."""

JOINT = 'range="-.02 .02" margin=".01" frictionloss=".2" damping=".1" armature=".05"'


def check_step(xml):
    """Compare the rates after a step from a generic state."""
    peer, rng = both(xml), np.random.default_rng(0)
    model, data = peer.model, peer.data
    data.qpos[:], data.qvel[:] = 0.1 * rng.normal(size=model.nq), rng.normal(size=model.nv)
    data.ctrl[:] = 1.0
    sys = peer.sys.replace(opt=peer.sys.opt.replace(iterations=30, ls_iterations=15))
    args = [jnp.array(x) for x in (data.qpos, data.qvel, data.ctrl)]

    def step(sys, q, qd, act):
        return GENERALIZED.step(sys, GENERALIZED.init(sys, q, qd), act).qd

    found = jax.jit(step, compiler_options=FAST_COMPILE)(sys, *args)
    mujoco.mj_step(model, data)
    # Measured 2e-13.
    np.testing.assert_allclose(found, data.qvel, atol=1e-9 * np.abs(data.qvel).max())
    return data.nefc


@pytest.mark.slow
@pytest.mark.parametrize("n", [pytest.param(24, marks=pytest.mark.long), 25])
@pytest.mark.parametrize("kind", DRIVEN)
def test_what_moves_many_joints_alone_is_mujocos(kind, n):
    """No actuator is on a joint: a sum over them is of no rows."""
    check_step(hinges(n, False, "", DRIVEN[kind]))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("chained", [False, True], ids=["side by side", "chained"])
def test_every_constraint_and_transmission_is_mujocos(chained):
    """A model of three degrees of freedom is small by every threshold."""
    assert check_step(hinges(4, chained, JOINT, HELD)) > 20


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("chained", [False, True], ids=["side by side", "chained"])
def test_every_constraint_and_transmission_of_a_large_model_is_mujocos(
    chained, everything_is_large
):
    """The same where all thresholds are so low that it is large."""
    assert check_step(hinges(4, chained, JOINT, HELD)) > 20
