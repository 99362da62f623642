"""Integrators, one a file, behind one interface."""

from brax.integrators.interface import Integrator

__all__ = ["Integrator"]
