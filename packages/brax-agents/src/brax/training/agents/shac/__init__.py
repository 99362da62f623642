"""Short-horizon actor-critic (SHAC): gradients through the simulator, with a critic at the end.

Start reading at `losses.py`, which has the loss of the policy, then `learner.py`, which has the
training step and the critic. `train.py` and `checkpoint.py` hold the functions that users import.
"""

from pathlib import Path

from brax.training.agent import Agent
from brax.training.agents.shac.config import SHACConfig
from brax.training.agents.shac.learner import SHACLearner
from brax.training.agents.shac.networks import make_shac_networks
from brax.training.runner import presets

SHAC = Agent(
    name="shac",
    config=SHACConfig,
    make_networks=make_shac_networks,
    learner=SHACLearner,
    presets=presets.read(Path(__file__).parent / "presets.toml"),
)
"""The agent that `brax train --trainer shac` and `brax render` use."""
