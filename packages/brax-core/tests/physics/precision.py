"""Fixtures of precision, for the `conftest.py` of every directory of physics tests."""

import jax
import pytest


def _choice(double):
    with jax.enable_x64(double):
        yield lambda f64, f32: f64 if double else f32


@pytest.fixture(params=["f64", "f32"])
def bound(request):
    """Run the test in both precisions; the function picks the bound of the one that runs."""
    yield from _choice(request.param == "f64")


@pytest.fixture(params=["f64", pytest.param("f32", marks=[pytest.mark.slow, pytest.mark.long])])
def bound_slow(request):
    """As `bound`, for models slow to compile: in single precision among the long tests."""
    yield from _choice(request.param == "f64")


@pytest.fixture
def f64():
    """Run the test in double precision."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def short_of(request):
    """Mark a case that is known to miss its bound: it must fail, and say so if it does not.

    The arguments are what the case's id must contain, and the residual that was measured.
    """

    def mark(case, measured):
        if case in request.node.name:
            request.applymarker(pytest.mark.xfail(strict=True, reason=f"measured {measured}"))

    return mark
