"""Elements of a model's text, and the text that MuJoCo is given for them."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

# A line break within a value would shift the lines by which elements are found again.
_ESCAPED = {c: f"&#{ord(c)};" for c in '&<>"\n\r\t'}


@dataclasses.dataclass
class Node:
    """One XML element."""

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    section: str = ""
    """The child of `<mujoco>` that contains it."""
    children: list["Node"] = dataclasses.field(default_factory=list)
    folder: Path | None = None
    """Directory of the included file that contains it; None in the model's own file."""
    given: dict[str, str] = dataclasses.field(default_factory=dict)
    """Attributes that replace the file's for MuJoCo, such as the path of a file that was found."""
    pixels: int = 0
    """Number of pixels of the pictures in its files."""

    @property
    def place(self) -> str:
        """File and line, for messages."""
        return f"{self.file}:{self.line}"

    @property
    def kind(self) -> str:
        """The kind of element that it defines."""
        if self.section in ("actuator", "equality", "tendon", "sensor"):
            return self.section
        return "joint" if self.tag == "freejoint" else self.tag

    def __str__(self) -> str:
        """Return its name for messages."""
        name = self.attributes.get("name")
        return f"<{self.tag} name='{name}'>" if name else f"<{self.tag}>"


def walk(root: Node) -> Iterator[Node]:
    """Yield all elements below `root`, in the order of the text."""
    stack = root.children[::-1]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children[::-1])


def write(root: Node) -> tuple[str, list[Node]]:
    """Return elements as XML for MuJoCo.

    MuJoCo's reader gets only what was checked, never the original text: the two readers could
    disagree about that.

    Returns:
        The text, in which each element has its own line, and the element of each line. MuJoCo's
        messages name lines, so this is how they are traced back to the file.
    """
    lines: list[str] = []
    nodes: list[Node] = []
    stack: list[Node | str] = [root]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            lines[-1] += item
            continue
        values = item.attributes | item.given
        words = "".join(f' {key}="{_escape(value)}"' for key, value in values.items())
        lines.append(f"<{item.tag}{words}>")
        nodes.append(item)
        stack += [f"</{item.tag}>", *item.children[::-1]]
    return "\n".join(lines), nodes


def _escape(value: str) -> str:
    return re.sub('[&<>"\n\r\t]', lambda found: _ESCAPED[found[0]], value)
