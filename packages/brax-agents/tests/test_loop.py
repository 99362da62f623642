"""The shared loop with a program that only counts: long runs, without training anything."""

from types import SimpleNamespace

import numpy as np
import pytest

from brax.training import checkpoint
from brax.training.loop import Loop, Reports, Schedule, Window
from brax.training.writer import Writer


class Counting:
    """Its state is the number of training steps; nothing ever goes wrong."""

    def advance(self, state, steps):
        return state + steps, {"n": np.int64(steps)}

    def fresh_environments(self, state):
        return state

    def metrics(self, tally):
        return {"steps": int(tally["n"])}

    def bad_updates(self, state):
        return 0


@pytest.mark.parametrize("env_steps", [2**16 + 1, 2**31 - 1, 2**31, 2**32 + 3])
def test_counts_are_exact_past_2_to_the_31_and_32(tmp_path, env_steps):
    """Up to 2^20 training steps: 2^52 environment steps at most, more than float32 could tell."""
    total = 2**20
    evaluated, reported = [], []
    writer = Writer(tmp_path, keep=9)

    def begin(step, state, metrics):
        writer.begin(step * env_steps, {"steps": np.int64(state)}, {"training_steps": step})

    reports = Reports(
        evaluate=lambda steps, state, metrics: evaluated.append((steps, state)) or {},
        progress=lambda steps, metrics: reported.append(steps),
        saves=SimpleNamespace(begin=begin, check=writer.check, finish=writer.finish),
        every=None,
    )
    state, _ = Loop(Counting(), Schedule(total, env_steps, 5, 0), reports).run(0, total - 64)
    assert state == 64
    assert evaluated == [(total * env_steps, 64)] and reported == [total * env_steps]
    assert all(type(steps) is int for steps in reported)
    writer.close()
    found = checkpoint.load(tmp_path)
    assert found.steps == total * env_steps > 2**32
    assert found.path.name == f"{total * env_steps:012d}"


def test_what_happened_in_days_is_counted_in_full():
    """Sums that pass what the numbers of a call can hold: 2^31, and 2^24 in steps of one."""
    window = Window()
    ended, reward = np.int32(2**31 - 1), np.float32(2**24)
    for _ in range(3):
        window.add(1.0, 1, {"n": ended, "reward": reward})
    for _ in range(5):
        window.add(1.0, 1, {"n": np.int32(1), "reward": np.float32(1)})
    told = window.metrics(SimpleNamespace(metrics=dict))
    assert told["n"] == 3 * (2**31 - 1) + 5
    assert told["reward"] == 3 * 2**24 + 5


@pytest.mark.parametrize("reached", [2**31 - 7, 2**31 + 5, 2**32 - 1, 2**32 + 12_345])
def test_a_run_goes_on_across_the_words(reached):
    """One environment step a training step, from just below and above the borders of the words."""
    seen = []
    reports = Reports(
        evaluate=lambda steps, state, metrics: {},
        progress=lambda steps, metrics: seen.append(steps),
        saves=None,
        every=1,
    )
    state, _ = Loop(Counting(), Schedule(reached + 9, 1, 1, 0), reports).run(reached, reached)
    assert state == reached + 9
    assert seen == [*range(reached + 1, reached + 10), reached + 9]
