"""Randomized systems that are declared, and what users' own functions may do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import plugins
from brax.builder import ModelBuilder
from brax.env import (
    DomainRandomizationVmapWrapper,
    PipelineEnv,
    Randomization,
    Range,
    State,
    wrap,
)
from brax.errors import ConfigError, UnknownNameError


def keys(n, seed=0):
    return jax.random.split(jax.random.key(seed), n)


@pytest.fixture(scope="module")
def balls():
    """Two balls of 1 and 2 kg that fall on a floor."""
    model = ModelBuilder()
    model.set_option(timestep=0.01)
    model.add_geom("world", "plane", name="floor")
    for i, mass in enumerate((1.0, 2.0)):
        model.add_body(f"ball{i}", pos=(0, i, 0.5), mass=mass, inertia=(0.01, 0.01, 0.01))
        model.add_joint(f"ball{i}", "slide", f"rise{i}", axis=(0, 0, 1))
        model.add_geom(f"ball{i}", "sphere", name=f"ball{i}", size=(0.1,))
    return model.build()


def draw(sys, n=4000, **ranges):
    named = {name.replace("__", "."): bounds for name, bounds in ranges.items()}
    return jax.jit(Randomization(named))(sys, keys(n))[0]


def test_bounds_are_reached_and_not_passed(balls):
    drawn = draw(
        balls,
        body_mass=Range(0.5, 1.5),
        opt__gravity=Range(-1, 1, how="add"),
        dof_damping=Range((0.1, 0.3), (0.2, 0.3), how="set"),
    )
    mass, gravity = drawn.link.inertia.mass, drawn.opt.gravity
    for values, low, high in [
        (mass[:, 0], 0.5, 1.5),
        (mass[:, 1], 1.0, 3.0),
        (gravity[:, 2], -10.81, -8.81),
        (drawn.dof.damping[:, 0], 0.1, 0.2),
    ]:
        assert low <= values.min() < low + 0.01 * (high - low)
        assert high >= values.max() > high - 0.01 * (high - low)
        # Of an even spread: (high - low)^2 / 12, known to 3 % from 4000 draws.
        assert float(values.var()) == pytest.approx((high - low) ** 2 / 12, rel=0.1)
    np.testing.assert_allclose(drawn.dof.damping[:, 1], 0.3, rtol=1e-6)
    assert abs(np.corrcoef(mass.T)[0, 1]) < 0.06 and abs(np.corrcoef(gravity.T)[0, 1]) < 0.06
    assert abs(np.corrcoef(mass[:, 0], gravity[:, 0])[0, 1]) < 0.06


def test_entries_may_share_a_draw(balls):
    mass = draw(balls, 5, body_mass=Range(0.5, 1.5, shared=True)).link.inertia.mass
    np.testing.assert_allclose(mass[:, 1], 2 * mass[:, 0], rtol=1e-6)
    assert len(np.unique(mass[:, 0])) == 5


@pytest.mark.slow
def test_a_ball_of_random_size_rests_on_its_own_radius(balls):
    """Sizes of geoms are numbers like others: each environment's ball comes to lie at its own."""
    systems = draw(balls, 3, geom_size=Range(0.5, 2.0))
    pipeline = plugins.get("pipeline", "positional")

    def height(size):
        sys = balls.replace(geom_size=size)
        state = pipeline.init(sys, sys.init_q, jnp.zeros(2))
        return pipeline.step(sys, state, jnp.zeros(0), 200).x.pos[:, 2]

    radius = systems.geom.size[:, 1:, 0]
    assert radius.min() > 0.05 and radius.max() < 0.2 and radius.std() > 0.01
    np.testing.assert_allclose(jax.jit(jax.vmap(height))(systems.geom.size), radius, atol=2e-3)


def test_what_cannot_be_randomized_is_named(balls):
    with pytest.raises(UnknownNameError, match=r"'body_mas'.*Did you mean 'body_mass'"):
        draw(balls, body_mas=Range(0, 1))
    with pytest.raises(ConfigError, match=r"'link.inertia': it is not an array but Inertia"):
        draw(balls, link__inertia=Range(0, 1))
    with pytest.raises(ConfigError, match=r"shape \(3,\) do not fit its shape \(2,\)"):
        draw(balls, dof_damping=Range(jnp.zeros(3), 1))
    with pytest.raises(ConfigError, match="low must not exceed high"):
        Range(1, 0)
    with pytest.raises(ConfigError, match="how must be 'scale', 'add' or 'set', got 'log'"):
        Range(0, 1, how="log")  # type: ignore[arg-type]


def test_each_episode_has_its_draw_in_the_state(walker):
    randomize = Randomization({"gain": Range(1.0, 2.0)})
    env = wrap(walker(), 1, randomization_fn=randomize, reset="fresh")
    first = jax.jit(env.reset)(keys(4))
    second = jax.jit(env.step)(first, jnp.ones((4, 1)))
    gains = [s.info["randomized"]["gain"] for s in (first, second)]
    assert not np.isin(*gains).any()
    np.testing.assert_array_equal(second.reward, gains[0])


def test_what_a_function_replaces_for_all_is_kept(walker):
    def longer(sys):
        axes = jax.tree.map(lambda x: None, sys).replace(gain=0)
        return sys.replace(gain=jnp.array([1.0, 2.0]), end=jnp.float32(1.5)), axes

    env = wrap(walker(), randomization_fn=longer)
    state = jax.jit(env.step)(jax.jit(env.reset)(keys(2)), jnp.ones((2, 1)))
    # From at most 0.5, ways of 1 and 2: beyond 1.5 is the second alone, in the model neither.
    assert state.done.tolist() == [0, 1]


def test_a_function_may_not_change_the_model_itself(balls):
    from brax.env import PipelineEnv, State
    from brax.env.wrappers import DomainRandomizationVmapWrapper

    class Still(PipelineEnv):
        def reset(self, rng):
            physics = self.pipeline_init(self.sys.init_q, jnp.zeros(2))
            return State(physics, physics.q, jnp.zeros(()), jnp.zeros(()))

        def step(self, state, action):
            return state

    def renamed(sys, rng):
        axes = jax.tree.map(lambda x: None, sys).replace(gravity=0)
        return sys.replace(link_names=("a", "b"), gravity=jnp.zeros((2, 3))), axes

    env = DomainRandomizationVmapWrapper(Still(balls), renamed)
    with pytest.raises(ConfigError, match="only numbers of the system"):
        env.reset(keys(2))


class Sliding(PipelineEnv):
    """A mass on a rail, at 1 m/s, on which nothing acts."""

    def __init__(self):
        model = ModelBuilder()
        model.set_option(timestep=0.01, gravity=(0, 0, 0))
        model.add_body("cart", mass=2.0, inertia=(0.1, 0.1, 0.1))
        model.add_joint("cart", "slide", "rail", axis=(1, 0, 0))
        super().__init__(model.build(), "generalized", 1)

    def reset(self, rng):
        physics = self.pipeline_init(self.sys.init_q, jnp.ones(1))
        zero = jnp.zeros(())
        return State(physics, physics.qd, zero, zero, {}, {})

    def step(self, state, action):
        physics = self.pipeline_step(state.pipeline_state, jnp.zeros(0))
        return state.replace(pipeline_state=physics, obs=physics.qd)


@pytest.mark.parametrize("declared", [True, False])
def test_dry_friction_in_a_model_without_any_is_felt(declared):
    """The rate falls by 3 N / 2 kg * .01 s, up to the softness of dry friction, in one step."""

    def by_hand(sys, rng):
        in_axes = jax.tree.map(lambda x: None, sys).tree_replace({"dof_frictionloss": 0})
        return sys.tree_replace({"dof_frictionloss": jnp.full((len(rng), 1), 3.0)}), in_axes

    draw = Randomization({"dof_frictionloss": Range(3.0, 3.0, how="set")}) if declared else by_hand
    env = DomainRandomizationVmapWrapper(Sliding(), draw)
    state = jax.jit(lambda key: env.step(env.reset(key), jnp.zeros((2, 0))))(keys(2))
    np.testing.assert_allclose(state.obs, 1.0 - 3.0 / 2.0 * 0.01, rtol=1e-5)
