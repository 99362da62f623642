"""Fixtures of the integration suite; the root's conftest prints the devices that JAX chose."""

import os
import subprocess
import sysconfig
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def third_party() -> None:
    """Needs the example plugin and the broken ones; `hatch run wheels` installs them."""
    wanted = {"brax-example-plugin", "brax-broken-import", "brax-taken-name", "brax-future-api"}
    missing = wanted - {d.name for d in metadata.distributions()}
    if missing and "BRAX_TEST_WHEELS" not in os.environ:
        pytest.skip("hatch run wheels installs the example plugins")
    assert not missing


@pytest.fixture(scope="session")
def brax() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the installed command."""
    command = Path(sysconfig.get_path("scripts")) / "brax"

    def run(*args: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, **environ}
        return subprocess.run([command, *args], capture_output=True, text=True, env=env)

    return run
