"""The bundle that the build hook makes."""

import importlib.util
from importlib import resources
from pathlib import Path

import pytest


def test_the_bundle_is_made_from_these_sources():
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    path = Path(__file__).parents[1] / "hatch_build.py"
    if not path.exists():
        pytest.skip("brax-io is not installed from its sources here")
    spec = importlib.util.spec_from_file_location("hatch_build", path)
    assert spec and spec.loader
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    bundle = resources.files("brax.io.viewer").joinpath("bundle.js").read_text("utf-8")
    assert bundle.startswith(hook.mark()), "stale: pip install -e packages/brax-io"
