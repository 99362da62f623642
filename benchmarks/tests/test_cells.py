"""Cells cover what the benchmark promises, and give both sides the same task."""

import pytest
from cells import MUJOCO, NEWEST, OURS, PEER, SIZES, cells
from measure import _check_speed
from sides import BenchError


def names(size):
    return {cell.name: cell for cell in cells(SIZES[size], "folder", threads=2)}


@pytest.mark.parametrize("pipeline", ["spring", "positional", "generalized"])
def test_every_bar_is_measured_at_its_batch(pipeline):
    found = names("normal")
    for model in ("ant", "humanoid", "halfcheetah"):
        cell = found[f"peer/{model}/{pipeline}/random"]
        assert cell.batch == 2048
        assert cell.sides[OURS].settings == cell.sides[PEER].settings
    assert f"mujoco/ant/{pipeline}/random" in found
    assert found[f"memory/{pipeline}"].batch == 65536
    gradient = found[f"gradient/{pipeline}"]
    assert (gradient.batch, gradient.arguments["length"]) == (64, 1000)


def test_models_with_more_contacts_are_measured_beside_mujoco():
    found = [name for name in names("normal") if name.startswith("features/")]
    assert [name.split()[0] for name in found] == [
        "features/humanoid,",
        "features/ant",
        "features/gripper",
    ]
    cell = names("normal")[found[0]]
    assert cell.batch == 2048
    assert cell.sides[OURS].settings["model"] == cell.sides[MUJOCO].settings["model"]


def test_models_as_people_have_them_are_measured_beside_mujoco_at_the_best_batch_of_each():
    found = {n: cell for n, cell in names("normal").items() if n.startswith("models/")}
    assert {"models/dog", "models/chain of 100", "models/Unitree Go2"} < found.keys()
    for cell in found.values():
        ours, theirs = cell.sides[OURS], cell.sides[MUJOCO]
        assert ours.settings == theirs.settings
        assert ours.settings["batches"] == (64, 256, 1024, 4096)


def test_the_full_size_has_the_curves():
    found = names("full")
    for curve, ends in (("batch", (1, 65536)), ("links", (2, 100)), ("contacts", (0, 64))):
        assert all(f"{curve}/spring/{n}" in found for n in ends)
    assert "peer/ant/spring/trained" in found
    assert "precision/generalized/float64" in found


def test_an_environment_step_lasts_equally_long_in_every_pipeline():
    for model, dt in (("ant", 0.05), ("humanoid", 0.015), ("halfcheetah", 0.05)):
        for name, cell in names("normal").items():
            if name.startswith(f"peer/{model}"):
                about = cell.model
                assert about["timestep"] * about["n_frames"] == pytest.approx(dt)


def test_without_a_folder_there_is_no_model_of_google():
    found = {cell.name: cell for cell in cells(SIZES["normal"], None, threads=2)}
    assert found["peer/humanoid/spring/random"].model["path"] is None
    assert found["mujoco/ant/spring/random"].model["path"]


@pytest.mark.parametrize(
    "name",
    [
        "inverted_pendulum/generalized/small",
        "inverted_pendulum/generalized/default",
        "ant/spring/small",
        "ant/spring/default",
        "humanoid/generalized/small",
    ],
)
def test_training_is_measured_with_the_same_settings(name):
    cell = names("normal")[f"training/{name}"]
    assert cell.sides[OURS].settings == cell.sides[PEER].settings
    recipe = cell.arguments["settings"]
    step = recipe["unroll_length"] * recipe["batch_size"] * recipe["num_minibatches"]
    assert recipe["num_timesteps"] == cell.arguments["epochs"] * 4 * step  # epochs of equal length


def test_the_ants_time_is_taken_by_the_recipe_of_each():
    cell = names("normal")["reach/ant/spring"]
    ours, theirs = (cell.sides[side].settings["recipe"] for side in (OURS, PEER))
    assert cell.arguments == {"goal": 776}
    assert (theirs["num_envs"], theirs["batch_size"], theirs["num_timesteps"]) == (
        4096,
        2048,
        4_259_840,
    )
    assert ours["network_factory"]["policy_hidden_layer_sizes"] == [32, 32]


@pytest.mark.parametrize("pipeline", ["spring", "positional", "generalized"])
def test_the_newest_versions_are_measured_beside_the_present_ones(pipeline):
    for model in ("ant", "humanoid", "halfcheetah"):
        cell = names("normal")[f"versions/{model}/{pipeline}"]
        ours, newest = cell.sides[OURS], cell.sides[NEWEST]
        assert ours.settings == newest.settings
        assert newest.python == NEWEST


@pytest.mark.parametrize(("seconds", "fails"), [(1.0, False), (1.1, False), (1.2, True)])
def test_a_newest_version_that_is_slower_by_more_than_a_tenth_has_failed(seconds, fails):
    cell = names("normal")["versions/ant/spring"]
    compile = [{"trace": 1.0, "compile": 1.0}]
    run = {OURS: 1.0, NEWEST: seconds}
    found = {
        "batch": 100,
        "length": 10,
        "sides": {
            name: {"compile": compile, "run": [{"seconds": s, "cores": s}] * 3}
            for name, s in run.items()
        },
    }
    if fails:
        with pytest.raises(BenchError, match=r"0\.83 of ours, less than 0\.9"):
            _check_speed(cell, found)
    else:
        _check_speed(cell, found)
