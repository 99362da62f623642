"""The plugins that brax-io registers."""

from brax.plugins import Spec, hookimpl

BRAX_PLUGIN_API = 1


@hookimpl
def brax_commands() -> list[Spec]:
    """Return the commands that show a run or a model, or export a policy."""
    return [
        Spec("export", "brax.io._commands:export", "write a trained policy for other programs"),
        Spec("render", "brax.io._commands:render", "show a trained agent in a page"),
        Spec("report", "brax.io._commands:report", "list what is supported in a model"),
        Spec("view", "brax.io._commands:view", "show the passive motion of a model in a page"),
    ]


@hookimpl
def brax_pipelines() -> list[Spec]:
    """Return the pipeline of another engine, MJX."""
    return [Spec("mjx", "brax.mjx:MJX", "MuJoCo's own engine in JAX")]


@hookimpl
def brax_renderers() -> list[Spec]:
    """Return the renderer that `env.render` uses."""
    return [Spec("image", "brax.io.image:render_array", "pictures by MuJoCo's renderer")]


@hookimpl
def brax_model_formats() -> list[Spec]:
    """Return the formats of model files that brax-io reads."""
    return [
        Spec(
            "json", "brax.io.json:READER", "a System as brax.io.json wrote it (.json)", (".json",)
        ),
        Spec("mjcf", "brax.io.mjcf:READER", "MuJoCo's MJCF (.xml)", (".xml", ".mjcf")),
        Spec("text", "brax.io.text:READER", "Brax's own text form (.textproto)", (".textproto",)),
        Spec("urdf", "brax.io.urdf:READER", "URDF (.urdf)", (".urdf",)),
    ]
