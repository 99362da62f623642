__path__ = __import__("pkgutil").extend_path(__path__, __name__)
__doc__ = "Brax: differentiable rigid-body physics in JAX, and the agents that learn on it."

from brax.base import Motion, State, System, Transform

__version__ = "0.20.0"

__all__ = ["Motion", "State", "System", "Transform", "__version__"]
