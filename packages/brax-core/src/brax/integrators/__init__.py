"""Integrators, one a file, behind one interface."""

from brax.integrators.interface import Flow, Integrator, Moves

DEFAULT_INTEGRATOR = "euler"
"""The integrator of a model that names none, as in MJCF."""

__all__ = ["DEFAULT_INTEGRATOR", "Flow", "Integrator", "Moves"]
