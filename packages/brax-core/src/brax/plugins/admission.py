"""Admission of a plugin: checks of its version, its specs, and its names and keys."""

import inspect
import re
from collections.abc import Iterable

from brax.plugins import kinds
from brax.plugins.records import Origin, Registered, Spec

API_VERSION = 1
"""Version of the plugin interface; plugins declare theirs as `BRAX_PLUGIN_API`."""

_TARGET = re.compile(r"[\w.]+:[\w.]+")


class Rejected(Exception):
    """The reason why a plugin is left out, and the remedy."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.remedy = remedy


def arguments_of_a_hook(plugin: object) -> Rejected:
    """Return the reason to leave out a plugin with a hook that takes arguments."""
    for kind in kinds.KINDS.values():
        hook = getattr(plugin, kind.hook, None)
        if callable(hook) and (given := ", ".join(inspect.signature(hook).parameters)):
            return Rejected(f"its {kind.hook} takes arguments: {given}", "Let it take none")
    raise AssertionError("no hook takes arguments")


def check_version(plugin: object) -> None:
    """Raise if a plugin was written for another version of this interface."""
    version = getattr(plugin, "BRAX_PLUGIN_API", None)
    # True equals 1, and so does 1.0; only the integer is a version.
    if version == API_VERSION and type(version) is int:
        return
    if version is None:
        raise Rejected("it has no BRAX_PLUGIN_API", f"Declare BRAX_PLUGIN_API = {API_VERSION}")
    if type(version) is not int:
        raise Rejected(
            f"its BRAX_PLUGIN_API is {version!r}, not an integer",
            f"Declare BRAX_PLUGIN_API = {API_VERSION}",
        )
    newer = version > API_VERSION
    raise Rejected(
        f"it needs plugin API {version}, this is plugin API {API_VERSION}",
        "Update brax-core" if newer else "Update it",
    )


def check_specs(claims: Iterable[tuple[str, Spec]]) -> None:
    """Raise if a spec is malformed."""
    for kind, spec in claims:
        if not isinstance(spec.name, str) or not spec.name:
            raise Rejected(f"a {kind} has the name {spec.name!r}", "Give it a name")
        if isinstance(spec.target, str) and not _TARGET.fullmatch(spec.target):
            raise Rejected(
                f"the target '{spec.target}' of {kind} '{spec.name}' is not module:attribute",
                "Write it as 'package.module:ATTRIBUTE'",
            )
        if spec.keys and (problem := kinds.key_problem(kind, spec.keys)):
            raise Rejected(
                f"the keys of {kind} '{spec.name}' must be {problem}, but are {spec.keys!r}",
                "Correct them",
            )


def check_free(
    origin: Origin, claims: Iterable[tuple[str, Spec]], taken: Iterable[Registered]
) -> None:
    """Raise if a name, or a declared key, is taken."""
    seen: dict[tuple[str, str, str], tuple[Spec, Origin]] = {}
    for r in taken:
        seen |= {place: (r.spec, r.origin) for place in _places(r.kind, r.spec)}
    for kind, spec in claims:
        for place in _places(kind, spec):
            first, owner = seen.setdefault(place, (spec, origin))
            # Identical specs of one distribution name the same object, so they do not clash.
            if first == spec and owner.distribution == origin.distribution:
                continue
            if owner == origin:
                raise Rejected(f"it brings the {kind} '{spec.name}' twice", "Rename one of the two")
            what = f"the {kind} '{spec.name}' of {origin} is"
            key = place[-1]
            raise Rejected(
                f"{what} for {key}, which is already registered by {owner} as '{first.name}'"
                if key
                else f"{what} already registered by {owner}",
                "Rename it, uninstall one of the two, replace the other on purpose by "
                f"BRAX_PLUGINS_OVERRIDE={origin.distribution}",
            )


def _places(kind: str, spec: Spec) -> list[tuple[str, str, str]]:
    """Return the kind, name and key of each entry that only one spec may have."""
    return [(kind, spec.name, ""), *((kind, "", key) for key in kinds.declared(kind, spec))]
