"""What brax-envs brings to the plugin registry."""

from brax.plugins import Spec, hookimpl

BRAX_PLUGIN_API = 1


@hookimpl
def brax_environments() -> list[Spec]:
    """The environments of the collection."""
    return [
        Spec("ant", "brax.envs.ant:Ant", "four legs that learn to run along x"),
        Spec(
            "inverted_pendulum",
            "brax.envs.inverted_pendulum:InvertedPendulum",
            "a cart that keeps a pole upright",
        ),
    ]


@hookimpl
def brax_commands() -> list[Spec]:
    """The command that shows the environments."""
    return [Spec("envs", "brax.envs._commands:envs", "show the environments")]
