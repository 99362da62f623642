"""Model files and a pipeline for models.md."""

from pathlib import Path

import jax.numpy as jnp
import mujoco

import brax.kinematics
from brax import plugins
from brax.io import mjcf

text = """<mujoco><worldbody>
<body name="hand" mocap="true" pos="0 0 2"><geom size=".1" contype="0" conaffinity="0"/></body>
<body name="arm"><joint name="hip_x" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/>
<body name="fingertip" pos=".5 0 0"><geom size=".05"/></body></body></worldbody>
<keyframe><key name="home" qpos=".3"/></keyframe></mujoco>"""
Path("ant.xml").write_text(text)
Path("models").mkdir()
mj_model = mujoco.MjModel.from_xml_string(text)
link = (
    '<link name="{}"><inertial><mass value="1"/>'
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
hip = '<joint name="hip" type="continuous"><parent link="trunk"/><child link="leg"/></joint>'
Path("go.urdf").write_text(
    f'<robot name="go">{link.format("trunk")}{link.format("leg")}{hip}</robot>'
)
page = (Path(brax.__file__).parents[4] / "docs/models.md").read_text("utf-8")
walker = page.split("```text\ndt:")[1].split("```")[0]
Path("walker.textproto").write_text(f"dt:{walker}")
sys = system = mjcf.loads(text)
pipeline = plugins.get("pipeline", "generalized")
q, qd, act, target = system.init_q, jnp.zeros(system.qd_size()), None, jnp.array([0.0, 0.0, 1.5])
state = pipeline.init(system, q, qd)
