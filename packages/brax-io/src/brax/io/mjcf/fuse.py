"""`fuse_bodies`: the text of a model file whose bodies without joints MuJoCo fuses."""

from xml.etree import ElementTree


def fuse_bodies(xml: str) -> str:
    """Return the text of a model file with MuJoCo's option `fusestatic`.

    MuJoCo then fuses bodies without joints into their parents, except those that other elements
    name. `load` and `loads` of this package always fuse, and need no such option.

    Args:
        xml: the text of an MJCF file.
    """
    root = ElementTree.fromstring(xml)
    ElementTree.SubElement(root, "compiler", fusestatic="true")
    return ElementTree.tostring(root, encoding="unicode")
