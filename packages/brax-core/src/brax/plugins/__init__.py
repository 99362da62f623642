"""Plugins: joints, shapes, environments, agents and commands from installed packages.

A plugin is a module with `BRAX_PLUGIN_API = 1` and functions marked `@hookimpl` that return lists
of `Spec`, named by an entry point of the group `brax`. The hooks are in `brax.plugins.hookspecs`;
`docs/plugins.md` shows how to write one. Code that looks objects up by name imports what is
exported here. Start reading at `registry`.
"""

import pluggy

from brax.plugins.admission import API_VERSION
from brax.plugins.kinds import KINDS
from brax.plugins.records import Origin, Registered, Spec, Status
from brax.plugins.registry import PluginWarning, Registry

hookimpl = pluggy.HookimplMarker("brax")
"""Marks a function of a plugin as the implementation of a hook."""

_registry = Registry()
get = _registry.get
find = _registry.find
keys = _registry.keys
clashes = _registry.clashes
name_of = _registry.name_of
all_that_load = _registry.all_that_load
names = _registry.names
specs = _registry.specs
statuses = _registry.statuses
register = _registry.register
unregister = _registry.unregister

__all__ = [
    "API_VERSION",
    "KINDS",
    "Origin",
    "PluginWarning",
    "Registered",
    "Registry",
    "Spec",
    "Status",
    "all_that_load",
    "clashes",
    "find",
    "get",
    "hookimpl",
    "keys",
    "name_of",
    "names",
    "register",
    "specs",
    "statuses",
    "unregister",
]
