"""The index of colliders and model formats by the keys that they are found by."""

import difflib
from collections.abc import Iterable, Iterator, Sequence

from brax.errors import PluginError
from brax.plugins import kinds
from brax.plugins.kinds import KINDS
from brax.plugins.records import Registered


def index(
    kind: str, registered: Iterable[Registered]
) -> tuple[dict[str, Registered], list[tuple[str, BaseException | None]]]:
    """Return the objects of a kind by their keys.

    Returns:
        The owner of each key, and complaints with their errors. A complaint is about an object that
        cannot be loaded, or about a key that is taken; its first owner keeps it.
    """
    found: dict[str, Registered] = {}
    complaints: list[tuple[str, BaseException | None]] = []
    # Declared keys come first: their clashes were found at discovery, where the later plugin was
    # left out, so an object that only now shows its keys must not take them. Overriding ones come
    # last.
    for r in sorted(registered, key=lambda r: (r.overrides, not kinds.declared(kind, r.spec))):
        try:
            given = kinds.declared(kind, r.spec) or kinds.keys(
                kind, getattr(kinds.load(r), KINDS[kind].chosen_by)
            )
        except PluginError as error:
            complaints.append((str(error), error))
            continue
        for key in given:
            first = r if r.overrides else found.get(key, r)
            if first != r:
                complaints.append((_clash(r, key, first), None))
            found[key] = first
    return found, complaints


def misspelt_types(colliders: Iterable[Registered], types: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each geometry type of a collider that is almost a registered one.

    Other unregistered types are no fault: the package that defines the type may not be installed,
    and then no model has it.

    Args:
        colliders: the registered colliders.
        types: the registered geometry types.
    """
    for collider in colliders:
        for name in sorted(set(collider.spec.keys) - set(types)):
            # Only a warning: another package may define a type with a similar name, and without
            # it the collider is unused, not wrong. `brax plugins doctor` counts it as a problem.
            if near := difflib.get_close_matches(name, types, n=1, cutoff=0.85):
                yield (
                    f"{collider} is never used: no geometry type '{name}' is registered. Did you "
                    f"mean '{near[0]}'?"
                )


def _clash(late: Registered, key: str, first: Registered) -> str:
    """Return the complaint about a key that is taken."""
    return (
        f"{late} is not used for {key}, which {first.kind} '{first.name}' of {first.origin} is "
        "registered for already. Uninstall one of the two, or replace the other on purpose by "
        f"BRAX_PLUGINS_OVERRIDE={late.distribution}."
    )
