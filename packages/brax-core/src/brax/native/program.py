"""From a kernel's operations, as JAX traces them, to a function in LLVM's language."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.core import Literal

from brax.native import scalars
from brax.native.arrays import MARK, Elements, each, known, one, operation
from brax.native.assembly import Assembly, Unsupported, Value, code_of, named
from brax.native.order import ordered

CALLS = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat2"}
"""Operations that are a function of their own, which is written out in their place."""


def evaluate(
    asm: Assembly, jaxpr: Any, consts: Sequence[Any], given: Sequence[Elements]
) -> list[Elements]:
    """Adds the instructions of some operations, and gives their results.

    Raises:
        Unsupported: if one of them is not translated.
    """
    places: dict[Any, Elements] = {}

    def read(var: Any) -> Elements:
        return known(var.val) if isinstance(var, Literal) else places[var]

    def write(variables: Sequence[Any], arrays: Sequence[Elements]) -> None:
        for var, x in zip(variables, arrays, strict=True):
            if x.shape != one(var.aval.shape):
                raise Unsupported(f"a batch axis that is not the last, {var.aval.shape}")
            places[var] = x

    write(jaxpr.constvars, [known(c) for c in consts])
    write(jaxpr.invars, given)
    for eqn in jaxpr.eqns:
        if eqn.effects:
            raise Unsupported(f"the side effect of '{eqn.primitive.name}'")
        operands = [read(v) for v in eqn.invars]
        write(eqn.outvars, _results(asm, eqn, operands))
    return [read(v) for v in jaxpr.outvars]


def _results(asm: Assembly, eqn: Any, given: list[Elements]) -> list[Elements]:
    name, params = eqn.primitive.name, eqn.params
    if name in CALLS or name == "checkpoint":
        inner = params.get("jaxpr") or params.get("call_jaxpr") or params.get("fun_jaxpr")
        if hasattr(inner, "consts"):
            return evaluate(asm, inner.jaxpr, inner.consts, given)
        return evaluate(asm, inner, (), given)
    if name == "scan":
        return _scan(asm, eqn, given)
    if name == "while":
        return _while(asm, eqn, given)
    if name == "cond":
        return _cond(asm, eqn, given)
    return operation(asm, eqn, given)


def _cond(asm: Assembly, eqn: Any, given: list[Elements]) -> list[Elements]:
    """Both branches, and a choice of their results."""
    branches, index = eqn.params["branches"], given[0][()]
    if not named(index):
        chosen = branches[min(max(int(index), 0), len(branches) - 1)]
        return evaluate(asm, chosen.jaxpr, chosen.consts, given[1:])
    code = code_of(eqn.invars[0].aval.dtype)
    out = evaluate(asm, branches[-1].jaxpr, branches[-1].consts, given[1:])
    for i in reversed(range(len(branches) - 1)):
        other = evaluate(asm, branches[i].jaxpr, branches[i].consts, given[1:])
        here = scalars.convert(asm, index, code, "i4")
        before = scalars.rule("le")(asm, "i4", here, np.int32(i))
        out = [
            _either(asm, before, yes, no, code_of(v.aval.dtype))
            for yes, no, v in zip(other, out, eqn.outvars, strict=True)
        ]
    return out


def _either(asm: Assembly, which: Value, yes: Elements, no: Elements, code: str) -> Elements:
    return each(lambda a, b: asm.select(which, a, b, code), yes, no)


class _Carry:
    """What a loop hands on, kept on the stack: what has a batch axis for each lane."""

    def __init__(self, asm: Assembly, avals: Sequence[Any], start: Sequence[Elements]) -> None:
        self._asm = asm
        self._kinds = [(code_of(a.dtype), asm.lanes > 1 and MARK in a.shape) for a in avals]
        self._shapes = [x.shape for x in start]
        self._places = [
            [asm.reserve(*kind) for _ in range(x.size)]
            for kind, x in zip(self._kinds, start, strict=True)
        ]
        self.put(start)

    def put(self, arrays: Sequence[Elements]) -> None:
        """Stores values, which are all known before the first is stored."""
        for kind, places, x in zip(self._kinds, self._places, arrays, strict=True):
            for value, place in zip(x.reshape(-1), places, strict=True):
                self._asm.store(value, *kind, place)

    def get(self) -> list[Elements]:
        """Loads the values that were stored last."""
        return [
            _filled([self._asm.load(place, *kind) for place in places], shape)
            for kind, places, shape in zip(self._kinds, self._places, self._shapes, strict=True)
        ]


def _scan(asm: Assembly, eqn: Any, given: list[Elements]) -> list[Elements]:
    """A loop of known length."""
    p = eqn.params
    body, length, carried = p["jaxpr"], int(p["length"]), p["num_carry"]
    first = p["num_consts"] + carried
    fixed, start, rows = given[: first - carried], given[first - carried : first], given[first:]
    results = eqn.outvars[carried:]
    if not length or any(v.aval.shape[0] == MARK for v in [*eqn.invars[first:], *results]):
        raise Unsupported("a loop that never runs, or runs over environments")
    if length == 1:
        out = evaluate(asm, body.jaxpr, body.consts, [*fixed, *start, *(x[0] for x in rows)])
        return [*out[:carried], *(x[None] for x in out[carried:])]
    kinds = [code_of(v.aval.dtype) for v in eqn.invars[first:]]
    counter = asm.reserve("i4", False)
    carry = _Carry(asm, [v.aval for v in eqn.invars[first - carried : first]], start)
    asm.store(np.int32(0), "i4", False, counter)
    loop = _Loop(asm)
    now, count = carry.get(), asm.load(counter, "i4", False)
    at = asm.apply("sub", "i4", np.int32(length - 1), count) if p["reverse"] else count
    mine = [_row(asm, x, at, kind) for x, kind in zip(rows, kinds, strict=True)]
    out = evaluate(asm, body.jaxpr, body.consts, [*fixed, *now, *mine])
    series = [
        [_Series(asm, x, code_of(v.aval.dtype), length, at) for x in out[carried + i].reshape(-1)]
        for i, v in enumerate(results)
    ]
    following = asm.apply("add", "i4", count, np.int32(1))
    asm.store(following, "i4", False, counter)
    carry.put(out[:carried])
    loop.end(asm.apply("icmp slt", "i4", following, np.int32(length)))
    kept = [
        _filled([s.read(i) for i in range(length) for s in mine], one(v.aval.shape))
        for mine, v in zip(series, results, strict=True)
    ]
    return [*carry.get(), *kept]


def _while(asm: Assembly, eqn: Any, given: list[Elements]) -> list[Elements]:
    """A loop whose end is found as it runs, in the same round for all lanes.

    An end of each environment's own would be a number with a batch axis, which JAX does not take.
    """
    p = eqn.params
    test, body, tests = p["cond_jaxpr"], p["body_jaxpr"], p["cond_nconsts"]
    first = tests + p["body_nconsts"]
    carry = _Carry(asm, [v.aval for v in eqn.invars[first:]], given[first:])
    loop = _Loop(asm)
    now = carry.get()
    goes_on = evaluate(asm, test.jaxpr, test.consts, [*given[:tests], *now])[0][()]
    loop.check(asm.operand(goes_on, "b1", False))
    carry.put(evaluate(asm, body.jaxpr, body.consts, [*given[tests:first], *now]))
    loop.end("true")
    return carry.get()


def _row(asm: Assembly, x: Elements, at: Value, code: str) -> Elements:
    """The elements at an index of the first axis."""
    out = np.empty(x.shape[1:], object)
    for place in np.ndindex(out.shape):
        out[place] = asm.element([x[(i, *place)] for i in range(x.shape[0])], at, code)
    return out


def _filled(values: Sequence[Value], shape: tuple[int, ...]) -> Elements:
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(shape)


class _Loop:
    """A loop that is being written."""

    def __init__(self, asm: Assembly) -> None:
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


class _Series:
    """A value that a loop keeps of each round."""

    def __init__(self, asm: Assembly, value: Value, code: str, length: int, at: Value) -> None:
        self._asm, self._value, self._code = asm, value, code
        self._wide = asm.widest(value)
        if named(value):
            self._place = asm.reserve(code, self._wide, length)
            asm.store(value, code, self._wide, self._place, at)

    def read(self, i: int) -> Value:
        """The value of a round, after the loop."""
        if not named(self._value):
            return self._value
        return self._asm.load(self._place, self._code, self._wide, i)


def translate(closed: Any, own: Sequence[bool], lanes: int) -> str:
    """Writes a kernel in LLVM's language.

    Args:
        closed: the operations, traced with a batch of size `MARK`.
        own: which operands have a batch; those of the others are the same in all environments.
        lanes: environments that an instruction works on.

    Returns:
        A module with `void kernel(ptr in, ptr out, i64 size, i64 begin, i64 end)`: addresses of the
        operands and results, whose last axis is the batch of `size` environments, of which it
        works on some. There have to be as many as lanes.

    Raises:
        Unsupported: if an operation is not translated.
    """
    asm = Assembly(lanes)
    jaxpr = closed.jaxpr
    given = []
    for k, (var, mine) in enumerate(zip(jaxpr.invars, own, strict=True)):
        place, code = _address(asm, "in", k), code_of(var.aval.dtype)
        out = np.empty(one(var.aval.shape), object)
        for j, at in enumerate(np.ndindex(out.shape)):
            out[at] = _read(asm, place, j, code, mine)
        given.append(out)
    results = evaluate(asm, jaxpr, closed.consts, given)
    for k, (var, x) in enumerate(zip(jaxpr.outvars, results, strict=True)):
        place, code = _address(asm, "out", k), code_of(var.aval.dtype)
        for j, value in enumerate(x.reshape(-1)):
            _write(asm, place, j, code, value)
    head, body = asm.blocks
    return "\n".join(
        [
            "define void @kernel(ptr noalias %in, ptr noalias %out, i64 %size, i64 %begin, "
            "i64 %end) {",
            *asm.start,
            "%place = alloca i64",
            f"%last = sub i64 %end, {lanes}",
            # The last tile may overlap the one before it, and that of another thread.
            "%late = icmp sgt i64 %begin, %last",
            "%start = select i1 %late, i64 %last, i64 %begin",
            "store i64 %start, ptr %place",
            *(line.text for line in head),
            "br label %tile",
            "tile:",
            "%first = load i64, ptr %place",
            *(line.text for line in ordered(body)),
            "%done = icmp sge i64 %first, %last",
            "br i1 %done, label %finish, label %more",
            "more:",
            f"%step = add i64 %first, {lanes}",
            "%over = icmp sgt i64 %step, %last",
            "%next = select i1 %over, i64 %last, i64 %step",
            "store i64 %next, ptr %place",
            "br label %tile",
            "finish:",
            "ret void",
            "}",
            *(text for _, _, text in asm.routines.values()),
            *sorted(asm.declared),
        ]
    )


def _address(asm: Assembly, base: str, k: int) -> str:
    place = asm.emit(f"getelementptr ptr, ptr %{base}, i64 {k}", False, ())
    return asm.emit(f"load ptr, ptr {place}", False, ())


def _read(asm: Assembly, place: str, j: int, code: str, own: bool) -> Value:
    """An element of an operand, which is not changed by anything."""
    wide = own and asm.lanes > 1
    kind = asm.type_of(code, wide) if code != "b1" else _bytes(asm, wide)
    at = _place(asm, place, j, code, own)
    value = asm.emit(f"load {kind}, ptr {at}, align 1", wide, (at,))
    if code != "b1":
        return value
    return asm.emit(f"trunc {kind} {value} to {asm.type_of('b1', wide)}", wide, (value,))


def _write(asm: Assembly, place: str, j: int, code: str, value: Value) -> None:
    wide = asm.lanes > 1
    kind, given = asm.type_of(code, wide), asm.operand(value, code, wide)
    if code == "b1":
        given = asm.emit(f"zext {kind} {given} to {_bytes(asm, wide)}", wide, (value,), 1)
        kind = _bytes(asm, wide)
    asm.act(f"store {kind} {given}, ptr {_place(asm, place, j, code, True)}, align 1")


def _bytes(asm: Assembly, wide: bool) -> str:
    return f"<{asm.lanes} x i8>" if wide else "i8"


def _place(asm: Assembly, place: str, j: int, code: str, own: bool) -> str:
    """Where an element is of the first of the lanes."""
    kind = asm.type_of(code, False) if code != "b1" else "i8"
    if not own:
        return asm.emit(f"getelementptr {kind}, ptr {place}, i64 {j}", False, (place,))
    row = asm.emit(f"mul i64 %size, {j}", False, ())
    at = asm.emit(f"add i64 {row}, %first", False, (row,), 1)
    return asm.emit(f"getelementptr {kind}, ptr {place}, i64 {at}", False, (place, at))
