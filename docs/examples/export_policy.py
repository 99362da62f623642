"""Export: one policy as a NumPy module and as an ONNX model.

The task is to push a mass along a line in each of 128 steps. The agent learns that in seconds. The
program writes policy.py and policy.onnx, and then plays an episode with each of them, without JAX
and Brax. It prints the two returns: both are 143.1, the most that can be earned.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from brax import envs
from brax.io import export
from brax.training.agents.ppo import train as ppo

env = envs.get_environment("fast")
make_policy, params, _ = ppo.train(
    env,
    num_timesteps=200_000,
    episode_length=128,
    num_envs=64,
    batch_size=64,
    num_minibatches=4,
    unroll_length=16,
    learning_rate=3e-3,
    normalize_observations=True,
    network_factory={"policy_hidden_layer_sizes": [16], "value_hidden_layer_sizes": [32]},
)
policy = make_policy(params, deterministic=True)
for path in ("policy.py", "policy.onnx"):
    export.save(path, policy, env.observation_size)


def play(act: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return the sum of the positions of a mass that is pushed by 1 m/s^2 or not at all."""
    position = velocity = earned = 0.0
    for _ in range(128):
        push = act(np.array([position, velocity], np.float32))[0] > 0
        velocity += 0.02 * push
        position += 0.02 * velocity
        earned += position
    return earned


names: dict[str, Any] = {}
exec(Path("policy.py").read_text("utf-8"), names)
session = onnxruntime.InferenceSession("policy.onnx")


def act_onnx(observation: np.ndarray) -> np.ndarray:
    """Return the action of the ONNX model, which takes a batch."""
    return session.run(["action"], {"observation": observation[None]})[0][0]


print(f"NumPy {play(names['policy']):.1f}, ONNX {play(act_onnx):.1f}")
