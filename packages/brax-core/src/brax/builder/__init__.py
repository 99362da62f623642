"""The one way to make a `System`: describe bodies, joints, geoms and actuators, then `build`.

Every model reader goes through it. It is where names of plugins become objects, where bodies
without joints become part of what carries them, and where a model is refused, with all of its
problems in one message. `description` and its bases record the elements, `checks` finds what is
wrong with them, and `assemble` makes the arrays by `arrays`. Users and model readers import
`ModelBuilder` from here. Start reading at `model`.
"""

from brax.builder.elements import SOLIMP, SOLREF, WORLD
from brax.builder.model import ModelBuilder

__all__ = ["SOLIMP", "SOLREF", "WORLD", "ModelBuilder"]
