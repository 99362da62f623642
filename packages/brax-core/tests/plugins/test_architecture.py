"""The rules of `docs/architecture.md` that the source itself can be asked about."""

import ast
import functools
import re
from pathlib import Path

import pytest

from brax import plugins

ROOT = Path(__file__).parents[4]
SOURCES = {
    package.name: sorted((package / "src" / "brax").rglob("*.py"))
    for package in sorted((ROOT / "packages").iterdir())
}

SIBLINGS = {"brax-io": "brax.io", "brax-envs": "brax.envs", "brax-agents": "brax.training"}
"""The main subpackage of `brax` of each distribution but the core."""

MORE = {"brax-io": {"mjx"}}
"""Further subpackages: MJX has the path that it has in Google's package."""


@functools.cache
def nodes(path):
    """Every node of a file's syntax tree; all tests of the file share one parse."""
    return list(ast.walk(ast.parse(path.read_text())))


@functools.cache
def imports(path):
    """Every module that a file imports, anywhere in it, as dotted names."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def within(module, package):
    return module == package or module.startswith(f"{package}.")


def section(heading):
    """Return the lines of a section of the page, which must have places in code."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    _, found, rest = text.partition(f"\n## {heading}\n")
    assert found, f"docs/architecture.md has no section '{heading}'"
    lines = rest.partition("\n## ")[0].splitlines()
    assert any(line.startswith("|") and "`" in line for line in lines), heading
    return lines


def table():
    """Return the rows of the table of distributions: name, owned modules, forbidden imports."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `(brax-\w+)` \| (.*?) \| (.*?) \| (.*?) \|$", text, re.MULTILINE)
    names = {"envs": "brax.envs", "training": "brax.training", "io": "brax.io"}
    forbidden = {}
    for name, _, _, never in rows:
        parts = [part.strip() for part in never.split(",")]
        if "the other three" in parts:
            parts = [p for p in parts if p != "the other three"] + list(names)
        forbidden[name] = {names.get(part, part) for part in parts}
        if "brax.io" in forbidden[name]:
            forbidden[name].add("brax.mjx")
    return forbidden


def test_the_table_of_imports_is_the_one_we_mean():
    assert table() == {
        "brax-core": {"mujoco", "brax.io", "brax.mjx", "brax.envs", "brax.training"},
        "brax-io": {"brax.envs", "brax.training"},
        "brax-envs": {"brax.training"},
        "brax-agents": {"brax.envs", "brax.io", "brax.mjx", "mujoco"},
    }


@pytest.mark.parametrize("distribution", SOURCES)
def test_imports_keep_to_the_table(distribution):
    forbidden = table()[distribution]
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in SOURCES[distribution]
        for module in imports(path)
        if any(within(module, package) for package in forbidden)
    ]
    assert wrong == []


@pytest.mark.parametrize("distribution", ["brax-core", "brax-agents", "brax-io"])
def test_folders_import_from_rows_above(distribution):
    package = SIBLINGS.get(distribution, "brax")
    base = ROOT / "packages" / distribution / "src" / package.replace(".", "/")
    lines = [line for line in section(f"The folders of {distribution}") if line.startswith("| `")]
    rows = [re.findall(r"`(\w+)/`", line.split("|")[1]) for line in lines]
    level = {folder: i for i, row in enumerate(rows) for folder in row}
    assert set(level) == {path.parent.name for path in base.glob("*/__init__.py")}
    wrong = {
        f"{folder}/ imports {module}"
        for folder in level.keys() - {"plugins"}
        for path in (base / folder).rglob("*.py")
        for module in imports(path)
        for other in level.keys() - {"plugins"}
        if within(module, f"{package}.{other}") and level[other] > level[folder]
    }
    assert wrong == set()


def test_the_places_to_open_exist():
    bases = [ROOT, *(ROOT / "packages" / distribution / "src" / "brax" for distribution in SOURCES)]
    lines = section("If you want to change X, open Y")
    folder = ROOT
    for line in lines:
        for place in re.findall(r"`([\w/]+(?:\.py|/))`", line):
            found = next((b / place for b in bases if (b / place).exists()), folder / place)
            assert found.exists(), place
            folder = found.parent


@pytest.mark.parametrize("distribution", SOURCES)
def test_each_distribution_keeps_to_its_part_of_the_package(distribution):
    base = ROOT / "packages" / distribution / "src" / "brax"
    tops = {path.relative_to(base).parts[0].removesuffix(".py") for path in SOURCES[distribution]}
    if distribution == "brax-core":
        assert tops.isdisjoint({"io", "envs", "training", "mjx"})
        assert "__init__" in tops
    elif tops:
        own = SIBLINGS[distribution].removeprefix("brax.")
        assert tops == {own} | MORE.get(distribution, set())


@functools.cache
def constants(path):
    """Return the constants of a file, docstrings aside, as nodes."""
    prose = {
        id(node.value)
        for node in nodes(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [n for n in nodes(path) if isinstance(n, ast.Constant) and id(n) not in prose]


def named(path, names):
    """Constants of a file that are among `names`."""
    return {
        f"{path.relative_to(ROOT)}:{node.lineno} names '{node.value}'"
        for node in constants(path)
        if node.value in names
    }


HOMES = {
    "joint_type": "joints",
    "geometry_type": "colliders",
    "collider": "colliders",
    "integrator": "integrators",
    "actuator": "actuators",
}
"""The folder of each kind that belongs to a model."""


@pytest.mark.parametrize("kind", HOMES)
def test_only_its_own_folder_names_a_kind_of_model_element(kind):
    """The engine does not depend on which joints, shapes or laws exist.

    A model reader (`brax.io`) maps the words of its format, and environments describe models.
    """
    home, names = HOMES[kind], set(plugins.names(kind))
    files = [
        path
        for path in SOURCES["brax-core"] + SOURCES["brax-agents"]
        if path.name != "_plugin.py" and home not in path.parts
    ]
    assert set().union(*(named(path, names) for path in files)) == set()
    leaves = {r.target.partition(":")[0] for r in plugins.specs(kind).values()}
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in [*files, *SOURCES["brax-io"], *SOURCES["brax-envs"]]
        for module in imports(path)
        if any(within(module, leaf) for leaf in leaves)
    ]
    assert wrong == []


@pytest.mark.parametrize("kind", ["environment", "trainer", "model_format", "metric_logger"])
def test_core_names_no_plugin_of_the_other_distributions(kind):
    names = {name for name, r in plugins.specs(kind).items() if r.distribution != "brax-core"}
    files = [path for path in SOURCES["brax-core"] if path.name != "_plugin.py"]
    assert set().union(*(named(path, names) for path in files)) == set()
