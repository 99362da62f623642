"""The ant's numbers, from its description and from arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import envs, math
from brax.envs.ant import LAYOUT, Ant, AntParameters
from brax.envs.observation import size, slices
from brax.errors import ConfigError, ShapeError

ACTION = jnp.array([0.5, -0.5, 1.0, 0.0, 0.0, -1.0, 0.25, 0.0])


@pytest.fixture(scope="module")
def walked(ant):
    """A start, and the state one step later."""
    start = ant.reset(jax.random.key(0))
    return start, ant.step(start, ACTION)


def test_sizes(ant, walked):
    assert ant.env.observation_size == size(LAYOUT) == 27
    assert ant.env.action_size == 8
    assert float(ant.env.dt) == pytest.approx(0.05)
    for state in walked:
        assert state.obs.shape == (27,) and state.obs.dtype == jnp.float32
        assert state.reward.dtype == state.done.dtype == jnp.float32


def test_model(ant):
    sys = ant.env.sys
    assert sys.link_types == "f11111111"
    assert sys.link_parents == (-1, 0, 1, 0, 3, 0, 5, 0, 7)
    assert sys.actuator_names == (
        *("hip_4", "ankle_4", "hip_1", "ankle_1", "hip_2", "ankle_2", "hip_3", "ankle_3"),
    )
    touching = {
        (sys.geom_names[a], sys.geom_names[b])
        for group in sys.collisions
        for a, b in zip(group.geom1, group.geom2, strict=True)
    }
    assert touching == {("floor", f"foot_{leg}") for leg in (1, 2, 3, 4)}


def test_at_rest_the_feet_point_outwards_and_down(ant):
    x = ant.env.pipeline_init(ant.env.sys.init_q, jnp.zeros(14)).x
    ends = jnp.array([[0.4, 0.4, 0], [-0.4, 0.4, 0], [-0.4, -0.4, 0], [0.4, -0.4, 0]])
    tips = np.asarray(x.pos[2::2] + math.rotate(ends, x.rot[2::2]))
    # The ankle is 0.4 sqrt(2) from the torso's axis, the foot as long and 1 rad below level.
    length = 0.4 * np.sqrt(2)
    np.testing.assert_allclose(tips[:, 2], 0.55 - length * np.sin(1), atol=1e-6)
    distance = np.linalg.norm(tips[:, :2], axis=1)
    np.testing.assert_allclose(distance, length * (1 + np.cos(1)), atol=1e-6)


def test_observation_is_what_its_layout_says(walked):
    _, state = walked
    q, qd = state.pipeline_state.q, state.pipeline_state.qd
    np.testing.assert_array_equal(state.obs, jnp.concatenate([q[2:], qd]))
    named = {part.name: state.obs[entries] for entries, part in slices(LAYOUT)}
    x, xd = state.pipeline_state.x, state.pipeline_state.xd
    np.testing.assert_allclose(named["torso height"], x.pos[0, 2:], rtol=1e-5)
    np.testing.assert_allclose(named["torso orientation (w, x, y, z)"], x.rot[0], rtol=1e-5)
    np.testing.assert_allclose(named["torso velocity, world axes"], xd.vel[0], atol=1e-5)


def test_reward_is_the_sum_of_its_parts_and_each_is_its_formula(walked):
    start, state = walked
    m = {name: float(value) for name, value in state.metrics.items()}
    before, after = (np.asarray(s.pipeline_state.x.pos[0], float) for s in (start, state))
    speed = (after - before) / 0.05
    assert m["reward_forward"] == m["forward_reward"] == m["x_velocity"]
    assert m["x_velocity"] == pytest.approx(speed[0], rel=1e-4, abs=1e-5)
    assert m["y_velocity"] == pytest.approx(speed[1], rel=1e-4, abs=1e-5)
    assert m["reward_ctrl"] == pytest.approx(-0.5 * (0.25 + 0.25 + 1 + 1 + 0.0625))
    assert (m["reward_survive"], m["reward_contact"]) == (1, 0)
    assert (m["x_position"], m["y_position"]) == pytest.approx(after[:2])
    assert m["distance_from_origin"] == pytest.approx(np.hypot(*after[:2]))
    parts = [m[k] for k in ("reward_forward", "reward_survive", "reward_ctrl", "reward_contact")]
    assert float(state.reward) == pytest.approx(sum(parts))
    assert start.metrics.keys() == state.metrics.keys() and len(m) == 10


def at_height(ant, z):
    """A state of the ant, at rest, with its torso at a height."""
    start = ant.reset(jax.random.key(0))
    q = ant.env.sys.init_q.at[2].set(z)
    return start.replace(pipeline_state=ant.env.pipeline_init(q, jnp.zeros(14)))


@pytest.mark.parametrize("z, done", [(0.7, 0), (0.95, 0), (1.1, 1), (5.0, 1), (-3.0, 1)])
def test_it_ends_outside_of_its_heights(ant, z, done):
    assert ant.step(at_height(ant, z), jnp.zeros(8)).done == done


def test_lost_numbers_are_not_healthy(ant):
    lost = ant.step(at_height(ant, 0.7), jnp.full(8, jnp.nan))
    assert jnp.isnan(lost.obs).any() and lost.done == 1


def test_staying_alive_although_unhealthy(ant):
    env = Ant(terminate_when_unhealthy=False, healthy_reward=3.0)
    for z, survive in ((5.0, 0), (0.7, 3)):
        physics = at_height(ant, z).pipeline_state
        assert env._metrics(physics, physics, ACTION)["reward_survive"] == survive


def test_resets_are_spread_as_told(ant):
    state = jax.jit(jax.vmap(ant.env.reset))(jax.random.split(jax.random.key(1), 512))
    q, qd = np.asarray(state.pipeline_state.q), np.asarray(state.pipeline_state.qd)
    joints = q[:, 7:] - np.asarray(ant.env.sys.init_q[7:])
    assert 0.095 < np.abs(joints).max() <= 0.1 + 1e-6
    assert np.std(joints) == pytest.approx(0.1 / np.sqrt(3), rel=0.05)
    assert np.std(qd) == pytest.approx(0.1, rel=0.05)
    np.testing.assert_allclose(np.linalg.norm(q[:, 3:7], axis=1), 1, rtol=1e-5)
    assert (state.done == 0).all() and (state.reward == 0).all()


def test_the_key_decides_and_a_seed_is_refused(ant):
    one, same, other = (ant.reset(jax.random.key(seed)).obs for seed in (3, 3, 4))
    assert (one == same).all() and (one != other).all()
    with pytest.raises(ConfigError, match=r"pass jax\.random\.key\(3\)"):
        ant.env.reset(3)


def test_positions_can_be_shown():
    env = Ant(exclude_current_positions_from_observation=False)
    assert env.observation_size == size(env.observation_layout) == 29
    assert env.observation_layout[0].name == "torso position x, y"


def test_wrong_action_and_wrong_state(ant, pendulum):
    state = ant.reset(jax.random.key(0))
    with pytest.raises(ShapeError, match="act has 3 entries; 'Ant' has 8 actuators"):
        ant.env.step(state, jnp.zeros(3))
    with pytest.raises(ShapeError, match="state has 2 links, Ant has 9"):
        ant.env.step(pendulum.reset(jax.random.key(0)), jnp.zeros(8))
    with pytest.raises(ShapeError, match="without physics"):
        ant.env.step(state.replace(pipeline_state=None), jnp.zeros(8))


def test_wrong_parameters():
    with pytest.raises(ConfigError, match=r"no parameter 'ctrl_cost'.*mean 'ctrl_cost_weight'"):
        envs.get_environment("ant", ctrl_cost=1.0)
    with pytest.raises(ConfigError, match="use_contact_forces=True is not supported"):
        Ant(use_contact_forces=True)
    with pytest.raises(ConfigError, match="n_frames must be an integer >= 1, got 0"):
        Ant(n_frames=0)
    assert Ant(healthy_reward=2.0).parameters == AntParameters(healthy_reward=2.0)
