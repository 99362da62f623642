"""ES as a plugin: what `brax train --trainer es` and `brax render` use."""

from pathlib import Path

from brax.training.agent import Agent
from brax.training.agents.es.config import ESConfig
from brax.training.agents.es.learner import ESLearner
from brax.training.agents.es.networks import make_es_networks
from brax.training.learning import population
from brax.training.runner import presets

ES = Agent(
    name="es",
    config=ESConfig,
    make_networks=make_es_networks,
    learner=ESLearner,
    presets=presets.read(Path(__file__).parent / "presets.toml"),
    make_inference_fn=population.make_inference_fn,
)
