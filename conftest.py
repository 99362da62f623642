"""Settings of every test run: the compilation cache, and which devices the run is on."""

import functools
import gc
import importlib.util
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

try:
    import resource
except ImportError:  # Windows
    resource = None

# Read by JAX when it is imported, here and in the processes that tests start.
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "brax" / "jax-tests"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("WANDB_MODE", "disabled")  # else every run of a test would start its service
if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
    # One CPU device, unless the run asks for more; the command `brax` asks for one per core.
    os.environ.setdefault("JAX_NUM_CPU_DEVICES", "1")

# Where Python may not keep the bytecode of modules, every process that a test starts would compile
# all of JAX's anew, for seconds. Pytest's workers and those processes take this from here.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell that starts a run in the background has it ignore Ctrl-C, which tests press.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    """Says which devices JAX chose, by its own settings."""
    import jax

    kinds = sorted({f"{d.platform} ({d.device_kind})" for d in jax.devices()})
    return f"JAX {jax.__version__} on {jax.device_count()} device(s): {', '.join(kinds)}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips tests that compile for a GPU where JAX's CUDA plugin is missing."""
    if item.get_closest_marker("gpu_aot") and not importlib.util.find_spec("jax_cuda12_plugin"):
        pytest.skip("needs jax[cuda12]: hatch run gpu-aot:test")


def pytest_collection_finish() -> None:
    """Has Python's garbage collector pass over what lives as long as the run.

    Tracing makes so many objects that it would look through all modules and tests every few
    seconds, which took an eighth of a run's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


@pytest.fixture(autouse=True, scope="module")
def few_programs() -> Iterator[None]:
    """Lets go of compiled programs after a module, where the process has grown large.

    Two workers that kept all they compile would need more memory than a small computer has. And
    each compiled kernel is a mapping of memory of its own, of which Linux gives a process 65530:
    the compiler aborts when it gets no more.
    """
    yield
    maps = Path("/proc/self/maps")
    mappings = maps.read_bytes().count(b"\n") if maps.exists() else 0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if resource else 0  # KiB
    if used > 6 * 2**20 or mappings > 15_000:
        import jax

        jax.clear_caches()


@pytest.fixture
def code_generator() -> Iterator[None]:
    """Have kernels translated in a test of the code generator, also where BRAX_NATIVE is 0."""
    # Not the test's own `monkeypatch`, which it may undo.
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("BRAX_NATIVE", raising=False)
        yield


SOFTWARE = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")
"""Switches of Chromium that let it draw where there is no screen."""


def _chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("BRAX_BROWSER") or next(filter(None, map(shutil.which, names)), "")


@pytest.fixture(scope="session")
def launch():
    """Start headless Chromium through Playwright; skip if one of them is missing."""
    path, missing = _chromium(), ""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing = "playwright is not installed (pip install playwright)"
    missing = missing or ("" if path else "no Chromium found (apt install chromium)")
    if missing and os.environ.get("BRAX_REQUIRE_BROWSER") == "1":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    with sync_playwright() as driver:
        start = functools.partial(driver.chromium.launch, executable_path=path)
        yield lambda *flags: start(args=["--no-sandbox", *flags])


@pytest.fixture(scope="session")
def browser(launch):
    """Return a browser that draws by software, as machines without a screen do."""
    return launch(*SOFTWARE)
