"""XLA's settings: in effect where brax is imported first, a warning where that is too late."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest


def run(program: str, **environment: str) -> subprocess.CompletedProcess:
    clean = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | environment
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=clean, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "flags", "warned"),
    [
        ("import jax; import brax", "", False),
        ("import brax; import jax; jax.devices(); import brax.base", "", False),
        ("import jax; jax.devices(); import brax", "", True),
        (
            "import jax; jax.devices(); import brax",
            "--xla_backend_extra_options= --xla_cpu_prefer_vector_width=256",
            False,  # both are the user's own
        ),
    ],
)
def test_a_start_of_jax_before_brax_is_warned_of(program, flags, warned):
    said = run(program, JAX_PLATFORMS="cpu", XLA_FLAGS=flags).stderr
    assert ("RuntimeWarning: JAX computed something before brax was imported" in said) is warned
    assert (said.count("Import brax first.") == 1) is warned


def test_what_the_user_set_stays():
    program = "import os, brax; print(os.environ['XLA_FLAGS'])"
    flags = run(program, XLA_FLAGS="--xla_cpu_prefer_vector_width=256").stdout.split()
    assert flags[0] == "--xla_cpu_prefer_vector_width=256"
    assert [f.split("=")[0] for f in flags] == [
        "--xla_cpu_prefer_vector_width",
        "--xla_backend_extra_options",
    ]


def test_these_tests_run_with_the_settings():
    """A sine that two results use is computed once."""

    def pair(x):
        y = jnp.sin(x)
        return y + 1.0, y * 2.0

    text = jax.jit(pair).lower(jnp.zeros(1000)).compile().as_text()
    assert text.count(" sine(") == 1
