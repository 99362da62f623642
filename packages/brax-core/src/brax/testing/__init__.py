"""Conformance checks that built-in and third-party plugins run alike."""

from brax.testing.collider import check_collider
from brax.testing.environment import check_environment
from brax.testing.integrator import check_integrator
from brax.testing.joint import check_joint

__all__ = ["check_collider", "check_environment", "check_integrator", "check_joint"]
