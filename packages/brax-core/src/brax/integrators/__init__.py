"""Integrators, one a file, behind one interface.

An integrator puts the stages that a pipeline offers in order; no module outside this folder names
one. Pipelines and the builder import what is exported here. Start reading at `interface`, then
`euler`.
"""

from brax.integrators.interface import Flow, Integrator, Moves

DEFAULT_INTEGRATOR = "euler"
"""The integrator of a model that names none, as in MJCF."""

__all__ = ["DEFAULT_INTEGRATOR", "Flow", "Integrator", "Moves"]
