"""PPO, SAC and SHAC, by the presets for small computers, solve the environments that have one."""

import numpy as np
import pytest

from brax import plugins

if "sac" not in plugins.names("trainer"):
    pytest.skip("brax-agents brings the trainers", allow_module_level=True)

SEEDS = (0, 1, 2)


def mean_return(name, trainer):
    """Mean over seeds of the return after training."""
    trainer = plugins.get("trainer", trainer)
    env = plugins.get("environment", name)()
    settings = trainer.presets[name]["cpu"]
    assert settings["num_timesteps"] <= 10_000_000 and settings["episode_length"] == 1000
    runs = [trainer.train(env, **(settings | {"seed": seed})) for seed in SEEDS]
    return np.mean([metrics["eval/episode_reward"] for *_, metrics in runs])


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "trainer", "bar"),
    [
        ("inverted_pendulum", "ppo", 950),  # 1 a step
        # Upright and still it earns 10 - 0.8^2 a step, 9360 in an episode.
        ("inverted_double_pendulum", "ppo", 8000),
        # A controller that knows the arm earns -5.9, an untrained policy about -200.
        ("reacher", "sac", -15),
        ("ant", "ppo", 2500),
        ("ant", "shac", 2500),
        # 2.7 m/s on the mean, the start and what the motors cost included.
        ("halfcheetah", "sac", 2700),
    ],
)
def test_it_is_solved(name, trainer, bar):
    assert mean_return(name, trainer) >= bar
