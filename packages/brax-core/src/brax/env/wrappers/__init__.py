"""Wrappers that turn one environment into what agents train on, one a file.

`brax.env` exports them. Start reading at `wrap`, which applies them in their order.
"""

from brax.env.wrappers.auto_reset import AutoResetWrapper, Reset
from brax.env.wrappers.domain_randomization import (
    DomainRandomizationVmapWrapper,
    RandomizationFn,
)
from brax.env.wrappers.episode import EpisodeWrapper
from brax.env.wrappers.evaluation import EvalMetrics, EvalWrapper
from brax.env.wrappers.stack import wrap
from brax.env.wrappers.vmap import VmapWrapper

__all__ = [
    "AutoResetWrapper",
    "DomainRandomizationVmapWrapper",
    "EpisodeWrapper",
    "EvalMetrics",
    "EvalWrapper",
    "RandomizationFn",
    "Reset",
    "VmapWrapper",
    "wrap",
]
