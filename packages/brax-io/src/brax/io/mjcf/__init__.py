"""Model files in MuJoCo's format (MJCF), read through MuJoCo's own compiler.

This package turns a file into a `System` and reports for each element whether it is supported.
Users call `load`, `loads`, `load_mjmodel`, `load_model`, `validate_model` and `report`. The modules
import mujoco, brax-core and the private modules of `brax.io`; `brax.io.urdf` imports them. Start
reading at `reader`, then follow the data: `sources`, `compile`, `build`.
"""

from brax.io.mjcf.fuse import fuse_bodies as fuse_bodies
from brax.io.mjcf.reader import MAX_ELEMENTS as MAX_ELEMENTS
from brax.io.mjcf.reader import READER as READER
from brax.io.mjcf.reader import Finding as Finding
from brax.io.mjcf.reader import load as load
from brax.io.mjcf.reader import load_mjmodel as load_mjmodel
from brax.io.mjcf.reader import load_model as load_model
from brax.io.mjcf.reader import loads as loads
from brax.io.mjcf.reader import report as report
from brax.io.mjcf.reader import validate_model as validate_model
