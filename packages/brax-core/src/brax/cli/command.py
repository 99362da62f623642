"""The command `brax`. Its subcommands are plugins; an error is one line and an exit code."""

import functools
import os
import sys
import traceback
import warnings
from pathlib import Path

import click

import brax
from brax import _cores, plugins
from brax.errors import BraxError, TrainingError, closest


class PluginGroup(click.Group):
    """A group whose subcommands come from plugins, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands, sorted."""
        return sorted(plugins.names("command"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the subcommand of a name, or None."""
        if cmd_name not in plugins.names("command"):
            return None
        command: click.Command = plugins.get("command", cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raise an error with a suggestion if the subcommand is unknown."""
        name = args[0]
        if not name.startswith("-") and name not in plugins.names("command"):
            names = self.list_commands(ctx)
            listed = f"Commands: {', '.join(names)}.{closest(name, names)}"
            raise click.UsageError(f"there is no command '{name}'. {listed}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands without importing them."""
        with formatter.section("Commands"):
            # The summaries of the specs serve as help texts: click's own list would import every
            # subcommand.
            specs = plugins.specs("command")
            formatter.write_dl([(name, specs[name].summary) for name in self.list_commands(ctx)])


@click.group(cls=PluginGroup)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.version_option(brax.__version__, prog_name="brax")
def root() -> None:
    """Differentiable rigid-body physics in JAX, and the agents that learn on it."""


def main(args: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        args: arguments; by default those of the process.

    Returns:
        The exit code: 0 on success, 2 for an error that the user can correct before a run starts, 1
        for a run that failed, 130 after Ctrl-C.
    """
    args = sys.argv[1:] if args is None else args
    debug = "--debug" in args
    warnings.showwarning = functools.partial(_show_warning, debug)
    _use_compilation_cache()
    _cores.use_all_cores()
    try:
        # `--debug` is accepted after a subcommand as well as before it, so it is removed here.
        rest = [a for a in args if a != "--debug"]
        code = root.main(rest, "brax", standalone_mode=False, obj={"debug": debug})
        return code if type(code) is int else 0
    except (click.Abort, KeyboardInterrupt):
        return 130
    except click.exceptions.NoArgsIsHelpError as help_text:
        help_text.show()
        return help_text.exit_code
    except Exception as error:
        if debug:
            traceback.print_exc()
        message, code = _explain(error)
        click.echo(f"brax: {message}", err=True)
        return code


def _explain(error: Exception) -> tuple[str, int]:
    """Return the message for an error, and the exit code."""
    if isinstance(error, click.ClickException):
        return error.format_message(), error.exit_code
    if isinstance(error, TrainingError):
        return str(error), 1
    if isinstance(error, BraxError | OSError):
        return str(error), 2
    # Only an unexpected error is worth the time that JAX takes to look for devices.
    if problem := _device_problem():
        return problem, 2
    text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return f"{text} (add --debug to see where)", 1


def _device_problem() -> str:
    """Return why JAX finds no device, or an empty string.

    The errors that follow from it look like errors of the program.
    """
    import jax

    try:
        jax.devices()
    except Exception:
        wanted = os.environ.get("JAX_PLATFORMS", "")
        return (
            f"JAX finds no device for JAX_PLATFORMS={wanted}. Set JAX_PLATFORMS=cpu or unset it, "
            'or install JAX for your accelerator, such as pip install "jax[cuda12]"'
        )
    return ""


def _use_compilation_cache() -> None:
    """Keep compiled programs for the next run, unless JAX's own settings say otherwise."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    # JAX reads these variables when it is imported. Only the subcommands that compute import it, so
    # that `brax --help` stays fast.
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(base) / "brax" / "jax"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")


def _show_warning(debug: bool, message: Warning | str, *_: object) -> None:
    """Print a warning as one line; with `--debug`, after the traceback of its cause."""
    cause = getattr(message, "__cause__", None)
    if debug and cause is not None:
        traceback.print_exception(cause)
    click.echo(f"brax: warning: {message}", err=True)
