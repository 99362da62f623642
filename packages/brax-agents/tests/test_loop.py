"""The shared loop with a program that only counts: long runs, without training anything."""

import signal
import time
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from brax.errors import TrainingError
from brax.training.checkpoints import checkpoint
from brax.training.checkpoints.writer import Writer
from brax.training.distributed import hosts
from brax.training.runner.loop import Loop, MetricsWindow, Reports, Schedule, StoppingCriteria


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


def nobody(*told):
    """Is told, and does nothing."""


@pytest.mark.parametrize("env_steps", [2**16 + 1, 2**31 - 1, 2**31, 2**32 + 3])
def test_counts_are_exact_past_2_to_the_31_and_32(tmp_path, env_steps):
    """Up to 2^20 training steps: 2^52 environment steps at most, more than float32 could tell."""
    total = 2**20
    evaluated, reported = [], []
    writer = Writer(tmp_path, keep=9)

    def begin(step, state, metrics):
        writer.begin(step * env_steps, {"steps": np.int64(state)}, {"training_steps": step})

    def evaluate(steps, state, metrics):
        evaluated.append((steps, state))
        return {}

    reports = Reports(
        evaluate=evaluate,
        hand_out=nobody,
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
    window = MetricsWindow()
    ended, reward = np.int32(2**31 - 1), np.float32(2**24)
    for _ in range(3):
        window.add(1.0, 1, {"n": ended, "reward": reward})
    for _ in range(5):
        window.add(1.0, 1, {"n": np.int32(1), "reward": np.float32(1)})
    told = window.metrics(SimpleNamespace(metrics=dict))
    assert told["n"] == 3 * (2**31 - 1) + 5
    assert told["reward"] == 3 * 2**24 + 5


class Breaking(Counting):
    """A share of its environment steps, 8 in a training step, breaks."""

    def __init__(self, share):
        self._share = share

    def metrics(self, tally):
        return {"training/nan_envs": self._share * 8 * tally["n"]}


@pytest.mark.parametrize(("share", "told"), [(0.005, []), (1.0, ["in 128 of 128 environment"])])
def test_that_many_steps_break_is_told_once(share, told):
    reports = Reports(lambda *_: {}, nobody, nobody, saves=None, every=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Loop(Breaking(share), Schedule(64, 8, 5, 0), reports).run(0)
    assert [str(w.message)[:25] for w in caught] == [text[:25] for text in told]


class Resetting(Counting):
    """Its state is the training steps and the resets so far; it gets a signal after a step."""

    def __init__(self, signal_after=None):
        self._signal_after = signal_after

    def advance(self, state, steps):
        if self._signal_after == state[0] + steps:
            signal.raise_signal(signal.SIGTERM)
        return (state[0] + steps, state[1]), {"n": np.int64(steps)}

    def fresh_environments(self, state):
        return state[0], state[1] + 1


class Saved(list[Any]):
    """Keeps what is saved, newest last: training steps and state."""

    def begin(self, step, state, metrics):
        self.append((step, state))

    def check(self):
        pass

    finish = check


def run_of(program, schedule, start=(0, (0, 0)), on_evaluation=nobody, hand_out=nobody, **more):
    """Run from training steps and a state; return the last state, evaluations, reports, saves."""
    evaluated, reported, saved = [], [], Saved()

    def evaluate(steps, state, metrics):
        on_evaluation(steps)
        evaluated.append((steps, state))
        return {"eval/episode_reward": float(steps)}

    def progress(steps, metrics):
        reported.append((steps, metrics))

    every, save_steps = more.pop("every", None), more.pop("save_steps", 1)
    reports = Reports(evaluate, hand_out, progress, saved, every, save_steps)
    limits = StoppingCriteria(**more)
    ended = None
    try:
        state, _ = Loop(program, schedule, reports, limits).run(start[1], start[0])
    except (SystemExit, KeyboardInterrupt) as error:
        state, ended = None, error
    return SimpleNamespace(
        state=state, evaluated=evaluated, reported=reported, saved=saved, ended=ended
    )


@pytest.mark.parametrize("when", range(1, 9))
def test_a_run_stopped_anywhere_goes_on_as_one_that_never_stopped(when):
    """Resets after 2, 4 and 6 steps, evaluations at 0, 4 and 8."""
    schedule = Schedule(8, 1, 3, 2)
    whole = run_of(Resetting(), schedule)
    assert whole.state == (8, 3) and [s for s, _ in whole.evaluated] == [0, 4, 8]
    first = run_of(Resetting(when), schedule)
    assert isinstance(first.ended, SystemExit) and first.ended.code == 143
    assert first.saved[-1][0] == when
    rest = run_of(Resetting(), schedule, first.saved[-1])
    again = 1 if when == 8 else 0  # what is complete is evaluated once more
    assert first.evaluated + rest.evaluated[again:] == whole.evaluated
    assert rest.state == whole.state


def test_a_closed_terminal_is_obeyed_unless_it_is_ignored():
    def close(step):
        signal.raise_signal(signal.SIGHUP)

    schedule = Schedule(4, 1, 1, 0)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run_of(Resetting(), schedule, on_evaluation=close).ended is None
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        found = run_of(Resetting(), schedule, on_evaluation=close)
        assert found.ended.code == 129 and found.saved[-1][0] == 4
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_ctrl_c_in_the_last_evaluation_is_obeyed():
    def interrupt(step):
        if step == 4:
            signal.raise_signal(signal.SIGINT)

    found = run_of(Resetting(), Schedule(4, 1, 2, 0), on_evaluation=interrupt)
    assert isinstance(found.ended, KeyboardInterrupt) and found.saved[-1] == (4, (4, 0))


def test_seconds_of_training_count_on_from_those_behind():
    saved, told = [], []
    saves = SimpleNamespace(
        begin=lambda step, state, metrics: saved.append(metrics), check=nobody, finish=nobody
    )
    reports = Reports(
        evaluate=lambda steps, state, metrics: dict(metrics),
        hand_out=nobody,
        progress=lambda steps, metrics: told.append(metrics),
        saves=saves,
        every=None,
    )
    Loop(Resetting(), Schedule(8, 1, 1, 0), reports).run((4, 0), 4, 1000.0)
    assert 1000 < told[-1]["training/walltime"] < 1100
    assert saved[-1]["training/walltime"] == told[-1]["training/walltime"]


@pytest.mark.parametrize("resets", [0, 8])
def test_resets_do_not_put_off_reports(resets):
    found = run_of(Resetting(), Schedule(40, 1, 1, resets), every=10)
    assert [steps for steps, _ in found.reported] == [10, 20, 30, 40, 40]


def test_reports_between_evaluations_have_the_names_that_google_s_have_there():
    found = run_of(Resetting(), Schedule(20, 3, 1, 0), every=30)
    (_, between), (_, evaluation) = found.reported[0], found.reported[-1]
    assert between["episode/sps"] == between["training/sps"] > 0
    assert "episode/walltime" not in between and "training/walltime" in between
    assert evaluation == {"eval/episode_reward": 60.0}


def test_where_a_user_s_function_fails_nothing_is_lost():
    def fail(steps, state):
        raise ZeroDivisionError

    reports = Reports(lambda *_: {}, fail, nobody, saved := Saved(), None)
    with pytest.raises(ZeroDivisionError):
        Loop(Resetting(), Schedule(9, 1, 1, 0), reports).run((0, 0))
    assert saved == [(9, (9, 0))]


@pytest.mark.parametrize("done", [0, 7])
def test_where_nothing_is_left_to_train_there_is_an_evaluation(done):
    """And a save, of what was not saved yet."""
    found = run_of(Resetting(), Schedule(done, 3, 1, 0), (done, (done, 0)))
    assert found.evaluated == [(3 * done, (done, 0))]
    assert found.saved == ([] if done else [(0, (0, 0))])


def test_enough_reward_ends_a_run():
    found = run_of(Resetting(), Schedule(100, 1, 11, 0), reward=30.0)
    assert found.state == (30, 0) and found.evaluated[-1][0] == found.saved[-1][0] == 30


def test_a_run_ends_at_its_deadline_evaluated_and_saved(monkeypatch):
    """A clock that goes on by a second with each training step, of which a call takes one."""

    class Slow(Resetting):
        def advance(self, state, steps):
            clock[0] += steps
            return super().advance(state, steps)

    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    found = run_of(Slow(), Schedule(1000, 1, 2, 5), deadline=117.0)
    assert found.state == (17, 0) and [s for s, _ in found.evaluated] == [0, 17]
    assert found.saved[-1] == (17, (17, 0))
    rest = run_of(Slow(), Schedule(20, 1, 1, 0), found.saved[-1], deadline=1e9)
    assert rest.state == (20, 0)


class Clock:
    """A clock of which programs and evaluations say how far it goes."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def wait(self, seconds):
        self.now += seconds


class Timed(Resetting):
    """Takes time for each step, less for those that make no updates; lists the steps of calls."""

    def __init__(self, clock, each, before_updates=0, fast=0.0):
        super().__init__()
        self._clock, self._each, self._before, self._fast = clock, each, before_updates, fast
        self.calls = []

    def advance(self, state, steps):
        fast = min(max(self._before - state[0], 0), steps)
        self._clock.wait(fast * self._fast + (steps - fast) * self._each)
        self.calls.append(steps)
        return super().advance(state, steps)


def test_the_deadline_is_seen_where_every_call_ends_at_an_evaluation(monkeypatch):
    """A step takes a millisecond and an evaluation a second: the fourth one ends at 104.003 s."""
    clock = Clock(monkeypatch)
    found = run_of(
        Timed(clock, 0.001),
        Schedule(30, 1, 31, 0),
        on_evaluation=lambda steps: clock.wait(1.0),
        deadline=103.5,
    )
    assert found.state == (3, 0) and [s for s, _ in found.evaluated] == [0, 1, 2, 3]
    assert found.saved[-1] == (3, (3, 0))


def test_the_deadline_is_seen_where_every_call_ends_at_a_reset(monkeypatch):
    """Each of 40 steps takes a second and is followed by a reset; it comes before the end."""
    clock = Clock(monkeypatch)
    found = run_of(Timed(clock, 1.0), Schedule(40, 1, 1, 40), deadline=117.0)
    assert found.evaluated == found.saved[-1:] == [(17, (17, 17))]
    assert found.state == (17, 17)


def test_checkpoints_between_evaluations_are_saved_at_resets():
    """Each step is followed by a reset, which what is saved there has."""
    found = run_of(Resetting(), Schedule(8, 1, 1, 8), save_steps=3)
    assert found.saved == [(3, (3, 3)), (6, (6, 6)), (8, (8, 7))]


def test_enough_reward_before_training_ends_a_run():
    found = run_of(Resetting(), Schedule(100, 1, 11, 0), reward=0.0)
    assert found.evaluated == found.saved == [(0, (0, 0))] and found.state == (0, 0)


def test_a_signal_that_arrives_while_processes_ask_each_other_is_obeyed(monkeypatch):
    """It comes after this process has told its number: the next time it is known."""

    def exchange(number):
        if not asked:
            signal.raise_signal(signal.SIGTERM)
        asked.append(number)
        return number

    asked: list[int] = []
    monkeypatch.setattr(hosts, "max_over_processes", exchange)
    found = run_of(Resetting(), Schedule(9, 1, 1, 0))
    assert asked == [0, signal.SIGTERM]
    assert found.ended.code == 143 and found.saved[-1][0] == 2


@pytest.mark.parametrize("behind", [0, 10, 64])
def test_no_call_is_sized_by_steps_without_updates_for_steps_that_make_some(monkeypatch, behind):
    """64 steps of a millisecond, then steps of 0.3 s, of which three take a second."""
    program = Timed(Clock(monkeypatch), 0.3, before_updates=64, fast=0.001)
    start = (behind, (behind, 0))
    run_of(program, Schedule(75, 1, 1, 0, before_updates=64), start, save_steps=None)
    filling = {0: [1, 63], 10: [1, 53], 64: []}[behind]
    assert program.calls == [*filling, 1, 3, 3, 3, 1]


class Failing(Resetting):
    """No gradient is finite after three steps."""

    def bad_updates(self, state):
        return max(state[0] - 3, 0)

    def metrics(self, tally):
        return {"training/skipped_total_loss": float("nan")}


def test_the_state_is_saved_when_gradients_stay_without_a_finite_value():
    saved = Saved()
    reports = Reports(lambda *_: {}, nobody, nobody, saved, None, save_steps=1)
    with pytest.raises(TrainingError, match=r"at step 26, 10 .*total_loss nan.*checkpoint of step"):
        Loop(Failing(), Schedule(40, 2, 1, 0), reports).run((0, 0))
    assert saved[-1] == (13, (13, 0))
    reports = Reports(lambda *_: {}, nobody, nobody, None, 1)
    with pytest.raises(TrainingError, match="Nothing is saved without save_checkpoint_path"):
        Loop(Failing(), Schedule(40, 1, 1, 0), reports).run((0, 0))
    limits = StoppingCriteria(bad_updates=None)
    state, _ = Loop(Failing(), Schedule(40, 1, 1, 0), reports, limits).run((0, 0))
    assert state == (40, 0)


@pytest.mark.parametrize("reached", [2**31 - 7, 2**31 + 5, 2**32 - 1, 2**32 + 12_345])
def test_a_run_goes_on_across_the_words(reached):
    """One environment step a training step, from just below and above the borders of the words."""
    seen = []
    reports = Reports(
        evaluate=lambda steps, state, metrics: {},
        hand_out=nobody,
        progress=lambda steps, metrics: seen.append(steps),
        saves=None,
        every=1,
    )
    state, _ = Loop(Counting(), Schedule(reached + 9, 1, 1, 0), reports).run(reached, reached)
    assert state == reached + 9
    assert seen == [*range(reached + 1, reached + 10), reached + 9]
