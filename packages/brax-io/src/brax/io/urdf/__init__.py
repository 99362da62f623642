"""Robot files in URDF, read through MuJoCo's own reader.

What users call is `load`, `loads` and `report`. A robot's text is checked and its meshes are found
before MuJoCo sees it; the rest is done by `brax.io.mjcf`, which these modules import. Start reading
at `reader`.
"""

from brax.io.urdf.checks import JOINT_TYPES as JOINT_TYPES
from brax.io.urdf.reader import READER as READER
from brax.io.urdf.reader import load as load
from brax.io.urdf.reader import loads as loads
from brax.io.urdf.reader import report as report
