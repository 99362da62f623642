"""Robot files in URDF, read through MuJoCo's own reader.

Users call `load`, `loads` and `report`. The text is checked and its meshes are located before
MuJoCo sees it. `brax.io.mjcf`, which these modules import, does the rest. Start reading at
`reader`.
"""

from brax.io.urdf.checks import JOINT_TYPES as JOINT_TYPES
from brax.io.urdf.reader import READER as READER
from brax.io.urdf.reader import load as load
from brax.io.urdf.reader import loads as loads
from brax.io.urdf.reader import report as report
