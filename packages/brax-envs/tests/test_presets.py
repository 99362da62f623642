"""PPO, by the presets for small computers, solves the environments that have one."""

import numpy as np
import pytest

from brax import plugins

if "ppo" not in plugins.names("trainer"):
    pytest.skip("brax-agents brings the trainer", allow_module_level=True)

SEEDS = (0, 1, 2)


def mean_return(name):
    """Mean over seeds of the return after training."""
    trainer = plugins.get("trainer", "ppo")
    env = plugins.get("environment", name)()
    settings = trainer.presets[name]["cpu"]
    runs = [trainer.train(env, **(settings | {"seed": seed})) for seed in SEEDS]
    return np.mean([metrics["eval/episode_reward"] for *_, metrics in runs])


@pytest.mark.slow
@pytest.mark.long
def test_the_double_pendulum_stands():
    # Upright and still it earns 10 - 0.8^2 a step, 9360 in an episode of 1000.
    assert mean_return("inverted_double_pendulum") >= 8000


@pytest.mark.slow
@pytest.mark.long
def test_the_reacher_arrives():
    # An untrained policy earns -43 in an episode of 200.
    assert mean_return("reacher") > -15
