"""`brax bench`, on environments small enough to know what they do."""

import json
import types
from importlib.util import find_spec
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest

from brax import cli, plugins
from brax.kernels.batch_last import batch_last
from brax.plugins import Spec, hookimpl


class Position(NamedTuple):
    x: jax.Array


class Drift:
    """Moves by its action; from step `breaks_at` on its position is not a number."""

    action_size = 1
    backend = "none"

    def __init__(self, breaks_at=jnp.inf):
        self.breaks_at = breaks_at

    def reset(self, rng):
        return Position(jnp.zeros(2))

    def step(self, state, action):
        time = state.x[1] + 1
        x = jnp.where(time >= self.breaks_at, jnp.nan, state.x[0] + action[0])
        return Position(jnp.stack([x, time]))


class Wave(Drift):
    """Moves in a kernel, as physics does."""

    def step(self, state, action):
        return Position(batch_last(jnp.sin)(state.x) + action)


@pytest.fixture(autouse=True)
def drifting():
    plugin: Any = types.ModuleType("drifting")
    plugin.BRAX_PLUGIN_API = 1
    plugin.brax_environments = hookimpl(
        lambda: [
            Spec("drift", Drift),
            Spec("wave", Wave),
            Spec("broken_drift", lambda: Drift(breaks_at=5)),
        ]
    )
    plugins.register(plugin, "drifting")
    cached = jax.config.jax_enable_compilation_cache  # type: ignore[attr-defined]
    yield
    jax.config.update("jax_enable_compilation_cache", cached)
    plugins.unregister("drifting")


def test_measures_a_registered_environment(capsys):
    assert cli.main(["bench", "drift", "--batch-size", "8", "--length", "20", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (row,) = report["results"]
    assert (row["environment"], row["batch_size"], row["length"]) == ("drift", 8, 20)
    assert row["steps_per_second"] == pytest.approx(8 * 20 / row["run_seconds"])
    assert row["compile_seconds"] > 0
    assert report["device"].startswith(jax.devices()[0].platform)


@pytest.mark.usefixtures("code_generator")
def test_prints_a_table_and_which_kernels_are_native(capsys):
    assert cli.main(["bench", "drift", "--batch-size", "2", "--length", "3"]) == 0
    out = capsys.readouterr().out
    assert "drift" in out and "native" not in out
    assert cli.main(["bench", "wave", "--batch-size", "2", "--length", "3"]) == 0
    if jax.devices()[0].platform == "cpu":
        assert "wave: native kernels: 1 of 1" in capsys.readouterr().out


def test_a_result_that_is_not_finite_does_not_count(capsys):
    assert cli.main(["bench", "broken_drift", "--batch-size", "2", "--length", "4"]) == 0
    capsys.readouterr()
    assert cli.main(["bench", "broken_drift", "--batch-size", "2", "--length", "5"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "brax: broken_drift: state.x is not finite after the rollout\n"


@pytest.mark.slow
@pytest.mark.gpu_aot
def test_explains_a_rollout_on_a_gpu_that_is_not_there(capsys):
    arguments = ["bench", "drift", "--batch-size", "64", "--length", "10", "--explain"]
    assert cli.main([*arguments, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["target"] == "sm_90"
    # At least one kernel a step reads and writes the two numbers of each environment.
    assert row["kernels_per_step"] >= 1
    assert row["bytes_per_environment_step"] >= 2 * 2 * 4
    assert row["registers"] > 0
    assert row["spilled_bytes"] == row["host_synchronizations"] == 0
    kernels, traffic = row["kernels_per_step"], 64 * row["bytes_per_environment_step"]
    seconds = max(kernels * 1.9e-6, traffic / 3.35e12)
    assert row["estimated_steps_per_second"] == pytest.approx(64 / seconds)
    # XLA's kernels alone: the environment has none of ours.
    assert not row["own_kernels"]
    assert row["instructions_per_environment_step"] == 0
    assert cli.main(arguments) == 0
    assert "Nothing ran on a GPU" in capsys.readouterr().out


@pytest.mark.skipif(bool(find_spec("jax_cuda12_plugin")), reason="JAX's CUDA plugin is installed")
def test_says_what_explaining_a_gpu_needs(capsys):
    assert cli.main(["bench", "drift", "--explain"]) == 2
    assert 'pip install "jax[cuda12]"' in capsys.readouterr().err
