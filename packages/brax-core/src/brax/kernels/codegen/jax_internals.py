"""Adapter to those internals of JAX that the code generator reads.

The parameters of a jaxpr's equations, the context of a lowering rule and XLA's foreign-function
interface are not part of JAX's public interface, and a new version may change them. This module is
the only one that knows their forms, with two exceptions: the structures of that interface are in
`ffi_layout`, and `call.DEVICES` makes JAX decide on devices. If this module meets a form that it
does not know, it raises `UnknownForm`, and `warn` warns once. XLA then compiles the kernel, which
is several times slower.

The primitives outside of this folder, above all `brax.kernels.batch_last`, read more of JAX: the
devices and the tangent type of an abstract value. These have no guard, because programs that XLA
compiles need them as well.

To support a new version of JAX, run the tests with it, add what it changed here, and set `CHECKED`.
The parameters of an operation are where its lowering rule is registered.
"""

import functools
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.extend.core import ClosedJaxpr
from jax.interpreters import partial_eval

CHECKED = "0.10.0", "0.12.0"
"""The oldest and the newest version of JAX that the tests have passed with."""

FFI_MAJOR, FFI_MINOR = 0, 3
"""The version of XLA's foreign-function interface for which `ffi` was written."""


class UnknownForm(Exception):
    """JAX has a form that this module does not know: its version is not among those `CHECKED`."""


def needed(closed: Any) -> tuple[Any, tuple[bool, ...]]:
    """Return a jaxpr without dead equations, and for each operand whether it is kept.

    Operands that are read are kept, and the first in any case: a kernel takes the size of its batch
    from an operand.
    """
    kept = [i == 0 for i in range(len(closed.jaxpr.invars))]
    return pruned(closed, [True] * len(closed.jaxpr.outvars), kept)


def pruned(closed: Any, used: Sequence[bool], kept: Sequence[bool]) -> tuple[Any, tuple[bool, ...]]:
    """Return a jaxpr without what no used result needs, and for each operand whether it is kept.

    Args:
        closed: the closed jaxpr.
        used: whether each result is used.
        kept: whether each operand is kept even if it is not read.
    """
    # Dead code elimination also shortens the loops and calls inside.
    jaxpr, read = partial_eval.dce_jaxpr(closed.jaxpr, list(used), list(kept))
    return ClosedJaxpr(jaxpr, closed.consts), tuple(read)


def register_dead_code_rule(
    primitive: Any, rule: Callable[[list[bool], Any], tuple[list[bool], Any]]
) -> None:
    """Register how dead code elimination shortens the equations of a primitive.

    Args:
        primitive: the primitive.
        rule: takes whether each result is used, and the equation. It returns whether each operand
            is still used, and the shorter equation, or None if nothing is left of it.
    """
    # The equation is the last argument: from JAX 0.12 on, another one is before it.
    partial_eval.dce_rules[primitive] = lambda used, *given: rule(used, given[-1])


def check(eqn: Any, parameters: str | None) -> None:
    """Check that an equation has the parameters that its lowering rule knows.

    Args:
        eqn: the equation.
        parameters: their names, separated by blanks; None for any. Those that no rule reads are
            named too, since a new one may change what the operation means. Some versions of JAX
            lack those with a question mark.

    Raises:
        UnknownForm: if one is missing, or there is another one.
    """
    if parameters is None:
        return
    # An unknown parameter could change what the operation computes, so it is not ignored.
    required, allowed = _known(parameters)
    for parameter in required.difference(eqn.params):
        raise UnknownForm(f"the operation '{eqn.primitive.name}' has no parameter '{parameter}'")
    for parameter in set(eqn.params).difference(allowed):
        raise UnknownForm(f"the operation '{eqn.primitive.name}' has a parameter '{parameter}'")


@functools.cache
def _known(parameters: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the parameters that a primitive must have, and those that it may have."""
    words = parameters.split()
    required = frozenset(w for w in words if not w.endswith("?"))
    return required, frozenset(w.removesuffix("?") for w in words)


class Body(NamedTuple):
    """A function that an equation calls."""

    jaxpr: Any
    """The open jaxpr."""
    consts: tuple[Any, ...]
    """The values of its constants."""


def _body(jaxpr: Any) -> Body:
    """Return the parts of a jaxpr, which may be closed or open."""
    # Since JAX 0.11 every jaxpr has constants; before, only closed ones had.
    if hasattr(jaxpr, "consts"):
        return Body(jaxpr.jaxpr, tuple(jaxpr.consts))
    return Body(jaxpr, ())


def called(eqn: Any) -> Body:
    """Return the function that a call calls.

    Raises:
        UnknownForm: if the equation has no function where one is expected.
    """
    # Since JAX 0.12, functions such as `jnp.interp` are one equation, which is traced when needed.
    if "_prim" in eqn.params:
        expand = getattr(eqn.params["_prim"], "expand", None)
        if expand is None:
            raise UnknownForm(f"the operation '{eqn.primitive.name}' cannot be expanded")
        shapes = (jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars)
        return _body(jax.make_jaxpr(expand)(*shapes))
    # `jit` has `jaxpr`; functions with derivatives of their own have `call_jaxpr` or `fun_jaxpr`,
    # whose derivative rules no longer matter here.
    for parameter in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        if eqn.params.get(parameter) is not None:
            return _body(eqn.params[parameter])
    raise UnknownForm(f"the operation '{eqn.primitive.name}' has no parameter 'jaxpr'")


def changed(jaxpr: Any, change: Callable[[Any], Any]) -> Any:
    """Return a jaxpr, open or closed, whose open jaxpr is changed by a function."""
    body = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
    new = change(body)
    # Since JAX 0.11 an open jaxpr and a closed one are the same.
    return new if body is jaxpr else jaxpr.replace(jaxpr=new)


class Branches(NamedTuple):
    """The parts of a `cond`."""

    all: list[Body]
    """The functions, of which one is called."""


def branches(eqn: Any) -> Branches:
    """Return the branches of a `cond`."""
    return Branches([_body(b) for b in eqn.params["branches"]])


class Scan(NamedTuple):
    """The parts of a `scan`, a loop of known length.

    Its operands are constants, then the carry, then arrays that are scanned over.
    """

    body: Body
    """The function of one iteration."""
    length: int
    """The number of iterations."""
    reverse: bool
    """True if it begins with the last elements."""
    consts: int
    """The number of operands that are the same in each iteration."""
    carry: int
    """The number of operands that are carried."""


def scan(eqn: Any) -> Scan:
    """Return the parts of a `scan`.

    Raises:
        UnknownForm: if it is not known which operands are constants and which are carried.
    """
    p = eqn.params
    if "num_carry" in p and "num_consts" in p:
        consts, carry = p["num_consts"], p["num_carry"]
    # Since JAX 0.11 a parameter has three trees: of constants, of the carry, and of the rest.
    elif hasattr(p.get("ft_in"), "unpack"):
        # Each leaf of a tree is one operand.
        groups = [len(tree) for tree in p["ft_in"].unpack()]
        if len(groups) != 3 or sum(groups) != len(eqn.invars):
            raise UnknownForm("the operation 'scan' has other groups of operands")
        consts, carry, _ = groups
    else:
        raise UnknownForm("the operation 'scan' does not say which operands are its carry")
    return Scan(_body(p["jaxpr"]), int(p["length"]), bool(p["reverse"]), consts, carry)


class While(NamedTuple):
    """The parts of a `while`, a loop that ends by a test.

    Its operands are constants of the test, then constants of the body, then the carry.
    """

    test: Body
    """The function that says whether there is another iteration."""
    body: Body
    """The function of one iteration."""
    test_consts: int
    """The number of operands that only the test reads."""
    body_consts: int
    """The number of operands that only the body reads."""


def while_loop(eqn: Any) -> While:
    """Return the parts of a `while`."""
    p = eqn.params
    parts = _body(p["cond_jaxpr"]), _body(p["body_jaxpr"])
    return While(*parts, p["cond_nconsts"], p["body_nconsts"])


def linear_solver(eqn: Any) -> tuple[Body, list[int]]:
    """Return the solver of a `custom_linear_solve`, and the numbers of the operands it takes."""
    # Operands: constants of matvec, vecmat, solve and transpose_solve, then the right-hand sides.
    counts = eqn.params["const_lengths"]
    first = counts.matvec + counts.vecmat
    right = first + counts.solve + counts.transpose_solve
    own = [*range(first, first + counts.solve), *range(right, len(eqn.invars))]
    return _body(eqn.params["jaxprs"].solve), own


def inner(eqn: Any) -> list[Any]:
    """Return the jaxprs among the parameters of an equation."""
    return [
        getattr(q, "jaxpr", q)
        for p in eqn.params.values()
        for q in (p if isinstance(p, (tuple, list)) else [p])
        if hasattr(q, "jaxpr") or hasattr(q, "eqns")
    ]


_HOME = str(Path(jax.__file__).parent)
"""The folder of JAX's own source files."""


def source(eqn: Any) -> str:
    """Return the innermost source line outside of JAX that traced an equation, or nothing.

    An equation inside of one of JAX's own compiled functions has none; the call of that function
    has one.
    """
    traceback = getattr(eqn.source_info, "traceback", None)
    # Frames come innermost first.
    for frame in getattr(traceback, "frames", ()):
        if not frame.file_name.startswith(_HOME):
            modules = list(sys.modules.items())
            # The module's name is shorter than its file's, and the same on every machine.
            names = [n for n, m in modules if getattr(m, "__file__", None) == frame.file_name]
            module = names[0] if names else frame.file_name
            return f"{module}:{frame.line_num}, in {frame.function_name}"
    return ""


class Placement(NamedTuple):
    """The devices that a program is lowered for."""

    devices: int
    """The number of devices that share the batch; one within a `shard_map`, which hands each device
    its part."""
    per_device: bool
    """True if each device has a program of its own, for its part of the batch."""


def placement(context: Any) -> Placement:
    """Return the devices of the program that a lowering rule is called for.

    Args:
        context: the rule's first argument.

    Raises:
        UnknownForm: if the context does not say.
    """
    axes = context.module_context.axis_context
    # Within a `shard_map`, or where that is lowered itself.
    if hasattr(axes, "manual_axes"):
        manual = axes.manual_axes
        return Placement(1, not manual or manual == frozenset(axes.mesh.axis_names))
    if not hasattr(axes, "num_devices"):
        raise UnknownForm(f"a program is lowered with a '{type(axes).__name__}'")
    return Placement(axes.num_devices, axes.num_devices == 1)


def exported(context: Any) -> bool:
    """Return whether the program that a lowering rule is called for is for `jax.export`.

    Args:
        context: the rule's first argument.
    """
    parameters = getattr(context.module_context, "lowering_parameters", None)
    return bool(getattr(parameters, "for_export", False))


@functools.lru_cache(maxsize=1)
def ffi_version() -> int:
    """Return the minor version of XLA's foreign-function interface that handlers claim.

    Raises:
        UnknownForm: if the installed major version is not the one that handlers are written for.
    """
    header = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
    # The version is only in the header: no function of JAX returns it.
    text = header.read_text() if header.exists() else ""
    found = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", text))
    if found.get("MAJOR") != str(FFI_MAJOR) or "MINOR" not in found:
        raise UnknownForm(f"XLA's foreign-function interface has the version {found or 'unknown'}")
    # A handler may not claim more than the installed interface has.
    return min(int(found["MINOR"]), FFI_MINOR)


# The cache makes the warning appear once for each kernel and reason.
@functools.cache
def warn(kernel: str, reason: str) -> None:
    """Warn, once for each kernel and reason, that the code generator failed.

    Args:
        kernel: the kernel's name in messages.
        reason: the error.
    """
    oldest, newest = (tuple(map(int, version.split("."))) for version in CHECKED)
    advice = (
        f"The code generator was tested with JAX {CHECKED[0]} to {CHECKED[1]}, and this is JAX "
        f"{jax.__version__}: install one of these, or a newer brax-core."
    )
    if oldest <= jax.__version_info__ <= newest:
        advice = (
            f"JAX {jax.__version__} was tested, so this is a fault of brax-core: please report it, "
            "with this message and the kernel's code."
        )
    warnings.warn(
        f"Brax runs slower than it should: the code generator failed on the kernel {kernel} "
        f"({reason}), so XLA compiles it. {advice}",
        RuntimeWarning,
        stacklevel=2,
    )
