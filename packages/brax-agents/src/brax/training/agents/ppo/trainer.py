"""PPO as a plugin: what `brax train --trainer ppo` and `brax render` use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brax.training import presets
from brax.training.agents.ppo.checkpoint import load_policy
from brax.training.agents.ppo.config import parse
from brax.training.agents.ppo.train import train


@dataclass(frozen=True)
class Trainer:
    """An agent: how it trains, and how its policies come back."""

    name: str
    """The name that users ask for it by."""
    train: Callable[..., Any]
    """`train(environment, **settings) -> (make_policy, params, metrics)`."""
    load_policy: Callable[..., Any]
    """`load_policy(path, deterministic=True) -> policy`."""
    presets: presets.Presets
    """Settings by environment and preset."""
    check: Callable[[Mapping[str, Any]], Any]
    """Refuses settings that `train` would refuse, without an environment."""


PPO = Trainer(
    "ppo", train, load_policy, presets.read(Path(__file__).parent / "presets.toml"), parse
)
