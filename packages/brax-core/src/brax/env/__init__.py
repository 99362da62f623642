"""The interface between physics, environments and agents, and the wrappers for training.

`base` holds `Env` and `State`, `pipeline_env` an environment made of a model and a pipeline, and
`wrappers` the classes that turn one environment into what agents train on. The package imports the
engine by its public paths; `brax.envs`, `brax.training` and other packages import what is exported
here. Start reading at `base`.
"""

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
