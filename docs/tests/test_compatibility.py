"""compatibility.md has all the files, and for a few of them what the code finds is what it says."""

import importlib.util
import re
from pathlib import Path

import census
import compatibility
import pytest

DOCS = Path(__file__).parents[1]
PAGE = (DOCS / "compatibility.md").read_text("utf-8")
FEW = (
    "gymnasium/envs/mujoco/assets/inverted_pendulum.xml",
    "dm_control/suite/pendulum.xml",
    "dm_control/suite/ball_in_cup.xml",
    "dm_control/mujoco/testing/assets/cartpole.xml",
)


@pytest.fixture(scope="module")
def script():
    for package in ("gymnasium", "dm_control"):
        pytest.importorskip(package)
    spec = importlib.util.spec_from_file_location("compatibility", DOCS / "compatibility.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if module.page([]).split("Every file")[0] != PAGE.split("Every file")[0]:
        pytest.skip("the page is of other versions of the packages")
    return module


@pytest.mark.slow
def test_the_page_has_every_file_in_which_something_moves(script):
    told = re.findall(r"^\| ((?:gymnasium|dm_control)/\S+\.xml) ", PAGE, re.M)
    assert told == [name for name, path in script.files() if script.moves(path)]


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_the_page_says_what_becomes_of_a_file(script, name):
    (path,) = [path for each, path in script.files() if each == name]
    assert script.table([script.judge(name, path)]) in PAGE


PENDULUM = """<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/>
</body></worldbody>{}</mujoco>"""
USER = '<actuator><general joint="j" dyntype="user"/></actuator>'
FOLDER = {
    "agrees.xml": PENDULUM.format(""),
    "refused.xml": PENDULUM.format(USER),
    "part.xml": "<mujocoinclude/>",
    "fixed.xml": "<mujoco/>",
}


@pytest.mark.slow
def test_a_folder_is_tried_file_by_file_and_only_once(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    models = tmp_path / "robots"
    models.mkdir()
    for name, text in FOLDER.items():
        (models / name).write_text(text)
    monkeypatch.setattr("sys.argv", ["compatibility", "--models", "robots", "--largest", "0"])
    script.main()
    assert "| agrees.xml | loads | 1 degree of freedom |" in census.plain(capsys.readouterr().out)
    monkeypatch.setattr("sys.argv", ["compatibility", "--models", "robots"])
    script.main()
    first = capsys.readouterr().out
    told = [
        line.split(" | ")[:2]
        for line in first.splitlines()
        if line.startswith("| ") and ".xml" in line
    ]
    assert told == [["| agrees.xml", "agrees"], ["| refused.xml", "refused"]]
    for name in FOLDER:
        (models / name).write_text("<mujoco/>")
    script.main()
    assert capsys.readouterr().out == first


def test_cells_are_short_and_long_reasons_are_below_the_table():
    rows = [
        census.Row("a.xml", "loads", census.degrees(1)),
        census.Row("b.xml", "refused", "<joint>: " + "no " * 20),
    ]
    table = census.section("Robots", rows)
    assert "| a.xml | loads | 1 degree of freedom |" in census.plain(table)
    assert "| b.xml | refused | see below |" in census.plain(table)
    assert "1 degree of" not in table  # the spaces are no-break ones
    assert table.endswith("\n\n- `b.xml`: &lt;joint>: " + "no " * 20 + "\n")
    reasons = re.findall(r"^\| \S+\.(?:xml|urdf) \| \w+ \| ([^|]*) \|", PAGE, re.M)
    assert len(reasons) > 500
    assert max(map(len, reasons)) <= census.MAX_CELL
    assert not [reason for reason in reasons if " " in reason.replace("; ", "")]
    assert " 1 degrees" not in census.plain(PAGE)


def test_the_head_of_the_page_is_that_of_the_script():
    head = re.split(r"\{\w+\}", compatibility.HEAD.strip())
    assert re.fullmatch(".+".join(map(re.escape, head)), PAGE.partition("\n\n## ")[0])


def test_nothing_fails():
    """Every file runs as MuJoCo or is rejected; a model that runs wrong is a fault."""
    assert re.findall(r"^\d+ run, \d+ load and .*, 0 fail", PAGE, re.M)
    assert "| fails |" not in PAGE
