"""The errors that users of Brax can meet.

Each is also the built-in exception that a caller would catch without knowing Brax, and its message
names the element, what came, what is allowed and what to do.
"""

import difflib
import sys
import textwrap
import traceback
from collections.abc import Iterable, Sequence


class BraxError(Exception):
    """Base of every error that Brax raises on purpose."""


class ModelError(BraxError, ValueError):
    """A model (file, builder call or `System`) that cannot be honoured."""

    problems: tuple[str, ...] = ()
    """Everything that is wrong, one sentence each, where a whole model was checked."""

    @classmethod
    def of(cls, problems: Sequence[str]) -> "ModelError":
        """Builds the one error that lists all problems of a model."""
        listed = "".join(f"\n  {p}" for p in problems)
        many = f"the model has {len(problems)} problems:{listed}"
        error = cls(problems[0] if len(problems) == 1 else many)
        error.problems = tuple(problems)
        return error


class PluginError(BraxError, RuntimeError):
    """A plugin that cannot be loaded, or that breaks its contract."""


class ConfigError(BraxError, ValueError):
    """A setting of a run, an environment or an agent that is not allowed."""


class UnknownNameError(ConfigError, KeyError):
    """A name that nothing is registered under."""

    def __str__(self) -> str:
        """The plain message; `KeyError` would show its repr."""
        return str(self.args[0]) if self.args else ""


class ShapeError(BraxError, ValueError):
    """An array whose shape, rank or dtype breaks a function's contract."""


class CheckpointError(BraxError, ValueError):
    """A checkpoint that cannot be written, or that is damaged or of another kind."""


class TrainingError(BraxError, FloatingPointError):
    """A training run that cannot go on: exit code 1 of a command, where the others are 2."""


def closest(name: str, allowed: Iterable[str]) -> str:
    """Returns ` Did you mean 'x'?` for the allowed name nearest to `name`, or an empty string."""
    near = difflib.get_close_matches(str(name), list(allowed), n=1, cutoff=0.5)
    return f" Did you mean '{near[0]}'?" if near else ""


def unknown_name(kind: str, name: str, allowed: Iterable[str]) -> UnknownNameError:
    """Builds the error for a name that is not registered, with what is and the nearest match."""
    names = sorted(allowed)
    listed = ", ".join(names) if names else "none"
    return UnknownNameError(f"unknown {kind} '{name}'. Available: {listed}.{closest(name, names)}")


_NOT_ASKED = {"jax", "jaxlib", "numpy", "brax", "pluggy"} | sys.stdlib_module_names
"""Packages whose lines say nothing about why somebody else's code failed."""

_LONGEST = 300
"""Characters of an error's own message; JAX's explain at length."""


def describe_error(error: BaseException) -> str:
    """Returns the type, message, file and line of an error that somebody else's code raised."""
    told = textwrap.shorten(str(error), _LONGEST, placeholder=" ...")
    text = f"{type(error).__name__}: {told}".removesuffix(": ")
    if isinstance(error, SyntaxError):  # its message has the line
        return text
    places = [
        f"{frame.f_code.co_filename}, line {line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in _NOT_ASKED
    ]
    return f"{text} ({places[-1]})" if places else text
