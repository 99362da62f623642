"""The registry: names to objects, filled by hooks when something is first looked up."""

import difflib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from typing import Any

import pluggy

from brax._shared_name import OURS
from brax.errors import PluginError, UnknownNameError, closest, describe_error, unknown_name
from brax.plugins import discovery, hookspecs, kinds
from brax.plugins.admission import (
    Rejected,
    arguments_of_a_hook,
    check_free,
    check_specs,
    check_version,
)
from brax.plugins.index import index, misspelt_types
from brax.plugins.kinds import KINDS
from brax.plugins.records import Origin, Registered, Spec, Status


class PluginWarning(UserWarning):
    """A warning about a plugin that was left out, or a switch that names no plugin."""


class Registry:
    """All registered objects, by kind and name.

    Plugins are discovered at the first lookup, one at a time. One that fails leaves nothing behind
    and is reported; the others are loaded. Lookups happen when a model or a run is built, never in
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
        self._indices: dict[str, dict[str, Registered]] = {}
        self._statuses: list[Status] = []
        self._discovered = False
        # Reentrant: a plugin may look something up while it is imported during discovery.
        self._lock = threading.RLock()

    def get(self, kind: str, name: str) -> Any:
        """Return the object registered under a name.

        Args:
            kind: kind of object, such as "environment".
            name: its name.

        Raises:
            UnknownNameError: if there is none; lists the registered names and the plugins that
                failed.
            PluginError: if it cannot be loaded, or is not what its kind asks for.
        """
        found = self._of_kind(kind)
        if name not in found:
            raise self._unknown(kind, name)
        return kinds.load(found[name])

    def find(self, kind: str, *keys: str) -> Any:
        """Return the object that is found by keys, or None.

        Objects whose specs declare keys are imported only when their key is asked for. Objects
        whose specs declare none are imported at the first search, to read their keys. If the import
        of one fails, a warning names its package.

        Args:
            kind: "collider" or "model_format".
            keys: two geometry types, or a suffix.

        Raises:
            PluginError: if it cannot be loaded, or is not what its kind asks for.
        """
        (key,) = kinds.keys(kind, keys)
        found = self.keys(kind).get(key)
        return None if found is None else self.get(kind, found.name)

    def keys(self, kind: str) -> dict[str, Registered]:
        """Return the registered specs of a kind, by the keys that they are found by."""
        with self._lock:
            if kind not in self._indices:
                # The index is kept, so each complaint is a warning only once.
                self._indices[kind], complaints = self._index(kind)
                for complaint, error in complaints:
                    _warn(complaint, error)
            return self._indices[kind]

    def clashes(self) -> list[str]:
        """Return a sentence for each key that another object has registered already.

        Declared keys cannot clash: their plugin is left out. To find the others, this imports all
        objects that do not declare theirs. Misspelt geometry types of colliders are reported as
        well.
        """
        chosen = [kind.name for kind in KINDS.values() if kind.chosen_by]
        found = [self._index(kind)[1] for kind in chosen]
        return [text for each in found for text, error in each if error is None]

    def _index(
        self, kind: str
    ) -> tuple[dict[str, Registered], list[tuple[str, BaseException | None]]]:
        """Return the specs of a kind by key, and all complaints about keys."""
        registered = self._of_kind(kind).values()
        found, complaints = index(kind, registered)
        if kind == "collider":
            misspelt = misspelt_types(registered, list(self._of_kind("geometry_type")))
            complaints += [(text, None) for text in misspelt]
        return found, complaints

    def name_of(self, kind: str, value: Any) -> str:
        """Return the name that an object is registered under; empty if it is not registered."""
        if chosen_by := KINDS[kind].chosen_by:
            candidates = [
                self.keys(kind).get(k) for k in kinds.keys(kind, getattr(value, chosen_by))
            ]
        else:
            candidates = [self._of_kind(kind).get(value.name)]
        found = (c.name for c in candidates if c and self.get(kind, c.name) is value)
        return next(found, "")

    def all_that_load(self, kind: str) -> dict[str, Any]:
        """Return the objects of a kind by name, and warn of each one that cannot be loaded."""
        found = {}
        for name in self.names(kind):
            try:
                found[name] = self.get(kind, name)
            except PluginError as error:
                _warn(f"{error}", error)
        return found

    def names(self, kind: str) -> list[str]:
        """Return the registered names of a kind, in the order of discovery."""
        return list(self._of_kind(kind))

    def specs(self, kind: str) -> dict[str, Registered]:
        """Return the registered specs of a kind, by name, without importing any object."""
        return dict(self._of_kind(kind))

    def statuses(self) -> list[Status]:
        """Return the status of every installed plugin: loaded, failed or switched off."""
        self._discover()
        return list(self._statuses)

    def register(self, plugin: object, name: str, override: bool = False) -> None:
        """Add a plugin that is not installed, for tests and notebooks.

        Args:
            plugin: a module or object with `BRAX_PLUGIN_API` and hook implementations.
            name: stands in for the distribution's name.
            override: whether it may replace names that are taken, until `unregister`.

        Raises:
            PluginError: if it is rejected; it then leaves nothing behind.
        """
        self._discover()
        with self._lock:
            status = self._admit(_local(name), lambda: plugin, override)
            if status.state == "failed":
                raise PluginError(f"plugin '{name}': {status.reason}. {status.remedy}")
            self._statuses.append(status)

    def unregister(self, name: str) -> None:
        """Remove a plugin that `register` added.

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
            replaced = {(r.kind, r.name): r for r in self._overridden.pop(origin, [])}
            for (kind, taken), before in replaced.items():
                # Another plugin may have replaced the name since, and keeps it.
                if self._registered[kind][taken].origin == origin:
                    self._registered[kind][taken] = before  # in its place: the order stays
            # Where another has replaced a name of this plugin, what was there before comes back.
            for other, theirs in self._overridden.items():
                left = [replaced.get((r.kind, r.name)) if r.origin == origin else r for r in theirs]
                self._overridden[other] = [r for r in left if r]
            for found in self._registered.values():
                for taken in [n for n, r in found.items() if r.origin == origin]:
                    del found[taken]
            self._indices.clear()

    def _of_kind(self, kind: str) -> dict[str, Registered]:
        """Return the registered specs of a kind, after discovery."""
        if kind not in KINDS:
            raise unknown_name("kind of plugin", kind, KINDS)
        self._discover()
        return self._registered[kind]

    def _everything(self) -> Iterable[Registered]:
        """Return the registered specs of all kinds."""
        return (r for found in self._registered.values() for r in found.values())

    def _discover(self) -> None:
        """Discover and load the installed plugins, once."""
        with self._lock:
            if self._discovered:
                return
            found, complaints = discovery.candidates(self._entry_points(), self._environ)
            # Set before plugins are loaded, so that a plugin that looks something up when it is
            # imported does not start the discovery again.
            self._discovered = True
            if self._environ.get("BRAX_PLUGINS_TRACE") == "1":
                self._manager.trace.root.setwriter(sys.stderr.write)
                self._manager.enable_tracing()
            for candidate in found:
                if candidate.off:
                    self._statuses.append(Status(candidate.origin, "off", candidate.off))
                else:
                    load, overrides = candidate.entry_point.load, candidate.overrides
                    self._statuses.append(self._admit(candidate.origin, load, overrides))
        for complaint in complaints:
            _warn(complaint)
        for s in self._statuses:
            if s.state == "failed":
                _warn(f"plugin {s.origin} was left out: {s.reason}. {s.remedy}", s.error)

    def _admit(self, origin: Origin, load: Callable[[], object], override: bool = False) -> Status:
        """Register everything that one plugin provides, or nothing of it."""
        claims: list[tuple[str, Spec]] = []
        try:
            plugin = load()
            check_version(plugin)
            if self._manager.is_registered(plugin) or self._manager.has_plugin(_key(origin)):
                raise Rejected("it is registered already", "Unregister it first")
            try:
                self._manager.register(plugin, _key(origin))
            except pluggy.PluginValidationError as error:
                raise arguments_of_a_hook(plugin) from error
            try:
                self._check_hooks(plugin)
                self._collect(plugin, claims)
                check_specs(claims)
                check_free(origin, claims, () if override else self._everything())
            except Exception:
                # The hooks of a rejected plugin must not be called for later ones.
                self._manager.unregister(plugin)
                raise
        # A plugin that calls `sys.exit` when it is imported must not end the program.
        except (Exception, SystemExit) as error:
            reason = str(error) if isinstance(error, Rejected) else describe_error(error)
            remedy = getattr(error, "remedy", "Repair, update or uninstall it")
            remedy += f", or set BRAX_PLUGINS_DISABLE={origin.distribution}."
            claimed = frozenset((kind, spec.name) for kind, spec in claims)
            return Status(origin, "failed", reason, remedy, error, claimed)
        for kind, spec in claims:
            taken = self._registered[kind].get(spec.name)
            if taken and override:
                self._overridden.setdefault(origin, []).append(taken)
            if override or not taken:
                self._registered[kind][spec.name] = Registered(kind, spec, origin, override)
        self._indices.clear()
        return Status(origin, "loaded")

    def _check_hooks(self, plugin: object) -> None:
        """Raise if a hook does not exist, or lacks its mark."""
        marked = [caller.name for caller in self._manager.get_hookcallers(plugin) or ()]
        hooks = [kind.hook for kind in KINDS.values()]
        try:
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            name = next(name for name in marked if name not in hooks)
            raise Rejected(f"it has an unknown hook '{name}'", _rename(name, hooks)) from error
        # An unmarked function is no hook to pluggy, so a misspelt name is found by its resemblance.
        for name in dir(plugin):
            unknown = name.startswith("brax_") and name not in hooks
            if unknown and closest(name, hooks) and callable(getattr(plugin, name)):
                raise Rejected(f"it has an unknown hook '{name}'", _rename(name, hooks))
        for name in hooks:
            if hasattr(plugin, name) and name not in marked:
                raise Rejected(f"its {name} is not marked as a hook", "Mark it with @hookimpl")

    def _collect(self, plugin: object, claims: list[tuple[str, Spec]]) -> None:
        """Call the plugin's hooks and add their specs to `claims`."""
        others = [other for other in self._manager.get_plugins() if other is not plugin]
        for kind in KINDS.values():
            if not hasattr(plugin, kind.hook):
                continue
            # pluggy calls the hooks of all plugins; without the others, only those of this one.
            results = self._manager.subset_hook_caller(kind.hook, others)()
            specs = results[0] if results else None
            if not isinstance(specs, list) or not all(isinstance(spec, Spec) for spec in specs):
                raise Rejected(
                    f"its {kind.hook} returned {specs!r:.80}, not a list of brax.plugins.Spec",
                    "Let it return a list of Spec(name, target)",
                )
            claims += [(kind.name, spec) for spec in specs]

    def _unknown(self, kind: str, name: str) -> UnknownNameError:
        """Return the error for an unknown name, with the plugins that might have provided it."""
        names = self._registered[kind]
        message = str(unknown_name(kind.replace("_", " "), name, names))
        if not closest(name, names):  # not a slip of the keys, so perhaps the user's own object
            message += f" A plugin registers further ones by its hook {KINDS[kind].hook}."
        for status in self._statuses:
            if status.state == "failed":
                # A plugin that failed after its hooks were called is known to own the name.
                owns = (kind, name) in status.claims
                what = f"'{name}' belongs to {status.origin}, which" if owns else str(status.origin)
                message += f" {what} failed to load: {status.reason}."
            elif status.state == "off":
                message += f" {status.origin} is switched off ({status.reason})."
        present = {status.origin.distribution for status in self._statuses}
        # The name may belong to a distribution of Brax that is not installed.
        missing = [name for name in OURS if name not in present]
        return UnknownNameError(
            message + (f" Not installed: {', '.join(missing)}." * bool(missing))
        )


def _warn(complaint: str, error: BaseException | None = None) -> None:
    """Warn of a plugin, with the error as its cause, for `brax --debug`."""
    warning = PluginWarning(complaint)
    warning.__cause__ = error
    warnings.warn(warning, stacklevel=5)


def _local(name: str) -> Origin:
    """Return the origin of a plugin that is not installed; it has no version."""
    return Origin(name, "", name)


def _key(origin: Origin) -> str:
    """Return pluggy's name of a plugin."""
    return f"{origin.distribution}:{origin.entry_point}"


def _rename(name: str, hooks: list[str]) -> str:
    """Return the advice for a hook with an unknown name."""
    if near := difflib.get_close_matches(name, hooks, n=1, cutoff=0.5):
        return f"Rename it {near[0]}"
    return f"The hooks are {', '.join(hooks)}"
