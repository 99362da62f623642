"""Learning curves of the environments: trains by a recipe over seeds, stores, draws a page.

    python benchmarks/learning.py train ant
    python benchmarks/learning.py train hopper --first 20 --seeds 3
    python benchmarks/learning.py train ant --trainer shac --name ant_shac
    python benchmarks/learning.py page

A curve is stored in `benchmarks/results/learning/`; the page is docs/learning.md.
"""

import datetime
import functools
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import about
import click
import jax

from brax import envs, kinematics
from brax.env import wrap
from brax.plugins.outputs.trainer import load_policy
from brax.training.analysis import curves
from brax.training.checkpoints import run_directory
from brax.training.config import evaluated_steps
from brax.training.runner.acting import over_batch
from brax.training.runner.evaluator import Evaluator

METRIC = "eval/episode_reward"
RESULTS = about.ROOT / "benchmarks" / "results" / "learning"
BRAX = (sys.executable, "-c", "import sys; from brax.cli import main; sys.exit(main())")
EPISODES = 128
NEAR = 0.05
"""Distance [m] at which the pusher's object is at its goal."""


@click.group()
def main() -> None:
    """Learning curves of the environments."""


@main.command()
@click.argument("env")
@click.option("--preset", default="cpu", show_default=True)
@click.option("--trainer", help="By default the one that `brax train` takes.")
@click.option("--first", default=10, show_default=True, help="The first of the seeds.")
@click.option("--seeds", default=5, show_default=True)
@click.option("--name", help="Of the file; by default ENV.")
def train(
    env: str, preset: str, trainer: str | None, first: int, seeds: int, name: str | None
) -> None:
    """Trains in ENV over seeds, one after the other, by a recipe alone, and stores the curves."""
    command = ["train", env, *(["--trainer", trainer] if trainer else []), "--preset", preset]
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    report: dict[str, Any] = {
        "environment": env,
        "command": shlex.join(["brax", *command]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": about.commit(),
        "machine": about.machine(),
        "versions": about.versions("brax-agents"),
        "seeds": [],
        "seconds": [],
        "cpu_seconds": [],
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for seed in range(first, first + seeds):
            found.append(Path(folder) / f"seed{seed}")
            seconds, cpu_seconds = timed(
                [*command, "--seed", str(seed), "--runs", folder, "--name", found[-1].name]
            )
            report["seeds"].append(seed)
            report["seconds"].append(seconds)
            report["cpu_seconds"].append(cpu_seconds)
            report |= learned(found) | {"load": os.getloadavg()[0]}
            if "random" not in report:
                report["random"] = random_return(env, report["settings"])
            # Stored after each seed: whatever fails later loses no hours.
            (RESULTS / f"{name or env}.json").write_text(json.dumps(report, indent=1) + "\n")


def timed(command: Sequence[str]) -> tuple[float, float]:
    """Run a command of brax, and return its time and that of its CPU cores [s]."""
    start, used = time.perf_counter(), os.times()
    subprocess.run([*BRAX, *command], check=True)
    now = os.times()
    cpu = now.children_user + now.children_system - used.children_user - used.children_system
    return round(time.perf_counter() - start, 1), round(cpu, 1)


def learned(folders: Sequence[Path]) -> dict[str, Any]:
    """Return the agent, settings and reports of runs that differ in their seeds.

    A run that ended before the others, at its `stop_at_reward`, keeps its last return.
    """
    series = [curves.read(folder, METRIC) for folder in folders]
    steps = max((each for each, _ in series), key=len)
    record = run_directory.read(folders[0])
    settings = dict(record.config)
    settings.pop("seed", None)
    return {
        "trainer": record.trainer,
        "settings": settings,
        "steps": steps.tolist(),
        "ended": [int(each[-1]) for each, _ in series],
        "returns": [
            [float(f"{x:.6g}") for x in [*values, *[values[-1]] * (len(steps) - len(values))]]
            for _, values in series
        ],
        "seen": [seen(folder) for folder in folders],
    }


@functools.cache
def seen(folder: Path) -> dict[str, float]:
    """Return what one would see of a run's last policy: speed [m/s], targets, objects in place.

    A run that has ended does not change, and its policy may have to act for long.
    """
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    last = [report for report in map(json.loads, lines) if METRIC in report][-1]
    task = run_directory.read(folder).environment
    found = {}
    if "eval/episode_x_velocity" in last:
        found["speed"] = last["eval/episode_x_velocity"] / last["eval/avg_episode_length"]
    if "eval/episode_reward_hit" in last:
        environment: Any = envs.get_environment(task)
        weight = environment.parameters.hit_reward
        found["targets"] = last["eval/episode_reward_hit"] / weight
    if task == "pusher":
        found["placed"] = 100 * placed(folder)
    return {key: float(f"{value:.3g}") for key, value in found.items()}


def placed(folder: Path) -> float:
    """Return the share of episodes in which the pusher's object ends within 5 cm of the goal.

    The distance is that on the table; the goal lies 4.8 cm below the object's centre.
    """
    record = run_directory.read(folder)
    environment: Any = envs.get_environment(record.environment)
    policy = over_batch(load_policy(record.trainer, folder, environment, deterministic=True))
    length = evaluated_steps(record.config)
    batched = wrap(environment, episode_length=length)

    def step(state: Any, key: jax.Array) -> tuple[Any, None]:
        return batched.step(state, policy(state.obs, key)[0]), None

    @jax.jit
    def last(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        start = batched.reset(jax.random.split(key, EPISODES))
        end = jax.lax.scan(step, start, jax.random.split(key, length))[0]
        # At the end of the episode the physics has been reset already, the metrics have not. The
        # object only slides, so its height above the goal is that of the start.
        frame = functools.partial(kinematics.frame, environment.sys)
        above = jax.vmap(lambda x: (frame(x, "object").pos - frame(x, "goal").pos)[2])
        return end.metrics["reward_dist"], above(start.pipeline_state.x)

    cost, above = last(jax.random.key(0))
    apart = (cost / environment.parameters.dist_reward_weight) ** 2 - above**2
    return float((apart < NEAR**2).mean())


def random_return(env: str, settings: Mapping[str, Any]) -> float:
    """Mean return of actions drawn evenly, in episodes as the recipe has them."""
    environment = envs.get_environment(env)
    length, repeat = evaluated_steps(settings), settings.get("action_repeat", 1)
    shape = (EPISODES, environment.action_size)
    evaluator = Evaluator(
        wrap(environment, episode_length=length, action_repeat=repeat),
        lambda _: lambda obs, key: (jax.random.uniform(key, shape, minval=-1, maxval=1), {}),
        EPISODES,
        length,
        repeat,
        jax.random.key(0),
    )
    return float(f"{evaluator.run_evaluation((), {})[METRIC]:.6g}")


@main.command()
def page() -> None:
    """Write docs/learning.md and its picture from the stored runs."""
    import learning_page

    learning_page.write(RESULTS)


if __name__ == "__main__":
    main()
