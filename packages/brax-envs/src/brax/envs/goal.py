"""`GoalTask`: a task with a target that is moved when it is hit."""

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp

from brax.base import State as PipelineState
from brax.env import State, check_key
from brax.envs.observation import observe
from brax.envs.task import Task


class GoalTask(Task):
    """A task with a target, which is drawn again in the step that hits it.

    The last body of the model is the target. It is on slide joints along x, y and z from the origin
    and collides with nothing. Its coordinates are its position, and only this class moves it.
    `info['target_key']` is the random key of the next target.
    """

    @abstractmethod
    def target(self, key: jax.Array, physics: PipelineState) -> jax.Array:
        """Draw the position of the next target [m], shape (3,)."""

    @abstractmethod
    def is_hit(self, physics: PipelineState) -> jax.Array:
        """Return whether the target is hit."""

    def reset(self, rng: jax.Array) -> State:
        """Start an episode, with its first target."""
        now, first, later = jax.random.split(check_key(rng), 3)
        state = super().reset(now)
        return self._aimed(state, self.target(first, state.pipeline_state), later)

    def step(self, state: State, action: jax.Array) -> State:
        """Advance by `dt` under an action in [-1, 1], shape (action_size,).

        The reward refers to the target before the step. If that was hit, the observation contains
        the next one.
        """
        new = super().step(state, action)
        later, now = jax.random.split(state.info["target_key"])
        physics = new.pipeline_state
        drawn = self.target(now, physics)
        return self._aimed(new, jnp.where(self.is_hit(physics), drawn, goal(physics)), later)

    def pipeline_step(self, pipeline_state: Any, action: jax.Array | None) -> Any:
        """Advance the physics; the target stays at its position."""
        # Gravity would make the target fall, so it is put back after each step.
        return placed(super().pipeline_step(pipeline_state, action), goal(pipeline_state))

    def _aimed(self, state: State, target: jax.Array, key: jax.Array) -> State:
        physics = placed(state.pipeline_state, target)
        # The layouts of these tasks do not read the controls.
        obs = observe(self.observation_layout, self.sys, physics, jnp.zeros(self.action_size))
        return state.replace(pipeline_state=physics, obs=obs, info=state.info | {"target_key": key})


def goal(physics: PipelineState) -> jax.Array:
    """Return the position of the target [m], shape (3,)."""
    return physics.q[-3:]


def placed(physics: PipelineState, target: jax.Array) -> PipelineState:
    """Return the pipeline's state with the target at rest at a position (3,)."""
    return physics.replace(
        q=physics.q.at[-3:].set(target),
        qd=physics.qd.at[-3:].set(0.0),
        x=physics.x.replace(pos=physics.x.pos.at[-1].set(target)),
        xd=physics.xd.replace(vel=physics.xd.vel.at[-1].set(0.0)),
    )
