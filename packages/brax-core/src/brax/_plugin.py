"""What brax-core brings to the plugin registry."""

from brax.plugins import Spec, hookimpl

BRAX_PLUGIN_API = 1


@hookimpl
def brax_joint_types() -> list[Spec]:
    """The joints of MJCF that the engine knows."""
    return [
        Spec("ball", "brax.joints.ball:BALL", "rotation about a point"),
        Spec("free", "brax.joints.free:FREE", "six degrees of freedom"),
        Spec("hinge", "brax.joints.hinge:HINGE", "rotation about an axis"),
        Spec("slide", "brax.joints.slide:SLIDE", "translation along an axis"),
    ]


@hookimpl
def brax_geometry_types() -> list[Spec]:
    """The shapes that the engine knows."""
    return [
        Spec("plane", "brax.colliders.geometry:PLANE", "infinite plane, normal z"),
        Spec("sphere", "brax.colliders.geometry:SPHERE", "sphere"),
        Spec("capsule", "brax.colliders.geometry:CAPSULE", "capsule along z"),
        Spec("box", "brax.colliders.geometry:BOX", "box"),
        Spec("cylinder", "brax.colliders.geometry:CYLINDER", "cylinder along z"),
        Spec("ellipsoid", "brax.colliders.geometry:ELLIPSOID", "ellipsoid"),
        Spec("mesh", "brax.colliders.mesh:MESH", "convex hull of points"),
    ]


@hookimpl
def brax_colliders() -> list[Spec]:
    """The pairs of shapes that can touch."""
    return [
        Spec("plane-sphere", "brax.colliders.plane_sphere:PLANE_SPHERE"),
        Spec("plane-capsule", "brax.colliders.plane_capsule:PLANE_CAPSULE"),
        Spec("sphere-sphere", "brax.colliders.sphere_sphere:SPHERE_SPHERE"),
        Spec("sphere-capsule", "brax.colliders.sphere_capsule:SPHERE_CAPSULE"),
        Spec("capsule-capsule", "brax.colliders.capsule_capsule:CAPSULE_CAPSULE"),
        Spec("plane-box", "brax.colliders.plane_box:PLANE_BOX"),
        Spec("sphere-box", "brax.colliders.sphere_box:SPHERE_BOX"),
        Spec("capsule-box", "brax.colliders.capsule_box:CAPSULE_BOX"),
        Spec("box-box", "brax.colliders.box_box:BOX_BOX"),
        Spec("plane-cylinder", "brax.colliders.plane_cylinder:PLANE_CYLINDER"),
        Spec("plane-ellipsoid", "brax.colliders.plane_ellipsoid:PLANE_ELLIPSOID"),
        Spec("plane-mesh", "brax.colliders.plane_mesh:PLANE_MESH"),
    ]


@hookimpl
def brax_integrators() -> list[Spec]:
    """The ways of advancing time."""
    return [
        Spec("euler", "brax.integrators.euler:EULER", "semi-implicit Euler"),
        Spec("implicit", "brax.integrators.implicit:IMPLICIT", "implicit in velocity"),
        Spec("implicitfast", "brax.integrators.implicit:IMPLICIT_FAST", "without Coriolis force"),
        Spec("rk4", "brax.integrators.rk4:RUNGE_KUTTA", "fourth order"),
        Spec("variational", "brax.integrators.variational:VARIATIONAL", "keeps momentum"),
    ]


@hookimpl
def brax_actuators() -> list[Spec]:
    """The laws that turn a control into a force."""
    return [Spec("affine", "brax.actuators.affine:AFFINE", "motor, position and velocity servo")]


@hookimpl
def brax_pipelines() -> list[Spec]:
    """The ways of computing a step."""
    return [
        Spec("spring", "brax.spring.pipeline:SPRING", "maximal coordinates, soft joints"),
        Spec("positional", "brax.positional.pipeline:POSITIONAL", "maximal coordinates, XPBD"),
        Spec(
            "generalized",
            "brax.generalized.pipeline:GENERALIZED",
            "joint coordinates, MuJoCo's soft constraints",
        ),
    ]


@hookimpl
def brax_commands() -> list[Spec]:
    """Subcommands of `brax`."""
    return [
        Spec("plugins", "brax._commands.plugins:command", "show what is registered, and by whom"),
        Spec("bench", "brax._commands.bench:command", "measure an environment's speed"),
    ]
