"""Agents that learn on Brax environments.

The modules at the top are the interface that a trainer is built on: `agent`, `config`, `settings`,
`learner`, `policies`, `train_function` and `types`. The others re-export, under the paths that
users import, what lives in a folder. Start reading at `agent`: `Agent.train` names every stage of a
run, in order.

- The losses are in `agents/NAME/losses.py`; PPO's is `agents/ppo/losses.py`.
- The training loop is `runner/loop.py`.
- A checkpoint is made atomic in `Writer._commit` of `checkpoints/writer.py`.
"""

from typing import TYPE_CHECKING

from brax.training._removed import explain_removed

if not TYPE_CHECKING:  # type checkers would take any name for one of this module's
    __getattr__ = explain_removed(__name__)
