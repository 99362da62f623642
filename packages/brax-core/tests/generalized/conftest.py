"""Double precision, in which answers are compared to many digits."""

import pytest
from precision import bound_slow, f64

__all__ = ["bound_slow", "f64"]


@pytest.fixture(autouse=True)
def every_test(f64):
    """Run every test in double precision."""
