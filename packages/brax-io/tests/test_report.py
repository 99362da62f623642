"""Treatment of a model by each pipeline: the report, the command, and the page that lists it."""

import re
from pathlib import Path

import mujoco
import pytest

from brax import cli, contracts, plugins
from brax.builder import ModelBuilder
from brax.errors import UnknownNameError
from brax.io import json, mjcf
from brax.pipeline import Pipeline

MODEL = """<mujoco>
<option><flag energy="enable"/></option>
<custom><numeric name="vel_damping" data="-0.1"/></custom>
<worldbody>
  <light/>
  <geom name="floor" type="plane" size="1 1 1"/>
  <body name="ball" pos="0 0 1"><freejoint/><geom name="skin" size=".1"/></body>
  <body name="arm" pos="1 0 1">
    <joint name="socket" type="ball" range="0 60"/><geom size=".1"/></body>
</worldbody>
</mujoco>"""
ENGINES = [n for n in plugins.names("pipeline") if isinstance(plugins.get("pipeline", n), Pipeline)]


def findings(backend):
    rows = mjcf.report(mujoco.MjModel.from_xml_string(MODEL), backend)
    return {name: (status, reason) for element, name, status, reason in rows if element == "model"}


def test_each_pipeline_says_what_it_makes_of_a_model():
    spring, generalized = findings("spring"), findings("generalized")
    assert spring[contracts.SOFTNESS] == ("approximated", "they are hard")
    assert spring[contracts.DAMPING] == ("supported", "")
    assert generalized[contracts.SOFTNESS] == ("supported", "")
    assert generalized[contracts.DAMPING][0] == "approximated"
    assert contracts.ELASTICITY not in spring
    assert findings(None) == {}
    with pytest.raises(UnknownNameError, match="Did you mean 'spring'"):
        findings("sprig")


@pytest.mark.parametrize(
    ("given", "feature", "effective"),
    [
        (
            '<custom><numeric name="sweeps" data="9"/></custom>',
            contracts.SWEEPS,
            "spring positional",
        ),
        (
            '<custom><numeric name="baumgarte_erp" data=".2"/></custom>',
            contracts.BAUMGARTE,
            "spring",
        ),
        ('<option><flag eulerdamp="disable"/></option>', contracts.EXPLICIT_DAMPING, "generalized"),
        ('<option impratio="9"/>', contracts.IMPEDANCE_RATIO, "generalized"),
    ],
)
def test_an_option_without_effect_is_reported(given, feature, effective):
    model = mujoco.MjModel.from_xml_string(MODEL.replace("<worldbody>", f"{given}<worldbody>"))
    status = {e: {row[1]: row[2] for row in mjcf.report(model, e)}.get(feature) for e in ENGINES}
    without = dict.fromkeys(ENGINES, "approximated")
    assert status == without | dict.fromkeys(effective.split(), "supported")
    assert not [
        row
        for row in mjcf.report(mujoco.MjModel.from_xml_string(MODEL), "spring")
        if row[1] == feature
    ]


def test_an_integrator_that_a_pipeline_cannot_run_is_refused():
    system = mjcf.loads(MODEL).replace(integrator=plugins.get("integrator", "rk4"))
    rows = plugins.get("pipeline", "spring").report(system)
    assert ("the integrator 'rk4'", "refused") in [row[:2] for row in rows]
    rows = plugins.get("pipeline", "generalized").report(system)
    assert "the integrator 'rk4'" not in [row[0] for row in rows]


def test_the_command(tmp_path, capsys):
    (tmp_path / "a.xml").write_text(MODEL)
    assert cli.main(["report", str(tmp_path / "a.xml"), "--pipeline", "spring"]) == 0
    out = capsys.readouterr().out
    assert re.match(r"\d+ supported\n", out)
    assert "ignored      light light_0: the viewer has its own\n" in out
    assert f"approximated model {contracts.SOFTNESS}: they are hard\n" in out
    glue = '<actuator><adhesion body="ball" ctrlrange="0 1"/></actuator></mujoco>'
    (tmp_path / "a.xml").write_text(MODEL.replace("</mujoco>", glue))
    assert cli.main(["report", str(tmp_path / "a.xml"), "--pipeline", "generalized"]) == 0
    assert cli.main(["report", str(tmp_path / "a.xml"), "--pipeline", "positional"]) == 1
    assert f"refused      model {contracts.ADHESION}" in capsys.readouterr().out


def test_the_command_has_one_line_for_what_is_ignored_for_one_reason(tmp_path, capsys):
    links = [
        f'<link name="{name}"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        '<visual><geometry><sphere radius="1"/></geometry></visual></link>'
        for name in ("base", "arm", "hand")
    ]
    joints = [
        f'<joint name="{child}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
        '<axis xyz="1 0 0"/></joint>'
        for parent, child in (("base", "arm"), ("arm", "hand"))
    ]
    text = "\n".join(['<robot name="a">', *links, *joints, "</robot>"])
    (tmp_path / "a.urdf").write_text(text)
    assert cli.main(["report", str(tmp_path / "a.urdf"), "--pipeline", "generalized"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1:] == ["ignored      visual: only for display (a.urdf:2), and 2 more"]


def test_the_command_reads_other_formats(tmp_path, capsys):
    made = ModelBuilder()
    made.add_body("bob", mass=1.0, inertia=(1, 1, 1))
    made.add_joint("bob", "hinge", range=(-1, 1))
    json.save(tmp_path / "a.json", made.build())
    assert cli.main(["report", str(tmp_path / "a.json"), "--pipeline", "spring"]) == 0
    assert "approximated model soft contacts" in capsys.readouterr().out


def test_the_page_lists_what_each_pipeline_makes_of_each_feature():
    page = Path(__file__).parents[3] / "docs" / "models.md"
    if not page.exists():
        pytest.skip("docs/ is not here")

    def cell(engine, feature):
        if feature in engine.lacks:
            return "refused"
        done = engine.approximates.get(feature)
        return f"approximated: {done}" if done else "supported"

    engines = [plugins.get("pipeline", name) for name in ("spring", "positional", "generalized")]
    assert {engine.name for engine in engines} == set(ENGINES)
    text = page.read_text("utf-8")
    for feature in contracts.FEATURES:
        row = " | ".join([feature, *(cell(engine, feature) for engine in engines)])
        assert f"| {row} |" in text
