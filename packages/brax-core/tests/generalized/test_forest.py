"""Many small trees that contacts join: balls in a heap, beside a pendulum and a slide."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics_lab import FAST_COMPILE

from brax.generalized.constraints.constraint_layout import constraint_layout
from brax.generalized.pipeline import GENERALIZED
from brax.io import mjcf

BALLS = [(0.19 * (i % 3), 0.19 * (i // 3), 0.095 + 0.02 * (i % 2)) for i in range(6)]
BALLS += [(0.1, 0.1, 0.24), (0.29, 0.1, 0.24), (0.2, 0.1, 0.4)]
"""Six balls of 0.1 m on the floor, and three on them."""

STEPS = 20


def scene():
    """Return the model: contacts of two numbers of directions, a limit, and a damped joint.

    The first ball of the pendulum touches the last one, which belongs to the same tree.
    """
    ball = '<body pos="{:.2f} {:.2f} {:.3f}"><freejoint/><geom size="0.1" condim="{}"/></body>'
    balls = "".join(ball.format(*pos, 6 if i == 8 else 3) for i, pos in enumerate(BALLS))
    return f"""
    <mujoco>
      <option timestep="0.004" iterations="50" ls_iterations="50"/>
      <worldbody>
        <geom type="plane" size="0 0 1"/>
        <body pos="0.5 0.1 0.15">
          <joint type="slide" axis="-1 0 0.1"/>
          <geom size="0.09" mass="3"/>
        </body>
        {balls}
        <body pos="-0.3 0 0.4">
          <joint axis="0 1 0" damping="0.1" limited="true" range="-1 40"/>
          <geom size="0.06" pos="0.12 0 -0.1" mass="2"/>
          <body pos="0.1 0 -0.2">
            <joint axis="0 1 0"/>
            <geom size="0.06" pos="0.05 0 0" mass="1"/>
            <body>
              <joint axis="1 0 0"/>
              <geom size="0.06" pos="0.02 0.02 -0.01" mass="1"/>
            </body>
          </body>
        </body>
      </worldbody>
    </mujoco>
    """


def constrained():
    """Return the scene with a tendon at its limit, which makes one tree of a ball and the slide.

    The two have origins of their own.
    """
    ball, slide = '<geom size="0.1" condim="6"/>', '<geom size="0.09" mass="3"/>'
    text = scene().replace(ball, ball + '<site name="ball" pos="0.06 0 0.03"/>')
    text = text.replace(slide, slide + '<site name="slide" pos="0 0 0.05"/>')
    ends = '<site site="ball"/><site site="slide"/>'
    tendon = f'<tendon><spatial limited="true" range="0 0.33">{ends}</spatial></tendon>'
    return text.replace("</worldbody>", f"</worldbody>{tendon}")


@functools.cache
def model():
    return mjcf.loads(scene())


def simulated(sys, batch=1, steps=STEPS):
    """Return the states of several environments, which start with other velocities."""
    step = jax.vmap(lambda state: GENERALIZED.step(sys, state, jnp.zeros(0)))
    qd = 0.1 * np.sin(np.arange(batch)[:, None] + np.arange(sys.qd_size()))
    start = jax.vmap(lambda qd: GENERALIZED.init(sys, sys.init_q, qd))(jnp.asarray(qd))
    move = jax.jit(
        lambda s: jax.lax.scan(lambda s, _: (step(s), None), s, length=steps)[0],
        compiler_options=FAST_COMPILE,
    )
    return qd, move(start)


def test_the_scene_is_a_forest():
    """Eleven trees, of six, three and one degrees of freedom."""
    found = constraint_layout(model()).forest
    assert found is not None
    assert found.rows.shape == (11, 6)
    assert sorted((found.rows >= 0).sum(axis=1)) == [1, 3, *[6] * 9]


@pytest.mark.parametrize(("made", "trees", "contacts"), [(scene, 11, 21), (constrained, 10, 21)])
@pytest.mark.slow
def test_it_moves_as_mujoco(made, trees, contacts):
    """Velocities after twenty steps in double precision, with contacts."""
    robot = mujoco.MjModel.from_xml_string(made())
    robot.opt.tolerance = 1e-14
    data = mujoco.MjData(robot)
    with jax.enable_x64(True):
        sys = mjcf.loads(made())
        found = constraint_layout(sys).forest
        assert found is not None
        assert len(found.rows) == trees
        qd, state = simulated(sys)
        data.qvel[:] = qd[0]
        mujoco.mj_step(robot, data, 5)
        assert data.ncon == contacts
        mujoco.mj_step(robot, data, STEPS - 5)
        np.testing.assert_allclose(state.qd[0], data.qvel, atol=1e-11)
        np.testing.assert_allclose(state.q[0], data.qpos, atol=1e-11)
        assert float(state.overflow[0]) == 0


@functools.cache
def many():
    """Return the velocities of 37 environments."""
    return np.asarray(simulated(model(), 37)[1].qd)


@pytest.mark.usefixtures("code_generator")
@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(1, marks=pytest.mark.slow),
        pytest.param(3, marks=[pytest.mark.slow, pytest.mark.long]),
        20,
    ],
)
def test_bits_do_not_depend_on_the_batch(batch):
    _, few = simulated(model(), batch)
    np.testing.assert_array_equal(few.qd, many()[:batch])


@pytest.mark.slow  # XLA compiles the derivative backwards
@pytest.mark.long
def test_derivatives_are_those_of_differences():
    """Forwards and backwards through a step in contact, by all velocities."""
    with jax.enable_x64(True):
        sys = mjcf.loads(scene())
        _, state = simulated(sys)
        start = jax.tree.map(lambda x: x[0], state)

        def after(qd):
            return GENERALIZED.step(sys, start.replace(qd=qd), jnp.zeros(0)).qd

        compiled = functools.partial(jax.jit, compiler_options=FAST_COMPILE)
        rng = np.random.default_rng(0)
        along, across = rng.normal(size=(2, sys.qd_size()))
        slope = compiled(lambda: jax.jvp(after, (start.qd,), (along,))[1])()
        back = compiled(lambda: jax.vjp(after, start.qd)[1](jnp.asarray(across))[0])()
        step, move = 1e-7, compiled(after)
        differences = (move(start.qd + step * along) - move(start.qd - step * along)) / (2 * step)
    np.testing.assert_allclose(slope, differences, atol=1e-5)
    assert float(back @ along) == pytest.approx(float(across @ differences), abs=1e-4)
