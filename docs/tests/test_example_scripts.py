"""The scripts of docs/examples run as a user runs them, and print what they promise."""

import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1]
SCRIPTS = sorted(set((DOCS / "examples").glob("*.py")) - {DOCS / "examples/cart.py"})
NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")

pytestmark = pytest.mark.slow


def run(name, folder):
    """Return the numbers in the only line that a script prints."""
    script = [sys.executable, DOCS / "examples" / name]
    done = subprocess.run(script, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    return [float(number) for number in NUMBER.findall(line)]


def test_mass_and_friction_of_the_film(tmp_path):
    """A camera of a millimetre allows 2 %."""
    mass, friction = run("system_identification.py", tmp_path)
    assert mass == pytest.approx(2.0, rel=0.02)
    assert friction == pytest.approx(0.3, rel=0.02)


def test_a_bounce_to_the_target_by_hand(tmp_path):
    """The velocities that the program finds hit the target in closed form too."""
    forward, up, distance = run("throw_to_target.py", tmp_path)
    assert distance < 1e-3
    impact = math.sqrt(up**2 + 2 * 9.81 * 0.9)
    after = 1.2 - (up + impact) / 9.81
    assert forward * 1.2 == pytest.approx(3.0, abs=0.01)
    assert 0.1 + 0.8 * impact * after - 9.81 * after**2 / 2 == pytest.approx(0.6, abs=0.01)


def test_a_weak_motor_swings_the_rod_up(tmp_path):
    (angle,) = run("predictive_control.py", tmp_path)
    assert angle < 10


def test_wheels_roll_as_far_as_they_are_large(tmp_path):
    assert run("population.py", tmp_path) == pytest.approx([2, 4, 6, 8], rel=0.01)


def test_a_curriculum_reaches_far_targets(tmp_path):
    """The way of 1.5 m at 1 m/s and the start of 0.2 s leave 27 of 60 steps at the target."""
    (earned,) = run("curriculum.py", tmp_path)
    assert 15 < earned < 28


def test_gas_carries_the_load_at_boyle_s_length(tmp_path):
    (length,) = run("custom_actuator.py", tmp_path)
    assert length == pytest.approx(20 * 2 / (4 * 9.81), abs=1e-3)


def test_mujoco_balances_the_pole_until_the_end(tmp_path):
    assert run("policy_in_mujoco.py", tmp_path) == [20.0]


def test_exported_policies_earn_the_most(tmp_path):
    """The sum of 0.02^2 k (k + 1) / 2 over 128 steps."""
    most = 0.02**2 * 128 * 129 * 130 / 6
    assert run("export_policy.py", tmp_path) == pytest.approx([most, most], abs=0.05)
    assert (tmp_path / "policy.onnx").exists()


def test_stable_baselines_balances_the_pole(tmp_path):
    pytest.importorskip("stable_baselines3")
    assert run("stable_baselines.py", tmp_path)[-1] == 4.0


def test_torch_balances_the_poles(tmp_path):
    pytest.importorskip("torch")
    assert run("torch_training.py", tmp_path)[-1] > 1.9


def test_the_page_lists_every_script():
    page = (DOCS / "examples.md").read_text("utf-8")
    assert [script.name for script in SCRIPTS if f"(examples/{script.name})" not in page] == []
