"""The command `brax`: one line and an exit code for every error, and its own subcommands."""

import json
import os
import subprocess
import sys
import types
from typing import Any

import click
import pytest

from brax import cli, plugins
from brax.errors import ModelError, TrainingError
from brax.plugins import Spec, hookimpl


@pytest.fixture
def brax(capsys):
    """Run the command in this process; return exit code, output and errors."""

    def run(*args):
        code = cli.main(list(args))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def failing():
    """Add a subcommand `fail` whose body raises the given exception."""
    raises: dict[str, BaseException] = {}

    @click.command()
    @click.option("--size", type=click.IntRange(1))
    def fail(size):
        raise raises["error"]

    plugin: Any = types.ModuleType("failing")
    plugin.BRAX_PLUGIN_API = 1
    plugin.brax_commands = hookimpl(lambda: [Spec("fail", fail, "always fails")])
    plugins.register(plugin, "failing")
    yield raises
    plugins.unregister("failing")


def process(*args, **environ):
    command = [sys.executable, "-c", "import sys; from brax.cli import main; sys.exit(main())"]
    return subprocess.run(
        [*command, *args], capture_output=True, text=True, env={**os.environ, **environ}
    )


def test_help_lists_subcommands_of_plugins(brax, failing):
    code, out, _ = brax("--help")
    assert code == 0
    assert "always fails" in out
    assert "plugins" in out and "bench" in out


def test_help_imports_nothing_heavy():
    program = (
        "import sys; from brax.cli import main; main(['--help']); "
        "print([m for m in ('jax', 'flax', 'orbax', 'optax', 'mujoco') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["plugin"], "there is no command 'plugin'. Commands: bench, "),
        (["plugin"], "Did you mean 'plugins'?"),
        (["--hlep"], "Did you mean '--help'?"),
        (["plugins", "list", "--jsn"], "Did you mean '--json'?"),
        (["plugins", "lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["plugins", "show", "hindge"], "unknown plugin 'hindge'"),
        (["plugins", "show", "hindge"], "Did you mean 'hinge'?"),
        (["bench", "no_such_environment"], "unknown environment 'no_such_environment'"),
        (["bench", "--batch-size", "0"], "0 is not in the range x>=1"),
        (["fail", "--size", "big"], "'big' is not a valid integer range"),
    ],
)
def test_a_wrong_name_or_option_is_one_line_and_exit_code_2(brax, failing, args, told):
    code, out, err = brax(*args)
    assert (code, out) == (2, "")
    assert err.startswith("brax: ") and err.count("\n") == 1
    assert told in err


COUNT = "from brax import cli; cli.main(['--help']); import jax; print(jax.device_count())"


@pytest.mark.parametrize(
    ("environ", "count"),
    [
        ({}, len(os.sched_getaffinity(0))),
        pytest.param({"JAX_NUM_CPU_DEVICES": "3"}, 3, marks=pytest.mark.slow),
        pytest.param(
            {"XLA_FLAGS": "--xla_force_host_platform_device_count=5"}, 5, marks=pytest.mark.slow
        ),
    ],
)
def test_every_core_is_a_device_unless_the_user_says(environ, count):
    clean = {k: v for k, v in os.environ.items() if k != "JAX_NUM_CPU_DEVICES"}
    done = subprocess.run(
        [sys.executable, "-c", COUNT],
        capture_output=True,
        text=True,
        env={**clean, "JAX_PLATFORMS": "cpu", **environ},
    )
    assert done.stdout.split()[-1] == str(count), done.stderr


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ModelError("joint 'knee' is bad"), 2, "brax: joint 'knee' is bad\n"),
        (PermissionError(13, "Permission denied", "/runs"), 2, "Permission denied: '/runs'\n"),
        (TrainingError("the gradient is not finite"), 1, "brax: the gradient is not finite\n"),
        (click.ClickException("the run diverged"), 1, "brax: the run diverged\n"),
        (ZeroDivisionError("by\nzero"), 1, "brax: ZeroDivisionError: by zero (add --debug"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_become_exit_codes(brax, failing, error, code, line):
    failing["error"] = error
    got, out, err = brax("fail")
    assert (got, out) == (code, "")
    assert line in err and "Traceback" not in err


@pytest.mark.parametrize("args", [["--debug", "fail"], ["fail", "--debug"]])
def test_debug_shows_the_traceback(brax, failing, args):
    failing["error"] = ModelError("bad")
    code, _, err = brax(*args)
    assert code == 2
    assert "Traceback" in err and err.endswith("brax: bad\n")


def test_a_subcommand_that_cannot_be_imported_names_its_plugin(brax):
    plugin: Any = types.ModuleType("lost")
    plugin.BRAX_PLUGIN_API = 1
    plugin.brax_commands = hookimpl(lambda: [Spec("lost", "nowhere:command")])
    plugins.register(plugin, "lost-plugin")
    try:
        code, _, err = brax("lost")
    finally:
        plugins.unregister("lost-plugin")
    assert code == 2
    assert err.startswith("brax: command 'lost' of lost-plugin (nowhere:command) cannot be loaded")


@pytest.mark.parametrize("platform", ["cuda", "bogus"])
def test_a_missing_device_is_one_line_with_the_fix(platform):
    program = (
        "import sys, jax, click\n"
        "from brax import cli\n"
        "cli.root.main = lambda *a, **k: jax.numpy.zeros(3)\n"
        "sys.exit(cli.main([]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": platform},
    )
    if done.returncode == 0:
        pytest.skip(f"this machine has a {platform} device")
    assert done.returncode == 2
    assert f"brax: JAX finds no device for JAX_PLATFORMS={platform}." in done.stderr
    assert "Set JAX_PLATFORMS=cpu" in done.stderr and "Traceback" not in done.stderr


def test_list_names_kind_name_and_distribution(brax):
    code, out, _ = brax("plugins", "list")
    assert code == 0
    (hinge,) = [line.split() for line in out.splitlines() if "rotation about an axis" in line]
    assert hinge[:3] == ["joint_type", "hinge", "brax-core"]
    code, out, _ = brax("plugins", "list", "--json")
    report = json.loads(out)
    (core,) = [p for p in report["plugins"] if p["distribution"] == "brax-core"]
    assert core["state"] == "loaded"
    hinge = {
        "kind": "joint_type",
        "name": "hinge",
        "target": "brax.joints.hinge:HINGE",
        "summary": "rotation about an axis",
        "distribution": "brax-core",
        "version": plugins.specs("joint_type")["hinge"].version,
    }
    assert hinge in report["registered"]


def test_a_summary_with_words_in_brackets_is_listed(brax):
    plugin: Any = types.ModuleType("units")
    plugin.BRAX_PLUGIN_API = 1
    plugin.brax_commands = hookimpl(lambda: [Spec("weigh", "nowhere:command", "a mass [kg]")])
    plugins.register(plugin, "units")
    try:
        _, out, _ = brax("plugins", "list")
    finally:
        plugins.unregister("units")
    (line,) = [line for line in out.splitlines() if "weigh" in line]
    assert line.rstrip().endswith("a mass [kg]")


def test_show_one_name_and_one_distribution(brax):
    _, out, _ = brax("plugins", "show", "hinge", "--json")
    (entry,) = json.loads(out)
    assert (entry["kind"], entry["defined in"]) == ("joint_type", "brax.joints.hinge")
    assert entry["documentation"].startswith("Hinge: one angle")
    _, out, _ = brax("plugins", "show", "brax-core")
    assert "brax.joints.hinge:HINGE" in out and "loaded" in out


def test_doctor_finds_what_is_broken(brax):
    plugin: Any = types.ModuleType("sick")
    plugin.BRAX_PLUGIN_API = 1
    plugin.brax_environments = hookimpl(lambda: [Spec("swamp", "sick_module:Swamp")])
    plugins.register(plugin, "sick-plugin")
    try:
        code, out, _ = brax("plugins", "doctor", "--json")
        text_code, text, _ = brax("plugins", "doctor")
    finally:
        plugins.unregister("sick-plugin")
    report = json.loads(out)
    assert (code, text_code, report["ok"]) == (1, 1, False)
    (entry,) = [b for b in report["broken"] if b["distribution"] == "sick-plugin"]
    assert "No module named 'sick_module'" in entry["error"]
    assert "No module named 'sick_module'" in text


def test_a_failed_plugin_is_one_warning_on_stderr_and_json_stays_clean(tmp_path):
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[brax]\nbad = acme_is_not_there\n")
    done = process("plugins", "doctor", "--json", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    told = "brax: warning: plugin acme 1.0 was left out: ModuleNotFoundError"
    assert [line.startswith(told) for line in done.stderr.splitlines() if "acme" in line] == [True]
    broken = json.loads(done.stdout)["broken"]
    assert [b["reason"] for b in broken if b["distribution"] == "acme"] == [
        "ModuleNotFoundError: No module named 'acme_is_not_there'"
    ]


def test_debug_shows_where_a_plugin_failed(tmp_path):
    """In its module, which is told of in a warning, and in a target, which doctor loads."""
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[brax]\none = acme_gone\ntwo = acme_fine\n")
    (tmp_path / "acme_gone.py").write_text("x = 1\nimport nobody_has_this\n")
    (tmp_path / "acme_fine.py").write_text(
        "from brax.plugins import Spec, hookimpl\nBRAX_PLUGIN_API = 1\n"
        "@hookimpl\ndef brax_environments():\n    return [Spec('maze', 'acme_maze:Maze')]\n"
    )
    (tmp_path / "acme_maze.py").write_text("\n\n1 / 0\n")
    places = [f"{tmp_path / 'acme_gone.py'}, line 2", f"{tmp_path / 'acme_maze.py'}, line 3"]
    quiet = process("plugins", "doctor", PYTHONPATH=str(tmp_path))
    assert quiet.returncode == 1
    assert all(f"({place})" in quiet.stdout + quiet.stderr for place in places)
    assert "Traceback" not in quiet.stderr
    loud = process("--debug", "plugins", "doctor", PYTHONPATH=str(tmp_path))
    assert loud.stderr.count("Traceback") >= 2
    for path, line in ("acme_gone.py", 2), ("acme_maze.py", 3):
        assert f'File "{tmp_path / path}", line {line}' in loud.stderr
