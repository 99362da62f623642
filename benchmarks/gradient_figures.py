"""The figures of `docs/gradients.md`."""

from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from gradient_lab import BOUNCING, PLAIN, Knobs, Setup, Start, ahead, arm, arrays, moves
from gradient_oracles import heights_and_slopes

STEPS = np.unique(np.geomspace(1, 2000, 25).astype(int))


def draw(folder: Path) -> None:
    """Draws all figures."""
    sweep(folder / "gradient-sweep.png")
    growth(folder / "gradient-growth.png")


def sweep(path: Path) -> None:
    """T97: the slope of the height after two seconds, over the height at the start."""
    figure, axes = plt.subplots(
        ncols=len(BOUNCING), sharex=True, sharey=True, figsize=(13, 3), layout="tight"
    )
    for ax, setup in zip(axes, BOUNCING, strict=True):
        heights, slopes = heights_and_slopes(setup, 20, 2000, 5.0)
        ax.plot(heights, np.where(heights < 2, -1, 1), color="0.75", lw=5, label="exact")
        ax.plot(heights, slopes, ".", ms=2, label="20 steps")
        ax.set(title=str(setup), ylim=(-4, 4))
    axes[0].legend(loc="upper left")
    figure.supxlabel("height at the start [m]")
    figure.supylabel("slope of the height after 2 s")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def growth(path: Path) -> None:
    """T85: how the derivative of the state by the initial state grows with the time."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="tight")
    cases = (("swings a little", [0.1, 0.1]), ("turns over", [2.5, 1.5]))
    for ax, (title, angles) in zip(axes, cases, strict=True):
        for setup in PLAIN:
            ax.loglog(STEPS * 0.01, norms(setup, angles), label=str(setup))
        ax.set(title=f"an arm that {title}", xlabel="time [s]")
    axes[0].set_ylabel("largest singular value")
    axes[0].legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def norms(setup: Setup, angles: list[float]) -> list[float]:
    """Largest singular value of the derivative of an arm's state by its initial state."""
    with jax.enable_x64(True):
        knobs = arrays(Knobs(timestep=0.01, gravity=9.81))
        start = arrays(Start(angles, [0.0, 0.0], [0.0, 0.0]))
        unit = moves(knobs, start, ("q", 0), ("q", 1), ("qd", 0), ("qd", 1))
        sys = arm(setup)
        sys = sys.replace(dof=sys.dof.replace(damping=jnp.zeros(2), stiffness=jnp.zeros(2)))
        slopes = [ahead(setup, sys, knobs, start, unit, int(n))[1] for n in STEPS]
        return [float(np.linalg.norm(np.asarray(s), 2)) for s in slopes]
