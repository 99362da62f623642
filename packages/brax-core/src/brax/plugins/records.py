"""What a plugin hands over, and what the registry knows about it."""

from dataclasses import dataclass, field
from typing import Any, Literal

OURS = ("brax-core", "brax-io", "brax-envs", "brax-agents")
"""The distributions of this project; they load first, in this order."""


@dataclass(frozen=True)
class Spec:
    """One thing that a plugin brings."""

    name: str
    """The name that users look it up by."""
    target: Any
    """The object, or `"module:attribute"`, imported when the object is first asked for."""
    summary: str = ""
    """One line for lists and help texts."""
    keys: tuple[str, ...] = ()
    """What a collider or a model format is chosen by: its two geometry types, or its suffixes.
    Declared here, the object is imported only where it is chosen."""


@dataclass(frozen=True)
class Origin:
    """Where a plugin comes from."""

    distribution: str
    version: str
    entry_point: str

    def __str__(self) -> str:
        """How messages name it."""
        return f"{self.distribution} {self.version}".strip()


@dataclass(frozen=True)
class Registered:
    """A `Spec` in the registry, with the plugin that brought it."""

    kind: str
    spec: Spec
    origin: Origin
    overrides: bool = False
    """True if it may take names and keys that others have."""

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
        """Name of the distribution that brought it."""
        return self.origin.distribution

    @property
    def ours(self) -> bool:
        """True if it is one of Brax's own."""
        return self.distribution in OURS

    @property
    def version(self) -> str:
        """Version of the distribution that brought it."""
        return self.origin.version

    @property
    def target(self) -> str:
        """Where its object comes from, as text."""
        return self.spec.target if isinstance(self.spec.target, str) else repr(self.spec.target)

    def __str__(self) -> str:
        """How messages name it."""
        return f"{self.kind} '{self.name}' of {self.origin} ({self.target})"


@dataclass(frozen=True)
class Status:
    """What became of one plugin."""

    origin: Origin
    state: Literal["loaded", "failed", "off"]
    reason: str = ""
    """Why it is not loaded."""
    remedy: str = ""
    """What to do about it."""
    error: BaseException | None = field(default=None, repr=False)
    """What was raised, if it failed."""
    claims: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)
    """Kinds and names that it announced before it failed."""
