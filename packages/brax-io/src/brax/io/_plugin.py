"""What brax-io brings to the plugin registry."""

from brax.plugins import Spec, hookimpl

BRAX_PLUGIN_API = 1


@hookimpl
def brax_commands() -> list[Spec]:
    """The commands that show a run or a model, or write a policy."""
    return [
        Spec("export", "brax.io._commands:export", "write a trained policy for other programs"),
        Spec("render", "brax.io._commands:render", "show a trained agent in a page"),
        Spec("report", "brax.io._commands:report", "say what of a model is supported"),
        Spec("view", "brax.io._commands:view", "show a model in a page, moving by itself"),
    ]


@hookimpl
def brax_pipelines() -> list[Spec]:
    """The pipelines of others."""
    return [Spec("mjx", "brax.io.mjx:MJX", "MuJoCo's own engine in JAX")]


@hookimpl
def brax_renderers() -> list[Spec]:
    """What `env.render` draws with."""
    return [Spec("image", "brax.io.image:render_array", "pictures by MuJoCo's renderer")]


@hookimpl
def brax_model_formats() -> list[Spec]:
    """The model files that can be read."""
    return [
        Spec(
            "json", "brax.io.json:READER", "a System as brax.io.json wrote it (.json)", (".json",)
        ),
        Spec("mjcf", "brax.io.mjcf:READER", "MuJoCo's MJCF (.xml)", (".xml", ".mjcf")),
        Spec("text", "brax.io.text:READER", "Brax's own text form (.textproto)", (".textproto",)),
        Spec("urdf", "brax.io.urdf:READER", "URDF (.urdf)", (".urdf",)),
    ]
