"""The pipeline `mjx`: MuJoCo's own engine in JAX, to compare with.

`pipeline` has `init` and `step`. `model` converts a `System` to MuJoCo's model and reports what MJX
lacks. Only the plugin registry imports this package. Start reading at `pipeline`.
"""

from brax.io.mjx.pipeline import MJX as MJX
from brax.io.mjx.pipeline import Mjx as Mjx
