"""The plugins of brax-core, from joint types to pipelines, as the registry asks for them."""

from brax.plugins import Spec, hookimpl

BRAX_PLUGIN_API = 1


@hookimpl
def brax_joint_types() -> list[Spec]:
    """Return the joint types of MJCF."""
    return [
        Spec("ball", "brax.joints.ball:BALL", "rotation about a point"),
        Spec("free", "brax.joints.free:FREE", "six degrees of freedom"),
        Spec("hinge", "brax.joints.hinge:HINGE", "rotation about an axis"),
        Spec("slide", "brax.joints.slide:SLIDE", "translation along an axis"),
    ]


@hookimpl
def brax_geometry_types() -> list[Spec]:
    """Return the geometry types."""
    return [
        Spec("plane", "brax.colliders.shapes.plane:PLANE", "infinite plane, normal z"),
        Spec("sphere", "brax.colliders.shapes.sphere:SPHERE", "sphere"),
        Spec("capsule", "brax.colliders.shapes.capsule:CAPSULE", "capsule along z"),
        Spec("box", "brax.colliders.shapes.box:BOX", "box"),
        Spec("cylinder", "brax.colliders.shapes.cylinder:CYLINDER", "cylinder along z"),
        Spec("ellipsoid", "brax.colliders.shapes.ellipsoid:ELLIPSOID", "ellipsoid"),
        Spec("mesh", "brax.colliders.shapes.mesh:MESH", "convex hull of points"),
        Spec("hfield", "brax.colliders.shapes.height_field:HEIGHT_FIELD", "grid of heights"),
        Spec("sdf", "brax.colliders.shapes.sdf:SDF", "grid of signed distances"),
        Spec("sdf_bolt", "brax.colliders.shapes.sdf_bolt:SDF_BOLT", "bolt with a thread along z"),
        Spec("sdf_bowl", "brax.colliders.shapes.sdf_bowl:SDF_BOWL", "cap of a sphere, with a rim"),
        Spec("sdf_gear", "brax.colliders.shapes.sdf_gear:SDF_GEAR", "spur gear around z"),
        Spec("sdf_nut", "brax.colliders.shapes.sdf_nut:SDF_NUT", "nut with a thread along z"),
        Spec("sdf_torus", "brax.colliders.shapes.sdf_torus:SDF_TORUS", "ring around z"),
    ]


@hookimpl
def brax_colliders() -> list[Spec]:
    """Return the colliders in closed form; `brax.colliders.dispatch` derives others."""
    return [
        _pair("plane", "sphere", "brax.colliders.primitive.plane_sphere:PLANE_SPHERE"),
        _pair("plane", "capsule", "brax.colliders.primitive.plane_capsule:PLANE_CAPSULE"),
        _pair("sphere", "sphere", "brax.colliders.primitive.sphere_sphere:SPHERE_SPHERE"),
        _pair("sphere", "capsule", "brax.colliders.primitive.sphere_capsule:SPHERE_CAPSULE"),
        _pair("capsule", "capsule", "brax.colliders.primitive.capsule_capsule:CAPSULE_CAPSULE"),
        _pair("plane", "box", "brax.colliders.primitive.plane_box:PLANE_BOX"),
        _pair("sphere", "box", "brax.colliders.primitive.sphere_box:SPHERE_BOX"),
        _pair("capsule", "box", "brax.colliders.primitive.capsule_box:CAPSULE_BOX"),
        _pair("box", "box", "brax.colliders.primitive.box_box:BOX_BOX"),
        _pair("plane", "cylinder", "brax.colliders.primitive.plane_cylinder:PLANE_CYLINDER"),
        _pair("plane", "ellipsoid", "brax.colliders.primitive.plane_ellipsoid:PLANE_ELLIPSOID"),
        _pair("plane", "mesh", "brax.colliders.primitive.plane_mesh:PLANE_MESH"),
        _pair("plane", "sdf", "brax.colliders.primitive.plane_mesh:PLANE_SDF"),
        _pair("plane", "sdf_bolt", "brax.colliders.primitive.plane_mesh:PLANE_BOLT"),
        _pair("plane", "sdf_gear", "brax.colliders.primitive.plane_mesh:PLANE_GEAR"),
        _pair("plane", "sdf_nut", "brax.colliders.primitive.plane_mesh:PLANE_NUT"),
    ]


@hookimpl
def brax_integrators() -> list[Spec]:
    """Return the integrators."""
    return [
        Spec("euler", "brax.integrators.euler:EULER", "semi-implicit Euler"),
        Spec("implicit", "brax.integrators.implicit:IMPLICIT", "implicit in velocity"),
        Spec("implicitfast", "brax.integrators.implicit:IMPLICIT_FAST", "without Coriolis force"),
        Spec("rk4", "brax.integrators.rk4:RUNGE_KUTTA", "fourth order"),
        Spec("variational", "brax.integrators.variational:VARIATIONAL", "keeps momentum"),
    ]


@hookimpl
def brax_actuators() -> list[Spec]:
    """Return the actuator types."""
    return [
        Spec("affine", "brax.actuators.affine:AFFINE", "motor, position and velocity servo"),
        Spec("general", "brax.actuators.general:GENERAL", "affine gain and affine bias"),
        Spec("integral", "brax.actuators.integral:INTEGRAL", "integral of the control"),
        Spec("filter", "brax.actuators.filter:FILTER", "control behind a first-order filter"),
        Spec("filterexact", "brax.actuators.filter:FILTER_EXACT", "the same, integrated exactly"),
        Spec("frozen", "brax.actuators.frozen:FROZEN", "disabled: it keeps its activation"),
        Spec("pid", "brax.actuators.pid:PID", "servo with the integral of its error"),
        Spec("dcmotor", "brax.actuators.dc_motor:DC_MOTOR", "voltage, back-EMF and cogging"),
        Spec(
            "dcmotor_inductance",
            "brax.actuators.dc_motor:DC_MOTOR_INDUCTANCE",
            "the same, with a current that follows the voltage",
        ),
        Spec("muscle", "brax.actuators.muscle:MUSCLE", "force by length, velocity, activation"),
    ]


@hookimpl
def brax_sensors() -> list[Spec]:
    """Return the sensor types."""
    return [
        Spec("jointpos", "brax.sensors.joint:JOINT_POSITION", "coordinate of a joint"),
        Spec("jointvel", "brax.sensors.joint:JOINT_VELOCITY", "rate of a joint"),
        Spec("jointactuatorfrc", "brax.sensors.joint:JOINT_ACTUATOR_FORCE", "of its actuators"),
        Spec("ballquat", "brax.sensors.joint:BALL_QUATERNION", "orientation of a ball joint"),
        Spec("ballangvel", "brax.sensors.joint:BALL_VELOCITY", "angular velocity of a ball joint"),
        Spec("tendonpos", "brax.sensors.tendon:TENDON_POSITION", "length of a tendon"),
        Spec("tendonvel", "brax.sensors.tendon:TENDON_VELOCITY", "rate of a tendon's length"),
        Spec("actuatorpos", "brax.sensors.tendon:ACTUATOR_POSITION", "length of an actuator"),
        Spec("actuatorvel", "brax.sensors.tendon:ACTUATOR_VELOCITY", "rate of its length"),
        Spec("actuatorfrc", "brax.sensors.tendon:ACTUATOR_FORCE", "force of an actuator"),
        Spec("framepos", "brax.sensors.frame:FRAME_POSITION", "origin of a frame"),
        Spec("framequat", "brax.sensors.frame:FRAME_QUATERNION", "orientation of a frame"),
        Spec("framexaxis", "brax.sensors.frame:FRAME_X", "axis x of a frame"),
        Spec("frameyaxis", "brax.sensors.frame:FRAME_Y", "axis y of a frame"),
        Spec("framezaxis", "brax.sensors.frame:FRAME_Z", "axis z of a frame"),
        Spec("framelinvel", "brax.sensors.frame:FRAME_VELOCITY", "velocity of a frame's origin"),
        Spec("frameangvel", "brax.sensors.frame:FRAME_ANGULAR_VELOCITY", "angular velocity"),
        Spec("framelinacc", "brax.sensors.frame:FRAME_ACCELERATION", "acceleration of an origin"),
        Spec(
            "frameangacc", "brax.sensors.frame:FRAME_ANGULAR_ACCELERATION", "angular acceleration"
        ),
        Spec("gyro", "brax.sensors.inertial:GYRO", "angular velocity in a site's axes"),
        Spec("velocimeter", "brax.sensors.inertial:VELOCIMETER", "velocity in a site's axes"),
        Spec("accelerometer", "brax.sensors.inertial:ACCELEROMETER", "acceleration less gravity"),
        Spec("force", "brax.sensors.load:FORCE", "force that holds a body"),
        Spec("torque", "brax.sensors.load:TORQUE", "torque that holds a body"),
        Spec("touch", "brax.sensors.touch:TOUCH", "normal forces of contacts at a site"),
        Spec("rangefinder", "brax.sensors.touch:RANGE_FINDER", "distance ahead of a site"),
        Spec("subtreecom", "brax.sensors.subtree:SUBTREE_CENTRE", "centre of mass of a subtree"),
        Spec("subtreelinvel", "brax.sensors.subtree:SUBTREE_VELOCITY", "velocity of that centre"),
        Spec(
            "subtreeangmom",
            "brax.sensors.subtree:SUBTREE_ANGULAR_MOMENTUM",
            "angular momentum about that centre",
        ),
    ]


@hookimpl
def brax_pipelines() -> list[Spec]:
    """Return the pipelines."""
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
    """Return the subcommands of `brax`."""
    return [
        Spec("plugins", "brax.cli.plugins:command", "show what is registered, and by whom"),
        Spec("bench", "brax.cli.bench:command", "measure an environment's speed"),
    ]


def _pair(first: str, second: str, target: str) -> Spec:
    """Return the specification of a collider, which its two types are the keys of."""
    return Spec(f"{first}-{second}", target, keys=(first, second))
