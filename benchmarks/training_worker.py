"""One side of a comparison of training: PPO of one brax, ours or Google's, by the same settings."""

import functools
import json
import sys
import time

import jax
from worker import serve

from brax import envs
from brax.training.agents.ppo import networks
from brax.training.agents.ppo import train as ppo


class Training:
    """Runs of PPO in an environment, each with networks and a compilation of its own."""

    def __init__(self, env, backend, batch, networks):
        self.env, self.backend, self.batch, self.networks = env, backend, batch, networks

    def describe(self):
        """What this side is."""
        device = jax.devices()[0]
        kind = f"{device.platform} {device.device_kind}"
        return {"jax": jax.__version__, "device": kind, "devices": jax.device_count()}

    def train(self, epochs, settings):
        """Trains for epochs of equal length, with an evaluation before the first and after each.

        Returns:
            For each evaluation the seconds since the call, the steps, the return, and the speed
            of the training before it [environment steps/s].
        """
        reports = []
        start = time.perf_counter()

        def progress(steps, metrics):
            reports.append(
                {
                    "seconds": time.perf_counter() - start,
                    "steps": int(steps),
                    "return": float(metrics["eval/episode_reward"]),
                    "speed": float(metrics.get("training/sps", 0.0)),
                }
            )

        ppo.train(
            envs.get_environment(self.env, backend=self.backend),
            num_evals=epochs + 1,
            num_envs=self.batch,
            progress_fn=progress,
            network_factory=functools.partial(networks.make_ppo_networks, **self.networks),
            **settings,
        )
        return reports


if __name__ == "__main__":
    serve(Training(**json.loads(sys.argv[2])))
