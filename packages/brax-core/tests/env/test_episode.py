"""Counting, ending and repeating, against tables worked out by hand."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.env import EpisodeWrapper, VmapWrapper, wrap
from brax.errors import ConfigError, ShapeError


def episodes(env, n, **settings):
    """`n` environments with their accounts, without automatic reset."""
    env = EpisodeWrapper(VmapWrapper(env), **settings)
    return env, jax.jit(env.reset)(jax.random.split(jax.random.key(0), n))


def run(env, state, actions):
    """Return the states after each row of actions, (steps, batch)."""
    step = jax.jit(env.step)
    states = []
    for row in actions:
        state = step(state, jnp.asarray(row, jnp.float32)[:, None])
        states.append(state)
    return states


def table(states, read):
    """One list per step."""
    return [np.asarray(read(s)).tolist() for s in states]


def test_time_is_up(walker):
    # T92
    env, state = episodes(walker(), 2, episode_length=3)
    states = run(env, state, [[1, 2]] * 3)
    assert table(states, lambda s: s.info["steps"]) == [[1, 1], [2, 2], [3, 3]]
    assert states[0].info["steps"].dtype == jnp.int32
    assert table(states, lambda s: s.info["truncation"]) == [[0, 0], [0, 0], [1, 1]]
    assert table(states, lambda s: s.info["termination"]) == [[0, 0]] * 3
    assert table(states, lambda s: s.done) == [[0, 0], [0, 0], [1, 1]]
    assert table(states, lambda s: s.info["episode_done"]) == [[0, 0], [0, 0], [1, 1]]
    sums = states[-1].info["episode_metrics"]
    assert {k: v.tolist() for k, v in sums.items()} == {
        "sum_reward": [3, 6],
        "length": [3, 3],
        "squared": [3, 12],
    }


def test_ending_by_itself_is_termination_even_in_the_last_step(walker):
    # T92
    env, state = episodes(walker(end=2.6), 2, episode_length=3)
    states = run(env, state, [[1, 2], [1, 2], [1, 2]])  # starts lie in [0, 0.5)
    assert table(states, lambda s: s.info["termination"]) == [[0, 0], [0, 1], [1, 1]]
    assert table(states, lambda s: s.info["truncation"]) == [[0, 0]] * 3


def test_what_has_ended_stays_as_it_is(walker):
    env, state = episodes(walker(end=2.6), 2, episode_length=9)
    states = run(env, state, [[2, 0.1], [2, 0.1], [2, 0.1]])
    end = states[1]
    assert end.done.tolist() == [1, 0]
    assert states[2].obs[0] == end.obs[0]
    assert table(states, lambda s: s.reward)[2][0] == 0
    assert table(states, lambda s: s.metrics["squared"])[2][0] == 0
    assert states[2].info["steps"].tolist() == [2, 3]
    assert states[2].info["termination"].tolist() == [1, 0]
    assert states[2].done.tolist() == [1, 0]


def test_action_repeat_is_exact(walker):
    # T92
    env, state = episodes(walker(end=5.6), 3, episode_length=6, action_repeat=4)
    start = state.obs[:, 0]
    states = run(env, state, [[1, 2, 0.5], [1, 2, 0.5]])
    # By hand: 1 a step ends beyond 5.6 in step 6 at the latest, which truncation shares; 2 a step
    # ends in step 3; 0.5 a step runs out of time after 6 steps, in the middle of a repeat.
    assert table(states, lambda s: s.info["steps"]) == [[4, 3, 4], [6, 3, 6]]
    assert table(states, lambda s: s.reward) == [[4, 6, 2], [2, 0, 1]]
    assert table(states, lambda s: s.metrics["squared"]) == [[4, 12, 1], [2, 0, 0.5]]
    assert table(states, lambda s: s.done) == [[0, 1, 0], [1, 1, 1]]
    assert states[1].info["episode_metrics"]["length"].tolist() == [6, 3, 6]
    assert states[1].info["episode_metrics"]["squared"].tolist() == [6, 12, 1.5]
    assert states[1].info["truncation"][2] == 1
    np.testing.assert_allclose(states[1].obs[:, 0] - start, [6, 6, 3], rtol=1e-6)


@pytest.mark.parametrize("bad", [jnp.nan, jnp.inf, 1e12])
def test_an_environment_that_blows_up_ends_alone(walker, bad):
    env, state = episodes(walker(end=jnp.inf), 4, episode_length=9)
    calm = run(env, state, [[1, 1, 1, 1]] * 3)
    hurt = run(env, state, [[1, 1, 1, 1], [1, bad, 1, 1], [1, 1, 1, 1]])
    after = hurt[1]
    assert after.info["nan"].tolist() == [0, 1, 0, 0]
    assert after.done.tolist() == [0, 1, 0, 0]
    assert after.info["termination"].tolist() == [0, 1, 0, 0]
    assert after.info["truncation"].tolist() == [0, 0, 0, 0]
    assert after.reward.tolist() == [1, 0, 1, 1]
    assert after.metrics["squared"].tolist() == [1, 0, 1, 1]
    assert after.obs[1] == hurt[0].obs[1]
    assert after.info["episode_metrics"]["sum_reward"].tolist() == [2, 1, 2, 2]
    others = np.array([0, 2, 3])
    same = jax.tree.map(lambda x, y: np.array_equal(x[others], y[others]), hurt[2], calm[2])
    assert jax.tree.all(same)


def test_states_passed_in_are_not_changed(walker):
    env, state = episodes(walker(), 2, episode_length=3)
    before = jax.tree.map(np.array, state)
    info, metrics = dict(state.info), dict(state.metrics)
    env.step(state, jnp.ones((2, 1)))
    assert info == state.info and metrics == state.metrics  # the same objects, by identity
    assert jax.tree.all(jax.tree.map(np.array_equal, before, state))


class Followed(NamedTuple):
    """A state of physics that follows the nearest contacts alone."""

    x: jax.Array
    overflow: jax.Array


def test_steps_in_which_contacts_are_left_out_are_counted(walker: Any):
    """The walker leaves out as many contacts as it has gone over 2 metres."""

    class Crowded(walker):
        def reset(self, rng):
            state = super().reset(rng)
            return state.replace(pipeline_state=Followed(jnp.zeros(()), jnp.zeros(())))

        def step(self, state, action):
            x = state.pipeline_state.x + action[0]
            return state.replace(pipeline_state=Followed(x, jnp.maximum(x - 2.0, 0.0)))

    env, state = episodes(Crowded(), 2, episode_length=5)
    states = run(env, state, [[1, 2]] * 3)
    assert table(states, lambda s: s.metrics["contact_overflow"]) == [[0, 0], [0, 1], [1, 1]]
    assert states[-1].info["episode_metrics"]["contact_overflow"].tolist() == [1, 2]


@pytest.mark.parametrize(
    "length, repeat, message",
    [
        (0, 1, "episode_length must be an integer >= 1, got 0"),
        (-1, 1, "episode_length must be an integer >= 1, got -1"),
        (2.5, 1, "episode_length must be an integer >= 1, got 2.5"),
        ("4", 1, "episode_length must be an integer >= 1, got '4'"),
        (10, 0, "action_repeat must be an integer >= 1, got 0"),
        (10, 1.5, "action_repeat must be an integer >= 1, got 1.5"),
        (10, True, "action_repeat must be an integer >= 1, got True"),
        (3, 4, "action_repeat must be at most .* got episode_length=3, action_repeat=4"),
    ],
)
def test_lengths_that_make_no_sense(walker, length, repeat, message):
    with pytest.raises(ConfigError, match=message):
        EpisodeWrapper(walker(), length, repeat)


@pytest.mark.parametrize("n", [3, 4])
@pytest.mark.parametrize("name", ["reward", "far"])
@pytest.mark.parametrize("when", ["reset", "step"])
def test_what_is_not_one_number_is_not_mixed_with_that_of_others(walker: Any, n, name, when):
    """Three environments and a metric of three entries were summed to three times three."""

    class Wrong(walker):
        def reset(self, rng):
            state = super().reset(rng)
            return self._wrong(state) if when == "reset" else state.replace(metrics=self._far())

        def step(self, state, action):
            return self._wrong(super().step(state, action))

        def _far(self):
            return {"far": jnp.zeros(())}

        def _wrong(self, state):
            metrics = self._far()
            if name == "reward":
                return state.replace(reward=state.reward[None], metrics=metrics)
            return state.replace(metrics={"far": jnp.zeros(3)})

    env = wrap(Wrong(), episode_length=5)
    keys = jax.random.split(jax.random.key(0), n)
    with pytest.raises(
        ShapeError, match=rf"Wrong: '{name}' has shape \({n}, \d\) and done \({n},\)"
    ):
        jax.eval_shape(lambda: env.step(env.reset(keys), jnp.zeros((n, env.action_size))))


@pytest.mark.parametrize("done", [jnp.zeros((), bool), jnp.zeros((), jnp.int32)])
def test_done_may_be_of_any_kind(walker: Any, done):
    class Kind(walker):
        def reset(self, rng):
            return super().reset(rng).replace(done=done)

        def step(self, state, action):
            new = super().step(state, action)
            return new.replace(done=new.done.astype(done.dtype))

    env, state = episodes(Kind(end=2.6), 2, episode_length=3)
    steps = jax.jit(lambda s, a: jax.lax.scan(lambda s, a: (env.step(s, a), s.done), s, a))
    last, _ = steps(state, jnp.ones((3, 2, 1)) * jnp.array([[1.0], [2.0]]))
    assert last.done.tolist() == [1, 1] and last.info["truncation"].tolist() == [0, 0]


@pytest.mark.parametrize("first, then", [({}, {"way": 1}), ({"way": 1}, {})])
def test_metrics_of_reset_and_step_are_the_same(walker: Any, first, then):
    class Other(walker):
        def reset(self, rng):
            state = super().reset(rng)
            return state.replace(metrics={k: jnp.zeros(()) for k in first})

        def step(self, state, action):
            return super().step(state, action).replace(metrics={k: state.reward for k in then})

    env, state = episodes(Other(), 2, episode_length=3)
    with pytest.raises(ShapeError, match=r"Other: reset and step must .* metrics.way (is m|app)"):
        env.step(state, jnp.ones((2, 1)))


@pytest.mark.parametrize("function", ["reset", "step"])
def test_what_is_returned_is_a_state(walker: Any, function):
    class Forgets(walker):
        pass

    setattr(Forgets, function, lambda *given: None)
    env = wrap(Forgets(), episode_length=3)
    with pytest.raises(ShapeError, match=rf"Forgets.{function} must return .* returned NoneType"):
        state = env.reset(jax.random.split(jax.random.key(0), 2))
        env.step(state, jnp.ones((2, 1)))


def test_a_step_of_another_structure_is_named(walker: Any):
    class Grows(walker):
        def step(self, state, action):
            new = super().step(state, action)
            return new.replace(
                obs=jnp.concatenate([new.obs, new.obs]), info={"start": new.info["start"] > 0}
            )

    env, state = episodes(Grows(), 2, episode_length=3)
    with pytest.raises(ShapeError, match=r"Grows.*obs is float32\[2, 1\].*float32\[2, 2\]") as e:
        env.step(state, jnp.ones((2, 1)))
    assert "info.start is float32[2] after reset and bool[2] after step" in str(e.value)
