"""Motors of a robot's joints, as its transmissions and limits of effort describe them."""

from collections.abc import Container, Iterator

import mujoco

from brax.io._nodes import Node, walk
from brax.io.mjcf.numbers import number_or_zero

_DRIVING = ("transmission", "ros2_control")
"""Elements that name the joints that actuators drive."""


def add_motors(spec: mujoco.MjSpec, root: Node, following: Container[str]) -> None:
    """Add a motor for each driven joint, in the order of the file.

    The joints that a `<transmission>` or `<ros2_control>` names are driven. In a file without
    these, it is all hinges and slides that have a limit of effort and follow no other joint. A
    control is the force [N] or torque [N m] on the joint, within its limit of effort.

    Args:
        spec: the model, which is changed.
        root: the robot.
        following: names of the joints that follow others.
    """
    effort, named = dict(_efforts(root)), _named(root)
    for joint in spec.joints:
        if joint.type not in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            continue
        driven = joint.name in effort and joint.name not in following
        if joint.name in named if named else driven:
            motor = spec.add_actuator()
            motor.name, motor.target = joint.name, joint.name
            motor.trntype = mujoco.mjtTrn.mjTRN_JOINT
            if joint.name in effort:
                motor.ctrllimited = mujoco.mjtLimited.mjLIMITED_TRUE
                motor.ctrlrange = (-effort[joint.name], effort[joint.name])


def _efforts(root: Node) -> Iterator[tuple[str, float]]:
    """Yield the joints with a limit of effort, and the limits."""
    for joint in root.children:
        tags = {node.tag: node for node in joint.children}
        given = tags["limit"].attributes.get("effort", "") if "limit" in tags else ""
        if joint.tag == "joint" and (effort := number_or_zero(given)) > 0:
            yield joint.attributes["name"], effort


def _named(root: Node) -> set[str]:
    """Return the joints that the robot's transmissions name, as far as they are driven.

    A joint of `<ros2_control>` that only has sensors is not driven.
    """
    found = set()
    for group in root.children:
        for node in walk(group) if group.tag in _DRIVING else ():
            commands = any(child.tag == "command_interface" for child in node.children)
            if node.tag == "joint" and (group.tag == "transmission" or commands):
                found.add(node.attributes.get("name", ""))
    return found
