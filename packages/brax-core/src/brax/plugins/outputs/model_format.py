"""Output checks of model formats: what `load` returns."""

from pathlib import Path
from typing import Any

from brax import plugins
from brax.base import System
from brax.errors import PluginError
from brax.plugins.outputs.traced import blamed, describe


def load(reader: Any, path: Path) -> System:
    """Return the system that a model format reads from a file.

    Raises:
        PluginError: if the format returns something else, or raises an error that is neither one of
            Brax's nor of the file system.
        ModelError: if the model is rejected.
    """
    who = plugins.specs("model_format")[plugins.name_of("model_format", reader)]
    # A file that is missing or cannot be read is no fault of the format.
    with blamed(who, f": load of '{path}' raised", passing=(OSError,)):
        sys = reader.load(path)
    if not isinstance(sys, System):
        raise PluginError(f"{who}: load must return a brax.System, but returns {describe(sys)}")
    return sys
