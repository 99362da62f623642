"""Checkpoints: what comes back, what is refused, what is kept. No training here."""

import contextlib
import dataclasses
import errno
import fcntl
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import Point

from brax.errors import CheckpointError, ConfigError
from brax.training.acme import running_statistics
from brax.training.agents.bc import BC
from brax.training.agents.ppo import PPO
from brax.training.agents.ppo import train as ppo
from brax.training.agents.ppo.checkpoint import load, load_policy, network_config, save
from brax.training.agents.ppo.config import PPOConfig
from brax.training.agents.ppo.losses import PPONetworkParams
from brax.training.agents.ppo.networks import make_inference_fn, make_ppo_networks
from brax.training.agents.sac import SAC
from brax.training.checkpoints import checkpoint, manifest, migrations, resumption
from brax.training.checkpoints import policies as saved_policies
from brax.training.checkpoints.saver import Saver
from brax.training.checkpoints.writer import Writer

TREE = {
    "params": {"kernel": jnp.arange(6.0).reshape(2, 3), "bias.dotted": jnp.float32(3.5)},
    "count": jnp.uint32(2**32 - 1),
    "flags": jnp.array([True, False]),
    "empty": jnp.zeros((0, 3)),
    "key": jax.random.key(7),
}


@pytest.fixture
def writer(tmp_path):
    writer = Writer(tmp_path / "checkpoints")
    yield writer
    writer.close()


@pytest.fixture(scope="session")
def three(tmp_path_factory):
    """Three whole checkpoints, at steps 1, 2 and 3; copy before damaging."""
    writer = Writer(tmp_path_factory.mktemp("three"))
    for step in (1, 2, 3):
        writer.save(step, {**TREE, "count": jnp.uint32(step)}, {"config": {"a": 1}})
    writer.close()
    return writer.folder


@pytest.fixture
def copy(three, tmp_path):
    shutil.copytree(three, tmp_path / "copy")
    return tmp_path / "copy"


def test_everything_comes_back_bit_by_bit(three):
    found = checkpoint.load(three)
    assert found.steps == 3 and found.record["config"] == {"a": 1}
    back = checkpoint.restore(found, jax.eval_shape(lambda: TREE))
    chex.assert_trees_all_equal_structs(back, TREE)
    assert jnp.array_equal(jax.random.key_data(back["key"]), jax.random.key_data(TREE["key"]))
    want = {**TREE, "count": jnp.uint32(3)}
    for name in ("params", "count", "flags", "empty"):
        for got, wanted in zip(
            jax.tree.leaves(back[name]), jax.tree.leaves(want[name]), strict=True
        ):
            assert got.dtype == wanted.dtype and got.shape == wanted.shape
            np.testing.assert_array_equal(got, wanted)


def test_a_part_comes_back_alone(three):
    found = checkpoint.load(three / f"{2:012d}")
    back = checkpoint.restore(found, TREE["params"], "params")
    np.testing.assert_array_equal(back["kernel"], TREE["params"]["kernel"])


def _files(folder):
    return sorted(p for p in folder.rglob("*") if p.is_file())


def _damages(path):
    """Every way in which the tests damage a file."""
    whole = path.read_bytes()
    for size in {0, 1, len(whole) // 2, len(whole) - 1} - {len(whole)}:
        yield f"cut to {size}", whole[:size]
    for place in {0, len(whole) // 2, len(whole) - 1} if whole else set():
        flipped = bytearray(whole)
        flipped[place] ^= 0x10
        yield f"bit flipped at {place}", bytes(flipped)
    yield "gone", None


def test_every_damage_to_every_file_is_reported_and_nothing_is_loaded(copy):
    newest = copy / f"{3:012d}"
    tried = 0
    for path in _files(newest):
        whole = path.read_bytes()
        for what, content in _damages(path):
            path.unlink() if content is None else path.write_bytes(content)
            with pytest.raises(CheckpointError) as error:
                checkpoint.load(copy)
            message = str(error.value)
            assert path.name in message, (path, what, message)
            assert "(step 3)" in message and "last good step is 2" in message
            path.write_bytes(whole)
            tried += 1
    assert tried > 40
    assert checkpoint.load(copy).steps == 3  # put back, it is whole again


def test_the_message_gives_sizes_and_what_to_restore(copy):
    path = max(_files(copy / f"{3:012d}" / "arrays"), key=lambda p: p.stat().st_size)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:10])
    with pytest.raises(CheckpointError, match=rf"{path.name} is 10 B, expected {size}") as error:
        checkpoint.load(copy)
    (good,) = re.findall(r"restore '(.*)'", str(error.value))
    assert checkpoint.load(good).steps == 2


def test_a_damaged_one_is_not_named_as_the_last_good(copy):
    for step in (2, 3):
        (copy / f"{step:012d}" / "manifest.json").unlink()
    with pytest.raises(CheckpointError, match="last good step is 1"):
        checkpoint.load(copy)
    (copy / f"{1:012d}" / "record.json").unlink()
    with pytest.raises(CheckpointError, match="no good checkpoint before it"):
        checkpoint.load(copy)


def test_a_newer_format_is_refused(writer, monkeypatch):
    monkeypatch.setattr(checkpoint, "FORMAT_VERSION", 5)
    path = writer.save(1, TREE, {})
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="format 5, this version reads up to 4: upgrade"):
        checkpoint.load(path)


@pytest.mark.parametrize("make", [True, False])
def test_a_folder_without_checkpoints(tmp_path, make):
    folder = tmp_path / "nothing"
    if make:
        folder.mkdir()
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        checkpoint.load(folder)


def test_an_empty_checkpoint(tmp_path):
    (tmp_path / f"{5:012d}").mkdir()
    with pytest.raises(CheckpointError, match="is empty: not a checkpoint"):
        checkpoint.load(tmp_path / f"{5:012d}")


@pytest.mark.parametrize(
    ("like", "message"),
    [
        (
            {"kernel": jnp.zeros((2, 4)), "bias.dotted": jnp.float32(0)},
            r"params/kernel was saved as "
            r"float32\(2, 3\); float32\(2, 4\) is needed",
        ),
        ({"kernel": jnp.zeros((2, 3), jnp.int32), "bias.dotted": jnp.float32(0)}, "int32"),
        ({"kernel": jnp.zeros((2, 3))}, "params/bias.dotted is only in it"),
        (
            {"kernel": TREE["params"]["kernel"], "bias.dotted": jnp.float32(0), "z": jnp.zeros(1)},
            "params/z is not in it",
        ),
    ],
)
def test_another_shape_or_structure_is_refused(three, like, message):
    with pytest.raises(CheckpointError, match=message):
        checkpoint.restore(checkpoint.load(three), like, "params")


def test_the_newest_and_the_best_are_kept(writer):
    for step, score in enumerate([1.0, 9.0, 2.0, None, 3.0, 4.0], start=1):
        writer.save(step, {"a": jnp.zeros(1)}, {"score": score})
    assert checkpoint.available(writer.folder) == [2, 4, 5, 6]


def test_saving_a_step_again_replaces_it(writer):
    for value in (1.0, 2.0):
        path = writer.save(7, {"a": jnp.full(2, value)}, {})
    np.testing.assert_array_equal(checkpoint.load(path).arrays["a"], 2.0)
    assert checkpoint.available(writer.folder) == [7]


def test_a_step_that_cannot_be_replaced_stays(writer, monkeypatch):
    real = Path.rename

    def fail(path, target):
        if path.name == ".tmp-000000000007":
            raise OSError(errno.EIO, "Input/output error")
        return real(path, target)

    path = writer.save(7, {"a": jnp.full(2, 1.0)}, {})
    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(CheckpointError, match=r"Input/output error\. The ones before it are whole"):
        writer.save(7, {"a": jnp.full(2, 2.0)}, {})
    np.testing.assert_array_equal(checkpoint.load(path).arrays["a"], 1.0)
    assert checkpoint.available(writer.folder) == [7]


def test_leftovers_of_interrupted_saves_are_removed_at_the_start(tmp_path):
    (tmp_path / ".tmp-000000000009" / "arrays").mkdir(parents=True)
    Writer(tmp_path).close()
    assert [p.name for p in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize("name", ["x[1]", "[[32,32],[8]]", "a*b?{c}", "é ü"])
def test_a_folder_may_have_any_name(tmp_path, name):
    with contextlib.closing(Writer(tmp_path / name)) as writer:
        writer.save(1, TREE, {})
    found = checkpoint.load(tmp_path / name)
    np.testing.assert_array_equal(found.arrays["params/kernel"], TREE["params"]["kernel"])


def test_a_save_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def fail(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with contextlib.closing(Writer(tmp_path)) as writer:
        monkeypatch.setattr(manifest, "write", fail)
        with pytest.raises(CheckpointError, match=r"cannot write .*No space left on device\.$"):
            writer.save(1, TREE, {})
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_checkpoints_of_later_steps_are_refused_or_removed(copy):
    with contextlib.closing(Writer(copy)) as writer:
        writer.start(3, overwrite=False)
        with pytest.raises(CheckpointError, match=r"holds checkpoints of steps 2, 3, .* at 1"):
            writer.start(1, overwrite=False)
        assert checkpoint.available(copy) == [1, 2, 3]
        writer.start(1, overwrite=True)
    assert checkpoint.available(copy) == [1]


def test_old_ones_that_cannot_be_removed_stay_and_the_new_one_is_there(tmp_path, monkeypatch):
    real = shutil.rmtree

    def fail(path, *args, **kwargs):
        if "old" in Path(path).name:
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        real(path, *args, **kwargs)

    with contextlib.closing(Writer(tmp_path, keep=1)) as writer:
        writer.save(10, TREE, {})
        monkeypatch.setattr(shutil, "rmtree", fail)
        with pytest.warns(UserWarning, match=r"old checkpoints stay in .*not empty"):
            writer.save(20, TREE, {})
        monkeypatch.undo()
    assert checkpoint.load(tmp_path).steps == 20


def test_a_folder_that_could_be_written_to_once_is_refused_at_the_start(tmp_path, monkeypatch):
    """Its lock can still be opened, as another user's can."""
    Writer(tmp_path).close()

    def refuse(path, *args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(CheckpointError, match=r"cannot write checkpoints to .*Permission denied"):
        Writer(tmp_path)


def test_what_json_cannot_say_is_refused_before_anything_is_saved(tmp_path):
    with pytest.raises(ConfigError, match=r"seed=np.int64\(1\) cannot be written"):
        Saver(tmp_path / "none", {"config": {"seed": np.int64(1)}}, None)  # type: ignore[arg-type]
    assert not (tmp_path / "none").exists()


def test_a_second_writer_is_refused_until_the_first_is_done(writer):
    with pytest.raises(CheckpointError, match="another process is writing"):
        Writer(writer.folder)
    writer.close()
    Writer(writer.folder).close()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(tmp_path, monkeypatch, number):
    """Lustre and network file systems are often mounted so. Nobody else writes there."""

    def flock(file, operation):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.warns(UserWarning, match=f"cannot lock files .{os.strerror(number)}.: make sure"):
        writer = Writer(tmp_path)
    writer.save(5, TREE, {})
    writer.close()
    assert checkpoint.load(tmp_path).steps == 5


@pytest.mark.parametrize("where", ["file/checkpoints", "file", "/sys/nobody_may_write_here"])
def test_a_folder_that_cannot_be_made(tmp_path, where):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot write checkpoints to"):
        Writer(tmp_path / where)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(CheckpointError, match="Permission denied"):
        Writer(tmp_path)


SLOW = [pytest.mark.slow]

KILLED = """
import sys
import jax.numpy as jnp
from brax.training.checkpoints.writer import Writer

writer = Writer(sys.argv[1])
for step in range(1, 1000):
    writer.save(step, {"a": jnp.full(1000, step), "b": jnp.full((10, 10), -step)}, {"x": step})
    print(step, flush=True)
"""


@pytest.mark.parametrize(
    "kills", [pytest.param(2, marks=SLOW), pytest.param(200, marks=[*SLOW, pytest.mark.long])]
)
def test_kill_9_while_saving_leaves_the_last_whole_checkpoint(tmp_path, kills):
    """Kills at moments spread over saves: what was acknowledged is there, or one later."""
    rng = np.random.default_rng(0)
    for trial in range(kills):
        folder = tmp_path / str(trial)
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout
        acknowledged = 0
        for line in child.stdout:
            acknowledged = int(line)
            if acknowledged == 2:
                break
        try:
            child.wait(rng.uniform(0, 0.3))
        except subprocess.TimeoutExpired:
            child.kill()
        acknowledged = max([acknowledged, *map(int, child.stdout.read().split())])
        child.wait()
        found = checkpoint.load(folder)
        assert found.steps in (acknowledged, acknowledged + 1)
        assert found.record["x"] == found.steps
        np.testing.assert_array_equal(found.arrays["a"], found.steps)
        np.testing.assert_array_equal(found.arrays["b"], -found.steps)
        Writer(folder).close()
        assert not list(folder.glob(".tmp-*"))


@pytest.fixture
def held(monkeypatch):
    """Make saves wait for this event before they are complete."""
    event, write = threading.Event(), manifest.write

    def write_later(*args):
        assert event.wait(60)
        write(*args)

    monkeypatch.setattr(manifest, "write", write_later)
    return event


def test_what_was_begun_is_written_while_its_arrays_are_donated(writer, held):
    values = jnp.arange(1000.0)
    writer.begin(1, {"a": values}, {})
    overwritten = jax.jit(jnp.negative, donate_argnums=0)(values)
    assert values.is_deleted() and overwritten[1] == -1
    assert checkpoint.available(writer.folder) == []
    writer.check()  # nothing has failed yet
    held.set()
    writer.finish()
    found = checkpoint.load(writer.folder)
    np.testing.assert_array_equal(found.arrays["a"], np.arange(1000.0))


def test_one_save_waits_for_the_other(writer, held):
    writer.begin(1, {"a": jnp.zeros(3)}, {})
    threading.Timer(0.2, held.set).start()
    writer.begin(2, {"a": jnp.ones(3)}, {})
    assert checkpoint.available(writer.folder)[0] == 1
    writer.finish()
    assert checkpoint.available(writer.folder) == [1, 2]


def test_a_failure_in_the_thread_is_told_once(tmp_path, monkeypatch):
    writer = Writer(tmp_path)

    def fail(*args):
        raise OSError("disk is full")

    def begin(step):
        writer.begin(step, {"a": jnp.zeros(3)}, {})
        assert writer._pending
        wait([writer._pending])

    monkeypatch.setattr(manifest, "write", fail)
    begin(1)
    with pytest.raises(CheckpointError, match=r"cannot write checkpoint .*1': disk is full"):
        writer.check()
    writer.check()
    begin(2)
    with pytest.raises(CheckpointError, match=r"cannot write checkpoint .*2': disk is full"):
        writer.begin(3, {"a": jnp.zeros(3)}, {})
    begin(4)
    with pytest.warns(UserWarning, match=r"cannot write checkpoint .*4': disk is full"):
        writer.close()
    Writer(tmp_path).close()  # it let go of the folder


def test_a_save_that_dies_anywhere_leaves_the_earlier_one(writer, monkeypatch):
    """The disk fails after every one of the calls that write, in turn."""
    writer.save(1, {"a": jnp.zeros(3)}, {})

    class DiskFull(OSError):
        pass

    for name in ("write_text", "rename"):
        real = getattr(Path, name)

        def fail(self, *args, _real=real, **kwargs):
            raise DiskFull("disk is full")

        monkeypatch.setattr(Path, name, fail)
        with pytest.raises(CheckpointError, match=r"cannot write checkpoint .*disk is full"):
            writer.save(2, {"a": jnp.ones(3)}, {})
        monkeypatch.setattr(Path, name, real)
        assert checkpoint.load(writer.folder).steps == 1
    writer.save(2, {"a": jnp.ones(3)}, {})
    assert checkpoint.load(writer.folder).steps == 2


FULL = """
import resource, signal, sys
import jax.numpy as jnp
from brax.errors import CheckpointError
from brax.training import checkpoint
from brax.training.checkpoints.writer import Writer

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = Writer(sys.argv[1])
writer.save(1, {"a": jnp.zeros(3)}, {})
for limit in (0, 10, 1000, 100_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    noise = jnp.sin(jnp.arange(300_000.0) ** 2)
    try:
        writer.save(2, {"a": noise}, {})
        sys.exit("it was saved")
    except CheckpointError as error:
        print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
assert checkpoint.load(sys.argv[1]).steps == 1
writer.save(2, {"a": noise}, {})
assert checkpoint.load(sys.argv[1]).steps == 2
"""


@pytest.mark.slow
def test_a_disk_that_is_full_at_any_size(tmp_path):
    """The system refuses to write beyond a size, in Python's files and in orbax's."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = done.stdout.splitlines()
    assert len(told) == 4
    for line in told:
        assert line.startswith("cannot write checkpoint") and f"{2:012d}" in line
        assert line.endswith("The ones before it are whole.")


def test_death_between_the_arrays_and_the_rest(writer, monkeypatch):
    """Parameters without what says how to use them are no checkpoint."""
    writer.save(1, TREE, {})

    def die(*args):
        raise SystemExit(9)

    monkeypatch.setattr(manifest, "write", die)
    with pytest.raises(SystemExit):
        writer.save(2, TREE, {})
    assert checkpoint.load(writer.folder).steps == 1


def test_three_saved_are_three_listed(three):
    assert checkpoint.available(three) == [1, 2, 3]


def test_as_many_are_kept_as_asked(tmp_path):
    writer = Writer(tmp_path, keep=1)
    for step, score in enumerate([5.0, 1.0, 2.0], start=1):
        writer.save(step, {"a": jnp.zeros(1)}, {"score": score})
    writer.close()
    assert checkpoint.available(tmp_path) == [1, 3]


def test_an_empty_tree_is_refused(writer):
    with pytest.raises(
        CheckpointError, match=r"cannot write checkpoint .*: there is nothing in it"
    ):
        writer.save(1, {}, {})


GOLDEN = Path(__file__).parent / "golden"


def test_a_checkpoint_of_format_1():
    """Written by the version before; its policy did 0.2479453831911087 there."""
    policy = load_policy(GOLDEN / "format-1")
    action, _ = policy(np.array([0.3, 0.2], np.float32), jax.random.key(0))
    assert float(action[0]) == pytest.approx(0.2479453831911087, rel=1e-6)


@pytest.mark.slow
def test_training_goes_on_from_format_1():
    settings = checkpoint.load(GOLDEN / "format-1").record["config"]
    sizes = {"policy_hidden_layer_sizes": [2], "value_hidden_layer_sizes": [2]}
    more: dict[str, Any] = {
        "network_factory": sizes,
        "restore_checkpoint_path": GOLDEN / "format-1",
    }
    _, params, _ = ppo.train(Point(), **{**settings, **more, "num_timesteps": 30})
    assert int(params.normalizer.count) == 30


def test_a_run_goes_on_with_what_was_the_default_when_it_was_saved():
    """When format 1 was written, truncated steps were left out unless a setting said otherwise."""
    moved = PPOConfig.moved_defaults
    assert moved == ("bootstrap_on_timeout",) and PPOConfig().bootstrap_on_timeout
    assert resumption.recorded_settings(GOLDEN / "format-1", moved) == {
        "bootstrap_on_timeout": False
    }
    assert resumption.recorded_settings(GOLDEN / "format-1", ["not there yet"]) == {}
    assert resumption.recorded_settings(None, moved) == {}


def test_a_run_goes_on_from_a_checkpoint_with_a_setting_that_is_not_known(writer):
    """An earlier or a later version had it. What must stay is compared all the same."""
    tree, config = {"x": np.arange(3.0)}, PPOConfig(num_envs=16)
    names = ("agent", "environment", "observation_size", "action_size", "network")
    own = dict.fromkeys(names, "same")
    settings = {**dataclasses.asdict(config), "not_known": 7}
    writer.save(160, tree, {**own, "config": settings, "training_steps": 2, "seconds": 1.5})
    found = resumption.read_starting_point(writer.folder, tree, own, config)
    assert found[1:] == (2, 1.5) and found.state["x"].tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ConfigError, match="must stay what it was"):
        other = dataclasses.replace(config, num_envs=32, unroll_length=3)
        resumption.read_starting_point(writer.folder, tree, own, other)


def test_what_rounding_left_out_of_statistics_was_lost_before_format_3():
    found = checkpoint.load(GOLDEN / "format-1").arrays
    for part in ("mean", "variance"):
        kept, rest = (found[f"params/normalizer{way}/{part}"] for way in ("", "/rest"))
        assert kept.any() and not rest.any()
        assert (rest.shape, rest.dtype) == (kept.shape, kept.dtype)
    leaves = [[f"params/normalizer/{name}", "float32", [2]] for name in ("mean/state", "mean_x")]
    record = migrations.migrate({"leaves": leaves}, 2, Path("runs/a"))
    assert record["leaves"] == [*leaves, ["params/normalizer/rest/mean/state", "float32", [2]]]


def test_what_format_1_had_and_today_has_not_is_said():
    network = {"factory": "make_ppo_networks", "distribution_type": "normal"}
    with pytest.raises(CheckpointError, match=r"'runs/a' has format 1, in which .*normal"):
        migrations.migrate({"network": network}, 1, Path("runs/a"))


@pytest.mark.parametrize(
    ("factory", "added"),
    [
        (
            "make_sac_networks",
            {
                "distribution_type": "tanh_normal",
                "noise_std_type": "scalar",
                "init_noise_std": 1.0,
                "state_dependent_std": False,
                "policy_network_kernel_init_fn": "lecun_uniform",
                "q_network_kernel_init_fn": "lecun_uniform",
            },
        ),
        (
            "make_ppo_networks_vision",
            {"cnn_padding": "zeros", "cnn_max_pool": False, "cnn_global_pool": "avg"},
        ),
        ("make_es_networks", {}),
    ],
)
def test_settings_of_networks_that_format_3_had_not(factory, added):
    network = {"factory": factory, "activation": "relu"}
    record = migrations.migrate({"network": network}, 3, Path("runs/a"))
    assert record == {"network": {**network, **added}}


@pytest.mark.parametrize("agent", [PPO, SAC, BC], ids=lambda agent: agent.name)
def test_settings_added_to_networks_are_migrated(agent):
    """A checkpoint of format 3 must equal today's record where nothing is set."""
    for factory in agent._own_factories:
        now = saved_policies.describe_networks([factory], factory)
        old = {"factory": now["factory"]}
        new = migrations.migrate({"network": old}, 3, Path("runs/a"))["network"]
        assert new.items() <= now.items()


def test_the_description_of_networks_is_read_by_key_and_by_attribute(tmp_path):
    """As callers of Google's do, whose description is a dictionary with attributes."""
    networks = functools.partial(
        make_ppo_networks,
        policy_hidden_layer_sizes=(4, 3),
        policy_network_kernel_init_fn=jax.nn.initializers.orthogonal,
        policy_network_kernel_init_kwargs={"scale": jnp.sqrt(4.0)},
    )
    config = network_config(2, 1, True, networks)
    assert config.action_size == config["action_size"] == 1
    assert config.observation_size == 2 and config.normalize_observations is True
    settings = config.network_factory_kwargs.to_dict()
    assert settings["policy_hidden_layer_sizes"] == (4, 3)
    assert settings["policy_network_kernel_init_kwargs"] == {"scale": 2.0}
    with pytest.raises(AttributeError, match=r"action_sizes: there is none\. Did you mean 'acti"):
        _ = config.action_sizes
    made = networks(2, 1, **settings)
    keys = jax.random.split(jax.random.key(0))
    weights = PPONetworkParams(made.policy_network.init(keys[0]), made.value_network.init(keys[1]))
    normalizer = running_statistics.init_state(jnp.zeros(2), std_eps=0.02)
    save(tmp_path, 1, (normalizer, *weights), config)
    assert load(tmp_path).normalizer.std_eps == 0.02
    action, _ = load_policy(tmp_path)(jnp.zeros(2), keys[0])
    assert action.shape == (1,)


def test_parameters_are_saved_beside_others(tmp_path):
    """As callbacks of users do, in each evaluation; all of them stay."""
    networks = functools.partial(make_ppo_networks, policy_hidden_layer_sizes=(4,))
    made = networks({"state": (2,), "pose": (3,)}, 1)
    keys = jax.random.split(jax.random.key(0))
    params = ((), made.policy_network.init(keys[0]), made.value_network.init(keys[1]))
    config = network_config({"state": (2,), "pose": (3,)}, 1, False, networks)
    for step in range(5):
        assert save(tmp_path, 10 * step, params, config) == tmp_path / f"{10 * step:012d}"
    assert checkpoint.available(tmp_path) == [0, 10, 20, 30, 40]
    loaded: Any = load(tmp_path / "000000000010")
    normalizer, policy, value = loaded
    assert normalizer == ()
    jax.tree.map(np.testing.assert_array_equal, (policy, value), params[1:])
    obs = {"state": np.ones(2, np.float32), "pose": np.zeros(3, np.float32)}
    got, _ = load_policy(tmp_path)(obs, jax.random.key(0))
    want, _ = make_inference_fn(made)(params, deterministic=True)(obs, jax.random.key(0))
    assert got == want


def test_parameters_of_images_only_are_saved_as_they_were_trained(tmp_path):
    """Images have no statistics, also where observations are normalized."""
    config = network_config({"pixels/view": (8, 8, 1)}, 1, True)
    params: Any = ((), {"params": {"a": np.ones(2)}}, {"params": {"b": np.ones(2)}})
    save(tmp_path, 0, params, config)
    assert load(tmp_path).normalizer == ()
    with pytest.raises(ConfigError, match=r"normalize_observations=True, but the .* no normalizer"):
        both = network_config({"pixels/view": (8, 8, 1), "state": (2,)}, 1, True)
        save(tmp_path, 1, params, both)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"config": {"agent": "sac"}}, "is not what the network_config of 'ppo' returns"),
        ({"config": {}}, "is not what the network_config of 'ppo' returns"),
        ({"params": {"policy": 1}}, r"params must be .*\(normalizer, policy, value\), not dict"),
        ({"params": ({"params": {}}, {"params": {}})}, "without the normalizer"),
        ({"config": network_config(2, 1, True)}, "normalize_observations=True, but .* no norm"),
    ],
)
def test_what_are_no_parameters_is_not_saved(change, message, tmp_path):
    params: Any = ((), {"params": {}}, {"params": {}})
    given: dict[str, Any] = {"params": params, "config": network_config(2, 1, False)}
    with pytest.raises(ConfigError, match=message):
        save(tmp_path, 0, **(given | change))
    assert not list(tmp_path.iterdir())


def test_a_policy_that_is_not_finite_is_not_handed_out(tmp_path):
    found = checkpoint.load(GOLDEN / "format-1")
    bad = dict(found.arrays)
    name = next(name for name in bad if name.startswith("params/policy"))
    bad[name] = np.full_like(bad[name], np.nan)
    tree: dict[str, Any] = {"params": {}}
    for path, value in bad.items():
        at: dict[str, Any] = tree
        *inner, last = path.split("/")
        for part in inner:
            at = at.setdefault(part, {})
        at[last] = value
    writer = Writer(tmp_path)
    record = {k: v for k, v in found.record.items() if k not in ("leaves", "steps")}
    writer.save(20, tree, record)
    writer.close()
    with pytest.raises(CheckpointError, match=r"\(step 20\) is not finite: use an earlier one"):
        load_policy(tmp_path)


def test_records_are_json(three):
    record = json.loads((three / f"{3:012d}" / "record.json").read_text())
    assert record["steps"] == 3
    assert ["params/kernel", "float32", [2, 3]] in record["leaves"]
