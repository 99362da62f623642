"""ARS as a plugin: what `brax train --trainer ars` and `brax render` use."""

from pathlib import Path

from brax.training import population, presets
from brax.training.agent import Agent
from brax.training.agents.ars.config import ARSConfig
from brax.training.agents.ars.learner import ARSLearner
from brax.training.agents.ars.networks import make_ars_networks

ARS = Agent(
    name="ars",
    config=ARSConfig,
    make_networks=make_ars_networks,
    learner=ARSLearner,
    presets=presets.read(Path(__file__).parent / "presets.toml"),
    make_inference_fn=population.make_inference_fn,
)
