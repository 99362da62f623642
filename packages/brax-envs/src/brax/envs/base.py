"""Re-exports of the environment interface of `brax.env`, under the path that users know."""

from brax.env import Env, Observation, ObservationSize, PipelineEnv, State, Wrapper

__all__ = ["Env", "Observation", "ObservationSize", "PipelineEnv", "State", "Wrapper"]
