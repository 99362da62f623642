# /// script
# dependencies = ["playground", "mujoco-mjx"]
# ///
"""`train-jax-ppo` trains CartpoleBalance; SAC trains it in the same wrapper."""

import functools
import subprocess
import sys
from pathlib import Path

from mujoco_playground import registry, wrapper

from brax.training.agents.sac import networks
from brax.training.agents.sac import train as sac

SETTINGS = (
    "--env_name=CartpoleBalance --num_timesteps=2000 --num_envs=8 --num_eval_envs=4 --batch_size=8 "
    "--num_minibatches=2 --unroll_length=5 --num_evals=2 --episode_length=100 --num_videos=0"
)
command = Path(sys.executable).parent / "train-jax-ppo"
subprocess.run([command, *SETTINGS.split()], check=True)

sac.train(
    environment=registry.load("CartpoleBalance", config_overrides={"impl": "jax"}),
    num_timesteps=1000,
    episode_length=100,
    num_envs=8,
    batch_size=16,
    min_replay_size=64,
    max_replay_size=1024,
    num_evals=2,
    num_eval_envs=4,
    network_factory=functools.partial(networks.make_sac_networks, hidden_layer_sizes=(8,)),
    wrap_env_fn=wrapper.wrap_for_brax_training,
    progress_fn=lambda steps, metrics: print(steps, metrics["eval/episode_reward"]),
)
