"""The processes that are compared, and the separate environment of Google's brax."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")
PEER = ("brax==0.14.2", "jax==0.7.2", "jaxlib==0.7.2", "mujoco<3.4", "mujoco-mjx<3.4")


class BenchError(Exception):
    """A side that does not answer, or an environment that cannot be made."""


class Side:
    """A worker; while it is not asked, it waits and uses no core."""

    def __init__(self, name, python, **settings):
        self.name = name
        hidden = {"JAX_COMPILATION_CACHE_DIR", "PYTHONPATH"}
        env = {k: v for k, v in os.environ.items() if k not in hidden}
        env["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # compiling is measured
        # Replies have a pipe of their own: libraries print to stdout.
        receive, send = os.pipe()
        self.replies = os.fdopen(receive)
        self.process = subprocess.Popen(
            [python, WORKER, str(send), json.dumps(settings)],
            env=env,
            text=True,
            pass_fds=[send],
            stdin=subprocess.PIPE,
            stdout=sys.stderr,
        )
        os.close(send)
        self.about = self.ask("describe")  # waits until it has imported everything

    def ask(self, request):
        """The answer to one request."""
        with contextlib.suppress(BrokenPipeError):
            print(request, file=self.process.stdin, flush=True)
        if line := self.replies.readline():
            return json.loads(line)
        code = self.process.wait()
        raise BenchError(f"{self.name} ended with code {code} when asked to {request}; see above")

    def close(self):
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait()
        self.replies.close()


def peer_python():
    """The interpreter of an environment with Google's brax, made when it is first asked for."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "brax" / "bench" / f"google-{sys.version_info.major}.{sys.version_info.minor}"
    python, complete = home / "bin" / "python", home / "complete"
    wanted = "\n".join(PEER)
    if not complete.exists() or complete.read_text() != wanted:
        uv = shutil.which("uv")
        if uv is None:
            raise BenchError("uv is not installed: pip install uv, or use hatch run bench")
        _call(uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(home))
        _call(uv, "pip", "install", "--quiet", "--python", str(python), *PEER)
        complete.write_text(wanted)
    return str(python)


def _call(*command):
    if code := subprocess.run(command).returncode:
        raise BenchError(f"{' '.join(command)} ended with code {code}")
