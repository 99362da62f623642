"""ARS as a plugin: what `brax train --trainer ars` and `brax render` use."""

from pathlib import Path

from brax.training.agent import Agent
from brax.training.agents.ars.config import ARSConfig
from brax.training.agents.ars.learner import ARSLearner
from brax.training.agents.ars.networks import make_ars_networks
from brax.training.learning import population
from brax.training.runner import presets

ARS = Agent(
    name="ars",
    config=ARSConfig,
    make_networks=make_ars_networks,
    learner=ARSLearner,
    presets=presets.read(Path(__file__).parent / "presets.toml"),
    make_inference_fn=population.make_inference_fn,
)
