"""Lowering rules of operations that call functions: loops, branches and linear solvers."""

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jax.extend.core import Literal

from brax.kernels.codegen import jax_internals
from brax.kernels.codegen.emitter import (
    Cell,
    Emitter,
    MemoryPlace,
    Unsupported,
    Value,
    code_of,
    is_runtime_value,
)
from brax.kernels.codegen.loops import cells
from brax.kernels.codegen.lowering import arrays_in_memory, rules, scalars
from brax.kernels.codegen.lowering.arrays import BATCH_MARK, ElementArray, each, known, one
from brax.kernels.skip import WHERE_NEEDED


def evaluate(
    asm: Emitter, jaxpr: Any, consts: Sequence[Any], given: Sequence[ElementArray]
) -> list[ElementArray]:
    """Adds the instructions of some operations, and gives their results.

    Raises:
        Unsupported: if one of them is not translated.
    """
    places: dict[Any, ElementArray] = {}

    def read(var: Any) -> ElementArray:
        return known(var.val) if isinstance(var, Literal) else places[var]

    def write(variables: Sequence[Any], arrays: Sequence[ElementArray]) -> None:
        for var, x in zip(variables, arrays, strict=True):
            if x.shape != one(var.aval.shape):
                raise Unsupported(f"a batch axis that is not the last, {var.aval.shape}")
            places[var] = x

    write(jaxpr.constvars, [known(c) for c in consts])
    write(jaxpr.invars, given)
    for eqn in jaxpr.eqns:
        if eqn.effects:
            raise Unsupported(f"the side effect of '{eqn.primitive.name}'")
        asm.measure()
        operands = [read(v) for v in eqn.invars]
        try:
            write(eqn.outvars, _results(asm, eqn, operands))
        except Unsupported as reason:
            reason.where = reason.where or jax_internals.source(eqn)
            raise
    return [read(v) for v in jaxpr.outvars]


def _results(asm: Emitter, eqn: Any, given: list[ElementArray]) -> list[ElementArray]:
    name = eqn.primitive.name
    if name in jax_internals.CALLS:
        if eqn.params.get("name") == WHERE_NEEDED and _keeps_shapes(eqn):
            return _where_needed(asm, eqn, given)
        return evaluate(asm, *jax_internals.called(eqn), given)
    if name in _CONTROL_FLOW_RULES:
        jax_internals.check(eqn)
        return _CONTROL_FLOW_RULES[name](asm, eqn, given)
    return (arrays_in_memory if asm.loops else rules).operation(asm, eqn, given)


def _linear_solve(asm: Emitter, eqn: Any, given: list[ElementArray]) -> list[ElementArray]:
    """The solver that a solution by `jax.lax.custom_linear_solve` names, such as one by LU."""
    solver, own = jax_internals.linear_solver(eqn)
    return evaluate(asm, *solver, [given[i] for i in own])


def _cond(asm: Emitter, eqn: Any, given: list[ElementArray]) -> list[ElementArray]:
    """Both branches, and a choice of their results."""
    branches, index = jax_internals.branches(eqn), _fetched(asm, given[0])[()]
    if not is_runtime_value(index):
        chosen = branches[min(max(int(index), 0), len(branches) - 1)]
        return evaluate(asm, *chosen, given[1:])
    code = code_of(eqn.invars[0].aval.dtype)
    out = evaluate(asm, *branches[-1], given[1:])
    for i in reversed(range(len(branches) - 1)):
        other = evaluate(asm, *branches[i], given[1:])
        here = scalars.convert(asm, index, code, "i4")
        before = _filled([scalars.rule("le")(asm, "i4", here, np.int32(i))], ())
        out = [
            _where(asm, before, yes, no, code_of(v.aval.dtype))
            for yes, no, v in zip(other, out, eqn.outvars, strict=True)
        ]
    return out


def _fetched(asm: Emitter, x: ElementArray) -> ElementArray:
    return asm.loops.fetched(x) if asm.loops else x


class _Carry:
    """What a loop hands on, kept in memory: what has a batch axis for each lane."""

    def __init__(self, asm: Emitter, avals: Sequence[Any], start: Sequence[ElementArray]) -> None:
        self._asm = asm
        self._kinds = [(code_of(a.dtype), asm.lanes > 1 and BATCH_MARK in a.shape) for a in avals]
        self._shapes = [x.shape for x in start]
        self._places = [
            asm.room(*kind, asm.here, x.size)
            if asm.loops and asm.loops.worth(x)
            else [asm.reserve(*kind) for _ in range(x.size)]
            for kind, x in zip(self._kinds, start, strict=True)
        ]
        self._names = {p.name for p in self._places if isinstance(p, MemoryPlace)}
        self.put(start)

    def put(self, arrays: Sequence[ElementArray]) -> None:
        """Stores values, which are all known before the first is stored."""
        if self._asm.loops:
            self._asm.loops.settle()
        found = [self._apart(*x) for x in zip(self._kinds, self._places, arrays, strict=True)]
        for kind, places, x in zip(self._kinds, self._places, found, strict=True):
            if isinstance(places, MemoryPlace):
                if not self._stays(places, x):
                    self._asm.loops.copy(x, kind[0], places)
                continue
            for value, place in zip(x.reshape(-1), places, strict=True):
                self._asm.store(value, *kind, place)

    def get(self) -> list[ElementArray]:
        """Loads the values that were stored last."""
        return [
            cells(replace(places, depth=self._asm.here), shape)
            if isinstance(places, MemoryPlace)
            else _filled([self._asm.load(place, *kind) for place in places], shape)
            for kind, places, shape in zip(self._kinds, self._places, self._shapes, strict=True)
        ]

    def _apart(self, kind: tuple[str, bool], places: Any, x: ElementArray) -> ElementArray:
        """Values that do not change when others are stored."""
        if not isinstance(places, MemoryPlace):
            return _fetched(self._asm, x)
        mine = (isinstance(v, Cell) and v.place.name in self._names for v in x.reshape(-1))
        if self._stays(places, x) or not any(mine):
            return x
        kept = self._asm.room(*kind, self._asm.here, x.size)
        self._asm.loops.copy(x, kind[0], kept)
        return cells(kept, x.shape)

    def _stays(self, place: MemoryPlace, x: ElementArray) -> bool:
        """Return whether an array is what the place has already."""
        return all(
            isinstance(v, Cell) and v.place.name == place.name and v.index == i
            for i, v in enumerate(x.reshape(-1))
        )


def _scan(asm: Emitter, eqn: Any, given: list[ElementArray]) -> list[ElementArray]:
    """A loop of known length."""
    body, length, reverse, consts, carried = jax_internals.scan(eqn)
    first = consts + carried
    fixed, start, rows = given[: first - carried], given[first - carried : first], given[first:]
    results = eqn.outvars[carried:]
    if not length or any(v.aval.shape[0] == BATCH_MARK for v in [*eqn.invars[first:], *results]):
        raise Unsupported("a loop that never runs, or runs over environments")
    if length == 1:
        out = evaluate(asm, *body, [*fixed, *start, *(x[0, ...] for x in rows)])
        return [*out[:carried], *(x[None] for x in out[carried:])]
    kinds = [code_of(v.aval.dtype) for v in eqn.invars[first:]]
    counter = asm.reserve("i4", False)
    carry = _Carry(asm, [v.aval for v in eqn.invars[first - carried : first]], start)
    asm.store(np.int32(0), "i4", False, counter)
    loop = _Loop(asm)
    now, count = carry.get(), asm.load(counter, "i4", False)
    at = asm.apply("sub", "i4", np.int32(length - 1), count) if reverse else count
    mine = [_row(asm, x, at, kind) for x, kind in zip(rows, kinds, strict=True)]
    out = evaluate(asm, *body, [*fixed, *now, *mine])
    series = [
        _series(asm, x, code_of(v.aval.dtype), length, at)
        for x, v in zip(out[carried:], results, strict=True)
    ]
    following = asm.apply("add", "i4", count, np.int32(1))
    asm.store(following, "i4", False, counter)
    carry.put(out[:carried])
    loop.end(asm.apply("icmp slt", "i4", following, np.int32(length)))
    kept = [
        cells(mine, one(v.aval.shape))
        if isinstance(mine, MemoryPlace)
        else _filled([s.read(i) for i in range(length) for s in mine], one(v.aval.shape))
        for mine, v in zip(series, results, strict=True)
    ]
    return [*carry.get(), *kept]


def _while(asm: Emitter, eqn: Any, given: list[ElementArray]) -> list[ElementArray]:
    """A loop whose end is found as it runs.

    Where each environment has an end of its own, or each row, what has ended keeps its values until
    all lanes have ended.
    """
    test, body, tests, consts = jax_internals.while_loop(eqn)
    first = tests + consts
    carry = _Carry(asm, [v.aval for v in eqn.invars[first:]], given[first:])
    loop = _Loop(asm)
    now = carry.get()
    (goes_on,) = evaluate(asm, *test, [*given[:tests], *now])
    goes_on = _fetched(asm, goes_on)
    some = functools.reduce(functools.partial(scalars.rule("or"), asm, "b1"), goes_on.reshape(-1))
    loop.check(asm.any_lane(some))
    after = evaluate(asm, *body, [*given[tests:first], *now])
    if goes_on.ndim:
        codes = [code_of(v.aval.dtype) for v in eqn.outvars]
        both = zip(after, now, codes, strict=True)
        after = [_where(asm, goes_on, new, old, code) for new, old, code in both]
    carry.put(after)
    loop.end("true")
    return carry.get()


def _where(
    asm: Emitter, which: ElementArray, yes: ElementArray, no: ElementArray, code: str
) -> ElementArray:
    """One of two arrays, by the truth values of their leading axes."""
    which = which.reshape(*which.shape, *(1,) * (yes.ndim - which.ndim))
    given = [which, yes, no]
    if asm.loops and asm.loops.worth(yes):
        return asm.loops.each(
            lambda c, a, b: asm.select(c, a, b, code), given, ["b1", code, code], code
        )
    return each(lambda c, a, b: asm.select(c, a, b, code), *(_fetched(asm, x) for x in given))


def _keeps_shapes(eqn: Any) -> bool:
    """Return whether an operation's last operands are like its results, after one truth value."""
    n = len(eqn.outvars)
    needed, *before = [v.aval for v in eqn.invars[-n - 1 :]]
    like = [(a.shape, a.dtype) for a in before] == [
        (v.aval.shape, v.aval.dtype) for v in eqn.outvars
    ]
    return (
        len(before) == n > 0 and like and needed.shape == (1, BATCH_MARK) and needed.dtype == bool
    )


def _where_needed(asm: Emitter, eqn: Any, given: list[ElementArray]) -> list[ElementArray]:
    """What `brax.kernels.skip.where_needed` does, left out where no lane needs it."""
    n, inner = len(eqn.outvars), jax_internals.called(eqn)
    (needed,) = _fetched(asm, given[-n - 1]).reshape(-1)
    if not is_runtime_value(needed):
        return evaluate(asm, *inner, given)
    carry = _Carry(asm, [v.aval for v in eqn.outvars], given[-n:])
    branch = _Loop(asm)
    now = carry.get()
    branch.check(asm.any_lane(needed))
    carry.put(evaluate(asm, *inner, [*given[:-n], *now]))
    branch.end("false")
    return carry.get()


def _row(asm: Emitter, x: ElementArray, at: Value, code: str) -> ElementArray:
    """The elements at an index of the first axis."""
    if asm.loops and asm.loops.worth(x):
        size = math.prod(x.shape[1:])
        rest = np.arange(size).reshape(x.shape[1:])
        move = _filled([at], ()), "i4", x.shape[0] - 1, size
        return asm.loops.gather(x, code, rest, [move])
    x = _fetched(asm, x)
    out = np.empty(x.shape[1:], object)
    for place in np.ndindex(out.shape):
        out[place] = asm.element([x[(i, *place)] for i in range(x.shape[0])], at, code)
    return out


def _filled(values: Sequence[Value], shape: tuple[int, ...]) -> ElementArray:
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape)


class _Loop:
    """A loop that is being written."""

    def __init__(self, asm: Emitter) -> None:
        self._asm, self._label = asm, asm.fresh("loop")[1:]
        # The jump to the body belongs to it: what the body finds to be computed before comes first.
        asm.enter()
        asm.act(f"br label %{self._label}\n{self._label}:", jump=True)

    def check(self, goes_on: Value) -> None:
        """Ends the loop here, unless it goes on."""
        body, end = f"{self._label}body", f"{self._label}end"
        self._asm.act(f"br i1 {goes_on}, label %{body}, label %{end}\n{body}:", jump=True)

    def end(self, more: Value) -> None:
        """Begins another round, or goes on after the loop."""
        end = f"{self._label}end"
        self._asm.act(f"br i1 {more}, label %{self._label}, label %{end}\n{end}:", jump=True)
        self._asm.leave()


def _series(asm: Emitter, x: ElementArray, code: str, length: int, at: Value) -> Any:
    """What a loop keeps of each round: an array, in a place if it is large."""
    if asm.loops and length * x.size >= asm.loops.least:
        wide = asm.loops.wide(x.reshape(-1))
        place = asm.room(code, wide, asm.here - 1, length * x.size)
        start = asm.apply("mul", "i4", at, np.int32(x.size))
        asm.loops.copy(x, code, place, start)
        return place
    return [_Series(asm, v, code, length, at) for v in _fetched(asm, x).reshape(-1)]


class _Series:
    """A value that a loop keeps of each round."""

    def __init__(self, asm: Emitter, value: Value, code: str, length: int, at: Value) -> None:
        self._asm, self._value, self._code = asm, value, code
        self._wide = asm.widest(value)
        if is_runtime_value(value):
            self._place = asm.reserve(code, self._wide, length)
            asm.store(value, code, self._wide, self._place, at)

    def read(self, i: int) -> Value:
        """The value of a round, after the loop."""
        if not is_runtime_value(self._value):
            return self._value
        return self._asm.load(self._place, self._code, self._wide, i)


_CONTROL_FLOW_RULES = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "custom_linear_solve": _linear_solve,
}
"""Operations that are made of other functions."""
