"""Learning curves of the environments: trains by a recipe over seeds, stores, draws a page.

    python benchmarks/learning.py train ant
    python benchmarks/learning.py train pusher --steps 1000000 --seeds 3
    python benchmarks/learning.py train ant --trainer shac --name ant_shac
    python benchmarks/learning.py page

A curve is stored in `benchmarks/results/learning/`; the page is docs/learning.md.
"""

import datetime
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import about
import click
import jax

from brax import envs
from brax.env import wrap
from brax.training.analysis import curves
from brax.training.checkpoints import run_directory
from brax.training.runner.evaluator import Evaluator

METRIC = "eval/episode_reward"
RESULTS = about.ROOT / "benchmarks" / "results" / "learning"
BRAX = (sys.executable, "-c", "import sys; from brax.cli import main; sys.exit(main())")
RANDOM_EPISODES = 128


@click.group()
def main():
    """Learning curves of the environments."""


@main.command()
@click.argument("env")
@click.option("--preset", default="cpu", show_default=True)
@click.option("--trainer", default="ppo", show_default=True)
@click.option("--steps", type=int, help="Environment steps, if not as many as the recipe says.")
@click.option("--seeds", default=3, show_default=True)
@click.option("--name", help="Of the file; by default ENV.")
def train(env, preset, trainer, steps, seeds, name):
    """Trains in ENV over seeds, by a recipe alone, and stores the curves."""
    command = ["sweep", env, "--trainer", trainer, "--preset", preset, "--seeds", str(seeds)]
    command += [] if steps is None else ["--steps", str(steps)]
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    report = {
        "environment": env,
        "command": shlex.join(["brax", *command]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": about.commit(),
        "machine": about.machine(),
        "versions": about.versions("brax-agents"),
    }
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        place = ["--runs", folder, "--name", "sweep"]
        subprocess.run([*BRAX, *command, *place], check=True)
        report["seconds"] = round(time.perf_counter() - start, 1)
        found = [Path(folder) / "sweep" / "default" / f"seed{seed}" for seed in range(seeds)]
        report |= learned(found)
    report |= {"load": os.getloadavg()[0], "random": random_return(env, report["settings"])}
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name or env}.json").write_text(json.dumps(report, indent=1) + "\n")


def learned(folders):
    """Return the settings and reports of runs that differ in their seeds."""
    series = [curves.read(folder, METRIC) for folder in folders]
    settings = dict(run_directory.read(folders[0]).config)
    settings.pop("seed", None)
    return {
        "settings": settings,
        "steps": series[0][0].tolist(),
        "returns": [[float(f"{x:.6g}") for x in values] for _, values in series],
    }


def random_return(env, settings):
    """Mean return of actions drawn evenly, in episodes as the recipe has them."""
    environment = envs.get_environment(env)
    length, repeat = settings.get("episode_length", 1000), settings.get("action_repeat", 1)
    shape = (RANDOM_EPISODES, environment.action_size)
    evaluator = Evaluator(
        wrap(environment, episode_length=length, action_repeat=repeat),
        lambda _: lambda obs, key: (jax.random.uniform(key, shape, minval=-1, maxval=1), {}),
        RANDOM_EPISODES,
        length,
        repeat,
        jax.random.key(0),
    )
    return float(f"{evaluator.run_evaluation((), {})[METRIC]:.6g}")


@main.command()
def page():
    """Write docs/learning.md and its picture from the stored runs."""
    import learning_page

    learning_page.write(RESULTS)


if __name__ == "__main__":
    main()
