"""Lowering of jaxprs, and the rules of operations that call functions: loops and branches.

`lower_jaxpr` goes through the equations of a jaxpr in order and finds the lowering rule of each.
The rules in this module call it again for the functions of their operation.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from jax.extend.core import Literal

from brax.kernels.codegen import ir, jax_internals
from brax.kernels.codegen.emitter import (
    LLVM_TYPES,
    Buffer,
    BufferElement,
    Emitter,
    Unsupported,
    Value,
    code_of,
    is_runtime_value,
)
from brax.kernels.codegen.ir import Type
from brax.kernels.codegen.loops import LastRead, buffer_array
from brax.kernels.codegen.lowering import (
    arrays_in_memory,
    joined_trees,
    rules,
    scalars,
    symmetric,
)
from brax.kernels.codegen.lowering.arrays import (
    BATCH_MARK,
    ElementArray,
    constant_array,
    element_shape,
    map_elements,
)
from brax.kernels.codegen.lowering.registry import Takes, lowering_rule, operation
from brax.kernels.compaction import FLAGGED
from brax.kernels.skip import UNREAD, WHERE_NEEDED
from brax.kernels.symmetric import OUTER_SUMS

_function_rule = functools.partial(lowering_rule, takes=Takes.FUNCTIONS)


def lower_jaxpr(
    emitter: Emitter,
    jaxpr: Any,
    consts: Sequence[Any],
    operands: Sequence[ElementArray],
    owned: AbstractSet[str] = frozenset(),
) -> list[ElementArray]:
    """Emit the instructions of a jaxpr, equation by equation, and return its results.

    Args:
        emitter: receives the instructions.
        jaxpr: the open jaxpr.
        consts: the values of its constants.
        operands: its operands.
        owned: names of buffers that nobody else reads, which may be overwritten after their last
            use: the carry of a loop whose body this is.

    Raises:
        Unsupported: if an operation has no lowering rule.
    """
    environment: dict[Any, ElementArray] = {}

    @functools.cache
    def names(var: Any) -> set[str]:
        """Return the names of the buffers that a variable has elements of."""
        return _names_in([environment[var]])

    def read(var: Any) -> ElementArray:
        return constant_array(var.val) if isinstance(var, Literal) else environment[var]

    def write(variables: Sequence[Any], arrays: Sequence[ElementArray]) -> None:
        for var, x in zip(variables, arrays, strict=True):
            # A rule that took another axis for the batch would give a result of another shape.
            if x.shape != element_shape(var.aval.shape):
                raise Unsupported(f"a batch axis that is not the last, {var.aval.shape}")
            environment[var] = x

    write(jaxpr.constvars, [constant_array(c) for c in consts])
    write(jaxpr.invars, operands)
    for number, eqn in enumerate(jaxpr.eqns):
        # Prints and callbacks would have to happen once for each environment, in order.
        if eqn.effects:
            raise Unsupported(f"the side effect of '{eqn.primitive.name}'")
        given = [read(v) for v in eqn.invars]
        # Found only where a rule asks for it, since it looks at all arrays that are read later.
        free = functools.partial(_last_read, jaxpr, number, names, owned)
        try:
            write(eqn.outvars, _results(emitter, eqn, given, free))
        except Unsupported as reason:
            # The innermost equation that has a source line names the culprit.
            reason.where = reason.where or jax_internals.source(eqn)
            raise
    return [read(v) for v in jaxpr.outvars]


def _last_read(
    jaxpr: Any, number: int, names: Callable[[Any], set[str]], owned: AbstractSet[str]
) -> set[str]:
    """Return the names of the buffers that an equation is the last to read."""
    here, *later = jaxpr.eqns[number:]

    def named(atoms: Iterable[Any]) -> set[str]:
        """Return the names of the buffers that some operands have elements of."""
        return set[str]().union(*(names(v) for v in _variables(atoms)))

    # What these equations define has no buffers yet.
    undefined = {v for eqn in (here, *later) for v in eqn.outvars}
    read = itertools.chain(jaxpr.outvars, *(eqn.invars for eqn in later))
    alive = named({*_variables(read)} - undefined)
    # Who calls this jaxpr may read its operands later.
    given = named((*jaxpr.constvars, *jaxpr.invars)) - owned
    return named(here.invars) - given - alive


def _variables(atoms: Iterable[Any]) -> Iterator[Any]:
    """Return the operands of equations that are no literals."""
    return (v for v in atoms if not isinstance(v, Literal))


def _but(free: LastRead, others: AbstractSet[str]) -> LastRead:
    """Return a function for the buffers that nobody reads afterwards but some others."""
    return lambda: free() - others


def _names_in(arrays: Sequence[ElementArray]) -> set[str]:
    """Return the names of the buffers that arrays have elements of."""
    values = (x for array in arrays for x in array.reshape(-1).tolist())
    return {x.buffer.name for x in values if isinstance(x, BufferElement)}


def _results(
    emitter: Emitter, eqn: Any, operands: list[ElementArray], free: LastRead
) -> list[ElementArray]:
    """Return the results of one equation, by its lowering rule.

    `free` returns the names of the buffers that nobody reads afterwards.
    """
    found = operation(eqn)
    if found.takes is Takes.FUNCTIONS and found.rule:
        jax_internals.check(eqn, found.parameters)
        return list(found.rule(emitter, eqn, operands, functools.cache(free)))
    return (arrays_in_memory if emitter.loops else rules).lower(emitter, eqn, operands)


@_function_rule(
    *("jit", "pjit", "closed_call", "core_call", "remat2", "checkpoint"),
    *("custom_jvp_call", "custom_vjp_call", "call_hi_primitive"),
    parts=jax_internals.called,
    parameters=None,
)
def _call(
    emitter: Emitter, eqn: Any, operands: list[ElementArray], free: LastRead
) -> list[ElementArray]:
    """Lower a call: it is inlined, but for functions that have rules of their own."""
    of_call = eqn.params.get("name")
    if of_call == UNREAD:
        return [_Unread(x) for x in operands]
    # A part of a derivative has the function's name too, but other operands, and nobody may need
    # some result: then the function is inlined.
    rule, signatures = _FUNCTIONS.get(of_call, (None, ()))
    if rule and emitter.loops and any(_fits(x, eqn) for x in signatures):
        return rule(emitter, eqn, free, *operands)
    return lower_jaxpr(emitter, *jax_internals.called(eqn), operands)


def register_kernel(name: str, kernel_of: Callable[[Any], Any]) -> None:
    """Register the primitive of a kernel, which becomes a part of a kernel that calls it.

    Args:
        name: the primitive's name.
        kernel_of: takes its equation, and returns the kernel.
    """

    def inlined(
        emitter: Emitter, eqn: Any, operands: list[ElementArray], free: LastRead
    ) -> list[ElementArray]:
        kernel = kernel_of(eqn)
        codes = [code_of(v.aval.dtype) for v in kernel.closed.jaxpr.invars]
        given = [
            _as_operand(emitter, x, code)
            for x, code in zip(kernel.used(operands), codes, strict=True)
        ]
        return lower_jaxpr(emitter, kernel.closed.jaxpr, kernel.closed.consts, given)

    _function_rule(name, kernel=kernel_of, parameters=None)(inlined)


def _as_operand(emitter: Emitter, x: ElementArray, code: str) -> ElementArray:
    """Return an array whose known numbers are read from memory, as those of operands are.

    A kernel is fused by the shape of its expressions, to which known numbers do not belong. So it
    has the same bits within another kernel as alone.
    """
    known = [v for v in x.reshape(-1) if not is_runtime_value(v)]
    known = [v for v in known if not isinstance(v, BufferElement)]
    if not known:
        return x
    address, kind = emitter.operand_in_memory(known, code), Type(LLVM_TYPES.get(code, "i8"))
    count = itertools.count()

    def read(v: Value) -> Value:
        if is_runtime_value(v) or isinstance(v, BufferElement):
            return v
        at = emitter.address(kind, address, next(count))
        value = emitter.emit("load", kind, (at,), (ir.PTR,))
        return value if code != "b1" else emitter.emit("trunc", ir.I1, (value,), (kind,))

    return map_elements(read, x)


@_function_rule("custom_linear_solve", parameters="const_lengths jaxprs")
def _linear_solve(
    emitter: Emitter, eqn: Any, operands: list[ElementArray], free: LastRead
) -> list[ElementArray]:
    """Lower `custom_linear_solve` to the solver that it names, such as one by LU."""
    # The other functions of the operation, such as the matrix product, serve derivatives only.
    solver, solver_operands = jax_internals.linear_solver(eqn)
    return lower_jaxpr(emitter, *solver, [operands[i] for i in solver_operands])


@_function_rule(
    "cond", parts=jax_internals.branches, parameters="branches branches_platforms?", stored=True
)
def _cond(
    emitter: Emitter, eqn: Any, operands: list[ElementArray], free: LastRead
) -> list[ElementArray]:
    """Compute all branches, and select among their results."""
    branches, index = jax_internals.branches(eqn).all, _loaded(emitter, operands[0])[()]
    if not is_runtime_value(index):
        chosen = branches[min(max(int(index), 0), len(branches) - 1)]
        return lower_jaxpr(emitter, *chosen, operands[1:])
    code = code_of(eqn.invars[0].aval.dtype)
    # From the last branch to the first, each is selected where the index is at most its number:
    # so an index that is out of range is clipped, as XLA does.
    out = lower_jaxpr(emitter, *branches[-1], operands[1:])
    for i in reversed(range(len(branches) - 1)):
        other = lower_jaxpr(emitter, *branches[i], operands[1:])
        number = scalars.convert(emitter, index, code, "i4")
        chosen = _filled([scalars.rule("le")(emitter, "i4", number, np.int32(i))], ())
        out = [
            _where(emitter, chosen, yes, no, code_of(v.aval.dtype))
            for yes, no, v in zip(other, out, eqn.outvars, strict=True)
        ]
    return out


def _loaded(emitter: Emitter, x: ElementArray) -> ElementArray:
    """Return an array without elements of buffers."""
    return emitter.loops.loaded(x) if emitter.loops else x


class _Carry:
    """The carry of a loop, kept in memory from one iteration to the next.

    Small arrays are stack slots, which LLVM turns into registers or phi nodes where it can. Large
    ones are buffers. An array with a batch axis has one number for each lane.
    """

    def __init__(
        self,
        emitter: Emitter,
        avals: Sequence[Any],
        start: Sequence[ElementArray],
        free: LastRead | None = None,
    ) -> None:
        """Allocate the memory at the current depth, and store the start of the loop.

        Args:
            emitter: receives the instructions.
            avals: the shapes and types of the carry.
            start: the start of the loop.
            free: returns the names of the buffers that nobody else reads from here on. What starts
                in one of them stays there. None for none.
        """
        self._emitter = emitter
        self._kinds = [
            (code_of(a.dtype), emitter.lanes > 1 and BATCH_MARK in a.shape) for a in avals
        ]
        self._shapes = [x.shape for x in start]
        self.reused: set[str] = set()
        """The names of the buffers that held parts of the start already."""
        self._memory = [
            self._place(kind, x, free) for kind, x in zip(self._kinds, start, strict=True)
        ]
        self.names = {m.name for m in self._memory if isinstance(m, Buffer)}
        """The names of its buffers."""
        self.put(start)

    def _place(
        self, kind: tuple[str, bool], x: ElementArray, free: LastRead | None
    ) -> Buffer | list[str]:
        """Return memory for an array: a buffer that holds it already if it may be changed."""
        loops = self._emitter.loops
        if not loops or not loops.worth_looping(x):
            return [self._emitter.stack_slot(*kind) for _ in range(x.size)]
        found = loops.changeable(x, free) if free else None
        # Two parts that start equal need two buffers.
        if found and (found.code, found.wide) == kind and found.name not in self.reused:
            self.reused.add(found.name)
            return found
        return self._emitter.buffer(*kind, self._emitter.current_depth, x.size)

    def put(self, arrays: Sequence[ElementArray]) -> None:
        """Store values, all of which are computed before the first one is stored."""
        if self._emitter.loops:
            self._emitter.loops.close_all()
        found = [self._saved(*x) for x in zip(self._kinds, self._memory, arrays, strict=True)]
        for kind, memory, x in zip(self._kinds, self._memory, found, strict=True):
            if isinstance(memory, Buffer):
                if not self._is_stored(memory, x):
                    self._emitter.loops.copy(x, kind[0], memory)
                continue
            for value, slot in zip(x.reshape(-1), memory, strict=True):
                self._emitter.store(value, *kind, slot)

    def get(self) -> list[ElementArray]:
        """Load the values that were stored last."""
        # In the body of the loop, a buffer's contents belong to the depth of the body.
        return [
            buffer_array(replace(memory, depth=self._emitter.current_depth), shape)
            if isinstance(memory, Buffer)
            else _filled([self._emitter.load(slot, *kind) for slot in memory], shape)
            for kind, memory, shape in zip(self._kinds, self._memory, self._shapes, strict=True)
        ]

    def _saved(self, kind: tuple[str, bool], memory: Any, x: ElementArray) -> ElementArray:
        """Return values that do not change while the carry is stored.

        If the next carry exchanges two arrays, one would be overwritten before it is read. Such an
        array is copied to a buffer of its own first.
        """
        if not isinstance(memory, Buffer):
            return _loaded(self._emitter, x)
        mine = (isinstance(v, BufferElement) and v.buffer.name in self.names for v in x.reshape(-1))
        if self._is_stored(memory, x) or not any(mine):
            return x
        copied = self._emitter.buffer(*kind, self._emitter.current_depth, x.size)
        self._emitter.loops.copy(x, kind[0], copied)
        return buffer_array(copied, x.shape)

    def _is_stored(self, buffer: Buffer, x: ElementArray) -> bool:
        """Return whether the buffer has the elements of an array already, in order."""
        return all(
            isinstance(v, BufferElement) and v.buffer.name == buffer.name and v.index == i
            for i, v in enumerate(x.reshape(-1))
        )


@_function_rule(
    "scan",
    parts=jax_internals.scan,
    parameters="jaxpr length reverse unroll num_consts? num_carry? ft_in? ft_out?",
    stored=True,
)
def _scan(
    emitter: Emitter, eqn: Any, operands: list[ElementArray], free: LastRead
) -> list[ElementArray]:
    """Lower `scan`, a loop whose number of iterations is known."""
    body, length, reverse, consts, carried = jax_internals.scan(eqn)
    # The operands are constants, the first carry, and arrays that are scanned over (rows).
    first = consts + carried
    fixed, start, rows = operands[:consts], operands[consts:first], operands[first:]
    results = eqn.outvars[carried:]
    if not length or any(v.aval.shape[0] == BATCH_MARK for v in [*eqn.invars[first:], *results]):
        raise Unsupported("a loop that never runs, or runs over environments")
    if emitter.loops and (call := _skipping(body[0], consts, carried)):
        return _scan_where_needed(emitter, eqn, call, operands, free)
    # A single iteration needs neither a loop nor memory for the carry.
    if length == 1:
        out = lower_jaxpr(emitter, *body, [*fixed, *start, *(x[0, ...] for x in rows)])
        return [*out[:carried], *(x[None] for x in out[carried:])]
    # `kinds` are the type codes of the rows.
    kinds = [code_of(v.aval.dtype) for v in eqn.invars[first:]]
    counter = emitter.stack_slot("i4", False)
    # The counter is the same in all lanes: one number, while the carry has one for each lane.
    shared = _names_in([*fixed, *rows])
    carry = _Carry(emitter, [v.aval for v in eqn.invars[consts:first]], start, _but(free, shared))
    # In the second iteration they have other contents.
    emitter.forget(carry.reused)
    emitter.store(np.int32(0), "i4", False, counter)
    loop = _Loop(emitter)
    now, count = carry.get(), emitter.load(counter, "i4", False)
    at = emitter.apply("sub", "i4", np.int32(length - 1), count) if reverse else count
    mine = [_row(emitter, x, at, kind) for x, kind in zip(rows, kinds, strict=True)]
    given = [*fixed, *now, *mine]
    if call := _ending(body[0], consts):
        # Once no lane needs an iteration, the carry stays as it is.
        values = dict(zip(body[0].invars, given, strict=True))
        needed, _ = _choice(call)
        loop.check(emitter.any_lane(_loaded(emitter, values[needed]).reshape(-1)[0]))
        given = _given(call, values | _known(body))
        out = lower_jaxpr(emitter, *jax_internals.called(call), given, carry.names)
    else:
        out = lower_jaxpr(emitter, *body, given, carry.names)
    # What each iteration contributes to the results is stored before the carry changes.
    stacked = [
        _stacked(emitter, x, code_of(v.aval.dtype), length, at)
        for x, v in zip(out[carried:], results, strict=True)
    ]
    following = emitter.apply("add", "i4", count, np.int32(1))
    emitter.store(following, "i4", False, counter)
    carry.put(out[:carried])
    loop.end(emitter.compare("icmp slt", "i4", following, np.int32(length)))
    kept = [
        buffer_array(rows, element_shape(v.aval.shape))
        if isinstance(rows, Buffer)
        else _filled([s.read(i) for i in range(length) for s in rows], element_shape(v.aval.shape))
        for rows, v in zip(stacked, results, strict=True)
    ]
    return [*carry.get(), *kept]


def _ending(jaxpr: Any, consts: int) -> Any:
    """Return the call of `where_needed` that is the whole body of a loop, or None.

    Its truth value must be a part of the carry, and what it leaves as it was all of the carry.
    """
    call, carry = _only_call(jaxpr), jaxpr.invars[consts:]
    if call is None:
        return None
    needed, old = _choice(call)
    return call if old == list(carry) and any(needed is v for v in carry) else None


def _only_call(jaxpr: Any) -> Any:
    """Return the call of `where_needed` that is all that a jaxpr does, or None."""
    if len(jaxpr.eqns) != 1 or jaxpr.eqns[0].primitive.name != WHERE_NEEDED:
        return None
    (call,) = jaxpr.eqns
    whole = list(jaxpr.outvars) == list(call.outvars)
    return call if whole and _keeps_shapes(call) else None


def _known(closed: tuple[Any, Sequence[Any]]) -> dict[Any, ElementArray]:
    """Return the constants of a jaxpr by their variables."""
    jaxpr, consts = closed
    return dict(zip(jaxpr.constvars, map(constant_array, consts), strict=True))


def _given(call: Any, values: Mapping[Any, ElementArray]) -> list[ElementArray]:
    """Return the operands of a call, by the values of variables."""
    return [constant_array(v.val) if isinstance(v, Literal) else values[v] for v in call.invars]


class _Unread(np.ndarray):
    """An array whose values nobody reads where work is skipped."""

    def __new__(cls, x: ElementArray) -> "_Unread":
        """Return the same values, marked."""
        return x.view(cls)


def _skipping(jaxpr: Any, consts: int, carried: int) -> Any:
    """Return the call of `where_needed` that is the whole body of a loop; None if there is more.

    What it tests must be scanned over: its truth value, or the number of the iteration. What it
    leaves as it was must be the carry, or for rows of results something constant or scanned over.
    """
    call = _only_call(jaxpr)
    if call is None:
        return None
    first, needed, old = consts + carried, *_choice(call)
    scanned, fixed = jaxpr.invars[first:], [*jaxpr.constvars, *jaxpr.invars[:consts]]
    known = all(isinstance(v, Literal) or v in [*fixed, *scanned] for v in old[carried:])
    same = all(v is w for v, w in zip(old[:carried], jaxpr.invars[consts:first], strict=True))
    place = _place(call)
    tested = needed in scanned if place is None else place in scanned and needed in fixed
    return call if known and same and tested else None


def _scan_where_needed(
    emitter: Emitter, eqn: Any, call: Any, operands: list[ElementArray], free: LastRead
) -> list[ElementArray]:
    """Lower a loop over work that is skipped where no lane needs it.

    Of an iteration that is skipped only the truth value is read, and nothing is copied. Rows that
    replace those that are scanned over are written in place, if nobody reads the old ones.
    """
    body, length, reverse, consts, carried = jax_internals.scan(eqn)
    jaxpr, first = body[0], consts + carried
    start, rows = operands[consts:first], operands[first:]
    values = _known(body) | dict(zip(jaxpr.invars, operands[:consts], strict=False))
    kinds = {v: code_of(v.aval.dtype) for v in jaxpr.invars[first:]}
    scanned = dict(zip(jaxpr.invars[first:], rows, strict=True))
    needed, old = _choice(call)
    place = _place(call)
    # Rows of results that no lane needs are what the call would leave as it was.
    filled, replaced = [], {}
    for var in old[carried:]:
        code = code_of(var.aval.dtype)
        wide = emitter.lanes > 1 and BATCH_MARK in var.aval.shape
        size = math.prod(element_shape(var.aval.shape))
        if not isinstance(var, Literal) and var in scanned:
            # One that is read elsewhere, or replaced twice, is copied.
            others = [*operands[:first], *(x for v, x in scanned.items() if v is not var)]
            names = _names_in(others)
            buffer = symmetric.changeable(emitter, scanned[var], code, _but(free, names))
            replaced[var] = buffer
            filled.append((buffer, code, size))
            continue
        x = constant_array(var.val) if isinstance(var, Literal) else values[var]
        buffer = emitter.buffer(code, wide, emitter.current_depth, length * size)
        if not isinstance(x, _Unread):
            emitter.loops.copy(np.concatenate([x.reshape(-1)] * length), code, buffer)
        filled.append((buffer, code, size))
    carry = _Carry(emitter, [v.aval for v in eqn.invars[consts:first]], start)

    def row(count: Value) -> Value:
        """Return the row of an iteration."""
        return emitter.apply("sub", "i4", np.int32(length - 1), count) if reverse else count

    def running(count: Value) -> Value:
        """Return the truth value of an iteration."""
        if place is None:
            return _truth(emitter, scanned[needed], row(count))
        return _is_among(emitter, row(count), values[needed])

    leading = place is not None and not reverse
    with _rows_needed(emitter, length, running, leading) as (count, _):
        at = row(count)
        # What is read from a buffer that changes belongs to the body.
        now = scanned | {
            v: buffer_array(replace(buffer, depth=emitter.current_depth), scanned[v].shape)
            for v, buffer in replaced.items()
        }
        values |= {
            v: _row(emitter, x, at, kinds[v], read_only=v not in replaced)
            for v, x in now.items()
            if v is not place
        }
        if place is not None:
            values[place] = _filled([at], ())
        values |= dict(zip(jaxpr.invars[consts:first], carry.get(), strict=True))
        out = lower_jaxpr(emitter, *jax_internals.called(call), _given(call, values))
        # All rows are computed before the first one is stored.
        emitter.loops.close_all()
        for (buffer, code, size), new in zip(filled, out[carried:], strict=True):
            begin = emitter.apply("mul", "i4", at, np.int32(size))
            emitter.loops.copy(new, code, buffer, begin)
        carry.put(out[:carried])
    results = [
        buffer_array(buffer, element_shape(v.aval.shape))
        for (buffer, _, _), v in zip(filled, eqn.outvars[carried:], strict=True)
    ]
    return [*carry.get(), *results]


@_function_rule(
    "while",
    parts=jax_internals.while_loop,
    parameters="body_jaxpr body_nconsts cond_jaxpr cond_nconsts",
    stored=True,
)
def _while(
    emitter: Emitter, eqn: Any, operands: list[ElementArray], free: LastRead
) -> list[ElementArray]:
    """Lower `while`, a loop whose end is found as it runs.

    If each environment, or each row of an array, ends at an iteration of its own, those that have
    ended keep their values until all lanes have ended.
    """
    test, body, test_consts, body_consts = jax_internals.while_loop(eqn)
    first = test_consts + body_consts
    carry = _Carry(emitter, [v.aval for v in eqn.invars[first:]], operands[first:])
    loop = _Loop(emitter)
    now = carry.get()
    # The test belongs to the body of the loop, before the jump out of it.
    (running,) = lower_jaxpr(emitter, *test, [*operands[:test_consts], *now])
    running = _loaded(emitter, running)
    logical_or = functools.partial(scalars.rule("or"), emitter, "b1")
    loop.check(emitter.any_lane(functools.reduce(logical_or, running.reshape(-1))))
    after = lower_jaxpr(emitter, *body, [*operands[test_consts:first], *now])
    # A test without axes is the same in all environments: the loop ends for all at once.
    if running.ndim:
        codes = [code_of(v.aval.dtype) for v in eqn.outvars]
        both = zip(after, now, codes, strict=True)
        after = [_where(emitter, running, new, old, code) for new, old, code in both]
    carry.put(after)
    loop.end("true")
    return carry.get()


def _where(
    emitter: Emitter, which: ElementArray, yes: ElementArray, no: ElementArray, code: str
) -> ElementArray:
    """Select between two arrays by the truth values of their leading axes."""
    # A test of rows has only the leading axes of what it selects.
    which = which.reshape(*which.shape, *(1,) * (yes.ndim - which.ndim))
    operands = [which, yes, no]
    if emitter.loops and emitter.loops.worth_looping(yes):
        return emitter.loops.map_elements(
            lambda c, a, b: emitter.select(c, a, b, code), operands, ["b1", code, code], code
        )
    return map_elements(
        lambda c, a, b: emitter.select(c, a, b, code), *(_loaded(emitter, x) for x in operands)
    )


def _choice(eqn: Any) -> tuple[Any, list[Any]]:
    """Return the truth value of a `where_needed`, and the old value of each result."""
    return eqn.invars[eqn.params["needed"]], [eqn.invars[i] for i in eqn.params["old"]]


def _place(eqn: Any) -> Any:
    """Return the number of the iteration that a `where_needed` is given, or None."""
    place = eqn.params["place"]
    return None if place is None else eqn.invars[place]


def _keeps_shapes(eqn: Any) -> bool:
    """Return whether a `where_needed` has one truth value for each environment.

    One that a selection has broadcast to another shape is an ordinary selection.
    """
    needed, old = _choice(eqn)
    before, after = ([(v.aval.shape, v.aval.dtype) for v in x] for x in (old, eqn.outvars))
    return needed.aval.shape == (1, BATCH_MARK) and before == after


@_function_rule(WHERE_NEEDED, parts=jax_internals.called, parameters="jaxpr needed old place")
def _where_needed(
    emitter: Emitter, eqn: Any, operands: list[ElementArray], free: LastRead
) -> list[ElementArray]:
    """Lower `brax.kernels.skip.where_needed` to a branch around work that no lane needs.

    Old values that nobody reads afterwards are overwritten in place.
    """
    inner, places = jax_internals.called(eqn), eqn.params["old"]
    needed, place = operands[eqn.params["needed"]], eqn.params["place"]
    if place is not None:
        (at,) = _loaded(emitter, operands[place]).reshape(-1)
        needed = _filled([_is_among(emitter, at, needed[:1])], ())
    (needed,) = _loaded(emitter, needed).reshape(-1)[:1]
    if not is_runtime_value(needed) or not _keeps_shapes(eqn):
        return lower_jaxpr(emitter, *inner, operands)
    # The branch is a loop of at most one iteration. Its carry starts with the old values, which
    # remain if the body is skipped.
    carry = _Carry(emitter, [v.aval for v in eqn.outvars], [operands[i] for i in places], free)
    branch = _Loop(emitter, once=True)
    now = dict(zip(places, carry.get(), strict=True))
    branch.check(emitter.any_lane(needed))
    given = [now.get(i, x) for i, x in enumerate(operands)]
    carry.put(lower_jaxpr(emitter, *inner, given, carry.names))
    branch.end("false")
    emitter.forget(carry.reused)
    return carry.get()


@contextmanager
def _rows_needed(
    emitter: Emitter, length: int, needed: Callable[[Value], Value], leading: bool = False
) -> Iterator[tuple[Value, Value]]:
    """Put what is emitted within into a loop over rows, around which those go that no lane needs.

    Args:
        emitter: receives the instructions.
        length: the number of rows.
        needed: takes the number of a row; returns its truth value.
        leading: whether the rows that a lane needs come first, so that the loop ends after them.

    Yields:
        The number of the row, and its truth value.
    """
    counter = emitter.stack_slot("i4", False)
    emitter.store(np.int32(0), "i4", False, counter)
    loop = _Loop(emitter)
    running = needed(emitter.load(counter, "i4", False))
    branch = None if leading else _Loop(emitter, once=True)
    (branch or loop).check(emitter.any_lane(running))
    # Loaded again after the test, so that rows are read there and not before it.
    yield emitter.load(counter, "i4", False), running
    if branch:
        branch.end("false")
    following = emitter.apply("add", "i4", emitter.load(counter, "i4", False), np.int32(1))
    emitter.store(following, "i4", False, counter)
    loop.end(emitter.compare("icmp slt", "i4", following, np.int32(length)))


def _truth(emitter: Emitter, flags: ElementArray, at: Value) -> Value:
    """Return the truth value in a row."""
    (found,) = _loaded(emitter, _row(emitter, flags, at, "b1")).reshape(-1)
    return found


def _is_among(emitter: Emitter, at: Value, count: ElementArray) -> Value:
    """Return whether a row is one of the first `count`."""
    (most,) = _loaded(emitter, count).reshape(-1)
    return scalars.rule("lt")(emitter, "i4", at, most)


def _fits(signature: str, eqn: Any) -> bool:
    """Return whether the operands and results of an equation have the axes of a signature.

    Args:
        signature: see `symmetric.FunctionRules`.
        eqn: the equation.
    """
    sizes = {"1": 1}
    sides = signature.split(" -> "), (eqn.invars, eqn.outvars)
    for names, variables in zip(*sides, strict=True):
        if len(names.split()) != len(variables):
            return False
        for axes, v in zip(names.split(), variables, strict=True):
            *shape, batch = v.aval.shape or (0,)
            if batch != BATCH_MARK or len(axes) != len(shape):
                return False
            if any(sizes.setdefault(x, n) != n for x, n in zip(axes, shape, strict=True)):
                return False
    return True


def _flagged(emitter: Emitter, eqn: Any, free: LastRead, flags: ElementArray) -> list[ElementArray]:
    """Lower `brax.kernels.compaction.flagged`: a loop over the rows that writes the list."""
    depth, most, wide = emitter.current_depth, eqn.outvars[0].aval.shape[0], emitter.lanes > 1
    given = emitter.buffer("b1", wide, depth, flags.size)
    emitter.loops.copy(flags, "b1", given)
    found = emitter.buffer("i4", wide, depth, most)
    emitter.loops.copy(_filled([np.int32(0)] * most, (most,)), "i4", found)
    count = emitter.stack_slot("i4", wide)
    emitter.store(np.int32(0), "i4", wide, count)

    def flag_of(at: Value) -> Value:
        """Return the flag of a row."""
        return emitter.load_element(replace(given, depth=emitter.current_depth), at)

    with _rows_needed(emitter, flags.size, flag_of) as (at, flag):
        place = emitter.load(count, "i4", wide)
        fits = scalars.rule("and")(
            emitter, "b1", flag, scalars.rule("lt")(emitter, "i4", place, np.int32(most))
        )
        emitter.store_where(found, place, at, fits)
        one = emitter.select(flag, np.int32(1), np.int32(0), "i4")
        emitter.store(emitter.apply("add", "i4", place, one), "i4", wide, count)
    shapes = [element_shape(v.aval.shape) for v in eqn.outvars]
    total = _filled([emitter.load(count, "i4", wide)], shapes[1])
    return [buffer_array(found, shapes[0]), total]


def _outer_sums(
    emitter: Emitter,
    eqn: Any,
    free: LastRead,
    count: ElementArray,
    *arrays: ElementArray,
) -> list[ElementArray]:
    """Lower `brax.kernels.symmetric.outer_sums`: a loop over the chunks that some lane needs."""
    code, (start, rows, weights) = code_of(eqn.outvars[0].aval.dtype), arrays
    total = symmetric.changeable(emitter, start, code, free)
    x, y = (symmetric.in_memory(emitter, a, code) for a in (rows, weights))
    running = functools.partial(_is_among, emitter, count=count)
    with _rows_needed(emitter, len(rows), running, leading=True) as (at, _):
        symmetric.add_outer(emitter, total, x, y, at, rows.shape[1:4], weights.shape[1])
    return [buffer_array(total, element_shape(eqn.outvars[0].aval.shape))]


def _row(
    emitter: Emitter, x: ElementArray, at: Value, code: str, read_only: bool = False
) -> ElementArray:
    """Return the elements at an index of the first axis, which is the same in all lanes.

    Args:
        emitter: receives the instructions.
        x: the array.
        at: the index.
        code: the type code of the elements.
        read_only: whether nobody writes to the array in the loop that the index belongs to, so that
            its elements may be read where they are.
    """
    if emitter.loops and emitter.loops.worth_looping(x):
        size = math.prod(x.shape[1:])
        buffer = emitter.loops.whole_buffer(x) if read_only else None
        if buffer and not buffer.batch_strided:
            return buffer_array(emitter.part(buffer, at, size), x.shape[1:])
        # Row `at` begins at at × (size of a row) in the flat array.
        rest = np.arange(size).reshape(x.shape[1:])
        move = _filled([at], ()), "i4", x.shape[0] - 1, size
        return emitter.loops.gather(x, code, rest, [move])
    x = _loaded(emitter, x)
    out = np.empty(x.shape[1:], object)
    for index in np.ndindex(out.shape):
        out[index] = emitter.element([x[(i, *index)] for i in range(x.shape[0])], at, code)
    return out


def _filled(values: Sequence[Value], shape: tuple[int, ...]) -> ElementArray:
    """Return an array of values; NumPy's `array` would look into strings and scalars."""
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape)


class _Loop:
    """A loop of the kernel while its body is emitted."""

    def __init__(self, emitter: Emitter, once: bool = False) -> None:
        """Begin the body; one that runs at most once is a branch."""
        self._emitter, self._label = emitter, emitter.fresh_name("loop")[1:]
        # The jump to the body is its first instruction, so that loop-invariant instructions, which
        # are appended to the lists of smaller depths, come before the jump.
        emitter.enter_loop(once)
        emitter.emit_effect(ir.jump(self._label), ir.label(self._label))

    def check(self, running: Value) -> None:
        """Leave the loop here if a truth value does not hold."""
        body, end = f"{self._label}body", f"{self._label}end"
        self._emitter.emit_effect(ir.branch(running, body, end), ir.label(body))

    def end(self, more: Value) -> None:
        """End the body: jump to the next iteration if a truth value holds."""
        end = f"{self._label}end"
        self._emitter.emit_effect(ir.branch(more, self._label, end), ir.label(end))
        self._emitter.leave_loop()


def _stacked(emitter: Emitter, x: ElementArray, code: str, length: int, at: Value) -> Any:
    """Store what one iteration contributes to a result of `scan`.

    Args:
        emitter: receives the stores.
        x: the values of this iteration.
        code: their type code.
        length: the number of iterations.
        at: the number of this iteration.

    Returns:
        The buffer of the whole result if it is large, otherwise a `_StackedValue` for each element.
    """
    if emitter.loops and length * x.size >= emitter.loops.min_elements:
        wide = emitter.loops.any_wide(x.reshape(-1))
        # The buffer is read after the loop, so it belongs to the depth around the loop.
        buffer = emitter.buffer(code, wide, emitter.current_depth - 1, length * x.size)
        start = emitter.apply("mul", "i4", at, np.int32(x.size))
        emitter.loops.copy(x, code, buffer, start)
        return buffer
    return [_StackedValue(emitter, v, code, length, at) for v in _loaded(emitter, x).reshape(-1)]


class _StackedValue:
    """A value of which each iteration of a loop keeps one."""

    def __init__(self, emitter: Emitter, value: Value, code: str, length: int, at: Value) -> None:
        """Store the value of the current iteration; a known number needs no memory."""
        self._emitter, self._value, self._code = emitter, value, code
        self._wide = emitter.widest(value)
        if is_runtime_value(value):
            self._slot = emitter.stack_slot(code, self._wide, length)
            emitter.store(value, code, self._wide, self._slot, at)

    def read(self, i: int) -> Value:
        """Return the value of iteration `i`, after the loop."""
        if not is_runtime_value(self._value):
            return self._value
        return self._emitter.load(self._slot, self._code, self._wide, i)


_FUNCTIONS: symmetric.FunctionRules = {
    FLAGGED: (_flagged, ("r -> m 1",)),
    OUTER_SUMS: (_outer_sums, ("1 nnc knct kes -> nnc",)),
    **symmetric.RULES,
    **joined_trees.RULES,
}
"""Rules of functions that are recognized by their names."""
