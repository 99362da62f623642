"""TD3: a deterministic policy and twin critics, off policy, with the options of FastTD3.

Start reading at `losses.py`, which has the two losses, then `n_step.py`, which makes transitions
over several steps, and `learner.py`, which has the training step. `train.py` and `checkpoint.py`
hold the functions that users import.
"""

from pathlib import Path

from brax.training.agent import Agent
from brax.training.agents.td3.config import TD3Config
from brax.training.agents.td3.learner import TD3Learner
from brax.training.agents.td3.networks import make_inference_fn, make_td3_networks
from brax.training.runner import presets

TD3 = Agent(
    name="td3",
    config=TD3Config,
    make_networks=make_td3_networks,
    learner=TD3Learner,
    presets=presets.read(Path(__file__).parent / "presets.toml"),
    make_inference_fn=make_inference_fn,
)
"""The agent that `brax train --trainer td3` and `brax render` use."""
