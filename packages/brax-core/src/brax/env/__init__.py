"""The contract between physics, environments and agents, and the wrappers for training."""

from brax.env.base import (
    Env,
    Observation,
    ObservationSize,
    State,
    Wrapper,
    check_array,
    check_key,
    check_state,
)
from brax.env.pipeline_env import PipelineEnv
from brax.env.randomization import Randomization, Range
from brax.env.wrappers import (
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
    "Env",
    "EpisodeWrapper",
    "EvalMetrics",
    "EvalWrapper",
    "Observation",
    "ObservationSize",
    "PipelineEnv",
    "Randomization",
    "Range",
    "State",
    "VmapWrapper",
    "Wrapper",
    "check_array",
    "check_key",
    "check_state",
    "wrap",
]
