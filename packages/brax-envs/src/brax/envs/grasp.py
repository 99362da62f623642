"""Grasp: a hand with four fingers that carries a ball to one target after another."""

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from brax import kinematics, math
from brax.base import State as PipelineState
from brax.base import System
from brax.envs.goal import GoalTask, goal
from brax.envs.observation import Computed, Part
from brax.envs.task import Physics, between

FINGERS = ("east", "north", "west", "south")
TIP = (0.0, 0.0, -0.035)
"""Centre of a fingertip, in the frame of its link [m]."""
PALM, BALL = 0, 13
"""Links."""
REACH = 0.057
"""Distance between the centres of ball and fingertip when they touch [m]."""
LIFTED = 0.055
"""Height of the ball's centre when it is 1 cm above the floor [m]."""
HOLDING = (0.0, 0.02, 0.585, 0.397)
"""Spread, bend, middle and tip angle of each finger that holds the ball in the air [rad]."""
HELD = 0.055
"""Depth of the ball's centre below the palm's when it is held so [m]."""


def tips(sys: System, state: PipelineState) -> jax.Array:
    """Return the vectors from each fingertip to the ball [m], shape (4, 3)."""
    links = [kinematics.frame(sys, state.x, f"{finger}_tip") for finger in FINGERS]
    places = [link.pos + math.rotate(jnp.array(TIP), link.rot) for link in links]
    return state.x.pos[BALL] - jnp.stack(places)


def to_ball(state: PipelineState) -> jax.Array:
    """Return the vector from the palm to the ball [m], shape (3,)."""
    return state.x.pos[BALL] - state.x.pos[PALM]


def to_target(state: PipelineState) -> jax.Array:
    """Return the vector from the ball to the target [m], shape (3,)."""
    return goal(state) - state.x.pos[BALL]


@dataclasses.dataclass(frozen=True)
class GraspParameters:
    """Reward, termination and initial state of the hand and the ball."""

    approach_reward_weight: float = 1.0
    """Reward per distance that the palm moves towards the ball [1/m]."""
    near_reward_weight: float = 1.0
    """Reward per time of a palm at the ball [1/s]; it is halved at the distance `near_distance`."""
    near_distance: float = 0.1
    """Distance at which the reward for being near is halved [m]."""
    touch_reward_weight: float = 0.1
    """Reward per time and fingertip that touches the ball [1/s]."""
    carry_reward_weight: float = 5.0
    """Reward per distance that the ball moves towards the target [1/m]; a ball that is not lifted
    counts as one at the distance `reach`."""
    hit_reward: float = 5.0
    """Reward for hitting a target."""
    target_radius: float = 0.05
    """Distance at which the ball hits a target [m]."""
    target_spread: float = 0.25
    """Maximum x and y of targets and of the ball at the start [m]."""
    target_height: tuple[float, float] = (0.15, 0.35)
    """Range of the heights of targets [m]."""
    held_share: float = 0.5
    """Share of the episodes that begin with the ball in the closed hand, above the floor."""
    reach: float = 0.6
    """x, y or z of the ball beyond which the episode terminates, as it does below the floor [m]."""


class Grasp(GoalTask):
    """A hand with nineteen servos, a ball, and a target for the ball that moves when hit.

    The reward is `reward_approach + reward_near + reward_touch + reward_carry + reward_hit`.
    Actions in [-1, 1] are scaled to positions of the palm and angles of the fingers; zero holds the
    initial pose, an open hand. The episode terminates when the ball is out of reach.

    In half of the episodes the ball starts at a random place on the floor, and in the others in the
    closed hand. An agent that never holds the ball does not learn that lifting it is rewarded.
    With `held_share=0` the ball always starts on the floor.

    Source of the task: Freeman et al. (2021), Brax, section 4. Departures: a hand of human size,
    with weights to match, episodes terminate, and half of them begin with the ball in the hand.
    """

    name = "grasp"
    model = "grasp.xml"
    default = "spring"
    physics: ClassVar = {
        "spring": Physics(0.004, 5),
        "generalized": Physics(0.004, 5),
        "positional": Physics(0.004, 5),
    }
    kind = GraspParameters
    scaled = True
    layout = (
        Part("palm x, y, z", "m", "q", 0, 3),
        Part("spread, bend, middle and tip angles, finger by finger", "rad", "q", 3, 19),
        Part("palm velocity", "m/s", "qd", 0, 3),
        Part("rates of the fingers", "rad/s", "qd", 3, 19),
        Computed("from palm to ball", "m", 3, lambda _, s, __: to_ball(s)),
        Part("ball velocity", "m/s", "qd", 19, 22),
        Computed("from fingertips to ball", "m", 12, lambda sys, s, _: tips(sys, s).ravel()),
        Computed("from ball to target", "m", 3, lambda _, s, __: to_target(s)),
    )

    def start(self, key_q: jax.Array, key_qd: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the hand at rest: open, with the ball at a random place on the floor, or closed.

        A closed hand holds the ball at a random place in the range of targets.
        """
        p = self.parameters
        floor, air, kind = jax.random.split(key_q, 3)
        radius = p.target_spread
        at = jax.random.uniform(floor, (2,), minval=-radius, maxval=radius)
        # Coordinates 19 to 21 are the position of the ball, whose orientation follows.
        lying = self.sys.init_q.at[19:21].set(at)
        ball = self._drawn(air)
        # The palm is 0.3 m above the floor where its coordinates are zero.
        palm = ball + jnp.array([0.0, 0.0, HELD - 0.3])
        held = lying.at[:3].set(palm).at[3:19].set(jnp.tile(jnp.array(HOLDING), len(FINGERS)))
        held = held.at[19:22].set(ball)
        q = jnp.where(jax.random.uniform(kind) < p.held_share, held, lying)
        return q, jnp.zeros(self.sys.qd_size())

    def target(self, key: jax.Array, physics: PipelineState) -> jax.Array:
        """Draw a target above the floor, uniformly within its bounds."""
        return self._drawn(key)

    def _drawn(self, key: jax.Array) -> jax.Array:
        """Draw a place above the floor, uniformly within the bounds of targets [m], (3,)."""
        radius, (low, high) = self.parameters.target_spread, self.parameters.target_height
        bounds = jnp.array([[-radius, -radius, low], [radius, radius, high]])
        return jax.random.uniform(key, (3,), minval=bounds[0], maxval=bounds[1])

    def is_hit(self, physics: PipelineState) -> jax.Array:
        """Return whether the ball is at the target."""
        return math.safe_norm(to_target(physics)) < self.parameters.target_radius

    def rewards(
        self, before: PipelineState, after: PipelineState, ctrl: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the rewards for approaching, touching and carrying the ball."""
        p = self.parameters
        palm = [math.safe_norm(to_ball(state)) for state in (before, after)]
        ball = [self._left(state) for state in (before, after)]
        # Contacts are not part of the state, so 3 mm of distance count as touching.
        touching = jnp.sum(math.safe_norm(tips(self.sys, after), axis=-1) < REACH + 0.003)
        return {
            "reward_approach": p.approach_reward_weight * (palm[0] - palm[1]),
            "reward_near": p.near_reward_weight * self.dt / (1 + palm[1] / p.near_distance),
            "reward_touch": p.touch_reward_weight * self.dt * touching,
            "reward_carry": p.carry_reward_weight * (ball[0] - ball[1]),
            "reward_hit": p.hit_reward * self.is_hit(after).astype(jnp.float32),
        }

    def _left(self, state: PipelineState) -> jax.Array:
        """Return the distance that the ball must still be carried [m].

        It depends on the state alone, so that a ball that is thrown up and falls earns nothing.
        """
        # Pushing a ball along the floor is not carrying.
        lifted = state.x.pos[BALL, 2] > LIFTED
        return jnp.where(lifted, math.safe_norm(to_target(state)), self.parameters.reach)

    def is_over(self, after: PipelineState) -> jax.Array:
        """Return whether the ball is out of reach."""
        reach, (x, y, z) = self.parameters.reach, after.x.pos[BALL]
        # Fingers that close on the ball with force can throw it tens of metres up, and observations
        # of such a flight would dominate the statistics that normalize them.
        return ~(between(-reach, x, reach) & between(-reach, y, reach) & between(0, z, reach))
