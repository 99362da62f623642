"""Builds every distribution, installs the wheels away from the source tree, and tests them there.

Two clean environments: one with everything, the example plugin and the plugins that are broken on
purpose; one with only brax-core, brax-agents and the example plugin, in which a third-party
environment trains.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
OURS = sorted(path for path in (ROOT / "packages").iterdir() if path.is_dir())
EXAMPLE = HERE / "plugins" / "brax-example-plugin"
PLUGINS = sorted(path for path in (HERE / "plugins").iterdir() if path.is_dir())

UV = [sys.executable, "-m", "uv"]
TOOLS = ("pytest", "pytest-xdist", "flatbuffers")  # JAX writes exported programs with the last


def main() -> None:
    """Build, install and test; exit with an error if anything fails."""
    with tempfile.TemporaryDirectory(prefix="brax-wheels-") as name:
        work = Path(name)
        wheels = {path.name: build(path, work / "dist") for path in [*OURS, *PLUGINS]}
        suite = copy_suite(work)
        training = suite / "test_third_party_training.py"
        test("everything", list(wheels.values()), [suite, f"--ignore={training}"], work)
        few = [wheels[name] for name in ("brax-core", "brax-agents", EXAMPLE.name)]
        test("core and agents", few, [training], work)


def build(source: Path, out: Path) -> Path:
    """Build a distribution as users get it: the sdist, and the wheel from the sdist."""
    target = out / source.name
    say(f"build {source.relative_to(ROOT)}")
    run([*UV, "build", "--quiet", "--out-dir", target, source], cwd=ROOT)
    (wheel,) = target.glob("*.whl")
    return wheel


def copy_suite(work: Path) -> Path:
    """Copy the tests out of the source tree, with the settings of pytest."""
    suite = work / "suite" / "integration_tests"
    shutil.copytree(
        HERE,
        suite,
        ignore=shutil.ignore_patterns("plugins", "public_clients", "wheels.py", "__pycache__"),
    )
    for settings in ("pytest.ini", "conftest.py"):
        shutil.copy(ROOT / settings, suite.parent)
    return suite


def test(name: str, wheels: list[Path], tests: list[str | Path], work: Path) -> None:
    """Install wheels into a new environment and run tests with it."""
    say(f"install {name}: {', '.join(wheel.name for wheel in wheels)}")
    environment = work / name.replace(" ", "-")
    run([*UV, "venv", "--quiet", "--python", sys.executable, environment], cwd=work)
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    run([*UV, "pip", "install", "--quiet", "--python", python, *wheels, *TOOLS], cwd=work)
    say(f"test {name}")
    command = [python, "-m", "pytest", "-v", "-n", "2", "--dist", "loadgroup", *tests]
    run(command, cwd=work / "suite", env=clean_environment(python))


def clean_environment(python: Path) -> dict[str, str]:
    """Return the process's variables, without paths to the source tree."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    path = os.pathsep.join([str(python.parent), os.environ["PATH"]])
    return kept | {"PATH": path, "BRAX_TEST_WHEELS": "1", "BRAX_SOURCE": str(ROOT)}


def say(what: str) -> None:
    """Report a stage."""
    print(f"== {what}", flush=True)


def run(command: list[str | Path], cwd: Path, env: dict[str, str] | None = None) -> None:
    """Run a command; exit if it fails."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env, check=False)
    if done.returncode:
        sys.exit(f"wheels: failed ({done.returncode}): {' '.join(map(str, command))}")


if __name__ == "__main__":
    main()
