"""Speed of this project against Google's brax, both measured alternately: `hatch run bench`."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import click
import summary
from rich.console import Console
from sides import BenchError, Side, peer_python
from validation import problems

RESULTS = Path(__file__).parent / "results"
ENVIRONMENT, BACKEND = "ant", "spring"

console = Console(stderr=True)


@click.command()
@click.option("--batch", type=click.IntRange(1), default=2048, show_default=True)
@click.option("--length", type=click.IntRange(1), default=100, show_default=True, help="Steps.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--compiles", type=click.IntRange(1), default=3, show_default=True)
@click.option("--quick", is_flag=True, help="A smoke run: batch 64, 20 steps, 2 rounds, 1 compile.")
@click.option("--peer-python", help="Interpreter that has Google's brax; by default one is made.")
@click.option("--name", default="local/latest", show_default=True, help="results/NAME.json")
def main(batch, length, rounds, compiles, quick, peer_python, name):
    """Measures the ant under random actions, here and in Google's brax, and writes a report."""
    if quick:
        batch, length, rounds, compiles = 64, 20, 2, 1
    try:
        sides = _sides(peer_python)
        report = {
            "environment": ENVIRONMENT,
            "backend": BACKEND,
            "batch": batch,
            "length": length,
            "commit": _commit(),
            "machine": f"{os.cpu_count()} x {platform.processor() or platform.machine()}",
            "sides": measure(sides, {"batch": batch, "length": length}, rounds, compiles),
        }
    except BenchError as error:
        raise click.ClickException(str(error)) from error
    summary.show(report)
    path = RESULTS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")
    console.print(path)


def _commit():
    """What is measured; with `-dirty` where it is not just that."""
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=RESULTS.parent, capture_output=True, text=True)
    return done.stdout.strip()


def _sides(peer):
    """Interpreter and batched loop of each side, by name."""
    return {
        summary.OURS: (sys.executable, "vmap"),
        summary.TRAINING: (sys.executable, "training"),
        summary.PEER: (peer or peer_python(), "vmap"),
    }


def measure(sides, settings, rounds, compiles):
    """Compiles in fresh processes, validates, then runs in turns; one side works at a time.

    Raises:
        BenchError: if a side fails, the devices differ, or our result is not valid.
    """
    results = {name: {"compile": [], "run": []} for name in sides}
    for i in range(compiles):
        started = _start(sides, settings)
        for side in started:
            console.print(f"compile {i + 1} of {compiles}: {side.name}")
            results[side.name]["compile"].append(side.ask("compile"))
        if i + 1 < compiles:
            _close(started)
    for side in started:
        results[side.name] |= side.about
    _same_device(results)
    _validate(started)
    for i in range(rounds):
        console.print(f"round {i + 1} of {rounds}")
        for side in started:
            results[side.name]["run"].append(side.ask("run"))
    _close(started)
    return results


def _start(sides, settings):
    return [
        Side(name, python, environment=ENVIRONMENT, backend=BACKEND, loop=loop, **settings)
        for name, (python, loop) in sides.items()
    ]


def _close(sides):
    for side in sides:
        side.close()


def _same_device(results):
    devices = {name: result["device"] for name, result in results.items()}
    if len(set(devices.values())) > 1:
        raise BenchError(f"the sides run on different devices: {devices}. Set JAX_PLATFORMS=cpu")


def _validate(sides):
    """Runs each side once, as a warm-up, and looks at what came out; ours must also obey Newton."""
    for side in sides:
        side.ask("run")
        flight = side.ask("flight") if side.name == summary.OURS else None
        found = problems(side.ask("check"), flight)
        if found and side.name != summary.PEER:
            raise BenchError(f"{side.name} is not valid, so not counted: {'; '.join(found)}")
        console.print(f"{side.name}: {'; '.join(found) or 'the result is sane'}")


if __name__ == "__main__":
    main()
