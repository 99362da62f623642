"""The reacher: an arm in a plane that brings its tip to a target."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax import kinematics, math
from brax.base import State as PipelineState
from brax.base import System
from brax.envs.observation import Computed, Part
from brax.envs.task import Physics, Task, spread

FINGERTIP = 1
"""The link of which the fingertip is a part."""


def tip(sys: System, state: PipelineState) -> jax.Array:
    """The fingertip [m], shape (3,)."""
    return kinematics.frame(sys, state.x, "fingertip").pos


def tip_velocity(sys: System, state: PipelineState) -> jax.Array:
    """Velocity of the fingertip, world axes [m/s], shape (3,)."""
    arm = tip(sys, state) - state.x.pos[FINGERTIP]
    return state.xd.vel[FINGERTIP] + jnp.cross(state.xd.ang[FINGERTIP], arm)


def miss(sys: System, state: PipelineState) -> jax.Array:
    """From the target to the fingertip [m], shape (3,)."""
    return tip(sys, state) - kinematics.frame(sys, state.x, "target").pos


@dataclasses.dataclass(frozen=True)
class ReacherParameters:
    """What the reacher is rewarded for and how it starts."""

    dist_reward_weight: float = 1.0
    """Cost of the distance from tip to target [1/m]."""
    ctrl_cost_weight: float = 1.0
    """Cost of the squared length of the action."""
    target_radius: float = 0.2
    """Targets are at most this far from the arm's root [m]."""
    reset_noise_scale: float = 0.1
    """Angles start up to this far from zero."""
    reset_velocity_scale: float = 0.005
    """Rates start up to this far from zero."""


class Reacher(Task):
    """Two links with a motor each, in a plane, and a target drawn anew for each episode.

    The reward is `reward_dist + reward_ctrl`. Episodes end by time only.
    """

    name = "reacher"
    model = "reacher.xml"
    physics: ClassVar = {
        "generalized": Physics(0.01, 2),
        "spring": Physics(0.005, 4),
        "positional": Physics(0.005, 4),
    }
    kind = ReacherParameters
    layout = (
        Computed("cosines of the angles", "", 2, lambda _, s, __: jnp.cos(s.q[:2])),
        Computed("sines of the angles", "", 2, lambda _, s, __: jnp.sin(s.q[:2])),
        Part("target x, y", "m", "q", 2, 4),
        Computed("tip velocity x, y", "m/s", 2, lambda sys, s, _: tip_velocity(sys, s)[:2]),
        Computed("from target to tip", "m", 3, lambda sys, s, _: miss(sys, s)),
    )

    def start(self, key_q: jax.Array, key_qd: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Nearly straight and at rest, with a target in a disc about the root."""
        p = self.parameters
        key_arm, key_radius, key_angle = jax.random.split(key_q, 3)
        radius = p.target_radius * jax.random.uniform(key_radius)
        angle = 2 * jnp.pi * jax.random.uniform(key_angle)
        target = radius * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
        arm = self.sys.init_q[:2] + spread(key_arm, 2, p.reset_noise_scale)
        rates = spread(key_qd, 2, p.reset_velocity_scale)
        return jnp.concatenate([arm, target]), jnp.concatenate([rates, jnp.zeros(2)])

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Less the distance from tip to target, less the cost of the action."""
        p = self.parameters
        return {
            "reward_dist": -p.dist_reward_weight * math.safe_norm(miss(self.sys, after)),
            "reward_ctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
        }
