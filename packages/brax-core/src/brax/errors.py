"""Errors that users of Brax can meet.

Each error is also the built-in exception that a caller would catch without knowing Brax. Its
message names the element, says what came and what is allowed, and says what to do.
"""

import difflib
import sys
import textwrap
import traceback
from collections.abc import Iterable, Sequence


class BraxError(Exception):
    """Base of every error that Brax raises on purpose."""


class Reason(str):
    """A sentence that says why something is rejected, and its parts."""

    allowed: tuple[str, ...] = ()
    """The values that are allowed instead, where they are a list."""
    remedy: str = ""
    """The thing to do, in the imperative, if the sentence names one."""

    @classmethod
    def of(
        cls, what: str, allowed: Iterable[str] = (), remedy: str = "", hint: str = ""
    ) -> "Reason":
        """Return the sentence of some parts; a hint, such as the nearest match, is at its end."""
        listed = tuple(allowed)
        among = [f"allowed: {', '.join(listed)}"] if listed else []
        made = cls("; ".join([what, *among, *([remedy] if remedy else [])]) + hint)
        made.allowed, made.remedy = listed, remedy
        return made


class ModelProblem(str):
    """One thing that is wrong with a model: the sentence that says it, and its parts."""

    kind: str = ""
    """Kind of the element, such as 'joint' or 'option'; empty for the model as a whole."""
    name: str = ""
    """The element's name, if it has one."""
    place: str = ""
    """File and line of the element, such as 'ant.xml:41', if they are known."""
    reason: str = ""
    """The sentence without the element."""
    allowed: tuple[str, ...] = ()
    """The values that are allowed instead, where they are a list."""
    remedy: str = ""
    """The thing to do, in the imperative, if the sentence names one."""

    @classmethod
    def of(cls, reason: str, kind: str = "", name: str = "", place: str = "") -> "ModelProblem":
        """Return the problem of an element, or of the model as a whole.

        `place` may stand in brackets, as in messages.
        """
        place = place.strip(" ()")
        element = kind + f" '{name}'" * bool(name) + f" ({place})" * bool(place)
        made = cls(f"{element}: {reason}" if element else reason)
        made.kind, made.name, made.place, made.reason = kind, name, place, reason
        if isinstance(reason, Reason):
            made.allowed, made.remedy = reason.allowed, reason.remedy
        return made


class ModelError(BraxError, ValueError):
    """A model (file, builder call or `System`) that is rejected."""

    problems: tuple[ModelProblem, ...] = ()
    """Everything that is wrong, where a whole model was checked."""

    @classmethod
    def of(cls, problems: Sequence[str]) -> "ModelError":
        """Return the error that lists all problems of a model."""
        listed = "".join(f"\n  {p}" for p in problems)
        many = f"the model has {len(problems)} problems:{listed}"
        error = cls(problems[0] if len(problems) == 1 else many)
        error.problems = tuple(
            p if isinstance(p, ModelProblem) else ModelProblem.of(p) for p in problems
        )
        return error


class PluginError(BraxError, RuntimeError):
    """A plugin that cannot be loaded, or that breaks its contract."""


class ConfigError(BraxError, ValueError):
    """A setting of a run, an environment or an agent that is not allowed."""


class UnknownNameError(ConfigError, KeyError):
    """A name that nothing is registered under."""

    def __str__(self) -> str:
        """Return the message itself; `KeyError` would show its repr."""
        return str(self.args[0]) if self.args else ""


class ShapeError(BraxError, ValueError):
    """An array whose shape, rank or dtype breaks a function's contract."""


class CheckpointError(BraxError, ValueError):
    """A checkpoint that cannot be written, that is damaged, or that is of another kind."""


class TrainingError(BraxError, FloatingPointError):
    """A training run that cannot continue: exit code 1 of a command, where the others are 2."""


def closest(name: str, allowed: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` for the allowed name nearest to `name`, or an empty string."""
    # The names are short, so a cutoff below difflib's 0.6 still finds one with two letters wrong.
    near = difflib.get_close_matches(str(name), list(allowed), n=1, cutoff=0.5)
    return f" Did you mean '{near[0]}'?" if near else ""


def unknown_name(kind: str, name: str, allowed: Iterable[str]) -> UnknownNameError:
    """Return the error for an unknown name; it lists the registered names and the nearest match."""
    names = sorted(allowed)
    listed = ", ".join(names) if names else "none"
    return UnknownNameError(f"unknown {kind} '{name}'. Available: {listed}.{closest(name, names)}")


_NOT_ASKED = {"jax", "jaxlib", "numpy", "brax", "pluggy"} | sys.stdlib_module_names
"""Packages whose stack frames say nothing about why third-party code failed."""

_LONGEST = 300
"""Characters kept of an error's own message; those of JAX run to pages."""


def describe_error(error: BaseException) -> str:
    """Return the type, message, file and line of an error that third-party code raised."""
    message = textwrap.shorten(str(error), _LONGEST, placeholder=" ...")
    text = f"{type(error).__name__}: {message}".removesuffix(": ")
    if isinstance(error, SyntaxError):  # its message has the line
        return text
    # The last frame outside these packages is the line of the plugin or model file that is at
    # fault; the frames below it belong to JAX or to the standard library.
    places = [
        f"{frame.f_code.co_filename}, line {line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in _NOT_ASKED
    ]
    return f"{text} ({places[-1]})" if places else text
