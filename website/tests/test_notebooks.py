"""The notebooks run from a clean kernel, and the site shows outputs of what is in their texts."""

import re

import nbformat
import notebooks
import pytest

CLAIMS = {
    "first-hour": """
        assert drift < 1e-3  # RK4 keeps the energy
        assert float(jnp.ptp(many.q[:, 400, 1])) < 0.1 < 3 < float(jnp.ptp(many.q[:, -1, 1]))
        assert many.q.shape == (1000, 1000, 2) and standing.obs.shape == (256, 27)
    """,
    "gradients-through-contact": """
        v, h = float(jnp.hypot(first[1], (2 * 9.81 * 0.9) ** 0.5)), 0.6  # of the impact; duration
        t = (v + float(first[1])) / 9.81
        # By hand: z = 0.9 v (h - t) - g (h - t)^2 / 2, dv = first / v, dt = t / v.
        by_hand = 0.9 * float(first[1]) / v * (h - t) - (0.9 * v - 9.81 * (h - t)) * t / v
        assert abs(float(slopes[1, 1]) - by_hand) < 0.01 and float(plain[1, 1]) > 0
        assert miss < 1e-3
        assert abs(friction - 0.35) < 0.01
    """,
    "train-the-ant": """
        assert late > 2 and late > early
        assert len(last) == 3 and max(last) > min(last) and max(last) > 1500
    """,
    "your-own-environment": """
        returns = [float(found["eval/episode_reward"]) for _, found in reports]
        assert returns[0] < 0 and 60 < returns[-1] < 100
        assert efforts[1] < efforts[0] / 2
        assert float(jnp.abs(fast.q[-1, 0] - 1)) < 0.1
        assert state.obs.shape == (16, 2)
    """,
    "your-own-robot": """
        assert statuses.count("refused") == 8 and statuses.count("ignored") == 1
        assert remarks["generalized"] == []
        assert [remark.status for remark in remarks["spring"]] == ["approximated"] * 2
        assert distance[number] > 3 and float(upright[number].min()) > 0.95
        assert float(height.min()) > 0.25 and not fell[number:13].any()  # 2 to 3.5 Hz
    """,
    "your-own-plugin": """
        assert abs(landed - (2 * 0.67 / 1.962) ** 0.5) < 0.01
        assert abs(float(height[-1]) - 0.03) < 1e-3
        assert abs(float(heights[-1]) - 0.4) < 0.05
        assert (Path("installed") / "brax_nut").is_dir()
    """,
    "transfer-to-mujoco": """
        up = {name: found >= 10 for name, found in times.items()}
        assert up["one system"][3].all() and up["many systems"][3].all()  # the pole of the file
        assert up["many systems"].sum() > up["one system"].sum() + 10
    """,
    "one-program-many-devices": """
        assert split_keys.addressable_shards[7].data.shape == (32,)
        assert "num_partitions=8" in program.as_text() and exchanges(program) == []
        assert len(many.obs.sharding.device_set) == 8 and len(one.obs.sharding.device_set) == 1
        assert len(pairs) == 20 and different == []
        assert exchanges(mean.lower(many).compile()) == ["all-reduce"]
        assert abs(means[0] - means[1]) < 1e-6
        assert "Use 96 or 104" in messages[0] and "Use 1 to 8" in messages[1]
    """,
}
"""The claims of each text about its results, which run as the last cell."""

LONG = {"train-the-ant", "transfer-to-mujoco"}
"""Notebooks that take more than a minute."""


def marked(name):
    marks = [pytest.mark.slow, *([pytest.mark.long] if name in LONG else [])]
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [marked(name) for name in notebooks.names()])
def test_a_notebook_runs_from_a_clean_kernel(name, tmp_path):
    notebook = notebooks.source(name)
    claims = re.sub(r"^ +", "", CLAIMS[name], flags=re.M)
    notebook.cells.append(nbformat.v4.new_code_cell(claims))
    notebooks.execute(notebook, tmp_path)


@pytest.mark.parametrize("name", notebooks.names())
def test_the_stored_outputs_are_of_the_text(name):
    """After a change of the text, `hatch run docs:notebooks NAME` makes them again."""
    text, stored = notebooks.source(name), notebooks.stored(name)
    assert [c.source for c in stored.cells] == [c.source for c in text.cells]
    assert [c.metadata for c in stored.cells] == [c.metadata for c in text.cells]
    counts = [c.execution_count for c in stored.cells if c.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert notebooks.FOLDER.joinpath(f"{name}.ipynb").stat().st_size < 600_000


def test_a_picture_without_an_alternative_text_is_refused():
    output = {"data": {"image/png": ""}}
    with pytest.raises(ValueError, match="alt="):
        notebooks.shown(output, "", "page-1")


def test_the_viewers_play(show):
    page = show("notebooks/first-hour-1.html")
    page.get_by_role("button", name="Play").wait_for()
    assert page.problems == []
