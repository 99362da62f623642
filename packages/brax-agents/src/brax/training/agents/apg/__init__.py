"""Analytic policy gradients (APG): gradients of rewards through the simulator.

Start reading at `learner.py`: `APGLearner.loss` is the loss, since it runs the simulator.
`train.py` and `checkpoint.py` hold the functions that users import.
"""

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
"""The agent that `brax train --trainer apg` and `brax render` use."""
