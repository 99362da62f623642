"""Backends: the compilers that a kernel may be handed to.

A backend is a module with the two functions of `Backend`. For each platform, `batch_last` has a
list of backends; the first that supports a call compiles it. The last one is `xla`, which supports
every call.
"""

from collections.abc import Sequence
from typing import Protocol

from brax.kernels.codegen.call import Form, Kernel, Local
from brax.kernels.codegen.explain import Outcome


class Backend(Protocol):
    """A compiler of kernels."""

    def supports(self, kernel: Kernel, form: Form, /) -> Outcome:
        """Return the outcome that compiling a call has; its reason says why it is not supported."""
        ...

    def compile(self, kernel: Kernel, form: Form, /) -> Local:
        """Return a function of all operands that adds a supported call to the traced program."""
        ...


def compiled(kernel: Kernel, form: Form, backends: Sequence[Backend]) -> Local:
    """Return what the first backend that supports a call makes of it."""
    first = next(backend for backend in backends if backend.supports(kernel, form).native)
    return first.compile(kernel, form)
