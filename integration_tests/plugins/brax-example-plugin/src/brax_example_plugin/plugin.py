"""Hooks of this distribution: one object of every kind."""

from brax.plugins import Spec, hookimpl

BRAX_PLUGIN_API = 1


@hookimpl
def brax_joint_types() -> list[Spec]:
    """Return a joint with coupled rotation and travel, and one with three coordinates."""
    return [
        Spec("screw", "brax_example_plugin.joint:SCREW", "rotation that travels"),
        Spec("planar", "brax_example_plugin.planar_joint:PLANAR", "slides and turns on a plane"),
    ]


@hookimpl
def brax_geometry_types() -> list[Spec]:
    """Return a shape that the engine does not know."""
    return [Spec("torus", "brax_example_plugin.shape:TORUS", "ring around z")]


@hookimpl
def brax_colliders() -> list[Spec]:
    """Return the collider of the shape with the ground."""
    target, keys = "brax_example_plugin.collider:PLANE_TORUS", ("plane", "torus")
    return [Spec("plane-torus", target, "lowest point", keys)]


@hookimpl
def brax_integrators() -> list[Spec]:
    """Return a second-order splitting."""
    summary = "second-order splitting"
    return [Spec("push_glide_push", "brax_example_plugin.integrator:PUSH_GLIDE_PUSH", summary)]


@hookimpl
def brax_pipelines() -> list[Spec]:
    """Return a pipeline around another."""
    return [Spec("slow_motion", "brax_example_plugin.pipeline:SLOW_MOTION", "spring, half time")]


@hookimpl
def brax_actuators() -> list[Spec]:
    """Return an actuator that is not affine, and one with a state of its own."""
    return [
        Spec("propeller", "brax_example_plugin.actuator:PROPELLER", "thrust ctrl * |ctrl|"),
        Spec("dc_motor", "brax_example_plugin.motor:DC_MOTOR", "voltage, current and torque"),
    ]


@hookimpl
def brax_sensors() -> list[Spec]:
    """Return a sensor of the power of a joint's actuators."""
    return [Spec("jointpower", "brax_example_plugin.sensor:JOINT_POWER", "power of its actuators")]


@hookimpl
def brax_environments() -> list[Spec]:
    """Return a task on a model made in Python."""
    return [Spec("example_cart", "brax_example_plugin.environment:Cart", "bring a cart to rest")]


@hookimpl
def brax_trainers() -> list[Spec]:
    """Return a trainer of its own, and one on the loop that built-in agents share."""
    return [
        Spec("random_search", "brax_example_plugin.trainer:RANDOM_SEARCH", "linear policies"),
        Spec("example_td3", "brax_example_plugin.td3:TD3", "a short TD3"),
    ]


@hookimpl
def brax_model_formats() -> list[Spec]:
    """Return a reader of pendulums described in JSON."""
    target, keys = "brax_example_plugin.model_format:PENDULUM", (".pendulum",)
    return [Spec("pendulum", target, "pendulums in JSON", keys)]


@hookimpl
def brax_metric_loggers() -> list[Spec]:
    """Return a logger of the newest metrics only."""
    return [Spec("latest", "brax_example_plugin.metric_logger:Latest", "latest.txt in the run")]


@hookimpl
def brax_renderers() -> list[Spec]:
    """Return a renderer without a graphics library."""
    return [Spec("chart", "brax_example_plugin.renderer:chart", "where the links are, from above")]


@hookimpl
def brax_commands() -> list[Spec]:
    """Return a subcommand of `brax`."""
    return [Spec("weigh", "brax_example_plugin.command:weigh", "print the mass of a model")]
