"""SAC as a plugin: what `brax train --trainer sac` and `brax render` use."""

from pathlib import Path

from brax.training.agent import Agent
from brax.training.agents.sac.config import SACConfig
from brax.training.agents.sac.learner import SACLearner
from brax.training.agents.sac.networks import make_sac_networks
from brax.training.runner import presets

SAC = Agent(
    name="sac",
    config=SACConfig,
    make_networks=make_sac_networks,
    learner=SACLearner,
    presets=presets.read(Path(__file__).parent / "presets.toml"),
)
