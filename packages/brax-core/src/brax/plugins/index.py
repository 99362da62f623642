"""Which colliders and model formats are chosen by which keys."""

import difflib
from collections.abc import Iterable, Iterator, Sequence

from brax.errors import PluginError
from brax.plugins import kinds
from brax.plugins.kinds import KINDS
from brax.plugins.records import Registered


def index(
    kind: str, registered: Iterable[Registered]
) -> tuple[dict[str, Registered], list[tuple[str, BaseException | None]]]:
    """Finds what is chosen by which key.

    Returns:
        The winners by key, and complaints with their errors: about what cannot be loaded, and about
        keys that are taken, which keep their first owner.
    """
    found: dict[str, Registered] = {}
    complaints: list[tuple[str, BaseException | None]] = []
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
    """Gives a sentence for each geometry type of a collider that is not registered, but nearly.

    The type of a package that is not installed may be missing: no model can have it.

    Args:
        colliders: what is registered.
        types: the registered geometry types.
    """
    for collider in colliders:
        for name in sorted(set(collider.spec.keys) - set(types)):
            if near := difflib.get_close_matches(name, types, n=1, cutoff=0.85):
                yield (
                    f"{collider} is never used: no geometry type '{name}' is registered. Did you "
                    f"mean '{near[0]}'?"
                )


def _clash(late: Registered, key: str, first: Registered) -> str:
    return (
        f"{late} is not used for {key}, which {first.kind} '{first.name}' of {first.origin} is "
        "registered for already. Uninstall one of the two, or replace the other on purpose by "
        f"BRAX_PLUGINS_OVERRIDE={late.distribution}."
    )
