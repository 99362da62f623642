"""`brax render`, `view` and `export`: from a run or a model to a file, or one line of refusal."""

import itertools
import json
import re
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scenes import glide, unpack, walker

from brax import base, cli, plugins
from brax.errors import ConfigError
from brax.io.viewer import live_source, rollout
from brax.plugins import Spec, hookimpl


@base.dataclass
class Moment:
    """The part of an environment's state that `render` reads."""

    pipeline_state: base.State
    obs: jax.Array
    reward: jax.Array
    done: jax.Array
    metrics: dict[str, jax.Array]


class Glide:
    """The walker moves along x by the action; the reward is the action; it is done at x = 2.

    The observation counts the steps.
    """

    action_size = 1
    observation_size = 1
    dt = 0.05

    def __init__(self, lost_at=float("inf")):
        self.sys = walker()
        self.lost_at = lost_at

    def reset(self, rng):
        return self._moment(jnp.zeros(()), jnp.zeros(1), jnp.zeros(()))

    def step(self, state, action):
        x = state.pipeline_state.q[0] + action[0]
        return self._moment(x, state.obs + 1, action[0])

    def _moment(self, x, obs, reward):
        x = jnp.where(obs[0] >= self.lost_at, jnp.nan, x)
        there = jax.tree.map(jnp.asarray, glide(0.0))
        pos = there.x.pos.at[:, 0].add(x)
        there = there.replace(x=there.x.replace(pos=pos), q=there.q.at[0].set(x))
        return Moment(there, obs, reward, (x >= 2).astype(jnp.float32), {"far": x})


class Counting:
    """A trainer whose agents act as their checkpoint says: by the step's count, times a gain."""

    name = "counting"

    def train(self, environment, **kwargs):
        raise NotImplementedError

    def load_policy(self, path, deterministic=True):
        gain = json.loads((path / "gain.json").read_text())
        return lambda obs, key: (gain * obs, {})


class Memory:
    """A policy that counts its own actions in its memory: 0, 0.1, 0.2, ..."""

    memory_size = 1

    def __call__(self, obs, key, memory):
        return 0.1 * memory, {"memory": memory + 1}


class Remembering(Counting):
    """A trainer whose agents have memory."""

    name = "remembering"

    def load_policy(self, path, deterministic=True):
        return Memory()


class Toy:
    """The model format '.toy': the walker, its time step read from the file."""

    suffixes = (".toy",)

    def load(self, path):
        return walker(timestep=float(path.read_text()))


class Resting:
    """A pipeline in which nothing moves but time, which it writes into the torso's x."""

    def init(self, sys, q, qd):
        return jax.tree.map(jnp.asarray, glide(0.0))

    def step(self, sys, state, act, n_frames=1):
        return state.replace(q=state.q.at[0].add(n_frames * sys.opt.timestep))


class Plugin:
    BRAX_PLUGIN_API = 1

    @hookimpl
    def brax_environments(self):
        return [Spec("glide", Glide), Spec("bare", lambda: object())]

    @hookimpl
    def brax_trainers(self):
        return [Spec("counting", Counting()), Spec("remembering", Remembering())]

    @hookimpl
    def brax_model_formats(self):
        return [Spec("toy", Toy())]

    @hookimpl
    def brax_pipelines(self):
        return [Spec("resting", Resting())]


@pytest.fixture(autouse=True)
def plugin():
    plugins.register(Plugin(), "toys")
    yield
    plugins.unregister("toys")


@pytest.fixture
def run(tmp_path):
    """Make a run's folder with a checkpoint in it."""

    def make(environment="glide", trainer="counting", config=(), **settings):
        folder = tmp_path / "run"
        (folder / "checkpoints" / "000100").mkdir(parents=True)
        record = {"environment": environment, "environment_kwargs": settings, "trainer": trainer}
        (folder / "run.json").write_text(json.dumps(record | {"config": dict(config)}))
        (folder / "gain.json").write_text("0.1")
        (folder / "checkpoints" / "000100" / "gain.json").write_text("0.2")
        return folder

    return make


def test_render_shows_one_episode(run, capsys):
    """Step of 0, 0.1, 0.2, ...: 0.1 * n (n - 1) / 2 passes 2 at n = 7."""
    folder = run()
    assert cli.main(["render", str(folder)]) == 0
    assert capsys.readouterr().out.strip() == str(folder / "rollout.html")
    model, arrays = unpack((folder / "rollout.html").read_text("utf-8"))
    assert (model["title"], model["dt"], model["frames"]) == ("glide, counting", 0.05, 8)
    assert model["series"] == ["reward", "return", "action", "far"]
    np.testing.assert_allclose(arrays["series/action"], arrays["series/reward"][:, None])
    rewards = [0, *(0.1 * i for i in range(7))]
    np.testing.assert_allclose(arrays["series/reward"], rewards, atol=1e-6)
    np.testing.assert_allclose(arrays["pos"][:, 0, 0], np.cumsum(rewards), atol=1e-6)


def test_render_takes_a_checkpoint_and_stops_at_steps(run, tmp_path):
    """Step of 0, 0.2, 0.4: three of them go 0.6."""
    page = tmp_path / "mine.html"
    checkpoint = run() / "checkpoints" / "000100"
    assert cli.main(["render", str(checkpoint), "--steps", "3", "--output", str(page)]) == 0
    _, arrays = unpack(page.read_text("utf-8"))
    np.testing.assert_allclose(arrays["pos"][:, 0, 0], [0, 0, 0.2, 0.6], atol=1e-6)


def test_render_stops_where_the_episodes_of_training_did(run):
    folder = run(config={"episode_length": 4})
    assert cli.main(["render", str(folder)]) == 0
    assert unpack((folder / "rollout.html").read_text("utf-8"))[0]["frames"] == 5


def test_render_shows_runs_side_by_side(run, tmp_path):
    """The run's newest policy, and that of its checkpoint: steps of 0.1 and of 0.2."""
    folder, page = run(), tmp_path / "both.html"
    beside = ["--beside", str(folder / "checkpoints" / "000100")]
    assert cli.main(["render", str(folder), "--output", str(page), "--steps", "3", *beside]) == 0
    parts = page.read_text("utf-8").split('<div class="brax-viewer"')[1:]
    ends = [unpack(part)[1]["pos"][-1, 0, 0] for part in parts]
    np.testing.assert_allclose(ends, [0.3, 0.6], atol=1e-6)


@pytest.mark.parametrize("suffix", [".mp4", ".gif", ".png"])
def test_runs_side_by_side_are_no_film(run, tmp_path, suffix, capsys):
    folder, film = run(), tmp_path / f"both{suffix}"
    beside = ["--beside", str(folder / "checkpoints" / "000100")]
    assert cli.main(["render", str(folder), "--output", str(film), *beside]) == 2
    assert "--beside needs a page: let --output name a file" in capsys.readouterr().err
    assert not film.exists()


def test_render_repeats_actions_as_the_agent_was_trained(run):
    folder = run(config={"action_repeat": 2})
    assert cli.main(["render", str(folder), "--steps", "4"]) == 0
    _, arrays = unpack((folder / "rollout.html").read_text("utf-8"))
    np.testing.assert_allclose(arrays["series/reward"], [0, 0, 0, 0.2, 0.2], atol=1e-6)


def test_render_carries_memory_from_action_to_action(run):
    """Also where each action is repeated: the memory changes with every action, not every step."""
    folder = run(trainer="remembering", config={"action_repeat": 2})
    assert cli.main(["render", str(folder), "--steps", "6"]) == 0
    _, arrays = unpack((folder / "rollout.html").read_text("utf-8"))
    np.testing.assert_allclose(arrays["series/reward"], [0, 0, 0, 0.1, 0.1, 0.2, 0.2], atol=1e-6)


def test_a_live_episode_that_begins_with_a_state_that_is_not_finite_is_an_error(run, capsys):
    assert cli.main(["view", str(run(lost_at=0)), "--live"]) == 2
    assert "not finite" in capsys.readouterr().err


def test_a_live_agent_forgets_at_the_end_of_an_episode(run):
    """Steps of 0, 0.1, ... pass 2 with the seventh; in the first moment there is no action yet."""
    source = live_source.source(str(run(trainer="remembering")), "resting", 0)
    actions = [float(series["action"][0]) for _, series in itertools.islice(source.moments, 11)]
    np.testing.assert_allclose(actions, [0, *np.arange(7) / 10, 0, 0, 0.1], atol=1e-6)


def test_an_environment_needs_a_system_and_a_time_to_be_shown():
    rollout.check_shown(Glide(), "glide")
    for env, said in (
        (types.SimpleNamespace(dt=0.05), "no System"),
        (types.SimpleNamespace(sys=walker()), "no dt, the duration of a step"),
    ):
        with pytest.raises(ConfigError, match=f"'glide' has {said}.*so no page can show it"):
            rollout.check_shown(env, "glide")


def test_render_stops_before_what_is_not_finite(run):
    folder = run(lost_at=3)
    assert cli.main(["render", str(folder)]) == 0
    assert unpack((folder / "rollout.html").read_text("utf-8"))[0]["frames"] == 3


@pytest.mark.parametrize(
    "settings, complaint",
    [
        ({"environment": "glid"}, "unknown environment 'glid'.*Did you mean 'glide'"),
        ({"environment": "bare"}, "environment 'bare' of .* must return a brax.env.Env"),
        ({"trainer": "count"}, "unknown trainer 'count'.*Did you mean 'counting'"),
    ],
)
def test_render_refuses_in_one_line(run, capsys, settings, complaint):
    assert cli.main(["render", str(run(**settings))]) == 2
    refused(capsys, complaint)


def refused(capsys, complaint):
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert re.search(complaint, err)


def test_render_refuses_a_folder_that_is_no_run(tmp_path, capsys):
    assert cli.main(["render", str(tmp_path)]) == 2
    refused(capsys, "is not a run: there is no run.json")
    (tmp_path / "run.json").write_text("[1, 2]")
    assert cli.main(["render", str(tmp_path)]) == 2
    refused(capsys, "run.json' cannot be read")


def test_an_output_that_cannot_be_written_is_refused_first(run, tmp_path, capsys):
    folder = run()
    (folder / "gain.json").unlink()  # the rollout would fail
    assert cli.main(["render", str(folder), "--output", str(tmp_path / "no" / "a.html")]) == 2
    refused(capsys, "cannot write .* there is no folder")
    assert cli.main(["render", str(folder), "--output", str(tmp_path)]) == 2
    refused(capsys, "cannot write .* is a folder")


def test_export_writes_the_policy(run, tmp_path, capsys):
    folder = run()
    assert cli.main(["export", str(folder)]) == 0
    assert capsys.readouterr().out.strip() == str(folder / "policy.py")
    names: dict[str, Any] = {}
    exec((folder / "policy.py").read_text(), names)
    want = np.array([[0.3], [0.4]])
    np.testing.assert_allclose(names["policy"]([[3.0], [4.0]]), want, rtol=1e-6)
    (folder / "gain.json").unlink()  # the policy could not be loaded
    assert cli.main(["export", str(folder), "--output", str(tmp_path / "policy.onnyx")]) == 2
    refused(capsys, r"written to \.py or \.onnx\. Did you mean '\.onnx'")


def test_view_moves_a_model_by_itself(tmp_path, monkeypatch):
    """A time step of 4 ms: five a frame, and 0.5 s is 25 frames of 20 ms after the first."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.toy").write_text("0.004")
    assert cli.main(["view", "robot.toy", "--seconds", "0.5", "--pipeline", "resting"]) == 0
    model, _ = unpack((tmp_path / "robot.html").read_text("utf-8"))
    assert (model["title"], model["frames"]) == ("robot.toy", 26)
    assert model["dt"] == pytest.approx(0.02)


@pytest.mark.slow
def test_view_says_what_to_try_when_a_motion_is_not_finite(tmp_path, capsys):
    """A fall at 1e38 m/s^2 leaves single precision, 3.4e38, at sqrt(2 * 3.4) = 2.6 s."""
    (tmp_path / "a.xml").write_text(
        '<mujoco><option gravity="0 0 -1e38" timestep="0.01"/><worldbody><body>'
        '<joint type="slide" axis="0 0 1"/><geom size="0.1"/></body></worldbody></mujoco>'
    )
    assert cli.main(["view", str(tmp_path / "a.xml"), "--pipeline", "spring"]) == 2
    said = capsys.readouterr().err
    told = re.search(r"not finite from ([\d.]+) s on", said)
    assert told, said
    seconds = float(told[1])
    assert seconds == pytest.approx(2.6, abs=0.1)
    assert "try --pipeline generalized or a smaller time step" in said


@pytest.mark.slow
def test_a_film_is_asked_for_by_its_suffix(run, tmp_path, capsys):
    """Eight frames, each 50 ms; of the first two, which are alike, the file makes one."""
    pillow = pytest.importorskip("PIL.Image")
    film = tmp_path / "walk.gif"
    if cli.main(["render", str(run()), "--output", str(film)]) == 2:
        pytest.skip(capsys.readouterr().err)
    with pillow.open(film) as frames:
        durations = []
        for i in range(frames.n_frames):
            frames.seek(i)
            durations.append(frames.info["duration"])
    assert durations == [100, *[50] * 6]


def test_view_names_the_formats_it_reads(tmp_path, capsys):
    (tmp_path / "robot.tox").write_text("")
    assert cli.main(["view", str(tmp_path / "robot.tox")]) == 2
    refused(capsys, r"no model format reads '\.tox' files\..*Did you mean '\.toy'")
