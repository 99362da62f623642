"""APG as a plugin: what `brax train --trainer apg` and `brax render` use."""

from pathlib import Path

from brax.training.agent import Agent
from brax.training.agents.apg.config import APGConfig
from brax.training.agents.apg.learner import APGLearner
from brax.training.agents.apg.networks import make_apg_networks
from brax.training.runner import presets

APG = Agent(
    name="apg",
    config=APGConfig,
    make_networks=make_apg_networks,
    learner=APGLearner,
    presets=presets.read(Path(__file__).parent / "presets.toml"),
)
