"""Plausible mistakes in calls of `brax.io` are one sentence of ours."""

# Every call has an argument of a wrong type.
# mypy: disable-error-code="arg-type,dict-item,misc"

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from brax import kinematics, mjx
from brax.base import State
from brax.errors import BraxError
from brax.io import export, html, image, json, live, mjcf, model, text, urdf

XML = """<mujoco><worldbody><body><joint name="j"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
</mujoco>"""
SYSTEM = mjcf.loads(XML)
MJ = mujoco.MjModel.from_xml_string(XML)
ZERO = jnp.zeros(1)
STATE = State(ZERO, ZERO, *kinematics.forward(SYSTEM, ZERO, ZERO))
Calls = dict[str, Callable[[], object]]
NOT_MODELS: dict[str, Any] = {
    "a path": "robot.xml",
    "a spec": mujoco.MjSpec(),
    "data": mujoco.MjData(MJ),
    "a system": SYSTEM,
    "None": None,
}
NOT_PATHS: dict[str, Any] = {
    "None": None,
    "a number": 5,
    "an array": np.ones(2),
    "a system": SYSTEM,
    "NUL": "a\0b",
}
NOT_SYSTEMS: dict[str, Any] = {
    "a state": STATE,
    "MuJoCo's model": MJ,
    "a path": "robot.xml",
    "None": None,
}
NOT_NUMBERS: dict[str, Any] = {
    "a word": "fast",
    "a list": [1],
    "an array": np.ones(2),
    "a dictionary": {},
}
SAID = {
    "load_model of a spec": r"mj must be a mujoco\.MjModel, got .*MjSpec: compile it first: spec",
    "load_model of a path": r"mj must be a mujoco\.MjModel, got str: read a file with load\(path\)",
    "report of a system": r"mj must be a mujoco\.MjModel, got brax.*System: a System has been",
    "mjcf.load of None": "path must be the path of a file, got None",
    "json.dumps of a state": r"sys must be a System, got brax\.base\.state\.State: give",
    "a page with dt of a word": "dt must be a number, got 'fast'",
    "mjcf.load of a text": r"path must be .*, got a text that begins with '<mujoco><.*; loads",
}


def mistakes(folder):
    """Return calls by their names."""
    return reading_mistakes(folder) | wrong_systems_and_numbers(folder) | other_mistakes()


def reading_mistakes(folder):
    """Return calls that read a model, or read or write a file."""
    out: Calls = {
        f"load_model of {k}": lambda v=v: mjcf.load_model(v) for k, v in NOT_MODELS.items()
    }
    out |= {
        f"validate_model of {k}": lambda v=v: mjcf.validate_model(v) for k, v in NOT_MODELS.items()
    }
    out |= {f"report of {k}": lambda v=v: mjcf.report(v) for k, v in NOT_MODELS.items()}
    for reader in (mjcf, urdf, text, json):
        name = reader.__name__.split(".")[-1]
        for k, v in NOT_PATHS.items():
            out[f"{name}.load of {k}"] = functools.partial(reader.load, v)
        out |= {
            f"{name}.load of a folder": lambda r=reader: r.load(folder),
            f"{name}.load of a missing file": lambda r=reader: r.load(folder / "none"),
            f"{name}.load of a text": lambda r=reader: r.load(XML),
            f"{name}.loads of a file": lambda r=reader: r.loads(folder / "robot.xml"),
            f"{name}.loads of None": lambda r=reader: r.loads(None),
            f"{name}.loads of a path": lambda r=reader: r.loads("robot.xml"),
        }
    for k, v in NOT_PATHS.items():
        out |= {
            f"json.save to {k}": lambda v=v: json.save(v, SYSTEM),
            f"save_params to {k}": lambda v=v: model.save_params(v, {"a": np.ones(1)}),
            f"load_params of {k}": lambda v=v: model.load_params(v),
            f"html.save to {k}": lambda v=v: html.save(v, SYSTEM, [STATE]),
            f"image.save to {k}": lambda v=v: image.save(v, SYSTEM, [STATE]),
            f"export.save to {k}": lambda v=v: export.save(v, lambda o, k: (o, {}), 3),
        }
    return out


def wrong_systems_and_numbers(folder):
    """Return calls with something else than a system or a number."""
    out: Calls = {}
    for k, v in NOT_SYSTEMS.items():
        out |= {
            f"json.dumps of {k}": lambda v=v: json.dumps(v),
            f"json.save of {k}": lambda v=v: json.save(folder / "a.json", v),
            f"a page of {k}": lambda v=v: html.render(v, [STATE]),
            f"contact forces of {k}": lambda v=v: html.contact_forces(v, [STATE]),
            f"a picture of {k}": lambda v=v: image.render_array(v, [STATE]),
            f"default_q of {k}": lambda v=v: text.default_q(v),
            f"mjx.init of {k}": lambda v=v: mjx.MJX.init(v, ZERO, ZERO),
            f"mjx.report of {k}": lambda v=v: mjx.MJX.report(v),
            f"a config of {k}": lambda v=v: text.build(v),
            f"a live page of {k}": lambda v=v: live.serve(v),
        }
    for k, v in NOT_NUMBERS.items():
        out |= {
            f"a page with dt of {k}": lambda v=v: html.render(SYSTEM, [STATE], dt=v),
            f"a film with dt of {k}": lambda v=v: image.render(SYSTEM, [STATE], dt=v, fmt="gif"),
            f"contact forces under {k}": lambda v=v: html.contact_forces(SYSTEM, [STATE], v),
            f"forces of {k}": lambda v=v: html.render(SYSTEM, [STATE], forces=v),
            f"max_elements of {k}": lambda v=v: mjcf.loads(XML, max_elements=v),
        }
    return out


def other_mistakes():
    """Return calls with other arguments of wrong types."""
    return {
        "states exchanged": lambda: html.render([STATE], SYSTEM),
        "series of a list": lambda: html.render(SYSTEM, [STATE], series=[1]),
        "a series of words": lambda: html.render(SYSTEM, [STATE], series={"a": "fast"}),
        "a comparison of a list": lambda: html.compare([html.Trajectory(SYSTEM, [STATE])]),
        "a comparison of states": lambda: html.compare({"a": [STATE]}),
        "a format of a list": lambda: image.render(SYSTEM, [STATE], fmt=["png"]),
        "a camera of an array": lambda: image.render_array(SYSTEM, [STATE], camera=np.ones(2)),
        "a backend of a list": lambda: mjcf.report(MJ, ["spring"]),
        "packages in a list": lambda: urdf.loads('<robot name="r"><link name="a"/></robot>', ["a"]),
        "angles of a word": lambda: text.default_q(SYSTEM, {"j": "far"}),
        "a policy of None": lambda: export.numpy_module(None, 3),
        "a size of a word": lambda: export.numpy_module(lambda o, k: (o, {}), "three"),
        "many systems in one": lambda: json.dumps(
            jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), SYSTEM)
        ),
    }


def test_each_is_one_sentence(tmp_path):
    (tmp_path / "robot.xml").write_text(XML)
    unclear = {}
    for name, call in mistakes(tmp_path).items():
        try:
            call()
        except BraxError as error:
            assert "\n" not in str(error), name
            continue
        except Exception as error:
            unclear[name] = repr(error)
        else:
            unclear[name] = "accepted"
    assert not unclear
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name, tmp_path):
    with pytest.raises(BraxError, match=SAID[name]):
        mistakes(tmp_path)[name]()


def test_a_system_is_not_written_within_a_compiled_function():
    with pytest.raises(BraxError, match="no numbers within a compiled function"):
        jax.jit(lambda sys: json.dumps(sys))(SYSTEM)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_other_formats_from_windows(encoding):
    config = 'dt: 0.1\r\nbodies { name: "a" mass: 1 inertia { x: 1 y: 1 z: 1 } }\r\n'
    assert text.loads(config.encode(encoding)).link_names == ("a",)
    told = json.dumps(SYSTEM).replace("\n", "\r\n")
    assert json.loads(told.encode(encoding)).link_names == SYSTEM.link_names
    assert json.loads("\ufeff" + told).link_names == SYSTEM.link_names
