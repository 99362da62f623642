"""Settings of every test run: the compilation cache, and which devices the run is on."""

import os
from pathlib import Path

# Read by JAX when it is imported, here and in the processes that tests start.
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "brax" / "jax-tests"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")


def pytest_report_header() -> str:
    """Says which devices JAX chose, by its own settings."""
    import jax

    kinds = sorted({f"{d.platform} ({d.device_kind})" for d in jax.devices()})
    return f"JAX {jax.__version__} on {jax.device_count()} device(s): {', '.join(kinds)}"
