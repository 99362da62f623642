"""Output checks of model formats: what `load` returns."""

from pathlib import Path
from typing import Any

from brax import plugins
from brax.base import System
from brax.errors import BraxError, PluginError, describe_error
from brax.plugins.outputs.traced import describe


def load(reader: Any, path: Path) -> System:
    """Returns the system that a model format reads from a file.

    Raises:
        PluginError: if the format returns anything else, or raises an error that is neither one of
            Brax's nor of the file system.
        ModelError: if the model is refused.
    """
    who = plugins.specs("model_format")[plugins.name_of("model_format", reader)]
    try:
        sys = reader.load(path)
    except (BraxError, OSError):
        raise
    except Exception as error:
        if who.ours:
            raise
        raise PluginError(f"{who}: load of '{path}' raised {describe_error(error)}") from error
    if not isinstance(sys, System):
        raise PluginError(f"{who}: load must return a brax.System, but returns {describe(sys)}")
    return sys
