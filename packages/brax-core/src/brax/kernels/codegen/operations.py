"""The registry of operations with all of its entries, for who goes through a jaxpr.

Modules of `lowering` fill the registry when they are imported, and `control_flow` imports them all.
"""

from brax.kernels.codegen.lowering import control_flow
from brax.kernels.codegen.lowering.registry import elements, named, operation

__all__ = ["control_flow", "elements", "named", "operation"]
