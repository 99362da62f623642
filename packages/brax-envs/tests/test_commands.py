"""`brax envs`."""

import dataclasses

import jax.numpy as jnp
import pytest
from click.testing import CliRunner

from brax import plugins
from brax.cli import main
from brax.env import State
from brax.envs import register_environment
from brax.envs._commands import envs


def test_list():
    result = CliRunner().invoke(envs)
    assert result.exit_code == 0
    listed = [line.split()[:2] for line in result.output.splitlines()]
    assert ["ant", "brax-envs"] in listed and ["walker2d", "brax-envs"] in listed


def test_show():
    result = CliRunner().invoke(envs, ["show", "inverted_pendulum"])
    assert result.exit_code == 0
    output = " ".join(result.output.split())
    for words in ("observation 4", "action 1", "backend spring", "step 0.02 s", "max_angle 0.2"):
        assert words in output
    assert "1:2 pole angle from upright rad" in output
    assert "spring 0.005 s 4" in output and "reward_alive term of the reward" in output


def test_show_one_with_computed_parts():
    result = CliRunner().invoke(envs, ["show", "reacher", "--backend", "spring"])
    output = " ".join(result.output.split())
    for words in (
        "6:8 tip velocity x, y m/s",
        "positional 0.005 s 4",
        "generalized 0.01 s 2",
    ):
        assert words in output
    assert "reward_ctrl term of the reward" in output
    assert "target_radius 0.2 Maximum distance of targets from the arm's root [m]." in output
    if "ppo" in plugins.names("trainer"):
        assert "ppo default" in output


def test_a_wrong_name_is_one_line(capsys):
    assert main(["envs", "show", "antt"]) == 2
    error = capsys.readouterr().err.strip()
    assert "unknown environment 'antt'" in error and "Did you mean 'ant'?" in error
    assert "\n" not in error


def test_show_with_a_picture(tmp_path, capsys):
    page = tmp_path / "pole.html"
    assert main(["envs", "show", "inverted_pendulum", "--picture", str(page)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(page)
    assert "<title>inverted_pendulum</title>" in page.read_text()
    assert main(["envs", "show", "fast", "--picture", str(page)]) == 2
    assert "cannot draw 'fast': it has no model" in capsys.readouterr().err


class Foreign:
    """Waits."""

    action_size = 1
    # No file has the source of this class.
    parameters = dataclasses.make_dataclass("Parameters", [("patience", float, 7.0)])()

    def reset(self, rng):
        return State(None, jnp.zeros(2), jnp.zeros(()), jnp.zeros(()))

    def step(self, state, action):
        return state


@pytest.mark.parametrize("name", ["waiting", "waiting[/v2]"])
def test_one_of_another_package(name):
    """It is no `Env`, and its name may hold what Rich would take for markup."""
    register_environment(name, Foreign)  # type: ignore[arg-type]
    try:
        listed = CliRunner().invoke(envs)
        assert listed.exit_code == 0 and name in listed.output
        shown = CliRunner().invoke(envs, ["show", name])
        assert shown.exit_code == 0 and ["patience", "7.0"] in map(
            str.split, shown.output.splitlines()
        )
    finally:
        plugins.unregister(f"register_environment {name}")
