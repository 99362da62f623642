"""The laboratory of `tests/physics` with the positional pipeline in it, in both precisions."""

import physics_lab
import pytest
from precision import bound, bound_slow, f64

from brax.positional.pipeline import POSITIONAL

__all__ = ["bound", "bound_slow", "f64"]


@pytest.fixture(autouse=True)
def positional(monkeypatch):
    """Make `record` run the positional pipeline."""
    monkeypatch.setattr(physics_lab, "PIPELINE", POSITIONAL)
