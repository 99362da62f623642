"""`check_model_format`: verifies that a model format follows its interface."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from brax.base import System
from brax.errors import BraxError, describe_error
from brax.plugins.kinds import key_problem
from brax.plugins.outputs.traced import describe
from brax.testing.faults import in_turn, raise_problems


def check_model_format(reader: object, path: Path | str) -> None:
    """Check one model format.

    `suffixes` must be a tuple that contains the suffix of the file. `load` must return a `System`
    for the file, given as text and as `Path`. For a missing file it must raise an error of
    `brax.errors`, or an `OSError`.

    Args:
        reader: the model format.
        path: a file that it can read.

    Raises:
        PluginError: naming everything that is wrong.
    """
    problems = in_turn(
        reader,
        lambda reader: _interface(reader, Path(path)),
        lambda reader: _loads(reader, Path(path)),
    )
    raise_problems(reader, "model formats", problems)


def _interface(reader: object, path: Path) -> Iterator[str]:
    """Yield the problems of the suffixes and of `load`."""
    suffixes: Any = getattr(reader, "suffixes", None)
    if problem := key_problem("model_format", suffixes):
        yield f"suffixes must be {problem}, got {suffixes!r}"
    elif path.suffix.lower() not in suffixes:
        yield f"suffixes has no '{path.suffix.lower()}', that of {path.name}: got {suffixes}"
    if not callable(getattr(reader, "load", None)):
        yield "it must have a function load"


def _loads(reader: Any, path: Path) -> Iterator[str]:
    """Yield the problems of loading the file, and of loading a missing one."""
    for given in (path, str(path)):
        try:
            out = reader.load(given)
        except Exception as error:
            yield f"load({type(given).__name__}) raised {describe_error(error)}"
            continue
        if not isinstance(out, System):
            yield f"load must return a brax.System, but returns {describe(out)}"
    try:
        reader.load(path.with_name(f"missing{path.suffix}"))
    except (BraxError, OSError):
        return
    except Exception as error:
        yield f"load of a missing file must raise an OSError, but raised {error!r:.80}"
    else:
        yield "load of a missing file must raise an error"
