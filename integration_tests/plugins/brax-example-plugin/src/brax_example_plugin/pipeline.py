"""The spring pipeline, at half the speed."""

from jax import Array

from brax import State, System, plugins


class SlowMotion:
    """Every physics step advances half of `opt.timestep`."""

    def init(self, sys: System, q: Array, qd: Array) -> State:
        """Return the state at the given coordinates and velocities."""
        return plugins.get("pipeline", "spring").init(sys, q, qd)

    def step(self, sys: System, state: State, act: Array, n_frames: int = 1) -> State:
        """Advance by `n_frames` half steps."""
        slow = sys.tree_replace({"opt.timestep": sys.opt.timestep / 2})
        return plugins.get("pipeline", "spring").step(slow, state, act, n_frames)


SLOW_MOTION = SlowMotion()
