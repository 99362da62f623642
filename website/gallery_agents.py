"""Agents of the gallery: their policies, stored as programs for NumPy, and episodes under them.

docs/gallery/policies/ has for each agent `ENV.py`, a function as `brax export` writes it, and in
`agents.json` the recipe and the return of the training.
"""

import json
import runpy
import subprocess
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from brax import envs
from brax.base import State, System
from brax.io import export
from brax.io.viewer import rollout

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/gallery/policies"
RECORDS = FOLDER / "agents.json"

SECONDS, FRAME = 8.0, 0.04
"""Greatest length of an episode, and least time from one frame to the next [s]."""
KEY = 2
"""Random key of the episodes."""


def records() -> dict[str, Any]:
    """Return the records of all agents, by environment."""
    return json.loads(RECORDS.read_text("utf-8"))


def keep(folder: Path) -> str:
    """Store the policy and the record of a run that followed a preset, and return its environment.

    The commit in the record is the present one, so call it where the run was made.
    """
    run = rollout.find_run(folder)
    env, policy = rollout.trained(run, folder)
    export.save(FOLDER / f"{run.environment}.py", policy, env.observation_size)
    lines = (folder / "metrics.jsonl").read_text("utf-8").splitlines()
    last = [report for report in map(json.loads, lines) if "eval/episode_reward" in report][-1]
    seed = json.loads((folder / "run.json").read_text("utf-8"))["config"]["seed"]
    commit = subprocess.check_output(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, text=True)
    record = {
        "recipe": f"brax train {run.environment} --preset cpu --seed {seed}",
        "agent": run.trainer,
        "commit": commit.strip(),
        "steps": last["step"],
        "return": float(f"{last['eval/episode_reward']:.4g}"),
        "action_repeat": run.action_repeat,
        "settings": run.settings,
    }
    found = (records() if RECORDS.exists() else {}) | {run.environment: record}
    RECORDS.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", "utf-8")
    return run.environment


def row(name: str) -> str:
    """Return the row of an agent in the table of docs/gallery.md."""
    found = records()[name]
    # A line may end before an option, not at its hyphens.
    recipe = " ".join(f"`{part}`" for part in found["recipe"].replace(" --", "\n--").split("\n"))
    return (
        f"| [`{name}`](gallery/policies/{name}.py) | {recipe} | {found['agent']} | "
        f"{found['steps']:,} | {found['return']:,g} | {found['commit']} |"
    )


def episode(name: str) -> tuple[str, System, State, float, dict[str, list[float]]]:
    """Return title, system, states, time between states [s] and rewards of an agent's episode."""
    record, act = records()[name], policy(name)
    env: Any = envs.get_environment(name, **record["settings"])
    dt = float(env.dt)
    stride = max(1, round(FRAME / dt))
    step, state = jax.jit(env.step), jax.jit(env.reset)(jax.random.key(KEY))
    frames, rewards = [state.pipeline_state], [0.0]
    reward = 0.0
    for i in range(round(SECONDS / dt)):
        if i % record["action_repeat"] == 0:
            action = jnp.asarray(act(state.obs))
        state = step(state, action)
        reward += float(state.reward)
        if (i + 1) % stride == 0:
            frames.append(state.pipeline_state)
            rewards.append(reward / stride)
            reward = 0.0
        if state.done:
            break
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *frames)
    return f"{name}, {record['agent']}", env.sys, states, stride * dt, {"reward": rewards}


def policy(name: str) -> Any:
    """Return the stored policy of an agent, a function of the observation."""
    return runpy.run_path(str(FOLDER / f"{name}.py"))["policy"]
