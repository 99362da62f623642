"""Conformance checks that built-in and third-party plugins run alike."""

from brax.testing.environment import check_environment

__all__ = ["check_environment"]
