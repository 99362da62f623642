"""The agents, one folder each: PPO, REPPO, SAC, TD3, ES, ARS, APG, BC and SHAC.

Each folder has `config.py` (settings), `networks.py`, `losses.py` (or `gradient.py`, or, where the
loss runs the simulator, only `learner.py`) and `learner.py` (one training step). The `__init__.py`
puts these together as an `Agent`. `train.py` and `checkpoint.py` hold the functions that users
import. PPO's loss is `ppo/losses.py`; start reading there, then at `ppo/learner.py`.
"""
