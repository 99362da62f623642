"""Soft actor-critic (SAC), off policy, with a replay buffer and a learned temperature.

Start reading at `losses.py`, which has the three losses, then `learner.py`, which has the training
step. `train.py` and `checkpoint.py` hold the functions that users import.
"""

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
"""The agent that `brax train --trainer sac` and `brax render` use."""
