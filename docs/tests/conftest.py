"""The example plugin, for the tests of the pages that show it."""

import importlib
import sys
from pathlib import Path

import pytest

from brax import plugins

SOURCE = Path(__file__).parents[2] / "integration_tests/plugins/brax-example-plugin/src"


@pytest.fixture(scope="module")
def example():
    """Register the example plugin as if it were installed."""
    if "screw" in plugins.names("joint_type"):
        yield
        return
    sys.path.insert(0, str(SOURCE))
    plugins.register(importlib.import_module("brax_example_plugin.plugin"), "example")
    yield
    plugins.unregister("example")
    sys.path.remove(str(SOURCE))
