"""Re-exports of the training wrappers of `brax.env`, under the path that users know."""

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
