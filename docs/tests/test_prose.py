"""Docstrings have a subject, and code and docstrings use the words of the glossary."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "website", "benchmarks", "integration_tests", "packages")
FILES = sorted(
    file
    for folder in FOLDERS
    for path in ROOT.glob(folder)
    for file in ([path] if path.is_file() else path.rglob("*.py"))
)
HEADLESS = re.compile(r"\s*(?:What|Whether|How|Where|Of|Which|Those)\b")
ALLOWED: dict[str, str] = {}
"""Headless docstrings that stay, by file and first words, each with its reason; at most ten."""

INVENTED = {
    "arena": "stack",
    "bond": "equality",
    "bonds": "equality",
    "cord": "tendon",
    "cords": "tendons",
    "crowd": "broad phase",
    "judging": "evaluation",
    "rendezvous": "coordination",
    "rope": "tendon",
    "ropes": "tendons",
    "strand": "tendon",
    "strands": "tendons",
    "stranger": "third party",
    "strangers": "third parties",
    "strung": "tendon",
    "surroundings": "external forces",
    "reaching": "sparse",
    "tie": "equality",
    "tied": "constrained",
    "ties": "equality constraints",
    "twisting": "torsional",
}
"""Words that the glossary has another word for."""


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield every docstring of a file, those of attributes too, with its line."""
    for node in ast.walk(tree(path)):
        body = getattr(node, "body", None)
        for part in body if isinstance(body, list) else ():
            match part:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield part.lineno, text


def names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the names of a file: its own, of functions, classes, parameters and constants."""
    yield 1, path.stem
    for node in ast.walk(tree(path)):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) if name.isupper():
                yield node.lineno, name


def words(text: str) -> set[str]:
    """Return the words of a text or a name, in small letters."""
    return set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", text).lower()))


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def test_docstrings_have_a_subject():
    found = {
        f"{path.relative_to(ROOT)}: {' '.join(text.split()[:4])}"
        for path in FILES
        for _, text in docstrings(path)
        if HEADLESS.match(text)
    }
    assert len(ALLOWED) <= 10
    assert found == set(ALLOWED)


def test_docstrings_use_the_words_of_the_glossary():
    found = [
        f"{place(path, line)}: {word}: say {INVENTED[word]}"
        for path in FILES
        for line, text in docstrings(path)
        for word in sorted(words(text) & set(INVENTED))
    ]
    assert not found, "\n".join(found)


def test_names_use_the_words_of_the_glossary():
    found = [
        f"{place(path, line)}: {name}: say {INVENTED[word]}"
        for path in FILES
        for line, name in names(path)
        for word in sorted(words(name) & set(INVENTED))
    ]
    assert not found, "\n".join(found)
