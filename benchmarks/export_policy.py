"""Writes the policy of a run of `brax train` as plain arrays, for every side of the benchmark.

    python benchmarks/export_policy.py runs/NAME benchmarks/policies/ant.npz

The networks must be a normalizer and relu layers, as the preset `cpu` makes them.
"""

import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from worker import act

from brax.training.agents.ppo.checkpoint import load_policy
from brax.training.checkpoints import checkpoint

POLICY, STATISTICS = "params/policy/params", "params/normalizer"


def export(run: str | Path) -> dict[str, Any]:
    """Return the arrays of a run's newest policy, with the means of its outputs only."""
    arrays = checkpoint.load(run).arrays
    layers = sum(name.startswith(f"{POLICY}/") and name.endswith("/kernel") for name in arrays)
    out = {name: arrays[f"{STATISTICS}/{name}"] for name in ("mean", "std")} | {"layers": layers}
    for i in range(layers):
        kernel, bias = (arrays[f"{POLICY}/hidden_{i}/{name}"] for name in ("kernel", "bias"))
        width = len(bias) // 2 if i == layers - 1 else len(bias)
        out |= {f"kernel_{i}": kernel[:, :width], f"bias_{i}": bias[:width]}
    return out


def save(run: str | Path, path: str | Path) -> None:
    """Write the policy of a run, and check that both give the same actions."""
    arrays = export(run)
    obs = arrays["mean"] + np.random.default_rng(0).normal(size=(100, len(arrays["mean"])))
    expected, _ = load_policy(run)(obs.astype(np.float32), jax.random.key(0))
    np.testing.assert_allclose(act(arrays, obs, np), expected, atol=1e-4)
    np.savez(path, **arrays)


if __name__ == "__main__":
    save(*sys.argv[1:])
