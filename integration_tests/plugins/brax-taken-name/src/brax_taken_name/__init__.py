"""Claims a name that brax-core owns, after one that is free."""

from brax.plugins import Spec, hookimpl

BRAX_PLUGIN_API = 1


@hookimpl
def brax_joint_types() -> list[Spec]:
    """Return a joint with a name of its own, and one with the hinge's."""
    return [Spec("rusty", "brax.joints.hinge:HINGE"), Spec("hinge", "brax.joints.slide:SLIDE")]
