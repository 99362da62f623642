"""The plugins that brax-envs registers."""

from brax.plugins import Spec, hookimpl

BRAX_PLUGIN_API = 1

ENVIRONMENTS = (
    ("acrobot", "acrobot:Acrobot", "two hanging rods that swing up with one motor"),
    ("ant", "ant:Ant", "four legs that learn to run along x"),
    ("fast", "fast:Fast", "a mass that is pushed along a line, for testing agents"),
    ("fetch", "fetch:Fetch", "a dog of boxes that runs to one target after another"),
    ("grasp", "grasp:Grasp", "a hand that carries a ball to one target after another"),
    ("halfcheetah", "half_cheetah:Halfcheetah", "a planar runner with two legs"),
    ("hopper", "hopper:Hopper", "one leg that hops in a plane"),
    ("humanoid", "humanoid:Humanoid", "a body of eleven links that learns to run along x"),
    (
        "humanoidstandup",
        "humanoidstandup:HumanoidStandup",
        "the humanoid, which learns to stand up",
    ),
    (
        "inverted_double_pendulum",
        "inverted_double_pendulum:InvertedDoublePendulum",
        "a cart that keeps two poles upright",
    ),
    (
        "inverted_pendulum",
        "inverted_pendulum:InvertedPendulum",
        "a cart that keeps a pole upright",
    ),
    ("pusher", "pusher:Pusher", "an arm that pushes an object to a goal"),
    ("reacher", "reacher:Reacher", "an arm in a plane that reaches for a target"),
    ("reacherangle", "reacherangle:Reacherangle", "the reacher, with joint angles as actions"),
    ("swimmer", "swimmer:Swimmer", "three rods that swim along x"),
    ("ur5e", "ur5e:Ur5e", "an industrial arm that reaches for one target after another"),
    ("walker2d", "walker2d:Walker2d", "two legs that walk in a plane"),
)
"""Name, class and summary of each environment."""


@hookimpl
def brax_environments() -> list[Spec]:
    """Return the environments of the collection."""
    return [Spec(name, f"brax.envs.{target}", summary) for name, target, summary in ENVIRONMENTS]


@hookimpl
def brax_commands() -> list[Spec]:
    """Return the command that shows the environments."""
    return [Spec("envs", "brax.envs._commands:envs", "show the environments")]
