"""The registry: names to objects, filled by hooks when something is first looked up."""

import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from typing import Any

import pluggy

from brax.errors import PluginError, UnknownNameError, closest, unknown_name
from brax.plugins import discovery, hookspecs, kinds
from brax.plugins.kinds import KINDS
from brax.plugins.records import Origin, Registered, Spec, Status

API_VERSION = 1
"""Version of the plugin interface; plugins declare theirs as `BRAX_PLUGIN_API`."""

_TARGET = re.compile(r"[\w.]+:[\w.]+")


class PluginWarning(UserWarning):
    """A plugin that was left out, or a switch that names no plugin."""


class _Refused(Exception):
    """Why a plugin is left out, and what to do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.remedy = remedy


class Registry:
    """All that plugins bring, by kind and name.

    Plugins are discovered at the first lookup, one at a time: one that fails leaves nothing behind
    and is reported, the others go on. Lookups happen when a model or a run is built, never in
    traced code.
    """

    def __init__(
        self,
        entry_points: Callable[[], Iterable[metadata.EntryPoint]] = discovery.installed,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._entry_points = entry_points
        self._environ = environ
        self._manager = pluggy.PluginManager("brax")
        self._manager.add_hookspecs(hookspecs)
        self._registered: dict[str, dict[str, Registered]] = {kind: {} for kind in KINDS}
        self._overridden: dict[Origin, list[Registered]] = {}
        self._statuses: list[Status] = []
        self._discovered = False
        self._lock = threading.RLock()

    def get(self, kind: str, name: str) -> Any:
        """Returns the object registered under a name.

        Args:
            kind: kind of plugin, such as "environment".
            name: its name.

        Raises:
            UnknownNameError: if there is none; says what there is and which plugins failed.
            PluginError: if its plugin cannot load it, or it is not what its kind asks for.
        """
        found = self._of_kind(kind)
        if name not in found:
            raise self._unknown(kind, name)
        return kinds.load(found[name])

    def names(self, kind: str) -> list[str]:
        """Returns the registered names of a kind, in the order of discovery."""
        return list(self._of_kind(kind))

    def specs(self, kind: str) -> dict[str, Registered]:
        """Returns what is registered of a kind, by name, without importing any of it."""
        return dict(self._of_kind(kind))

    def statuses(self) -> list[Status]:
        """Returns what became of every installed plugin: loaded, failed or switched off."""
        self._discover()
        return list(self._statuses)

    def register(self, plugin: Any, name: str, override: bool = False) -> None:
        """Adds a plugin that is not installed, for tests and notebooks.

        Args:
            plugin: a module or object with `BRAX_PLUGIN_API` and hook implementations.
            name: stands in for the distribution's name.
            override: whether it may take names that are taken, until `unregister`.

        Raises:
            PluginError: if it is refused; it then leaves nothing behind.
        """
        self._discover()
        with self._lock:
            status = self._admit(_local(name), lambda: plugin, override)
            if status.state == "failed":
                raise PluginError(f"plugin '{name}': {status.reason}. {status.remedy}")
            self._statuses.append(status)

    def unregister(self, name: str) -> None:
        """Takes out a plugin that `register` added.

        Raises:
            UnknownNameError: if there is no plugin of that name.
        """
        with self._lock:
            origin = _local(name)
            if all(status.origin != origin for status in self._statuses):
                added = [
                    o.distribution for o in (s.origin for s in self._statuses) if not o.version
                ]
                raise unknown_name("plugin", name, added)
            self._manager.unregister(name=_key(origin))
            self._statuses = [s for s in self._statuses if s.origin != origin]
            for first in self._overridden.pop(origin, []):
                found = self._registered[first.kind]
                if found.get(first.name, first).origin in (origin, first.origin):
                    found[first.name] = first  # in its place: the order stays
            for found in self._registered.values():
                for taken in [n for n, r in found.items() if r.origin == origin]:
                    del found[taken]

    def _of_kind(self, kind: str) -> dict[str, Registered]:
        if kind not in KINDS:
            raise unknown_name("kind of plugin", kind, KINDS)
        self._discover()
        return self._registered[kind]

    def _discover(self) -> None:
        with self._lock:
            if self._discovered:
                return
            found, complaints = discovery.candidates(self._entry_points(), self._environ)
            self._discovered = True
            if self._environ.get("BRAX_PLUGINS_TRACE") == "1":
                self._manager.trace.root.setwriter(sys.stderr.write)
                self._manager.enable_tracing()
            for candidate in found:
                if candidate.off:
                    self._statuses.append(Status(candidate.origin, "off", candidate.off))
                else:
                    self._statuses.append(self._admit(candidate.origin, candidate.entry_point.load))
        failed = [s for s in self._statuses if s.state == "failed"]
        complaints += [f"plugin {s.origin} was left out: {s.reason}. {s.remedy}" for s in failed]
        for complaint in complaints:
            warnings.warn(complaint, PluginWarning, stacklevel=4)

    def _admit(self, origin: Origin, load: Callable[[], Any], override: bool = False) -> Status:
        """Takes in one plugin whole, or leaves nothing of it."""
        claims: list[tuple[str, Spec]] = []
        try:
            plugin = load()
            _check_version(plugin)
            if self._manager.is_registered(plugin) or self._manager.has_plugin(_key(origin)):
                raise _Refused("it is registered already", "Unregister it first")
            self._manager.register(plugin, _key(origin))
            try:
                self._check_hooks(plugin)
                self._collect(plugin, claims)
                self._check_names(origin, claims, override)
            except Exception:
                self._manager.unregister(plugin)
                raise
        except (Exception, SystemExit) as error:
            reason = str(error) if isinstance(error, _Refused) else _tell(error)
            remedy = getattr(error, "remedy", "Repair, update or uninstall it")
            remedy += f", or set BRAX_PLUGINS_DISABLE={origin.distribution}."
            claimed = frozenset((kind, spec.name) for kind, spec in claims)
            return Status(origin, "failed", reason, remedy, claimed)
        for kind, spec in claims:
            taken = self._registered[kind].get(spec.name)
            if taken and override:
                self._overridden.setdefault(origin, []).append(taken)
            if override or not taken:
                self._registered[kind][spec.name] = Registered(kind, spec, origin)
        return Status(origin, "loaded")

    def _check_hooks(self, plugin: Any) -> None:
        """Refuses hooks that do not exist and hooks that lack their mark."""
        marked = [caller.name for caller in self._manager.get_hookcallers(plugin) or ()]
        hooks = [kind.hook for kind in KINDS.values()]
        try:
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            name = next(name for name in marked if name not in hooks)
            raise _Refused(f"it has an unknown hook '{name}'", _rename(name, hooks)) from error
        for name in dir(plugin):
            unknown = name.startswith("brax_") and name not in hooks
            if unknown and closest(name, hooks) and callable(getattr(plugin, name)):
                raise _Refused(f"it has an unknown hook '{name}'", _rename(name, hooks))
        for name in hooks:
            if hasattr(plugin, name) and name not in marked:
                raise _Refused(f"its {name} is not marked as a hook", "Mark it with @hookimpl")

    def _collect(self, plugin: Any, claims: list[tuple[str, Spec]]) -> None:
        """Calls the plugin's hooks and adds what they return to `claims`."""
        others = [other for other in self._manager.get_plugins() if other is not plugin]
        for kind in KINDS.values():
            if not hasattr(plugin, kind.hook):
                continue
            results = self._manager.subset_hook_caller(kind.hook, others)()
            specs = results[0] if results else None
            if not isinstance(specs, list) or not all(isinstance(spec, Spec) for spec in specs):
                raise _Refused(
                    f"its {kind.hook} returned {specs!r:.80}, not a list of brax.plugins.Spec",
                    "Let it return a list of Spec(name, target)",
                )
            claims += [(kind.name, spec) for spec in specs]

    def _check_names(self, origin: Origin, claims: list[tuple[str, Spec]], override: bool) -> None:
        """Refuses malformed specs, and names that are taken."""
        seen: dict[tuple[str, str], tuple[Spec, Origin]] = {
            (kind, name): (r.spec, r.origin)
            for kind, found in self._registered.items()
            for name, r in found.items()
            if not override
        }
        for kind, spec in claims:
            text = isinstance(spec.target, str)
            if not isinstance(spec.name, str) or not spec.name:
                raise _Refused(f"a {kind} has the name {spec.name!r}", "Give it a name")
            if text and not _TARGET.fullmatch(spec.target):
                raise _Refused(
                    f"the target '{spec.target}' of {kind} '{spec.name}' is not module:attribute",
                    "Write it as 'package.module:ATTRIBUTE'",
                )
            first, owner = seen.setdefault((kind, spec.name), (spec, origin))
            if first != spec or owner.distribution != origin.distribution:
                raise _Refused(
                    f"the {kind} '{spec.name}' of {origin} is already registered by {owner}",
                    "Rename it, uninstall one of the two",
                )

    def _unknown(self, kind: str, name: str) -> UnknownNameError:
        message = str(unknown_name(kind.replace("_", " "), name, self._registered[kind]))
        for status in self._statuses:
            if status.state == "failed":
                owns = (kind, name) in status.claims
                what = f"'{name}' belongs to {status.origin}, which" if owns else str(status.origin)
                message += f" {what} failed to load: {status.reason}."
            elif status.state == "off":
                message += f" {status.origin} is switched off ({status.reason})."
        present = {status.origin.distribution for status in self._statuses}
        missing = [name for name in discovery.OURS if name not in present]
        return UnknownNameError(
            message + (f" Not installed: {', '.join(missing)}." * bool(missing))
        )


def _check_version(plugin: Any) -> None:
    version = getattr(plugin, "BRAX_PLUGIN_API", None)
    if version == API_VERSION and type(version) is int:
        return
    if version is None:
        raise _Refused("it has no BRAX_PLUGIN_API", f"Declare BRAX_PLUGIN_API = {API_VERSION}")
    if type(version) is not int:
        raise _Refused(
            f"its BRAX_PLUGIN_API is {version!r}, not an integer",
            f"Declare BRAX_PLUGIN_API = {API_VERSION}",
        )
    newer = version > API_VERSION
    raise _Refused(
        f"it needs plugin API {version}, this is plugin API {API_VERSION}",
        "Update brax-core" if newer else "Update it",
    )


def _local(name: str) -> Origin:
    """The origin of a plugin that is not installed; it has no version."""
    return Origin(name, "", name)


def _key(origin: Origin) -> str:
    return f"{origin.distribution}:{origin.entry_point}"


def _rename(name: str, hooks: list[str]) -> str:
    return closest(name, hooks).strip() or f"The hooks are {', '.join(hooks)}"


def _tell(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
