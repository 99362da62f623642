"""The hooks of Brax: everything that a plugin can provide.

Each hook takes no arguments and returns a list of `brax.plugins.Spec`. The docstring of each says
what the target of a spec must be; `docs/plugins.md` has an example of every one.
"""

import pluggy

from brax.plugins.records import Spec

hookspec = pluggy.HookspecMarker("brax")


@hookspec
def brax_joint_types() -> list[Spec]:  # type: ignore[empty-body]
    """Joint types: instances of `brax.joints.JointType`."""


@hookspec
def brax_geometry_types() -> list[Spec]:  # type: ignore[empty-body]
    """Geometry types: instances of `brax.colliders.GeometryType`."""


@hookspec
def brax_colliders() -> list[Spec]:  # type: ignore[empty-body]
    """Colliders of two geometry types: instances of `brax.colliders.Collider`."""


@hookspec
def brax_integrators() -> list[Spec]:  # type: ignore[empty-body]
    """Integrators: instances of `brax.integrators.Integrator`."""


@hookspec
def brax_pipelines() -> list[Spec]:  # type: ignore[empty-body]
    """Pipelines: objects with `init(sys, q, qd)` and `step(sys, state, act, n_frames)`."""


@hookspec
def brax_actuators() -> list[Spec]:  # type: ignore[empty-body]
    """Actuator types: instances of `brax.actuators.ActuatorType`."""


@hookspec
def brax_sensors() -> list[Spec]:  # type: ignore[empty-body]
    """Sensor types: instances of `brax.sensors.SensorType`."""


@hookspec
def brax_environments() -> list[Spec]:  # type: ignore[empty-body]
    """Environments: subclasses of `brax.env.Env`, or functions `(**settings)` that return one."""


@hookspec
def brax_trainers() -> list[Spec]:  # type: ignore[empty-body]
    """Trainers: objects with `name`, `train(environment, **settings)` and `load_policy(path)`."""


@hookspec
def brax_model_formats() -> list[Spec]:  # type: ignore[empty-body]
    """Model formats: objects with `suffixes` and `load(path)`, which returns a `System`."""


@hookspec
def brax_metric_loggers() -> list[Spec]:  # type: ignore[empty-body]
    """Metric loggers: functions of a run's directory; the result has `write` and `close`."""


@hookspec
def brax_renderers() -> list[Spec]:  # type: ignore[empty-body]
    """Picture renderers: functions `(sys, trajectory, height, width, camera)`."""


@hookspec
def brax_commands() -> list[Spec]:  # type: ignore[empty-body]
    """Subcommands of `brax`: instances of `click.Command`."""
