"""What this distribution brings to Brax: one of every kind."""

from brax.plugins import Spec, hookimpl

BRAX_PLUGIN_API = 1


@hookimpl
def brax_joint_types() -> list[Spec]:
    """A joint with coupled rotation and travel, and one with three coordinates."""
    return [
        Spec("screw", "brax_example_plugin.joint:SCREW", "rotation that travels"),
        Spec("planar", "brax_example_plugin.planar_joint:PLANAR", "slides and turns on a plane"),
    ]


@hookimpl
def brax_geometry_types() -> list[Spec]:
    """A shape that the engine does not know."""
    return [Spec("torus", "brax_example_plugin.shape:TORUS", "ring around z")]


@hookimpl
def brax_colliders() -> list[Spec]:
    """The shape against the ground."""
    target, keys = "brax_example_plugin.collider:PLANE_TORUS", ("plane", "torus")
    return [Spec("plane-torus", target, "lowest point", keys)]


@hookimpl
def brax_integrators() -> list[Spec]:
    """A second-order splitting."""
    summary = "second-order splitting"
    return [Spec("push_glide_push", "brax_example_plugin.integrator:PUSH_GLIDE_PUSH", summary)]


@hookimpl
def brax_pipelines() -> list[Spec]:
    """A pipeline around another."""
    return [Spec("slow_motion", "brax_example_plugin.pipeline:SLOW_MOTION", "spring, half time")]


@hookimpl
def brax_actuators() -> list[Spec]:
    """An actuator that is not affine, and one with a state of its own."""
    return [
        Spec("propeller", "brax_example_plugin.actuator:PROPELLER", "thrust ctrl * |ctrl|"),
        Spec("dc_motor", "brax_example_plugin.motor:DC_MOTOR", "voltage, current and torque"),
    ]


@hookimpl
def brax_sensors() -> list[Spec]:
    """What a joint's actuators cost."""
    return [Spec("jointpower", "brax_example_plugin.sensor:JOINT_POWER", "power of its actuators")]


@hookimpl
def brax_environments() -> list[Spec]:
    """A task on a model made in Python."""
    return [Spec("example_cart", "brax_example_plugin.environment:Cart", "bring a cart to rest")]


@hookimpl
def brax_trainers() -> list[Spec]:
    """A learner that shares nothing with ours, and one on the loop that ours share."""
    return [
        Spec("random_search", "brax_example_plugin.trainer:RANDOM_SEARCH", "linear policies"),
        Spec("td3", "brax_example_plugin.td3:TD3", "twin delayed deterministic policy gradients"),
    ]


@hookimpl
def brax_model_formats() -> list[Spec]:
    """Pendulums described in JSON."""
    target, keys = "brax_example_plugin.model_format:PENDULUM", (".pendulum",)
    return [Spec("pendulum", target, "pendulums in JSON", keys)]


@hookimpl
def brax_metric_loggers() -> list[Spec]:
    """The newest metrics alone."""
    return [Spec("latest", "brax_example_plugin.metric_logger:Latest", "latest.txt in the run")]


@hookimpl
def brax_renderers() -> list[Spec]:
    """Pictures without a graphics library."""
    return [Spec("chart", "brax_example_plugin.renderer:chart", "where the links are, from above")]


@hookimpl
def brax_commands() -> list[Spec]:
    """A subcommand of `brax`."""
    return [Spec("weigh", "brax_example_plugin.command:weigh", "print the mass of a model")]
