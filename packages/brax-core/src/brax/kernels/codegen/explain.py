"""Outcomes: which kernels became native, and why XLA compiles the others."""

import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """The outcome of one kernel's translation."""

    kernel: str
    """The function that the kernel computes."""
    reason: str = ""
    """The operation or type that is not translated; empty if the kernel is native."""
    where: str = ""
    """The source line of the operation that is not translated: module, line and function."""

    @property
    def native(self) -> bool:
        """True if the kernel became native code."""
        return not self.reason

    def __str__(self) -> str:
        """Return a sentence without its full stop."""
        if self.native:
            return f"the kernel {self.kernel} is native"
        where = f" ({self.where})" if self.where else ""
        return (
            f"XLA compiles the kernel {self.kernel}, because the code generator does not "
            f"translate {self.reason}{where}"
        )


# A context variable, not a global: threads lower programs of their own at the same time.
_collected: ContextVar[list[Outcome] | None] = ContextVar("_collected", default=None)


@contextmanager
def collected() -> Iterator[list[Outcome]]:
    """Collect the outcomes of the kernels of programs that are lowered within the context."""
    found: list[Outcome] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def note(outcome: Outcome) -> None:
    """Collect an outcome, and warn of an operation that is not translated."""
    found = _collected.get()
    if found is not None and outcome not in found:
        found.append(outcome)
    # Without a line the user can do nothing about it, for example about the processor.
    if outcome.where:
        _warn(outcome)


# The cache makes the warning appear once for each outcome.
@functools.cache
def _warn(outcome: Outcome) -> None:
    """Warn, once, that a kernel is left to XLA."""
    warnings.warn(
        f"{outcome}. The whole kernel runs several times slower for it. docs/architecture.md says "
        "which operations are translated, and docs/code-generator.md says how to add a rule.",
        RuntimeWarning,
        stacklevel=3,
    )
