"""Discovery: the installed plugins in a fixed order, with the switches applied."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from brax._shared_name import OURS, check
from brax.errors import PluginError, closest
from brax.plugins.records import Origin

GROUP = "brax"
"""The entry-point group."""


@dataclass(frozen=True)
class Candidate:
    """An installed plugin."""

    origin: Origin
    entry_point: metadata.EntryPoint
    off: str
    """The reason why it is switched off; empty if it is on."""
    overrides: bool = False
    """True if it may replace names and keys that others have registered."""


def installed() -> Iterable[metadata.EntryPoint]:
    """Return the entry points of the group, in no particular order.

    Raises:
        PluginError: if Google's distribution `brax` shares the environment, or a distribution's
            entry points cannot be read.
    """
    check()
    try:
        return metadata.entry_points(group=GROUP)
    except Exception as error:
        # One unreadable distribution makes the whole query fail, so each is tried to find its name.
        unreadable = [d.metadata for d in metadata.distributions() if not _readable(d)]
        # What an interrupted installation leaves may have no name.
        broken = [told.get_all("Name", ["without a name"])[0] for told in unreadable]
        raise PluginError(
            f"entry_points.txt of the installed distribution {' and '.join(broken)} cannot be "
            f"read ({error}). Reinstall or uninstall it."
        ) from error


def _readable(distribution: metadata.Distribution) -> bool:
    """Return whether a distribution's entry points can be read."""
    try:
        distribution.entry_points  # noqa: B018 - it is read when it is asked for
    except Exception:
        return False
    return True


def candidates(
    entry_points: Iterable[metadata.EntryPoint], environ: Mapping[str, str]
) -> tuple[list[Candidate], list[str]]:
    """Return the plugins in order, with the switches applied.

    Brax's own come first, then the others by distribution and entry point, whatever the order of
    `sys.path`. Those that may replace others' names come last.

    Args:
        entry_points: entry points of the group.
        environ: environment variables.

    Returns:
        The plugins, and complaints about switches that name no plugin.
    """
    origins = [(_origin(entry_point), entry_point) for entry_point in entry_points]
    switches = {
        variable: _names(environ.get(variable))
        for variable in ("BRAX_PLUGINS", "BRAX_PLUGINS_DISABLE", "BRAX_PLUGINS_OVERRIDE")
    }
    allowed, denied, overriding = switches.values()
    autoload = environ.get("BRAX_PLUGINS_AUTOLOAD") != "0"
    found = [
        Candidate(
            origin,
            entry_point,
            _why_off(origin.distribution, allowed, denied, autoload),
            origin.distribution in (overriding or ()),
        )
        for origin, entry_point in origins
    ]
    # The first plugin keeps a name, so the order must not depend on the order of installation.
    # Those that override come last, when the names that they replace are registered.
    found.sort(key=lambda candidate: (candidate.overrides, _order(candidate.origin)))
    known = {candidate.origin.distribution for candidate in found}
    complaints = [
        f"{variable} names '{name}', but no plugin comes from that distribution."
        f"{closest(name, known)}"
        for variable, names in switches.items()
        for name in sorted((names or set()) - known)
    ]
    return found, complaints


def _origin(entry_point: metadata.EntryPoint) -> Origin:
    """Return the distribution, version and entry point of a plugin."""
    distribution: Any = entry_point.dist  # None only for one that was made by hand
    return Origin(_normalized(distribution.name), distribution.version, entry_point.name)


def _normalized(name: str) -> str:
    """Return the canonical spelling of a distribution's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _order(origin: Origin) -> tuple[int, str, str]:
    """Return the key by which plugins are sorted."""
    rank = OURS.index(origin.distribution) if origin.distribution in OURS else len(OURS)
    return rank, origin.distribution, origin.entry_point


def _names(value: str | None) -> set[str] | None:
    """Return the distributions that a switch names; None if it is not set."""
    # An empty BRAX_PLUGINS selects no third-party plugin; without the variable all are selected.
    if value is None:
        return None
    return {_normalized(name.strip()) for name in value.split(",") if name.strip()}


def _why_off(
    distribution: str, allowed: set[str] | None, denied: set[str] | None, autoload: bool
) -> str:
    """Return why a distribution's plugins are switched off; empty if they are on."""
    if distribution in (denied or ()):
        return "named by BRAX_PLUGINS_DISABLE"
    # BRAX_PLUGINS and BRAX_PLUGINS_AUTOLOAD select third-party plugins; Brax's own can only be
    # disabled by name.
    if distribution in OURS:
        return ""
    if not autoload:
        return "BRAX_PLUGINS_AUTOLOAD=0 leaves out what is not Brax's own"
    if allowed is not None and distribution not in allowed:
        return "not named by BRAX_PLUGINS"
    return ""
