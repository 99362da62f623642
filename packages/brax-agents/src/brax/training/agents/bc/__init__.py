"""Behaviour cloning (BC) with dataset aggregation: a policy imitates a teacher.

Start reading at `learner.py`: `BCLearner._learn` has the loss, one line. `train.py` and
`checkpoint.py` hold the functions that users import.
"""

from pathlib import Path

from brax.training.agent import Agent
from brax.training.agents.bc.config import BCConfig, BCRuntime
from brax.training.agents.bc.learner import BCLearner
from brax.training.agents.bc.networks import make_bc_networks, make_bc_networks_vision
from brax.training.runner import presets

BC = Agent(
    name="bc",
    config=BCConfig,
    make_networks=make_bc_networks,
    learner=BCLearner,
    presets=presets.read(Path(__file__).parent / "presets.toml"),
    runtime=BCRuntime,
    make_vision_networks=make_bc_networks_vision,
)
"""The agent that `brax train --trainer bc` and `brax render` use."""
