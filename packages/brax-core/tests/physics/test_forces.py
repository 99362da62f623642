"""Sensors of forces and accelerations in every pipeline, against closed forms.

Everything stands, slides, turns or falls in one world, which is compiled once a pipeline.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import PIPELINES, G

from brax import contact, math, plugins
from brax.io import mjcf
from brax.sensors import sensors, slices

DT, FRAMES, RECORDS = 0.004, 2, 400
MU = 0.5
ON_FLOOR = 'contype="1" conaffinity="0"'


def free(name, pos, geom, turn="1 0 0 0", inertia=""):
    """Return a free body with a site that measures all contacts of the body."""
    return (
        f'<body name="{name}" pos="{pos}" quat="{turn}"><freejoint/>{inertia}{geom}'
        f'<site name="{name}" size="3"/></body>'
    )


WORLD = f"""<mujoco><option timestep="{DT}" iterations="50"/><compiler angle="radian"/><worldbody>
<geom type="plane" size="50 50 1" contype="0" conaffinity="1" friction="{MU} 0 0"/>
{free("ball", "0 0 .201", f'<geom size=".2" mass="2" {ON_FLOOR}/>')}
{free("box", "2 0 .201", f'<geom type="box" size=".2 .3 .2" mass="2" {ON_FLOOR}/>')}
{
    free(
        "lopsided",
        "4 0 .201",
        f'<geom type="box" size=".2 .3 .2" {ON_FLOOR}/>',
        inertia='<inertial pos=".1 .05 .02" mass="2" diaginertia=".05 .05 .05"/>',
    )
}
{free("capsule", "6 0 .101", f'<geom type="capsule" size=".1 .3" mass="2" {ON_FLOOR}/>', "1 0 1 0")}
{free("lower", "8 0 .2", '<geom type="box" size=".2 .2 .2" mass="2" contype="3" conaffinity="0"/>')}
{
    free(
        "upper",
        "8 0 .6",
        '<geom type="box" size=".15 .15 .2" mass="1" contype="1" conaffinity="2"/>',
    )
}
{
    free(
        "slider",
        "0 9 .2",
        f'<geom type="box" size=".3 .3 .2" mass="3" {ON_FLOOR} friction=".5 0 0"/>',
    )
}
{free("faller", "0 15 50", f'<geom size=".2" mass="2" {ON_FLOOR}/>', "1 .2 .3 0")}
{free("dropped", "0 18 .3", f'<geom size=".2" mass="2" {ON_FLOOR}/>')}
<body name="arm" pos="0 20 2"><joint axis="0 0 1"/><site name="hub"/><site name="rim" pos=".5 0 0"/>
<inertial pos=".3 0 0" mass="2" diaginertia=".02 .02 .02"/></body>
<body name="pendulum" pos="0 25 2"><joint axis="0 1 0"/><site name="bob" pos=".8 0 0"/>
<inertial pos=".5 0 0" mass="2" diaginertia=".06 .1 .06"/></body>
<body name="bridge" pos="0 30 2"><joint axis="0 1 0"/><site name="pier"/>
<inertial pos=".4 0 0" mass="2" diaginertia=".06 .1 .06"/></body>
</worldbody>
<equality><connect body1="bridge" anchor=".8 0 0"/></equality>
<sensor>
{
    "".join(
        f'<touch name="{n}_touch" site="{n}"/><accelerometer name="{n}_acc" site="{n}"/>'
        for n in (
            "ball",
            "box",
            "lopsided",
            "capsule",
            "lower",
            "upper",
            "slider",
            "faller",
            "dropped",
        )
    )
}
<accelerometer name="rim_acc" site="rim"/><force name="hub_force" site="hub"/>
<accelerometer name="bob_acc" site="bob"/><force name="pier_force" site="pier"/>
<torque name="pier_torque" site="pier"/>
</sensor></mujoco>"""


@functools.lru_cache
def room():
    return mjcf.loads(WORLD)


@functools.lru_cache
def recorded(pipeline):
    """Return the readings of the sensors, and the states, after each of the records' steps."""
    sys, engine = room(), plugins.get("pipeline", pipeline)
    qd = jnp.zeros(sys.qd_size())
    qd = qd.at[6 * 6].set(3.0).at[6 * 7 + 1].set(2.0).at[6 * 9].set(5.0)

    @jax.jit
    def run():
        def step(state, _):
            state = engine.step(sys, state, jnp.zeros(0), FRAMES)
            return state, (sensors(sys, state, jnp.zeros(0)), state)

        start = engine.with_forces(sys, engine.init(sys, sys.init_q, qd))
        return jax.lax.scan(step, start, length=RECORDS)[1]

    read, states = jax.device_get(run())
    return {name: read[:, place] for name, place in slices(sys).items()}, states


@pytest.fixture(params=PIPELINES)
def pipeline(request, f64):
    return request.param


def settled(pipeline, values):
    """Values after each record's steps; of `positional` their mean.

    All contacts of a world share the length of its solver's moves, so that at four passes the
    impulses of each alternate about what they should be: by 4 % of 2 kg's weight for a ball.
    """
    return values.mean(axis=0, keepdims=True) if pipeline == "positional" else values


def upright(states, name, vector):
    """Vectors along a link's axes, as of its sensors, in the world's."""
    rot = states.x.rot[:, room().link_names.index(name)]
    return np.asarray(jax.vmap(math.rotate)(vector, rot))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mass"),
    [("ball", 2), ("box", 2), ("lopsided", 2), ("capsule", 2), ("lower", 4), ("upper", 1)],
)
def test_what_rests_presses_with_its_weight_and_accelerates_upwards(pipeline, name, mass):
    # The lower box touches the floor with the weight of both and the upper one with its weight.
    read, states = recorded(pipeline)
    press = settled(pipeline, read[f"{name}_touch"][-200:])
    np.testing.assert_allclose(press, mass * G, rtol=1e-3)
    up = settled(pipeline, upright(states, name, read[f"{name}_acc"])[-200:])
    np.testing.assert_allclose(up, [[0, 0, G]] * len(up), atol=1e-3 * G)


@pytest.mark.slow
@pytest.mark.long
def test_contacts_balance_the_weight_of_what_is_lopsided(pipeline):
    _, states = recorded(pipeline)
    sys, last = room(), jax.tree.map(lambda x: x[-200:], states)
    found, link = contact.get(sys, jax.tree.map(lambda x: x[-1], last.x)), 2
    assert found is not None
    mine = np.asarray(found.link_idx[1]) == link
    force = settled(pipeline, last.forces.contact[:, mine])
    centre = last.x.pos[-1, link] + [0.1, 0.05, 0.02]
    turn = np.cross(np.asarray(found.pos)[mine] - centre, force).sum(axis=1)
    np.testing.assert_allclose(force.sum(axis=1), [[0, 0, 2 * G]] * len(force), atol=1e-3 * 2 * G)
    np.testing.assert_allclose(turn, 0 * turn, atol=2e-3 * 2 * G)
    load = settled(pipeline, last.forces.load.vel[:, link])
    np.testing.assert_allclose(load, force.sum(axis=1), atol=1e-9)


@pytest.mark.slow
@pytest.mark.long
def test_what_slides_is_held_by_friction(pipeline):
    _, states = recorded(pipeline)
    link, middle = room().link_names.index("slider"), slice(30, 60)
    assert (states.xd.vel[middle, link, 0] > 0.5).all()
    force = states.forces.load.vel[middle, link]
    np.testing.assert_allclose(force[:, 0], -MU * force[:, 2], atol=1e-3 * 3 * G)
    np.testing.assert_allclose(force[:, 1], 0, atol=1e-3 * 3 * G)


@pytest.mark.slow
def test_friction_slows_down_by_its_share_of_the_weight(f64):
    # In `spring` alone: in `generalized` the box rocks on its soft contacts, see also `settled`.
    read, states = recorded("spring")
    link, middle = room().link_names.index("slider"), slice(30, 60)
    want = np.array([[-MU * G, 0, G]] * 30)
    np.testing.assert_allclose(states.forces.load.vel[middle, link], 3 * want, atol=1e-3 * 3 * G)
    felt = upright(states, "slider", read["slider_acc"])[middle]
    np.testing.assert_allclose(felt, want, atol=1e-3 * G)


@pytest.mark.slow
@pytest.mark.long
def test_what_falls_freely_feels_nothing(pipeline):
    read, _ = recorded(pipeline)
    np.testing.assert_allclose(read["faller_acc"][:200], 0, atol=1e-9)
    np.testing.assert_array_equal(read["faller_touch"][:200], 0)


@pytest.mark.slow
@pytest.mark.long
def test_an_impact_gives_the_change_of_momentum_over_the_length_of_the_step(pipeline):
    _, states = recorded(pipeline)
    link, time = room().link_names.index("dropped"), DT * FRAMES
    speed = np.concatenate([[0.0], states.xd.vel[:, link, 2]])
    force = 2 * (np.diff(speed) / time + G)
    assert force.max() > 10 * G
    np.testing.assert_allclose(states.forces.load.vel[:, link, 2], force, atol=1e-9 * force.max())


@pytest.mark.slow
@pytest.mark.long
def test_what_turns_is_pulled_inwards(pipeline):
    # The first two steps take up that the joint holds the arm to second order only.
    read, states = recorded(pipeline)
    inwards = -(states.qd[2:, 54] ** 2)
    np.testing.assert_allclose(states.qd[:, 54], 5.0, rtol=2e-4)  # 1.3e-4 in `spring`
    rim, hub = read["rim_acc"][2:], read["hub_force"][2:]
    none, up = np.zeros_like(inwards), np.full_like(inwards, G)
    np.testing.assert_allclose(rim, np.stack([0.5 * inwards, none, up], 1), atol=5e-3)
    want = np.stack([2 * 0.3 * inwards, none, 2 * up], 1)
    np.testing.assert_allclose(hub, want, atol=5e-3)


@pytest.mark.slow
@pytest.mark.long
def test_a_pendulum_is_let_go(pipeline):
    read, _ = recorded(pipeline)
    falls = 2 * G * 0.5 / (0.1 + 2 * 0.5**2)
    np.testing.assert_allclose(read["bob_acc"][0, 2], G - 0.8 * falls, atol=1e-3 * G)


@pytest.mark.slow
@pytest.mark.long
def test_two_piers_share_the_weight_of_a_bridge(pipeline):
    # One is the hinge, whose force the sensor reads, and one an equality constraint.
    read, _ = recorded(pipeline)
    np.testing.assert_allclose(read["pier_force"][-50:, 2], G, rtol=1e-3)
    np.testing.assert_allclose(read["pier_torque"][-50:, 1], 0, atol=1e-3 * G)


def hung(name, y):
    """Return a body of 1 kg on a vertical slide, and its tendon's path to an anchor above."""
    return (
        f'<site name="{name}_anchor" pos="3 {y} 4"/><body name="{name}" pos="0 {y} 0">'
        f'<joint type="slide" axis="0 0 1"/><geom size=".1" mass="1"/><site name="{name}"/></body>',
        f'<site site="{name}_anchor"/><site site="{name}"/></spatial>',
    )


LIMITED, EQUAL, PULLED, SPRUNG, RUBBED = (
    hung(name, 9 * k) for k, name in enumerate(("limited", "equal", "pulled", "sprung", "rubbed"))
)
HANGING = f"""<mujoco><option timestep="{DT}" iterations="50"/>
<worldbody>{LIMITED[0]}{EQUAL[0]}{PULLED[0]}{SPRUNG[0]}{RUBBED[0]}</worldbody>
<tendon><spatial limited="true" range="0 5">{LIMITED[1]}<spatial name="equal">{EQUAL[1]}
<spatial name="pulled">{PULLED[1]}<spatial stiffness="2" springlength="0">{SPRUNG[1]}
<spatial frictionloss="5">{RUBBED[1]}</tendon>
<equality><tendon tendon1="equal"/></equality>
<actuator><motor tendon="pulled" gear="-10"/></actuator>
<sensor><force name="limited" site="limited"/><force name="equal" site="equal"/>
<force name="pulled" site="pulled"/><force name="sprung" site="sprung"/>
<force name="rubbed" site="rubbed"/></sensor></mujoco>"""


@pytest.mark.slow
def test_a_slide_bears_the_part_of_a_tendons_pull_that_is_across_it(pipeline):
    """A pull T along (3, 0, 4) / 5 is borne by the slide with (-.6 T, 0, 0); it bears no weight.

    A tendon of fixed length carries the weight: .8 T = G. The others pull by 10, by 2 x 5 and by
    5 N in the first step.
    """
    sys, engine = mjcf.loads(HANGING), plugins.get("pipeline", pipeline)

    @jax.jit
    def run():
        def step(state, _):
            state = engine.step(sys, state, jnp.ones(1))
            return state, sensors(sys, state, jnp.ones(1))

        start = engine.init(sys, sys.init_q, jnp.zeros(5).at[4].set(-0.1))
        return jax.lax.scan(step, engine.with_forces(sys, start), length=200)[1]

    read = np.array(run()).reshape(200, 5, 3)
    across = np.array([0.6 * G / 0.8, 0.6 * G / 0.8, 6.0, 6.0, 3.0])
    found = np.concatenate([read[-1, :2], read[0, 2:]])
    np.testing.assert_allclose(found[:, 0], -across, rtol=2e-3)
    np.testing.assert_allclose(found[:, 1:], 0, atol=2e-3 * G)
