"""Gymnasium and Stable-Baselines3: learn with their PPO in an environment of Brax.

Needs `pip install "brax-envs[gym,stable-baselines3]"`. Eight environments run as one batch. Without
control their poles fall within a second. After training, the agent plays one episode in Gymnasium's
interface. The program prints how long it balances, of 4 s at most: 4.0 s.
"""

import stable_baselines3

from brax import envs
from brax.envs.wrappers.gym import GymWrapper
from brax.envs.wrappers.stable_baselines3 import StableBaselinesWrapper

NAME, LENGTH = "inverted_pendulum", 200

batch = StableBaselinesWrapper(envs.create(NAME, episode_length=LENGTH, batch_size=8))
agent = stable_baselines3.PPO(
    "MlpPolicy", batch, n_steps=128, batch_size=256, learning_rate=3e-3, seed=0, device="cpu"
)
agent.learn(20_000)

env = GymWrapper(envs.create(NAME, episode_length=LENGTH))
observation, _ = env.reset(seed=1)
steps, over = 0, False
while not over:
    action, _ = agent.predict(observation, deterministic=True)
    observation, reward, terminated, truncated, _ = env.step(action)
    steps, over = steps + 1, terminated or truncated
print(f"upright for {steps * 0.02:.1f} s")
