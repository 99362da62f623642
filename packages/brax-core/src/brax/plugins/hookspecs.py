"""The hooks of Brax: everything that a plugin can bring.

Each hook takes nothing and returns a list of `brax.plugins.Spec`. The comment on each says what a
spec's target has to be; `docs/plugins.md` has an example of every one.
"""

import pluggy

from brax.plugins.records import Spec

hookspec = pluggy.HookspecMarker("brax")


@hookspec
def brax_joint_types() -> list[Spec]:  # type: ignore[empty-body]
    """Joint types: instances of `brax.joints.JointType`."""


@hookspec
def brax_geometry_types() -> list[Spec]:  # type: ignore[empty-body]
    """Shapes: instances of `brax.colliders.GeometryType`."""


@hookspec
def brax_colliders() -> list[Spec]:  # type: ignore[empty-body]
    """Tests of two shapes against each other: instances of `brax.colliders.Collider`."""


@hookspec
def brax_integrators() -> list[Spec]:  # type: ignore[empty-body]
    """Ways of advancing time: instances of `brax.integrators.Integrator`."""


@hookspec
def brax_pipelines() -> list[Spec]:  # type: ignore[empty-body]
    """Ways of computing a step: objects with `init(sys, q, qd)` and `step(sys, state, act, n)`."""


@hookspec
def brax_actuators() -> list[Spec]:  # type: ignore[empty-body]
    """Laws from control to force: instances of `brax.actuators.ActuatorType`."""


@hookspec
def brax_sensors() -> list[Spec]:  # type: ignore[empty-body]
    """What models measure: instances of `brax.sensors.SensorType`."""


@hookspec
def brax_environments() -> list[Spec]:  # type: ignore[empty-body]
    """Environments: subclasses of `brax.env.Env`, or functions `(**settings)` that return one."""


@hookspec
def brax_trainers() -> list[Spec]:  # type: ignore[empty-body]
    """Agents: objects with `name`, `train(environment, **settings)` and `load_policy(path)`."""


@hookspec
def brax_model_formats() -> list[Spec]:  # type: ignore[empty-body]
    """Model readers: objects with `suffixes` and `load(path)`, which returns a `System`."""


@hookspec
def brax_metric_loggers() -> list[Spec]:  # type: ignore[empty-body]
    """Metric writers: functions of a run's directory; what they return has `write`, `close`."""


@hookspec
def brax_renderers() -> list[Spec]:  # type: ignore[empty-body]
    """Makers of pictures: functions `(sys, trajectory, height, width, camera)`."""


@hookspec
def brax_commands() -> list[Spec]:  # type: ignore[empty-body]
    """Subcommands of `brax`: instances of `click.Command`."""
