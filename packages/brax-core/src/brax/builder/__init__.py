"""The one way to make a `System`: describe bodies, joints, geoms and actuators, then `build`.

Every model reader goes through it. It is where names of plugins become objects, where bodies
without joints become part of what carries them, and where a model is refused, with all of its
problems in one message.
"""

from brax.builder.elements import SOLIMP, SOLREF, WORLD
from brax.builder.model import ModelBuilder

__all__ = ["SOLIMP", "SOLREF", "WORLD", "ModelBuilder"]
