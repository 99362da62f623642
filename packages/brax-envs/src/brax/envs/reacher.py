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
"""Index of the link that the fingertip belongs to."""


def tip(sys: System, state: PipelineState) -> jax.Array:
    """Return the position of the fingertip [m], shape (3,)."""
    return kinematics.frame(sys, state.x, "fingertip").pos


def tip_velocity(sys: System, state: PipelineState) -> jax.Array:
    """Return the velocity of the fingertip, world axes [m/s], shape (3,)."""
    # The velocity of a point of a rigid body: v + w x r.
    arm = tip(sys, state) - state.x.pos[FINGERTIP]
    return state.xd.vel[FINGERTIP] + jnp.cross(state.xd.ang[FINGERTIP], arm)


def miss(sys: System, state: PipelineState) -> jax.Array:
    """Return the vector from the target to the fingertip [m], shape (3,)."""
    return tip(sys, state) - kinematics.frame(sys, state.x, "target").pos


@dataclasses.dataclass(frozen=True)
class ReacherParameters:
    """Reward and initial state of the reacher."""

    dist_reward_weight: float = 1.0
    """Cost of the distance from tip to target [1/m]."""
    ctrl_cost_weight: float = 1.0
    """Cost of the squared norm of the action."""
    target_radius: float = 0.2
    """Maximum distance of targets from the arm's root [m]."""
    reset_noise_scale: float = 0.1
    """Maximum noise of initial angles [rad]."""
    reset_velocity_scale: float = 0.005
    """Maximum noise of initial rates [rad/s]."""


class Reacher(Task):
    """Two links with a motor each, in a plane, and a target that is drawn for each episode.

    The reward is `reward_dist + reward_ctrl`. Episodes end only by truncation.

    Source of the task: Gymnasium's `Reacher`. Departures: the tip's velocity is observed in place
    of the joints' rates, and the vector from target to tip has its z as well. Targets are uniform
    in their distance from the root, and so denser near it than Gymnasium's, which are uniform in
    the disc.
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
        """Return the arm nearly straight and at rest, and a target in a disc around the root."""
        p = self.parameters
        key_arm, key_radius, key_angle = jax.random.split(key_q, 3)
        # Uniform in the radius, so targets are denser near the root than with Gymnasium's uniform
        # disc.
        radius = p.target_radius * jax.random.uniform(key_radius)
        angle = 2 * jnp.pi * jax.random.uniform(key_angle)
        target = radius * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
        arm = self.sys.init_q[:2] + spread(key_arm, 2, p.reset_noise_scale)
        rates = spread(key_qd, 2, p.reset_velocity_scale)
        return jnp.concatenate([arm, target]), jnp.concatenate([rates, jnp.zeros(2)])

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the costs of the distance from tip to target and of the action."""
        p = self.parameters
        return {
            "reward_dist": -p.dist_reward_weight * math.safe_norm(miss(self.sys, after)),
            "reward_ctrl": -p.ctrl_cost_weight * jnp.sum(ctrl**2),
        }
