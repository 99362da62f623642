"""`brax envs`."""

from click.testing import CliRunner

from brax.cli import main
from brax.envs._commands import envs


def test_list():
    result = CliRunner().invoke(envs)
    assert result.exit_code == 0
    assert [line.split()[:2] for line in result.output.splitlines()[1:3]] == [
        ["ant", "brax-envs"],
        ["inverted_pendulum", "brax-envs"],
    ]


def test_show():
    result = CliRunner().invoke(envs, ["show", "inverted_pendulum"])
    assert result.exit_code == 0
    output = " ".join(result.output.split())
    for words in ("observation 4", "action 1", "backend spring", "step 0.02 s", "max_angle 0.2"):
        assert words in output
    assert "1:2 pole angle from upright rad" in output


def test_a_wrong_name_is_one_line(capsys):
    assert main(["envs", "show", "antt"]) == 2
    error = capsys.readouterr().err.strip()
    assert "unknown environment 'antt'" in error and "Did you mean 'ant'?" in error
    assert "\n" not in error
