__path__ = __import__("pkgutil").extend_path(__path__, __name__)
__doc__ = "Brax: differentiable rigid-body physics in JAX, and the agents that learn on it."

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brax.base import Motion, State, System, Transform

__version__ = "0.20.0"

DISTRIBUTION = "brax-core"
"""The distribution of this file, by which the others notice if Google's brax has replaced it."""

__all__ = ["Motion", "State", "System", "Transform", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the types, and JAX with them, at first use: `brax --help` needs neither."""
    if name in __all__:
        from brax import base

        return getattr(base, name)
    raise AttributeError(f"module 'brax' has no attribute '{name}'")
