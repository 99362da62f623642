"""One side of a comparison of training: PPO of one brax, ours or Google's, by the same settings."""

import contextlib
import functools
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

import jax
from worker import serve

from brax import envs
from brax.training.agents.ppo import networks
from brax.training.agents.ppo import train as ppo


class Reached(Exception):
    """The goal, where there is one."""


class Training:
    """Runs of PPO in an environment, each with networks and a compilation of its own."""

    def __init__(
        self,
        env: str,
        backend: str,
        batch: int = 0,
        networks: Mapping[str, Any] | None = None,
        recipe: Mapping[str, Any] | None = None,
    ) -> None:
        self.env, self.backend, self.recipe = env, backend, recipe or {}
        self.batch, self.networks = batch, networks or {}

    def describe(self) -> dict[str, Any]:
        """Return a description of this side."""
        device = jax.devices()[0]
        kind = f"{device.platform} {device.device_kind}"
        return {"jax": jax.__version__, "device": kind, "devices": jax.device_count()}

    def train(self, epochs: int, settings: Mapping[str, Any]) -> list[dict[str, float]]:
        """Trains for epochs of equal length, with an evaluation before the first and after each.

        Returns:
            For each evaluation the seconds since the call, the steps, the return, and the speed
            of the training before it [environment steps/s].
        """
        return self._train(
            num_evals=epochs + 1,
            num_envs=self.batch,
            network_factory=functools.partial(networks.make_ppo_networks, **self.networks),
            **settings,
        )

    def reach(self, goal: float) -> list[dict[str, float]]:
        """Trains by the side's own recipe until an evaluation's return is as large.

        Returns:
            As `train`, up to that evaluation.
        """
        return self._train(goal, **self.recipe)

    def _train(self, goal: float = float("inf"), **settings: Any) -> list[dict[str, float]]:
        reports = []
        start = time.perf_counter()

        def progress(steps: int, metrics: Mapping[str, Any]) -> None:
            if "eval/episode_reward" not in metrics:
                return
            reports.append(
                {
                    "seconds": time.perf_counter() - start,
                    "steps": int(steps),
                    "return": float(metrics["eval/episode_reward"]),
                    "speed": float(metrics.get("training/sps", 0.0)),
                }
            )
            if reports[-1]["return"] >= goal:
                raise Reached

        environment = envs.get_environment(self.env, backend=self.backend)
        with contextlib.suppress(Reached):
            ppo.train(environment, progress_fn=progress, **settings)
        return reports


if __name__ == "__main__":
    serve(Training(**json.loads(sys.argv[2])))
