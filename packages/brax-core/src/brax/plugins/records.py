"""Records: the specs of plugins, and the registry's facts about them."""

from dataclasses import dataclass, field
from typing import Any, Literal

from brax._shared_name import OURS


@dataclass(frozen=True)
class Spec:
    """One object that a plugin provides."""

    name: str
    """The name that users look it up by."""
    target: Any
    """The object, or `"module:attribute"`, imported when it is first asked for."""
    summary: str = ""
    """One line for lists and help texts."""
    keys: tuple[str, ...] = ()
    """Keys of a collider or a model format: its two geometry types, or its suffixes.

    An object with keys here is imported only when it is found, others at the first search."""


@dataclass(frozen=True)
class Origin:
    """The distribution and entry point that a plugin comes from."""

    distribution: str
    version: str
    entry_point: str

    def __str__(self) -> str:
        """Return how messages name it."""
        return f"{self.distribution} {self.version}".strip()


@dataclass(frozen=True)
class Registered:
    """A `Spec` in the registry, with the origin of its plugin."""

    kind: str
    spec: Spec
    origin: Origin
    overrides: bool = False
    """True if it may replace names and keys that others have registered."""

    @property
    def name(self) -> str:
        """The name that users look it up by."""
        return self.spec.name

    @property
    def summary(self) -> str:
        """One line for lists and help texts."""
        return self.spec.summary

    @property
    def distribution(self) -> str:
        """Name of the distribution that provides it."""
        return self.origin.distribution

    @property
    def ours(self) -> bool:
        """True if it is one of Brax's own."""
        return self.distribution in OURS

    @property
    def version(self) -> str:
        """Version of the distribution that provides it."""
        return self.origin.version

    @property
    def target(self) -> str:
        """The target as text."""
        return self.spec.target if isinstance(self.spec.target, str) else repr(self.spec.target)

    def __str__(self) -> str:
        """Return how messages name it."""
        return f"{self.kind} '{self.name}' of {self.origin} ({self.target})"


@dataclass(frozen=True)
class Status:
    """The outcome of loading one plugin."""

    origin: Origin
    state: Literal["loaded", "failed", "off"]
    reason: str = ""
    """The reason why it is not loaded."""
    remedy: str = ""
    """Advice to the user."""
    error: BaseException | None = field(default=None, repr=False)
    """The error, if it failed."""
    claims: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)
    """Kinds and names that it announced before it failed."""
