"""Trains the policies of `models`: robots of `robots` that learn to move forward.

    python benchmarks/forward.py cheetah --steps 5000000

It writes benchmarks/policies/NAME.npz, which both sides of `models` then follow.
"""

import tempfile
from collections.abc import Mapping
from typing import Any

import click
import jax
import jax.numpy as jnp
from export_policy import save
from robots import POLICIES, robots
from states import HELD, NOISE, Robot

from brax.env import PipelineEnv, State
from brax.io import mjcf
from brax.training.agents.ppo.train import train
from brax.training.agents.settings import PPOSettings

FAST = 3.0
"""Speed [m/s] above which no more is earned."""

FALLEN = 0.65
"""A robot that can fall has fallen when its root is at less than this share of its first height."""

SETTINGS: PPOSettings = {
    "episode_length": 500,
    "num_evals": 6,
    "num_eval_envs": 128,
    "deterministic_eval": True,
    "normalize_observations": True,
    "num_envs": 2048,
    "stagger_episodes": True,
    "batch_size": 512,
    "num_minibatches": 8,
    "num_updates_per_batch": 4,
    "unroll_length": 10,
    "advantage_estimator": "gae",
    "discounting": 0.97,
    "learning_rate": 1e-3,
    "learning_rate_schedule": "LINEAR",
    "entropy_cost": 1e-3,
    "reward_scaling": 0.3,
    "network_factory": {
        "policy_hidden_layer_sizes": [64, 64],
        "value_hidden_layer_sizes": [64, 64],
        "activation": "relu",
    },
}


class Forward(PipelineEnv):
    """A robot is paid for its speed along x, and a free one for not falling.

    The observation is all coordinates but those along the ground, and all velocities. An action of
    -1 to 1 is half the range of a control to either side of its centre.
    """

    def __init__(self, robot: Robot) -> None:
        super().__init__(mjcf.load_model(robot.model), "generalized", n_frames=HELD)
        self._robot, self._start = robot, jnp.asarray(robot.start, jnp.float32)

    def reset(self, rng: jax.Array) -> State:
        """Start near the robot's own pose."""
        first, second = jax.random.split(rng)
        angles = self._robot.angles
        q = self._start.at[angles].add(NOISE * jax.random.normal(first, (len(angles),)))
        qd = NOISE * jax.random.normal(second, (self.sys.qd_size(),))
        physics = self.pipeline_init(q, qd)
        zero = jnp.zeros(())
        return State(physics, self._observe(physics), zero, zero, {"speed": zero})

    def step(self, state: State, action: jax.Array) -> State:
        """Advance by the time for which a control is held."""
        before = state.pipeline_state
        after = self.pipeline_step(before, self._robot.control(action))
        speed = (after.q[0] - before.q[0]) / self.dt
        reward = jnp.minimum(speed, FAST) - 0.1 * jnp.mean(action**2)
        done = jnp.zeros(())
        if self._robot.is_free:
            reward += 1.0
            # A comparison with NaN is false.
            done = 1.0 - (after.q[2] > FALLEN * self._start[2])
        return state.replace(
            pipeline_state=after,
            obs=self._observe(after),
            reward=reward,
            done=done,
            metrics={"speed": speed},
        )

    def _observe(self, physics: Any) -> jax.Array:
        return jnp.concatenate([physics.q[self._robot.hidden :], physics.qd])


@click.command()
@click.argument("name")
@click.option("--steps", default=5_000_000, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(name: str, steps: int, seed: int) -> None:
    """Trains a policy of the robot NAME, and writes it."""
    # Without the policy that it will have, of which there may be no file yet.
    robot = Robot({k: v for k, v in robots()[name].items() if k != "policy"})

    def report(done: int, metrics: Mapping[str, Any]) -> None:
        speed = metrics["eval/episode_speed"] / metrics["eval/avg_episode_length"]
        click.echo(f"{done:,}: {metrics['eval/episode_reward']:.1f}, {speed:.2f} m/s")

    with tempfile.TemporaryDirectory() as folder:
        own: PPOSettings = {
            "seed": seed,
            "progress_fn": report,
            "save_checkpoint_path": folder,
        }
        train(Forward(robot), steps, **(SETTINGS | own))
        save(folder, POLICIES / f"{name}.npz")


if __name__ == "__main__":
    main()
