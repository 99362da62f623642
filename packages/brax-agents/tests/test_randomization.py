"""Training with physics of each environment's own, as users write the function that draws it."""

import functools
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import on_devices

from brax.builder import ModelBuilder
from brax.env import PipelineEnv, Randomization, Range, State
from brax.training.agents.ppo import train as ppo

STEP = 32 * 4  # environments and their steps in one training step
SMALL: dict[str, Any] = {
    "num_envs": 32,
    "num_eval_envs": 16,
    "unroll_length": 4,
    "batch_size": 32,
    "num_minibatches": 1,
    "num_updates_per_batch": 1,
    "episode_length": 8,
    "num_evals": 2,
    "network_factory": {"policy_hidden_layer_sizes": [8], "value_hidden_layer_sizes": [8]},
}


class Cart(PipelineEnv):
    """A cart of 1 kg on a rail; `mass` is a metric, so that what it weighs is seen."""

    def __init__(self, force=1.0):
        model = ModelBuilder()
        model.set_option(timestep=0.01)
        model.add_body("cart", mass=1.0, inertia=(0.01, 0.01, 0.01))
        model.add_joint("cart", "slide", "rail", axis=(1, 0, 0))
        model.add_actuator("rail", gear=force, ctrl_range=(-1, 1))
        super().__init__(model.build(), "spring", 2)

    def reset(self, rng):
        q = jax.random.uniform(rng, (1,))
        return self.seen(self.pipeline_init(q, jnp.zeros(1)))

    def step(self, state, action):
        new = self.seen(self.pipeline_step(state.pipeline_state, action))
        return new.replace(info=state.info)

    def seen(self, physics):
        zero, mass = jnp.zeros(()), self.sys.body_mass[1]
        obs = jnp.concatenate([physics.q, physics.qd])
        return State(physics, obs, -jnp.abs(physics.q[0]), zero, {"mass": mass})


def scaled(sys):
    """Masses of 0.5 to 1.5 kg in equal steps, of the model in the enclosing function."""

    def weigh(share):
        return sys.body_mass * (0.5 + share)

    mass = jax.vmap(weigh)(jnp.linspace(0, 1, 32))
    axes = jax.tree.map(lambda x: None, sys).tree_replace({"body_mass": 0})
    return sys.tree_replace({"body_mass": mass}), axes


def fresh(sys, rng):
    """Masses of 2 to 3 kg, drawn."""

    @jax.vmap
    def draw(key):
        return sys.body_mass + jax.random.uniform(key, minval=1.0, maxval=2.0)

    axes = jax.tree.map(lambda x: None, sys).tree_replace({"body_mass": 0})
    return sys.tree_replace({"body_mass": draw(rng)}), axes


DECLARED = Randomization({"body_mass": Range(4.0, 5.0)}, resample=True)
DRAWS: dict[str, Any] = {"scaled": scaled, "fresh": fresh, "declared": DECLARED}
MASSES = {"scaled": (1.0, 1.0), "fresh": (2.0, 3.0), "declared": (4.0, 5.0)}
"""Bounds of the mean mass [kg]."""


def trained(name, with_eval_env, devices):
    """Mean mass of the evaluated carts, and the parameters."""
    settings: dict[str, Any] = SMALL | ({"num_eval_envs": 32} if name == "scaled" else {})
    if with_eval_env:
        settings |= {"eval_env": Cart(force=2.0)}
    _, params, metrics = ppo.train(
        Cart(), 2 * STEP, **settings, randomization_fn=DRAWS[name], max_devices_per_host=devices
    )
    mass = metrics["eval/episode_mass"] / metrics["eval/avg_episode_length"]
    return float(mass), [np.asarray(x).ravel().tolist() for x in jax.tree.leaves(params)]


def main():
    found = {
        f"{name} {with_eval_env}": [trained(name, with_eval_env, count) for count in (1, 8)]
        for name in ("scaled", "fresh")
        for with_eval_env in (False, True)
    }
    print(json.dumps({"devices": jax.device_count(), "found": found}))


@pytest.mark.slow
def test_it_trains_on_what_is_declared():
    mass, params = trained("declared", True, 1)
    assert MASSES["declared"][0] <= mass <= MASSES["declared"][1]
    assert all(np.isfinite(x).all() for x in params)


@pytest.mark.slow
@pytest.mark.long
def test_it_trains_with_and_without_eval_env_on_one_and_on_eight_devices():
    result = json.loads(on_devices(8, __file__, timeout=900).splitlines()[-1])
    assert result["devices"] == 8
    for case, runs in result["found"].items():
        low, high = MASSES[case.split()[0]]
        for mass, params in runs:
            assert low - 1e-4 <= mass <= high + 1e-4, case
            assert all(np.isfinite(x).all() for x in params), case
        (mass, one), (again, eight) = runs
        assert mass == pytest.approx(again, rel=1e-5), case
        for a, b in zip(one, eight, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=case)


@pytest.mark.slow
def test_systems_are_drawn_once_unless_each_reset_is_to_draw():
    from brax.training.agents.ppo.config import PPOConfig
    from brax.training.config import Runtime
    from brax.training.runner.parts import wrap_environment

    for draw, same in ((fresh, True), (DECLARED, False)):
        env = wrap_environment(
            Cart(), PPOConfig(), Runtime(randomization_fn=draw), 3, jax.random.key(0)
        )
        keys = jax.random.split(jax.random.key(1), (2, 3))
        masses = [env.reset(k).info["randomized"]["link.inertia.mass"] for k in keys]
        assert np.array_equal(*masses) == same
        assert len(np.unique(masses[0])) == 3


def test_keys_that_a_user_bound_are_kept():
    from brax.training.agents.ppo.config import PPOConfig
    from brax.training.config import Runtime
    from brax.training.runner.parts import wrap_environment

    def told(sys, rng):
        seen.append(rng)
        return fresh(sys, rng)

    seen: list[Any] = []
    keys = jax.random.split(jax.random.key(7), 3)
    for draw in (functools.partial(told, rng=keys), told):
        runtime = Runtime(randomization_fn=draw)
        env = wrap_environment(Cart(), PPOConfig(), runtime, 3, jax.random.key(0))
        jax.eval_shape(env.reset, keys)
    assert seen[0] is keys and seen[-1] is not keys


if __name__ == "__main__":
    main()
