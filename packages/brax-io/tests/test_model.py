"""Parameters on disk: what comes back, and what is refused."""

import io
import json
import pickle
import subprocess
import sys
import zipfile
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.base import Transform
from brax.errors import CheckpointError
from brax.io import model


class Pair(NamedTuple):
    """A class of a module that is not Brax's."""

    first: object
    second: object


def local():
    """Return a class that no module has."""

    class Local(NamedTuple):
        first: object
        second: object

    return Local


POSE: Any = (np.zeros(3), np.ones(4))
TREE: dict[str, Any] = {
    "kernel": np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
    "empty": np.zeros((0, 3)),
    "scalar": np.float32(0.1),
    "half": jnp.arange(3, dtype=jnp.bfloat16),
    "turned": np.arange(6.0).reshape(2, 3).T,
    "parts": (1, [2.5, None, "text"], ()),
    "frame": Transform(*POSE),
    "pair": Pair({"a/b": np.ones(1)}, {"a": {"b": np.zeros(1)}}),
    "a/b": np.full(1, 3.0),
    "a": {"b": np.full(1, 4.0)},
}


@pytest.fixture
def saved(tmp_path):
    model.save_params(tmp_path / "params", TREE)
    return tmp_path / "params"


def test_a_tree_comes_back_as_it_was(saved):
    read = model.load_params(saved)
    chex.assert_trees_all_equal_structs(read, TREE)
    for (place, wanted), got in zip(
        jax.tree_util.tree_leaves_with_path(TREE), jax.tree.leaves(read), strict=True
    ):
        assert np.asarray(got).dtype == np.asarray(wanted).dtype, place
        np.testing.assert_array_equal(got, wanted, err_msg=str(place))
    assert isinstance(read["frame"], Transform)
    assert isinstance(read["pair"], Pair)


@pytest.mark.parametrize("kind", [">f4", ">i8", ">c8", "<f4", "float8_e4m3fn", "bool"])
def test_numbers_come_back_whatever_their_byte_order(tmp_path, kind):
    wanted = np.array([0, 1, 2]).astype(jnp.dtype(kind))
    model.save_params(tmp_path / "params", wanted)
    got = model.load_params(tmp_path / "params")
    assert got.dtype.isnative
    np.testing.assert_array_equal(got.astype(complex), wanted.astype(complex))


def test_numpy_opens_the_file_too(saved):
    with np.load(saved, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["kernel"], TREE["kernel"])


def test_the_file_is_replaced_in_one_move(saved):
    with pytest.raises(CheckpointError, match="cannot save 'bad/x', a set"):
        model.save_params(saved, {"bad": {"x": {1, 2}}})
    assert "kernel" in model.load_params(saved)
    assert [p.name for p in saved.parent.iterdir()] == ["params"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({1: np.ones(1)}, "cannot save '', a dict"),
        ({"key": jax.random.key(0)}, "cannot save 'key', a random key"),
        ([local()(1, 2)], "cannot save '0', a Local: its class is not at the top of its module"),
        ([np.array([None])], "cannot save '0', an array of object: allowed are arrays of numbers"),
        ({"w": np.zeros(2, "f4,i2")}, "cannot save 'w', an array of .*'<f4'.*as a dictionary"),
        ({"w": [np.array(["text"])]}, "cannot save 'w/0', an array of <U4: .*text as a list"),
        ({"w": np.zeros(2, "S3")}, "cannot save 'w', an array of .S3"),
        ({"a\0b": np.ones(1)}, r"cannot save 'a\\x00b': take the NUL out of the name"),
    ],
)
def test_what_cannot_be_saved_is_named(tmp_path, value, said):
    with pytest.raises(CheckpointError, match=said):
        model.save_params(tmp_path / "params", value)


def test_a_pickle_is_refused_with_the_way_to_convert_it(tmp_path):
    (tmp_path / "old").write_bytes(pickle.dumps({"a": np.ones(2)}))
    with pytest.raises(CheckpointError, match=r"is a pickle.*save_params\(new_path, pickle.load"):
        model.load_params(tmp_path / "old")


def rewritten(path, change, **options):
    """Return the file with the contents of its members changed by a function of their names."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", **options) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def told(members, **changes):
    """Change the description of the array `kernel` in the file."""
    text = json.loads(members["params.json"])
    text["tree"]["dict"]["kernel"].update(changes)
    members["params.json"] = json.dumps(text).encode()


def retold(members, tree):
    """Replace the tree of the file by another."""
    members["params.json"] = json.dumps({"format": 1, "tree": tree}).encode()


def twice(members):
    """Names an array twice."""
    kernel = json.loads(members["params.json"])["tree"]["dict"]["kernel"]
    retold(members, {"list": [kernel, kernel]})


def swapped(members):
    """Write the numbers of an array in the other byte order."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, TREE["kernel"].astype(">f4"))
    members["kernel.npy"] = buffer.getvalue()


def unclosed(members):
    """Open a bracket in the header of an array and never close it."""
    members["kernel.npy"] = members["kernel.npy"].replace(b"(2, 3)", b"((2, 3")


def objects(members):
    """Replace an array by one of Python objects, which only pickle can store."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([1, None]), allow_pickle=True)
    members["kernel.npy"] = buffer.getvalue()
    told(members, dtype="object", shape=[2])


def unknown_type(members):
    """Names a module that does something when it is imported."""
    members["params.json"] = members["params.json"].replace(__name__.encode(), b"antigravity")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: told(m, shape=[10**12]), r"kernel is float32\(2, 3\), expected float32"),
        (
            lambda m: told(m, dtype="float64"),
            r"kernel is float32\(2, 3\), expected float64\(2, 3\)",
        ),
        (lambda m: told(m, dtype="nonsense"), "damaged"),
        (lambda m: told(m, array="../../kernel"), "array ../../kernel is not in it"),
        (twice, "array kernel is not in it, or is named twice"),
        (swapped, r"kernel is >f4\(2, 3\), expected float32\(2, 3\)"),
        (unclosed, "damaged"),
        (lambda m: retold(m, {"dict": [1, 2]}), "damaged"),
        (lambda m: retold(m, {"fields": [1]}), "damaged"),
        (lambda m: retold(m, {"class": 3, "fields": {}}), "damaged"),
        (lambda m: retold(m, {"class": f"{__name__}:Pair", "fields": [1]}), "damaged"),
        (objects, "damaged"),
        (lambda m: m.update({"kernel.npy": m["kernel.npy"][:-4]}), "damaged"),
        (lambda m: m.pop("params.json"), "damaged"),
        (unknown_type, "a Pair of antigravity, which is not imported: import antigravity first"),
        (
            lambda m: m.update({"params.json": m["params.json"].replace(b"base.", b"bise.")}),
            "No module named 'brax.bise'",
        ),
        (
            lambda m: m.update({"params.json": m["params.json"].replace(b'"rot"', b'"rat"')}),
            "was saved with pos, rat; it has pos, rot",
        ),
        (
            lambda m: m.update({"params.json": m["params.json"].replace(b": 1,", b": 99,", 1)}),
            "has format 99, this version reads up to 1",
        ),
    ],
)
def test_a_file_that_was_tampered_with_is_refused(saved, change, said):
    with pytest.raises(CheckpointError, match=said):
        model.load_params(rewritten(saved, change))
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(("offset", "value"), [(8, 1), (6, 99)])
def test_what_only_other_programs_write_is_refused(saved, offset, value):
    """The directory says that a member is encrypted, or needs version 9.9 of the format."""
    content = bytearray(saved.read_bytes())
    content[content.rindex(b"PK\1\2") + offset] = value
    saved.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        model.load_params(saved)


def test_a_compressed_file_is_refused(saved):
    rewritten(saved, lambda members: None, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(CheckpointError, match="compressed"):
        model.load_params(saved)


def test_every_truncation_and_a_missing_file_are_refused(saved):
    whole = saved.read_bytes()
    for size in range(0, len(whole), 97):
        saved.write_bytes(whole[:size])
        with pytest.raises(CheckpointError):
            model.load_params(saved)
    with pytest.raises(CheckpointError, match="No such file"):
        model.load_params(saved.with_name("other"))


@pytest.mark.slow
def test_parameters_of_training_come_back_as_training_wants_them(tmp_path):
    policies = pytest.importorskip("brax.training.policies")
    from brax.training.acme import running_statistics

    state = running_statistics.init_state({"state": jnp.zeros(3)})
    params = policies.ActorCriticParams(state, {"params": {"bias": jnp.ones(2)}}, ())
    model.save_params(tmp_path / "params", params)
    program = """
import sys
from brax.io import model
params = model.load_params(sys.argv[1])
print(type(params).__name__, type(params.normalizer.count).__name__, "mujoco" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "params"], capture_output=True, text=True
    )
    assert done.stdout.split() == ["ActorCriticParams", "Count", "False"], done.stderr
