"""The pipeline `mjx`: MuJoCo's own engine in JAX.

`pipeline` has `init` and `step`, and `base` the state, which carries MJX's data. `model` finds
MJX's model of a `System`: MuJoCo's own of the file that the system came from, with the numbers of
the system. Systems that did not come from a file are converted by `conversion`. Start reading at
`pipeline`, then `model`.
"""

from brax.io.mjcf.file_model import FileModel as FileModel
from brax.mjx.base import State as State
from brax.mjx.conversion import mujoco_model as mujoco_model
from brax.mjx.pipeline import MJX as MJX
