"""PPO as a plugin: what `brax train --trainer ppo` and `brax render` use."""

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
