"""`fuse_bodies`: the text of a model file whose bodies without joints MuJoCo fuses."""

from brax.io import _xml
from brax.io._nodes import Node, write
from brax.io.mjcf.sources import document


def fuse_bodies(xml: str) -> str:
    """Return the text of a model file with MuJoCo's option `fusestatic`.

    MuJoCo then fuses bodies without joints into their parents, except those that other elements
    name. `load` and `loads` of this package always fuse, and need no such option.

    Args:
        xml: the text of an MJCF file.

    Raises:
        ModelError: if it is not such a text.
    """
    name = "model.xml"
    root = document(_xml.decode(xml, name), name, "mujoco")
    root.children.append(Node("compiler", {"fusestatic": "true"}, name, 0))
    return write(root)[0]
