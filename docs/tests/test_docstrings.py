"""The docstrings of public names state shapes and units of arrays, and the errors that are raised.

The rules are about what a program can read: annotations, sections of docstrings and `raise`. An
array is an annotation with one of `ARRAYS`.
"""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import public_api

ARRAYS = re.compile(
    r"\b(?:Array|ndarray|ArrayLike|Action|Vec3|Quat|Mat3|Sym3|Transform|Motion|Force|Inertia)\b"
)
KEYS = ("rng", "key", "seed")
"""Parameters that hold a random key, whose shape is JAX's business."""

SHAPE = re.compile(
    r"\bshape \(|\bshaped\b|\bshape (?:of|as|that|is)\b|\b(?:any|same|one|leading) shapes?\b"
    r"|\bscalars?\b(?! product)"
    # The lengths of axes, and not the parts of a quaternion (w, x, y, z).
    r"|\((?!w, x)(?:\.\.\.|\*?[a-z_ ]+|\d+),[^()=]*\)"
)
"""Statement of a shape: the word, "scalar", or a shape as Python writes it."""
FOR_ALL = re.compile(
    r"\b(?:all|every|each)(?: \w+){0,2} (?:arrays?|components?|leaf|leaves)\b[^.]*?\bshape", re.I
)
"""Statement of a class or module about the shape of all that is in it."""

QUANTITY = re.compile(
    r"\b(?:mass(?:es)?|forces?|torques?|impulses?|velocit(?:y|ies)|speeds?|accelerations?"
    r"|angles?|coordinates|positions?|translation|distances?|lengths?|depths?|margin|gap"
    r"|stiffness|damping|armature|inertias?|moments|moment(?:um|a)|gravity|density|viscosity"
    r"|energy|power|times?|duration)$",
    re.I,
)
"""Physical quantities that have a unit, at the end of what a docstring says first."""
HEAD_ENDS = re.compile(
    r"[,:;.\[(]|\b(?:of|in|on|about|at|by|with|from|to|that|which|when|where|along|between|under"
    r"|for|minus)\b"
)
"""End of the first phrase of a docstring, whose last word says what quantity it is."""
UNIT = re.compile(r"\[[^\]]+\]|\bdivided by\b|\bno unit\b")
"""Unit in brackets, or a statement that there is none."""


class Documented(NamedTuple):
    """A public function, method or attribute."""

    name: str
    node: ast.FunctionDef | ast.AnnAssign
    text: str
    """Its docstring."""
    around: str
    """The docstrings of its class and module."""
    module: str
    """The module that defines it."""


def documented() -> Iterator[Documented]:
    """Yield the public functions, methods and attributes, each where it is defined."""
    for module in public_api.public_modules():
        for name in public_api.public_names(module):
            home, node = public_api.found(module, name)
            around = docstring(ast.parse(public_api.sources()[module].read_text("utf-8")))
            if isinstance(node, ast.FunctionDef):
                yield Documented(f"{module}.{name}", node, docstring(node), around, home)
            elif isinstance(node, ast.ClassDef):
                yield from members(f"{module}.{name}", node, around, home)


def members(owner: str, node: ast.ClassDef, around: str, home: str) -> Iterator[Documented]:
    """Yield the public methods and attributes of a class, and those of its bases within."""
    around = f"{docstring(node)}\n\n{around}"
    parts = [*public_api.body(node, home)]
    for (part, module), (following, _) in zip(parts, [*parts[1:], (None, "")], strict=True):
        if isinstance(part, ast.FunctionDef):
            name, text = part.name, docstring(part)
            if name == "__init__":
                text += f"\n{docstring(node)}"
            if "overload" in map(ast.unparse, part.decorator_list):
                continue
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            name, text = part.target.id, attribute(following)
        else:
            continue
        if not name.startswith("_") or name in ("__init__", "__call__"):
            yield Documented(f"{owner}.{name}", part, text, around, module)


def attribute(following: ast.stmt | None) -> str:
    """Return the docstring of an attribute, which is the statement after it."""
    match following:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
    return ""


def docstring(node: ast.AST) -> str:
    assert isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    return ast.get_docstring(node) or ""


def sections(text: str) -> dict[str, str]:
    """Return the sections of a docstring by title; that of the beginning is empty."""
    first, *rest = re.split(r"^(\w+):\n", text, flags=re.M)
    return {"": first} | dict(zip(rest[::2], rest[1::2], strict=True))


def entries(section: str) -> dict[str, str]:
    """Return the text on each parameter of a section `Args`."""
    found: dict[str, str] = {}
    for entry in re.split(r"^ {4}(?=[*\w])", section, flags=re.M)[1:]:
        names, _, text = entry.partition(":")
        found |= {name.strip("* "): text for name in names.split(",")}
    return found


def is_array(name: str, node: ast.arg | ast.AnnAssign) -> bool:
    """Return whether a parameter or an attribute is an array with a shape to state."""
    annotation = ast.unparse(node.annotation) if node.annotation else ""
    return bool(ARRAYS.search(annotation)) and name.rpartition(".")[2] not in KEYS


def is_number(node: ast.arg) -> bool:
    """Return whether a parameter is an array, a vector or a number, which may have a unit."""
    numbers = node.annotation and re.search(r"\b(?:float|Vector)\b", ast.unparse(node.annotation))
    return bool(numbers) or is_array(node.arg, node)


def parameters(function: ast.FunctionDef) -> list[ast.arg]:
    args = function.args
    found = [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]
    return [p for p in found if p]


def states(pattern: re.Pattern[str], text: str) -> bool:
    """Return whether a text states a shape, outside of code."""
    return bool(pattern.search(" ".join(re.sub("`[^`]*`", "_", text).split())))


def shapeless(of: Documented) -> list[str]:
    """Return the arrays of a public name whose shape nothing states."""
    if states(FOR_ALL, f"{of.text}\n{of.around}"):
        return []
    if isinstance(of.node, ast.AnnAssign):
        return [of.name] if is_array(of.name, of.node) and not states(SHAPE, of.text) else []
    parts = sections(of.text)
    described = entries(parts.get("Args", ""))
    arrays = [p.arg for p in parameters(of.node) if is_array(p.arg, p)]
    rest = "" if described else of.text  # without a section, the text may state it anywhere
    missing = [p for p in arrays if not states(SHAPE, described.get(p, rest))]
    result = ast.unparse(of.node.returns) if of.node.returns else ""
    if ARRAYS.search(result) and not states(SHAPE, parts[""] + parts.get("Returns", "")):
        missing.append("return")
    return [f"{of.name}: {part}" for part in missing]


def without_unit(of: Documented) -> list[str]:
    """Return the arrays that are described as a quantity without its unit.

    Results of functions are not read, whose docstrings have no phrase that says what is returned.
    """
    if isinstance(of.node, ast.AnnAssign):
        described = {"itself": of.text} if is_array(of.name, of.node) else {}
    elif is_property(of.node):
        described = {"itself": of.text}
    else:
        args = entries(sections(of.text).get("Args", ""))
        described = {p.arg: args.get(p.arg, "") for p in parameters(of.node) if is_number(p)}
    return [
        f"{of.name}: {name}"
        for name, text in described.items()
        if QUANTITY.search(HEAD_ENDS.split(" ".join(text.split()))[0].strip())
        and not UNIT.search(text)
    ]


def is_property(function: ast.FunctionDef) -> bool:
    """Return whether a method is a property that is an array, whose docstring is a noun phrase."""
    decorators = set(map(ast.unparse, function.decorator_list))
    result = ast.unparse(function.returns) if function.returns else ""
    return bool(decorators & {"property", "cached_property"} and ARRAYS.search(result))


def undeclared(of: Documented) -> list[str]:
    """Return the errors that a function raises itself, and that its docstring does not name."""
    if isinstance(of.node, ast.AnnAssign):
        return []
    raises = sections(of.text).get("Raises", "")
    raised = [node.exc for node in own_nodes(of.node) if isinstance(node, ast.Raise)]
    names = {error(each, of.module) for each in raised}
    return [
        f"{of.name}: {name}"
        for name in sorted(names - {"", "NotImplementedError"})
        if not re.search(rf"^ {{4}}{name}: ", raises, re.M)
    ]


def own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body without those of functions and classes within."""
    todo: list[ast.AST] = [*function.body]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            todo += ast.iter_child_nodes(node)


def error(raised: ast.expr | None, module: str) -> str:
    """Return the class of what is raised, also where a function makes it; empty if unknown."""
    if raised is None:  # raised again
        return ""
    called = raised.func if isinstance(raised, ast.Call) else raised
    parts = [node for node in ast.walk(called) if isinstance(node, ast.Name | ast.Attribute)]
    names = [node.id if isinstance(node, ast.Name) else node.attr for node in parts]
    classes = [name for name in names if name.endswith(("Error", "Exception"))]
    return classes[0] if classes else made_by(names[0], module) if names else ""


def made_by(function: str, module: str) -> str:
    """Return the annotated result of a function or method of a module, or of one it imports."""
    node = public_api.definitions(module).get(function)
    if isinstance(node, str):
        return made_by(function, node.rpartition(".")[0])
    tree = ast.parse(public_api.sources()[module].read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function and node.returns:
            return ast.unparse(node.returns).strip("'\"").rpartition(".")[2]
    return ""


def test_shapes_of_arrays_are_stated():
    found = [line for each in documented() for line in shapeless(each)]
    assert not found, f"{len(found)} without a shape:\n" + "\n".join(found)


def test_units_of_quantities_are_stated():
    found = [line for each in documented() for line in without_unit(each)]
    assert not found, f"{len(found)} without a unit:\n" + "\n".join(found)


def test_errors_are_in_the_docstring():
    found = [line for each in documented() for line in undeclared(each)]
    assert not found, f"{len(found)} not in `Raises`:\n" + "\n".join(found)


GOOD = '''
def fall(height: jax.Array, key: jax.Array) -> jax.Array:
    """Return the time of a fall.

    Args:
        height: heights [m], shape (n,).
        key: random key.

    Returns:
        Times [s], shape (n,).

    Raises:
        ConfigError: if a height is negative.
    """
    raise ConfigError("negative")
'''


def test_a_docstring_that_says_less_is_found():
    def found(text: str) -> list[str]:
        node = ast.parse(text).body[0]
        assert isinstance(node, ast.FunctionDef)
        each = Documented("fall", node, docstring(node), "", "brax.errors")
        return [*shapeless(each), *without_unit(each), *undeclared(each)]

    assert found(GOOD) == []
    assert found(GOOD.replace("heights [m], shape (n,)", "heights [m]")) == ["fall: height"]
    assert found(GOOD.replace("Times [s], shape (n,)", "Times [s]")) == ["fall: return"]
    assert found(GOOD.replace("heights [m]", "lengths of falls")) == ["fall: height"]
    assert found(GOOD.replace("ConfigError: if", "If")) == ["fall: ConfigError"]
    assert found(GOOD.replace("    Raises:", "    Notes:")) == ["fall: ConfigError"]


def test_every_public_module_is_read():
    names = {each.name for each in documented()}
    assert len(names) > 1000
    assert {
        "brax.base.Motion.vel",
        "brax.joints.JointType.transform",
        "brax.io.html.render",
    } <= names
