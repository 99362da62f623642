"""`Env`, `Wrapper` and keys."""

import copy
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.builder import ModelBuilder
from brax.env import (
    AutoResetWrapper,
    Env,
    EpisodeWrapper,
    PipelineEnv,
    State,
    VmapWrapper,
    Wrapper,
    wrap,
)
from brax.errors import ConfigError, ShapeError


class Pixels(Env):
    """An environment whose observation has parts, and whose reset would be expensive."""

    action_size = 1

    def reset(self, rng):
        assert isinstance(rng, jax.core.Tracer), "observation_size must not compute anything"
        obs = {"image": jnp.zeros((8, 6, 3)), "state": jnp.zeros(4)}
        return State(None, obs, jnp.zeros(()), jnp.zeros(()))

    def step(self, state, action):
        return state


def test_observation_size(walker):
    assert walker().observation_size == 1
    assert wrap(walker()).observation_size == 1
    assert Pixels().observation_size == {"image": (8, 6, 3), "state": (4,)}


def test_a_wrapper_forwards_what_it_does_not_know(walker):
    env = wrap(walker(gain=3.0))
    assert env.sys.gain == 3.0
    assert env.action_size == 1
    assert env.unwrapped.__class__ is walker
    assert copy.copy(env).unwrapped is env.unwrapped
    with pytest.raises(AttributeError, match="nothing"):
        _ = env.nothing


def test_another_system_reaches_through_wrappers_and_leaves_them_alone(walker):
    env = Wrapper(Wrapper(walker(gain=3.0)))
    other = env.with_sys(env.sys.replace(gain=jnp.float32(5.0)))
    assert (env.sys.gain, other.sys.gain) == (3.0, 5.0)
    assert type(other) is Wrapper and type(other.env) is Wrapper
    state = env.reset(jax.random.key(0))
    assert other.step(state, jnp.ones(1)).reward == 5.0
    with pytest.raises(ConfigError, match="Pixels has no system"):
        Pixels().with_sys(env.sys)


def test_a_system_is_not_set_beside_the_one_that_is_used(walker):
    env = Wrapper(walker())
    with pytest.raises(ConfigError, match=r"use env.with_sys\(sys\), or set env.unwrapped.sys"):
        env.sys = env.sys.replace(gain=jnp.float32(5.0))
    assert not hasattr(Wrapper(Pixels()), "sys")


@pytest.mark.parametrize("size", [0, -1, 2.5, "4", True])
def test_a_batch_has_a_size(walker, size):
    with pytest.raises(ConfigError, match=f"batch_size must be an integer >= 1, got {size!r}"):
        VmapWrapper(walker(), size)


def test_a_batch_has_as_many_keys_and_actions(walker):
    env = VmapWrapper(walker(), 4)
    with pytest.raises(ConfigError, match="reset got 5 keys, batch_size is 4"):
        env.reset(jax.random.split(jax.random.key(0), 5))
    state = env.reset(jax.random.key(0))
    for action in (jnp.ones((3, 1)), jnp.ones(())):
        with pytest.raises(ShapeError, match=r"shape \(.*\) for 4 environments: .* \(4, 1\)"):
            env.step(state, action)
    for keys in (jax.random.key(0), jax.random.PRNGKey(0)):
        with pytest.raises(ConfigError, match=r"reset needs a batch of keys: pass jax.random.spl"):
            wrap(walker()).reset(keys)
    with pytest.raises(ConfigError, match="that is wrapped once"):
        VmapWrapper(VmapWrapper(walker())).reset(jax.random.split(jax.random.key(0), 4))


@pytest.mark.parametrize("wrapper", [VmapWrapper, AutoResetWrapper, lambda e: EpisodeWrapper(e, 9)])
def test_what_is_wrapped_already_is_wrapped_from_the_inside(walker, wrapper):
    bare = Wrapper(walker())
    inside = wrapper(bare)
    name = type(inside).__name__
    with pytest.warns(UserWarning, match=f"wrapped already, by {name}: the one inside, Wrap"):
        twice: Any = wrap(inside)
    assert twice.env.env.env is bare
    with pytest.raises(ConfigError, match=f"wrapped already: Wrapper is around {name}. Put"):
        wrap(Wrapper(inside))
    assert isinstance(wrap(bare), AutoResetWrapper)


def test_a_file_is_no_system():
    class Plain(PipelineEnv):
        reset: Any = None
        step: Any = None

    with pytest.raises(ConfigError, match=r"Plain needs a System, got 'ant.xml': load a"):
        Plain("ant.xml")  # type: ignore[arg-type]


class Cart(PipelineEnv):
    """A cart of 1 kg on two rails, with a motor for each and one action."""

    reset: Any = None
    step: Any = None
    action_size = 1

    def __init__(self):
        model = ModelBuilder()
        model.add_body("cart", mass=1.0, inertia=(1, 1, 1))
        for i, axis in enumerate(((1, 0, 0), (0, 1, 0))):
            model.add_joint("cart", "slide", f"rail{i}", axis=axis)
            model.add_actuator(f"rail{i}", gear=1.0 + i)
        super().__init__(model.build())


def test_a_number_is_the_action_of_all_actuators():
    env = Cart()
    start = env.pipeline_init(jnp.zeros(2), jnp.zeros(2))
    step = jax.jit(env.pipeline_step)
    for action, same in ((jnp.float32(0.5), jnp.full(2, 0.5)), (None, jnp.zeros(2))):
        np.testing.assert_array_equal(step(start, action).qd, step(start, same).qd)
    # Force over mass times the time step, 2 ms.
    np.testing.assert_allclose(step(start, jnp.float32(0.5)).qd, [0.001, 0.002], rtol=1e-4)


def test_controls_are_as_many_as_actuators_whatever_the_number_of_actions():
    env = Cart()
    start = env.pipeline_init(jnp.zeros(2), jnp.zeros(2))
    after = env.pipeline_step(start, jnp.array([0.5, 0.0]))
    np.testing.assert_allclose(after.qd, [0.001, 0.0], rtol=1e-4)
    with pytest.raises(ShapeError, match="act has 1 entries; 'Cart' has 2 actuators"):
        env.pipeline_step(start, jnp.zeros(1))


def test_both_kinds_of_key_give_the_same_episode(walker):
    new = jax.random.key(3)
    old = jax.random.key_data(new)
    env = VmapWrapper(walker(), 4)
    assert np.array_equal(env.reset(new).obs, env.reset(old).obs)
    batch = wrap(walker(), reset="fresh")
    for key in (new, old):
        assert batch.reset(jax.random.split(key, 4)).obs.shape == (4, 1)


@pytest.mark.parametrize("seed", [0, np.int64(7), 1.5, jnp.int32(3)])
def test_a_seed_is_not_a_key(walker, seed):
    with pytest.raises(ConfigError, match=r"pass jax.random.key\("):
        VmapWrapper(walker(), 2).reset(seed)
