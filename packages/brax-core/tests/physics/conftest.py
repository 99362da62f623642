"""Both precisions, each test in the one that it asks for."""

from precision import bound, bound_slow, f64, short_of

__all__ = ["bound", "bound_slow", "f64", "short_of"]
