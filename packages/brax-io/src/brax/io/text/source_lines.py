"""Lines of the messages in a text, because protobuf gives a line only for what it cannot parse."""

import re
from collections import Counter

Place = tuple[str | int, ...]
"""Field names and indices that lead to a message, such as `("bodies", 2, "colliders", 0)`."""

_TOKEN = re.compile(r"#[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|[{}<>]")


def places(text: str) -> dict[Place, int]:
    """Return the line of every message in a text that protobuf accepts."""
    found: dict[Place, int] = {}
    name, line, end = "", 1, 0
    outside: list[tuple[Place, Counter[str]]] = [((), Counter())]
    for token in _TOKEN.finditer(text):
        line, end = line + text.count("\n", end, token.start()), token.start()
        first = token[0][0]
        if first in "{<":
            path, counts = outside[-1]
            inner = (*path, name, counts[name])
            counts[name] += 1
            found[inner] = line
            outside.append((inner, Counter()))
        elif first in "}>":
            name = str(outside.pop()[0][-2])  # the next item of a list has no name of its own
        elif first not in "#\"'":
            name = token[0]
    return found
