"""Mutants of the physics, each of which a quick test must kill: `python mutants.py [NAME ...]`.

Each is applied to the source, its test is run and must fail, and the source is put back. Runs by
hand, after changes of the core; a place that is no longer found is reported.
"""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent
SOURCE = TESTS.parents[1] / "src" / "brax"


class Mutant(NamedTuple):
    file: str
    right: str
    wrong: str
    test: str


MUTANTS = {
    "gyroscopic sign flipped": Mutant(
        "spring/bodies.py",
        "else spin + _gyration(i, spin)",
        "else spin - _gyration(i, spin)",
        "test_free_body.py::test_box_tumbles_as_eulers_equations_say[f64-0.01]",
    ),
    "angular velocity kept instead of angular momentum": Mutant(
        "spring/bodies.py",
        "ang=fence(ang))",
        "ang=body.ang)",
        "test_free_body.py::test_box_tumbles_as_eulers_equations_say[f64-0.01]",
    ),
    "quaternion not normalized": Mutant(
        "spring/bodies.py",
        "rot = fence(normalize_quat(fence(body.rot.mul(turn))))",
        "rot = fence(body.rot.mul(turn))",
        "test_free_body.py::test_a_quaternion_stays_normalized[f32-100000]",
    ),
    "armature dropped": Mutant(
        "spring/kick.py",
        "tuple(a + d * dt for a, d in",
        "tuple(0 * a + d * dt for a, d in",
        "test_joints.py::test_a_rotor_slows_what_its_motor_turns",
    ),
    "gear squared": Mutant(
        "actuators/drive.py",
        "forces.append(gear * jnp",
        "forces.append(gear * gear * jnp",
        "test_actuators.py::test_force_is_gear_times_gain_and_bias[f64-motor]",
    ),
    "friction halved": Mutant(
        "spring/contacts.py",
        "bound = contact.friction * normal",
        "bound = 0.5 * contact.friction * normal",
        "test_contacts.py::test_a_ball_slips_down_a_slope",
    ),
    "restitution dropped": Mutant(
        "spring/contacts.py",
        "bounce = found.elasticity * approach",
        "bounce = 0 * approach",
        "test_contacts.py::test_bounce_heights[0.8-heights1]",
    ),
    "sign of a joint's tilt flipped": Mutant(
        "spring/joints.py",
        "jnp.where(error.w < 0, -2.0, 2.0)",
        "jnp.where(error.w < 0, 2.0, -2.0)",
        "test_kinematics.py::test_frames_and_coordinates_keep_together",
    ),
}


def killed(mutant: Mutant) -> str:
    """Whether the test fails with the mutant in place."""
    path = SOURCE / mutant.file
    source = path.read_text()
    if source.count(mutant.right) != 1:
        return f"NOT FOUND in {mutant.file}"
    path.write_text(source.replace(mutant.right, mutant.wrong))
    try:
        command = [sys.executable, "-m", "pytest", "-q", str(TESTS / mutant.test)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=600)
    finally:
        path.write_text(source)
    return {0: "SURVIVES", 1: "killed"}.get(run.returncode, f"no result:\n{run.stdout[-500:]}")


def main() -> None:
    names = sys.argv[1:] or list(MUTANTS)
    results = {}
    for name in names:
        results[name] = killed(MUTANTS[name])
        print(f"{name}: {results[name]} ({MUTANTS[name].test})", flush=True)
    sys.exit(any(r != "killed" for r in results.values()))


if __name__ == "__main__":
    main()
