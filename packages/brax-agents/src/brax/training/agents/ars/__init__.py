"""Augmented random search (ARS): a search with mirrored noise, of which only the best counts.

Start reading at `gradient.py`, which takes the place of a loss: it averages the best directions.
The training step is `SearchLearner` of `learning/population.py`, which ES shares. `train.py` and
`checkpoint.py` hold the functions that users import.
"""

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
"""The agent that `brax train --trainer ars` and `brax render` use."""
