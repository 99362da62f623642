"""The ant's numbers, from its description and from arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import contact, envs
from brax.dynamics import momentum
from brax.envs.ant import Ant, AntParameters
from brax.envs.observation import size, slices
from brax.errors import ConfigError, ShapeError

ACTION = jnp.array([0.5, -0.5, 1.0, 0.0, 0.0, -1.0, 0.25, 0.0])


@pytest.fixture(scope="module")
def walked(ant):
    """Return a start, and the state one step later."""
    return ant.start, ant.step(ant.start, ACTION)


def test_sizes(ant, walked):
    assert ant.env.observation_size == size(Ant.layout) == 27
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


def test_observation_is_what_its_layout_says(walked):
    _, state = walked
    q, qd = state.pipeline_state.q, state.pipeline_state.qd
    np.testing.assert_array_equal(state.obs, jnp.concatenate([q[2:], qd]))
    named = {part.name: state.obs[entries] for entries, part in slices(Ant.layout)}
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


def lifted(ant, height):
    """Return a start of the ant with its torso at a height."""
    physics = ant.start.pipeline_state
    rise = height - physics.q[2]
    pos = physics.x.pos.at[:, 2].add(rise)
    physics = physics.replace(q=physics.q.at[2].add(rise), x=physics.x.replace(pos=pos))
    return ant.start.replace(pipeline_state=physics)


@pytest.mark.parametrize("height, done", [(0.7, 0), (0.9, 0), (1.1, 1), (5.0, 1)])
def test_it_ends_above_its_heights(ant, height, done):
    assert ant.step(lifted(ant, height), jnp.zeros(8)).done == done


@pytest.mark.parametrize("height, healthy", [(0.19, False), (0.21, True), (jnp.nan, False)])
def test_it_is_healthy_between_its_heights(ant, height, healthy):
    physics = lifted(ant, height).pipeline_state
    assert ant.env._is_healthy(physics) == healthy
    env = Ant(terminate_when_unhealthy=False, healthy_reward=3.0)
    survive = env.rewards(physics, physics, ACTION)["reward_survive"]
    assert survive == (3 if healthy else 0)


def test_lost_numbers_end_it(ant, lost):
    after = ant.step(lost(ant.start), jnp.zeros(8))
    assert jnp.isnan(after.obs).any() and after.done == 1


def test_starts_are_spread_as_told(ant):
    starts = ant.starts
    q, qd = np.asarray(starts.pipeline_state.q), np.asarray(starts.pipeline_state.qd)
    joints = q[:, 7:] - np.array([0, 1, 0, -1, 0, -1, 0, 1])
    assert 0.095 < np.abs(joints).max() <= 0.1 + 1e-6
    assert np.std(joints) == pytest.approx(0.1 / np.sqrt(3), rel=0.05)
    assert np.mean(q[:, 2]) == pytest.approx(0.55, abs=0.01)
    assert np.std(qd) == pytest.approx(0.1, rel=0.05)
    np.testing.assert_allclose(np.linalg.norm(q[:, 3:7], axis=1), 1, rtol=1e-5)
    assert (starts.done == 0).all() and (starts.reward == 0).all()


def test_the_key_decides_and_a_seed_is_refused(ant):
    again = ant.reset(jax.random.split(jax.random.key(0), 512))
    assert (again.obs == ant.starts.obs).all()
    assert len(np.unique(np.asarray(again.obs), axis=0)) == 512
    with pytest.raises(ConfigError, match=r"pass jax\.random\.key\(3\)"):
        ant.env.reset(3)


def test_positions_can_be_shown():
    env = Ant(exclude_current_positions_from_observation=False)
    assert env.observation_size == size(env.observation_layout) == 29
    assert env.observation_layout[0].name == "torso position x, y"


def test_wrong_action_and_wrong_state(ant, pendulum):
    state = ant.start
    with pytest.raises(ShapeError, match="act has 3 entries; 'Ant' has 8 actuators"):
        ant.env.step(state, jnp.zeros(3))
    with pytest.raises(ShapeError, match="state has 2 links, Ant has 9"):
        ant.env.step(pendulum.start, jnp.zeros(8))
    with pytest.raises(ShapeError, match="without physics"):
        ant.env.step(state.replace(pipeline_state=None), jnp.zeros(8))


@pytest.mark.slow
def test_the_contacts_are_told_if_asked_for(ant):
    """Contacts are observed at the links' positions, and nothing else changes."""
    env = Ant(backend=ant.env.backend, debug=True)
    state = jax.jit(env.step)(jax.jit(env.reset)(jax.random.key(0)), jnp.ones(8))
    want = contact.get(env.sys, state.pipeline_state.x)
    assert want is not None
    np.testing.assert_allclose(state.pipeline_state.contact.dist, want.dist, atol=1e-6)
    plain = jax.jit(ant.env.step)(jax.jit(ant.env.reset)(jax.random.key(0)), jnp.ones(8))
    np.testing.assert_allclose(state.obs, plain.obs, rtol=1e-4, atol=1e-5)
    assert plain.pipeline_state.contact is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend",
    [
        "spring",
        pytest.param("positional", marks=pytest.mark.long),
        pytest.param("generalized", marks=pytest.mark.long),
    ],
)
def test_the_feet_of_an_ant_press_with_its_weight_and_the_change_of_its_momentum(backend):
    env = Ant(backend=backend, debug=True)

    @jax.jit
    def stands(key):
        def step(state, _):
            state = env.step(state, jnp.zeros(8))
            physics = state.pipeline_state
            moves = momentum(env.sys, physics.q, physics.qd).vel
            return state, (physics.contact.force.sum(axis=0), moves)

        return jax.lax.scan(step, env.reset(key), length=100)[1]

    force, moves = jax.device_get(stands(jax.random.key(0)))
    weight = 9.81 * float(env.sys.link.inertia.mass.sum())
    want = (moves[-1] - moves[-61]) / (60 * float(env.dt)) + [0, 0, weight]
    np.testing.assert_allclose(force[-60:].mean(axis=0), want, atol=1e-3 * weight)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"healthy_z_range": (1.0, 0.2)}, r"\(1.0, 0.2\) must be two numbers, the lower first"),
        ({"healthy_z_range": (1.0,)}, "must be two numbers, the lower first"),
        ({"healthy_z_range": (0.2, float("nan"))}, "must be two numbers, the lower first"),
        ({"terminate_when_unhealthy": "no"}, "terminate_when_unhealthy='no' must be True or Fal"),
        ({"ctrl_cost_weight": "big"}, "ctrl_cost_weight='big' must be a number"),
        ({"ctrl_cost_weight": True}, "ctrl_cost_weight=True must be a number"),
        ({"healthy_reward": float("nan")}, "healthy_reward=nan must be a number"),
        ({"reset_noise_scale": -1.0}, "reset_noise_scale=-1.0 must be a number, at least 0"),
    ],
)
def test_a_parameter_without_sense_is_refused(given, message):
    with pytest.raises(ConfigError, match=f"environment 'ant': .*{message}"):
        envs.get_environment("ant", **given)


def test_a_parameter_may_be_of_any_kind_of_number():
    for weight in (1, np.float32(0.5), jnp.float32(0.5)):
        envs.get_environment("ant", ctrl_cost_weight=weight, healthy_z_range=[0.1, float("inf")])


def test_wrong_parameters():
    with pytest.raises(ConfigError, match=r"no parameter 'ctrl_cost'.*mean 'ctrl_cost_weight'"):
        envs.get_environment("ant", ctrl_cost=1.0)
    with pytest.raises(ConfigError, match="use_contact_forces=True is not supported"):
        Ant(use_contact_forces=True)
    with pytest.raises(ConfigError, match="n_frames must be an integer >= 1, got 0"):
        Ant(n_frames=0)
    assert Ant(healthy_reward=2.0).parameters == AntParameters(healthy_reward=2.0)
