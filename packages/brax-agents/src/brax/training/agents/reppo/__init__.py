"""Relative entropy pathwise policy optimization (REPPO), on policy, without a replay buffer.

Start reading at `losses.py`, which has the targets and the losses, then `learner.py`, which has the
training step. `train.py` and `checkpoint.py` hold the functions that users import.
"""

from pathlib import Path

from brax.training.agent import Agent
from brax.training.agents.reppo.config import REPPOConfig
from brax.training.agents.reppo.learner import REPPOLearner
from brax.training.agents.reppo.networks import make_reppo_networks
from brax.training.runner import presets

REPPO = Agent(
    name="reppo",
    config=REPPOConfig,
    make_networks=make_reppo_networks,
    learner=REPPOLearner,
    presets=presets.read(Path(__file__).parent / "presets.toml"),
)
"""The agent that `brax train --trainer reppo` and `brax render` use."""
