"""Evolution strategies (ES): a search with mirrored noise on the parameters.

Start reading at `gradient.py`, which takes the place of a loss: it estimates a gradient from
returns. The training step is `SearchLearner` of `learning/population.py`, which ARS shares.
`train.py` and `checkpoint.py` hold the functions that users import.
"""

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
"""The agent that `brax train --trainer es` and `brax render` use."""
