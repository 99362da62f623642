"""Proximal policy optimization (PPO), with clipping of the probability ratio.

Start reading at `losses.py`, which has the loss, then `learner.py`, which has the training step.
`networks_vision.py` has networks that read images, `optimizer.py` the adaptive learning rate.
`train.py` and `checkpoint.py` hold the functions that users import.
"""

from pathlib import Path

from brax.training.agent import Agent
from brax.training.agents.ppo.config import PPOConfig, PPORuntime
from brax.training.agents.ppo.learner import PPOLearner
from brax.training.agents.ppo.networks import make_ppo_networks
from brax.training.agents.ppo.networks_vision import make_ppo_networks_vision
from brax.training.runner import presets

PPO = Agent(
    name="ppo",
    config=PPOConfig,
    make_networks=make_ppo_networks,
    learner=PPOLearner,
    presets=presets.read(Path(__file__).parent / "presets.toml"),
    runtime=PPORuntime,
    make_vision_networks=make_ppo_networks_vision,
)
"""The agent that `brax train --trainer ppo` and `brax render` use."""
