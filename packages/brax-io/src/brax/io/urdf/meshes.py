"""Locates the files of a robot's meshes."""

import dataclasses
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from brax.errors import ModelError
from brax.io._nodes import Node
from brax.io.mjcf.sources import SCHEME, ModelSource, compiler_settings, resolve
from brax.io.urdf import collada, stl

Packages = Mapping[str, str | os.PathLike[str]]

_OF_PACKAGES = ("package", "model")
_MANIFESTS = ("package.xml", "model.config")  # of ROS, and of Gazebo
_CONVERTED = (".dae", ".stl")


@dataclasses.dataclass(frozen=True)
class Meshes:
    """The files of a robot's meshes."""

    source: ModelSource
    packages: Packages
    outside: bool

    def locate(self) -> dict[str, bytes]:
        """Find the files of all meshes that MuJoCo will read, and replace their paths.

        Returns:
            Files in a format that MuJoCo reads, of those in COLLADA's and of STL files in text
            form, by the names that replace their paths.

        Raises:
            ModelError: listing every file that is missing, or outside the allowed directories.
        """
        extensions = [n for n in self.source.root.children if n.tag == "mujoco"]
        settings = compiler_settings(
            [n for each in extensions for n in each.children if n.tag == "compiler"]
        )
        folder = settings.get("meshdir", "")
        stripped = settings.get("strippath") == "true"
        problems = []
        converted: dict[Path, tuple[str, bytes]] = {}
        for node in self._read(shown=settings.get("discardvisual") == "false"):
            path, problem = self._path(node, folder, stripped)
            node.given["filename"] = str(path)
            if not problem and path.suffix.lower() in _CONVERTED:
                try:
                    if path not in converted:
                        converted[path] = _readable(path)
                    node.given["filename"] = converted[path][0]
                except (OSError, ValueError) as error:
                    problem = f"{node.place}: {node}: cannot read {path}: {error}"
            if problem:
                problems.append(problem)
        if problems:
            raise ModelError.of(problems)
        return {name: data for name, data in converted.values() if data}

    def _read(self, shown: bool) -> Iterator[Node]:
        """Yield the meshes of collision shapes, and those of visuals if `shown`."""
        parts = ("collision", "visual") if shown else ("collision",)
        for link in self.source.root.children:
            for part in link.children if link.tag == "link" else ():
                for geometry in part.children if part.tag in parts else ():
                    for node in geometry.children:
                        if node.tag == "mesh" and "filename" in node.attributes:
                            yield node

    def _path(self, node: Node, folder: str, stripped: bool) -> tuple[Path, str]:
        """Return the path of a mesh, and what is wrong with it."""
        name = node.attributes["filename"].replace("\\", "/")
        if stripped:
            return resolve(self.source, node, folder, name.rsplit("/", 1)[-1], self.outside)
        scheme = SCHEME.match(name)
        if not scheme:
            return resolve(self.source, node, folder, name, self.outside)
        kind, rest = scheme[1].lower(), unquote(name[scheme.end() - 1 :])
        if kind == "file":
            host, slash, inside = rest.removeprefix("//").partition("/")
            local = rest if not rest.startswith("//") else slash + inside
            if rest.startswith("//") and host not in ("", "localhost"):
                return Path(), f"{node.place}: {node}: '{name}' is on another computer, '{host}'"
            return resolve(
                self.source,
                node,
                "",
                local.removeprefix("/") if _drive(local) else local,
                self.outside,
            )
        if kind not in _OF_PACKAGES:
            return Path(), (
                f"{node.place}: {node}: '{name}' has the scheme '{scheme[1]}'; allowed are "
                "package://NAME/..., model://NAME/..., file:///... and paths relative to the "
                "robot's file"
            )
        package, _, inside = rest.lstrip("/").partition("/")
        if not (rest.startswith("//") and package and inside):
            return Path(), f"{node.place}: {node}: '{name}' is not {kind}://NAME/PATH"
        directory, problem = self._package(node, package)
        if problem:
            return Path(), problem
        # A package may be outside the robot's directory, but its meshes must not leave the package.
        package_source = dataclasses.replace(self.source, directory=directory)
        return resolve(package_source, node, "", inside, self.outside)

    def _package(self, node: Node, name: str) -> tuple[Path, str]:
        """Return the directory of a package, and what is wrong with it.

        It is the given one, or the directory of that name above the robot's file.
        """
        if name in self.packages:
            return Path(os.fsdecode(self.packages[name])), ""
        start = self.source.directory
        above = (start.resolve(), *start.resolve().parents) if start is not None else ()
        named = [path for path in above if path.name == name]
        # A robot's file could otherwise name a package `home` and read any mesh of the user. The
        # files of its own directory it may read anyway.
        allowed = [path for path in named if self.outside or path == above[0] or _is_package(path)]
        if allowed:
            return allowed[0], ""
        unknown = f"{node.place}: {node}: package '{name}' is unknown: "
        if not named:
            return Path(), f"{unknown}pass package_paths={{'{name}': ...}}"
        return Path(), (
            f"{unknown}{named[0]} has no {_MANIFESTS[0]}. If you trust the model, add one, which "
            f"may be empty, or pass package_paths={{'{name}': '{named[0]}'}}, or "
            "allow_external_assets=True"
        )


def _is_package(path: Path) -> bool:
    return any((path / manifest).is_file() for manifest in _MANIFESTS)


def _readable(path: Path) -> tuple[str, bytes]:
    """Return a mesh's name and contents in a format that MuJoCo reads, or its path and nothing.

    MuJoCo 3.17 keeps meshes for later models by their names alone, so a name tells the contents.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is not well-formed.
    """
    data = path.read_bytes()
    if path.suffix.lower() == ".dae":
        suffix, converted = "obj", collada.to_obj(data)
    elif stl.is_text(data):
        suffix, converted = "stl", stl.to_binary(data)
    else:
        return str(path), b""
    return f"{path.stem}_{hashlib.sha256(converted).hexdigest()[:16]}.{suffix}", converted


def _drive(path: str) -> bool:
    """Return whether an absolute path starts with a Windows drive, such as `/C:/robot`."""
    return len(path) > 2 and path[0] == "/" and path[2] == ":"
