"""The wrappers for training, which live in `brax.env`, under the path that users know."""

from brax.env import (
    AutoResetWrapper,
    DomainRandomizationVmapWrapper,
    EpisodeWrapper,
    EvalMetrics,
    EvalWrapper,
    VmapWrapper,
    wrap,
)

__all__ = [
    "AutoResetWrapper",
    "DomainRandomizationVmapWrapper",
    "EpisodeWrapper",
    "EvalMetrics",
    "EvalWrapper",
    "VmapWrapper",
    "wrap",
]
