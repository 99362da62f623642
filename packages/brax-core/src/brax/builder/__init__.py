"""From a description to a `System`: bodies, joints, geoms, actuators and so on, then `build`.

Every model reader goes through this package. Here names of plugins become objects, bodies without
joints are fused into the bodies that carry them, and a model is rejected with all of its problems
in one message. `description` and its bases record the elements, `checks` finds what is wrong with
them, and `assemble` makes the arrays by `arrays`. Users and model readers import `ModelBuilder`
from here. Start reading at `model`.
"""

from brax.builder.elements import SOLIMP, SOLREF, WORLD
from brax.builder.model import ModelBuilder

__all__ = ["SOLIMP", "SOLREF", "WORLD", "ModelBuilder"]
