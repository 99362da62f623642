"""Random damage to model files, by seed."""

import json
import random
import re
from xml.etree import ElementTree as ET

WORDS = ("nan", "inf", "-inf", "-1", "0", "1e999", "1e30", "1e-30", "text", "", "7")


def damaged_xml(text: str, seed: int) -> str:
    """Return a model after one to five random changes."""
    rng = random.Random(seed)
    root = ET.fromstring(text)
    for _ in range(rng.randint(1, 5)):
        parents = {child: parent for parent in root.iter() for child in parent}
        node = rng.choice([n for n in root.iter() if n is not root])
        rng.choice((change_number, change_number, drop_attribute, rename, copy, drop))(
            rng, node, parents[node]
        )
    return ET.tostring(root, encoding="unicode")


def change_number(rng, node, parent):
    if node.attrib:
        key = rng.choice(list(node.attrib))
        words = node.attrib[key].split() or [""]
        words[rng.randrange(len(words))] = rng.choice(WORDS)
        node.attrib[key] = " ".join(words)


def drop_attribute(rng, node, parent):
    if node.attrib:
        del node.attrib[rng.choice(list(node.attrib))]


def rename(rng, node, parent):
    if node.attrib:
        node.attrib[rng.choice(list(node.attrib))] = rng.choice(("hip", "ball", "trunk", "x"))


def copy(rng, node, parent):
    parent.append(node)


def drop(rng, node, parent):
    parent.remove(node)


def damaged_json(text: str, seed: int) -> str:
    """Return a text of JSON after one or two random changes."""
    rng = random.Random(seed)
    told = json.loads(text)
    for _ in range(rng.randint(1, 2)):
        parts = [part for part in inside(told) if part]
        part = rng.choice(parts)
        key = rng.choice(list(part) if isinstance(part, dict) else range(len(part)))
        action = rng.choice(("replace", "replace", "drop", "copy"))
        if action == "replace" and type(part[key]) in (int, float) and rng.random() < 0.8:
            part[key] = rng.choice((-1, 0, 1, 7, 0.5, -2.5, 1e30))
        elif action == "replace":
            part[key] = rng.choice((*WORDS, None, True, -1, 0, 7, 1e30, 0.5, [], {}, [1], "hinge"))
        elif action == "drop":
            del part[key]
        elif isinstance(part, list):
            part.append(part[key])
        else:
            part[f"{key}2"] = part[key]
    return json.dumps(told)


def inside(value):
    """All objects and lists in a value, itself included."""
    if isinstance(value, dict | list):
        yield value
        for part in value.values() if isinstance(value, dict) else value:
            yield from inside(part)


def damaged_fields(text: str, seed: int) -> str:
    """Return a text of protobuf's after one to five changes of its numbers, names and fields."""
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 5)):
        number, name = r"-?\d+\.?\d*", r'"\w*"'
        part = rng.choice((number, number, name, r"\w+: *\S+", r"\w+ *\{[^{}]*\}"))
        at = rng.choice(list(re.finditer(part, text)))
        new = {
            number: rng.choice((*WORDS[:7], "7", "100000")),
            name: rng.choice(re.findall(name, text)),
        }.get(part, rng.choice(("", "", f"{at[0]} {at[0]}")))
        text = text[: at.start()] + new + text[at.end() :]
    return text


def damaged_text(text: str, seed: int) -> bytes:
    """Return a text cut short, or with some of its bytes changed, doubled or taken out."""
    rng = random.Random(seed)
    content = bytearray(text.encode())
    if rng.random() < 0.2:
        return bytes(content[: rng.randrange(len(content))])
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(content))
        how = rng.randrange(3)
        content[at : at + (how > 0)] = [bytes([rng.randrange(256)]), content[at : at + 1] * 2, b""][
            how
        ]
    return bytes(content)
