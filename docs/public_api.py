"""Writes public-api.txt: the public names of the four packages, with signatures.

It reads the source without importing it, so that the text does not depend on the versions of
Python and of other packages. A name is public if its module is one of `MODULES` and the module
defines it without an underscore, lists it in `__all__` or imports it `as` itself. A class has the
members of its bases too, if these are not public.
"""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_name("public-api.txt")
HEAD = """\
# The public names of brax-core, brax-io, brax-envs and brax-agents. `hatch run public-api`
# writes this file. A change of it is a change for users: it needs an entry in the package's
# CHANGELOG.md.
"""

MODULES = (
    "brax",
    "brax/actuator",
    "brax/actuators",
    "brax/base",
    "brax/builder",
    "brax/colliders",
    "brax/com",
    "brax/components",
    "brax/contact",
    "brax/dynamics",
    "brax/env",
    "brax/errors",
    "brax/generalized/pipeline",
    "brax/integrators",
    "brax/joints",
    "brax/kernels",
    "brax/kinematics",
    "brax/math",
    "brax/mjx",
    "brax/pipeline",
    "brax/plugins",
    "brax/positional/pipeline",
    "brax/sensors",
    "brax/spring/pipeline",
    "brax/testing",
    "brax/io/*",
    "brax/envs/api",
    "brax/envs/base",
    "brax/envs/wrappers/*",
    "brax/training/*",
    "brax/training/acme/*",
    "brax/training/loggers",
    "brax/training/agents/*/config",
    "brax/training/agents/*/train",
    "brax/training/agents/*/networks",
    "brax/training/agents/*/checkpoint",
)
"""The modules for users and for authors of plugins; a star is any one part of a path."""

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@functools.cache
def sources() -> dict[str, Path]:
    """Return the file of every module of the four packages, by its dotted name."""
    found = {}
    for src in (ROOT / "packages").glob("*/src"):
        for path in src.rglob("*.py"):
            name = path.relative_to(src).with_suffix("")
            parts = name.parent.parts if name.name == "__init__" else name.parts
            found[".".join(parts)] = path
    return found


@functools.cache
def public_modules() -> list[str]:
    """Return the names of the modules that `MODULES` names."""
    paths = {name: PurePosixPath(name.replace(".", "/")) for name in sources()}
    return sorted(
        name
        for name, path in paths.items()
        if not any(part.startswith("_") for part in path.parts)
        and any(len(path.parts) == p.count("/") + 1 and path.match(p) for p in MODULES)
    )


@functools.cache
def definitions(module: str) -> dict[str, ast.AST | str]:
    """Return what a module binds: the node that defines a name, or where it is imported from."""
    found: dict[str, ast.AST | str] = {}
    todo = list(ast.parse(sources()[module].read_text("utf-8")).body)
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.If):  # TYPE_CHECKING
            todo += node.body
        elif isinstance(node, DEFINITIONS):
            found[node.name] = node
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = node
    return found


@functools.cache
def public_names(module: str) -> list[str]:
    """Return the names that a module gives to users."""
    bound = definitions(module)
    listed = bound.get("__all__")
    if isinstance(listed, ast.Assign) and isinstance(listed.value, ast.List | ast.Tuple):
        return sorted(ast.literal_eval(listed.value))
    tree = ast.parse(sources()[module].read_text("utf-8"))
    explicit = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    return sorted(
        name
        for name, origin in bound.items()
        if not name.startswith("_") and (not isinstance(origin, str) or name in explicit)
    )


def found(module: str, name: str) -> tuple[str, ast.AST | None]:
    """Return the module that defines a name and the node, which is None if it is not ours."""
    origin = definitions(module).get(name)
    while isinstance(origin, str):
        module, _, name = origin.rpartition(".")
        origin = definitions(module).get(name) if module in sources() else None
    return module, origin


@functools.cache
def public_objects() -> set[ast.AST | None]:
    """Return the nodes that public names stand for."""
    return {found(module, name)[1] for module in public_modules() for name in public_names(module)}


def body(node: ast.ClassDef, module: str) -> Iterator[tuple[ast.stmt, str]]:
    """Yield the statements of a class and of its bases that are not public, with their modules."""
    yield from ((part, module) for part in node.body)
    own = {part.name for part in node.body if isinstance(part, DEFINITIONS)}
    for base in node.bases:
        home, origin = found(module, ast.unparse(base))
        if isinstance(origin, ast.ClassDef) and origin not in public_objects():
            inherited = list(body(origin, home))[1:]  # without the docstring
            yield from (part for part in inherited if getattr(part[0], "name", "") not in own)


def lines(name: str, origin: ast.AST | str | None, module: str = "") -> Iterator[str]:
    """Yield the lines on one name of a module, following imports to the definition."""
    while isinstance(origin, str):
        module, _, original = origin.rpartition(".")
        shown = module in public_modules() and original in public_names(module)
        if shown or origin in sources() or module not in sources():
            yield f"{name} = {origin}"
            return
        origin = definitions(module).get(original)
    if isinstance(origin, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from function(name, origin)
    elif isinstance(origin, ast.ClassDef):
        yield f"class {name}({', '.join(map(ast.unparse, [*origin.bases, *origin.keywords]))})"
        for node, _ in body(origin, module):
            yield from (f"    {line}" for line in member(node))
    elif isinstance(origin, ast.AnnAssign):
        yield f"{name}: {ast.unparse(origin.annotation)}"
    elif not (isinstance(origin, ast.Assign) and ast.unparse(origin.value).startswith("TypeVar(")):
        yield name


def member(node: ast.AST) -> Iterator[str]:
    """Yield the lines on a member of a class, if it is public."""
    if isinstance(node, ast.FunctionDef):
        if not node.name.startswith("_") or node.name in ("__init__", "__call__"):
            yield from function(node.name, node)
    elif isinstance(node, ast.AnnAssign | ast.Assign):
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        if isinstance(target, ast.Name) and not target.id.startswith("_"):
            yield ast.unparse(node)


def function(name: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Yield the lines on a function: decorators that change how it is called, and signature."""
    for decorator in map(ast.unparse, node.decorator_list):
        if decorator.endswith(("property", "method", ".setter")):
            yield f"@{decorator}"
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    yield f"def {name}({ast.unparse(node.args)}){result}"


def page() -> str:
    """Return the whole file."""
    parts = [HEAD.rstrip()]
    for module in public_modules():
        bound = definitions(module)
        text = [x for name in public_names(module) for x in lines(name, bound.get(name), module)]
        if text:
            parts += ["", f"## {module}", *text]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
