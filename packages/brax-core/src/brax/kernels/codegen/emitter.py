"""LLVM instructions that work on several environments at once.

A value is the name of an instruction's result, or a numpy scalar: what is known when the kernel is
translated is computed then. A named value is wide, one number for each lane, or the same in all
lanes. Instructions are kept by how deep in loops their operands are: what does not change in a loop
is computed before it, and what all environments share is computed once for the whole batch.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Value = Any
"""The name of an instruction's result, a str, or a numpy scalar."""

LLVM = {
    **{"f4": "float", "f8": "double", "i4": "i32", "i8": "i64", "u4": "i32", "u8": "i64"},
    **{"i1": "i8", "i2": "i16", "u1": "i8", "u2": "i16"},
}
"""LLVM's names of the types of numbers; truth values, `b1`, are `i1`, and bytes in memory."""

BYTES = {"float": 4, "double": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
"""Of LLVM's types."""


class TooLong(Exception):
    """A kernel has more values than it may have."""


class Unsupported(Exception):
    """A kernel has what is not translated; the compiler of JAX has to do it."""

    where: str = ""
    """The source line that asks for it."""


def code_of(dtype: Any) -> str:
    """The type of a number: kind and bytes.

    Raises:
        Unsupported: for a type that is not translated.
    """
    try:
        code = np.dtype(dtype).str[1:]
    except TypeError:  # an extended type of JAX's own, such as that of random keys
        code = ""
    if code not in LLVM and code != "b1":
        raise Unsupported(f"numbers of type {dtype}")
    return code


def is_runtime_value(value: Value) -> bool:
    """Return whether a value is only known when the kernel runs."""
    return isinstance(value, str)


@dataclass(frozen=True, eq=False)
class MemoryPlace:
    """Numbers of one type in memory, which are written once in a round of the loops around them."""

    name: str
    code: str
    wide: bool
    depth: int
    """In how many loops they are."""
    apart: bool = False
    """Whether each is as far from the next as the batch is large, as in an operand."""


class Cell:
    """A number in memory, a value that has to be loaded before it is computed with."""

    __slots__ = ("index", "place")

    def __init__(self, place: MemoryPlace, index: int) -> None:
        """The number at an index of a place."""
        self.place, self.index = place, index


class InstructionGroup(NamedTuple):
    """Instructions that stay together."""

    text: str
    name: str = ""
    """Their result, if they have one; else they have an effect."""
    jump: bool = False


class Emitter:
    """The instructions of one kernel."""

    def __init__(self, lanes: int, most: int = 0) -> None:
        """Starts with nothing.

        Args:
            lanes: environments that one instruction works on.
            most: values that there may be; 0 for any number.
        """
        self.lanes, self.most = lanes, most
        self.start: list[str] = []
        """Instructions that come before all others: room on the stack."""
        self.blocks: list[list[InstructionGroup]] = [[], []]
        """The instructions of each depth: before the loop over the batch, in it, and in loops of
        the kernel."""
        self.declared: set[str] = set()
        """Declarations of functions that are called."""
        self.routines: dict[str, tuple[str, int, str]] = {}
        """Functions of the kernel's own that are called, by name: the type of what they give, of
        how many results, and themselves."""
        self.wide: dict[str, bool] = {"%size": False, "%first": False}
        self._depth: dict[str, int] = {"%size": 0, "%first": 1}
        self.known: list[dict[str, str]] = [{}, {}]
        """What is known at each depth, so that it is not computed twice."""
        self.tables: list[dict[str, MemoryPlace]] = [{}, {}]
        """Places with values from several, at each depth."""
        self.places: dict[str, int] = {}
        """Bytes of places."""
        self.constants: dict[str, str] = {}
        """Numbers that are known, outside of all functions: their names, by what they are."""
        self.loops: Any = None
        """The `loops.Loops` of a kernel that has large arrays."""
        self._factors: dict[str, tuple[Value, Value]] = {}
        self._count = 0

    def measure(self) -> None:
        """Looks how long the kernel is so far.

        Raises:
            TooLong: if it has more values than it may have.
        """
        if self.most and self._count > self.most:
            raise TooLong

    def type_of(self, code: str, wide: bool) -> str:
        """LLVM's type of a value."""
        scalar = LLVM.get(code, "i1")
        return f"<{self.lanes} x {scalar}>" if wide else scalar

    def fresh(self, prefix: str) -> str:
        """A name that no other value has."""
        self._count += 1
        return f"%{prefix}{self._count}"

    def emit(self, text: str, wide: bool, operands: tuple[Value, ...], depth: int = 0) -> str:
        """Adds an instruction without side effects, once, where its operands are known."""
        for x in operands:
            if is_runtime_value(x):
                depth = max(depth, self._depth[x])
        known = self.known[depth]
        if text in known:
            return known[text]
        self._count += 1
        name = f"%v{self._count}"
        self.wide[name] = wide
        self._depth[name] = depth
        self.blocks[depth].append(InstructionGroup(f"{name} = {text}", name))
        known[text] = name
        return name

    def act(self, text: str, jump: bool = False) -> None:
        """Adds an instruction with a side effect, here."""
        self._settle()
        self.blocks[-1].append(InstructionGroup(text, jump=jump))

    def load(self, place: str, code: str, wide: bool, index: Value = 0) -> str:
        """Loads a value that may have changed, here."""
        self._settle()
        return self._load(place, code, wide, index, len(self.blocks) - 1)

    def _load(self, place: str, code: str, wide: bool, index: Value, depth: int) -> str:
        name, kind, at = self.fresh("v"), self.type_of(code, wide), self.fresh("p")
        self.wide[name], self._depth[name] = wide, depth
        where = f"{at} = getelementptr {kind}, ptr {place}, i32 {index}"
        self.blocks[depth].append(
            InstructionGroup(f"{where}\n{name} = load {kind}, ptr {at}", name)
        )
        return name

    def reserve(self, code: str, wide: bool, count: int = 1) -> str:
        """Room on the stack for numbers of one type."""
        name = self.fresh("m")
        self.start.append(f"{name} = alloca {self.type_of(code, wide)}, i32 {count}, align 64")
        return name

    def store(self, x: Value, code: str, wide: bool, place: str, index: Value = 0) -> None:
        """Stores a value, here."""
        self._settle()
        self._store(x, code, wide, place, index, len(self.blocks) - 1)

    def _store(self, x: Value, code: str, wide: bool, place: str, index: Value, depth: int) -> None:
        kind, given, at = self.type_of(code, wide), self.operand(x, code, wide), self.fresh("p")
        where = f"{at} = getelementptr {kind}, ptr {place}, i32 {index}"
        self.blocks[depth].append(InstructionGroup(f"{where}\nstore {kind} {given}, ptr {at}"))

    def element(self, values: Sequence[Value], index: Value, code: str) -> Value:
        """One of some values, by an index, `i4`, that all lanes share and that is in range."""
        if not is_runtime_value(index):
            return values[int(index)]
        if all(x is values[0] for x in values):
            return values[0]
        wide = self.widest(*values)
        depth = max((self._depth[x] for x in values if is_runtime_value(x)), default=0)
        known, key = self.known[depth], f"table {code} {', '.join(map(str, values))}"
        if key not in known:
            known[key] = self.reserve(code, wide, len(values))
            for i, x in enumerate(values):
                self._store(x, code, wide, known[key], i, depth)
        table = known[key]
        depth = max(depth, self._depth[index])
        known, key = self.known[depth], f"{index} of {table}"
        if key not in known:
            known[key] = self._load(table, code, wide, index, depth)
        return known[key]

    def _settle(self) -> None:
        if self.loops:
            self.loops.settle()

    @property
    def here(self) -> int:
        """How many loops there are around what is written next."""
        return len(self.blocks) - 1

    def enter(self) -> None:
        """Begins the body of a loop."""
        self._settle()
        self.blocks.append([])
        self.known.append({})
        self.tables.append({})

    def leave(self) -> None:
        """Ends the body of a loop, whose instructions follow those before it."""
        self._settle()
        self.known.pop()
        self.tables.pop()
        body = self.blocks.pop()
        self.blocks[-1] += body

    def register(self, wide: bool, depth: int) -> str:
        """A name for a value that a loop hands on."""
        name = self.fresh("v")
        self.wide[name], self._depth[name] = wide, depth
        return name

    def depth(self, x: Value) -> int:
        """How many loops a value is in."""
        if isinstance(x, Cell):
            return x.place.depth
        return self._depth[x] if is_runtime_value(x) else 0

    def room(self, code: str, wide: bool, depth: int, count: int) -> MemoryPlace:
        """A place for numbers of one type."""
        name = self.fresh("m")
        kind = LLVM[_stored(code)]
        self.places[name] = count * (self.lanes if wide else 1) * BYTES[kind]
        return MemoryPlace(name, code, wide, depth)

    def table(self, values: Sequence[Any], code: str) -> MemoryPlace:
        """A place with numbers that are known."""
        kind = LLVM[_stored(code)]
        numbers = ", ".join(f"{kind} {_literal(x, _stored(code))}" for x in values)
        text = f"[{len(values)} x {kind}] [{numbers}]"
        name = self.constants.setdefault(text, f"@known{len(self.constants)}")
        return MemoryPlace(name, code, False, 0)

    def at(self, place: MemoryPlace, index: Value) -> str:
        """A number in a place, by an index, `i4`, that may differ between the lanes."""
        code = _stored(place.code)
        if self.widest(index):
            x = self._gathered(place, code, str(index))
        else:
            kind, size, end = self.type_of(code, place.wide), "i32", ""
            apart = kind
            if place.apart:
                index, size, end, apart = self._far(index, False), "i64", ", align 1", LLVM[code]
            where = f"getelementptr {apart}, ptr {place.name}, {size} {index}"
            x = self._found(where, f"load {kind}, ptr ", end, place, index)
        return x if place.code != "b1" else self.compare("icmp ne", code, x, np.int32(0))

    def _found(self, where: str, before: str, after: str, place: MemoryPlace, index: Value) -> str:
        """Loads from an address. It stays with that, which says until when a place is in use."""
        depth, key = max(place.depth, self.depth(index)), f"{before} {where}"
        if key not in self.known[depth]:
            at, x = self.fresh("p"), self.register(place.wide or self.widest(index), depth)
            self.blocks[depth].append(
                InstructionGroup(f"{at} = {where}\n{x} = {before}{at}{after}", x)
            )
            self.known[depth][key] = x
        return self.known[depth][key]

    def _far(self, index: Value, wide: bool) -> str:
        """Where an element of an operand is for the first of the lanes, `i8`."""
        if is_runtime_value(index):
            kinds = self.type_of("i4", wide), self.type_of("i8", wide)
            index = self.emit(f"sext {kinds[0]} {index} to {kinds[1]}", wide, (index,))
        else:
            index = np.int64(index)
        row = self.apply("mul", "i8", index, "%size")
        return self.apply("add", "i8", row, "%first")

    def _gathered(self, place: MemoryPlace, code: str, index: str) -> str:
        """A number of each lane's own index."""
        n, size = self.lanes, "i4"
        if place.apart:
            index, size = self._far(index, True), "i8"
        elif place.wide:
            index = self.apply("mul", "i4", index, np.int32(n))
        kind = self.type_of(size, True)
        if place.wide:
            lane = ", ".join(f"{LLVM[size]} {i}" for i in range(n))
            index = self.emit(f"add {kind} {index}, <{lane}>", True, (index,))
        where = f"getelementptr {LLVM[code]}, ptr {place.name}, {kind} {index}"
        result, mask = self.type_of(code, True), f"<{n} x i1>"
        bits = f"{'f' if code[0] == 'f' else 'i'}{8 * int(code[1])}"
        function = f"@llvm.masked.gather.v{n}{bits}.v{n}p0"
        self.declared.add(f"declare {result} {function}(<{n} x ptr>, i32, {mask}, {result})")
        end = f", i32 {BYTES[LLVM[code]]}, {mask} splat (i1 true), {result} poison)"
        return self._found(where, f"call {result} {function}(<{n} x ptr> ", end, place, index)

    def storing(self, place: MemoryPlace, index: Value, x: Value) -> InstructionGroup:
        """Stores a number in a place; to be added where it belongs."""
        code, given = _stored(place.code), self.operand(x, place.code, place.wide)
        if place.code == "b1":
            kinds = self.type_of("b1", place.wide), self.type_of(code, place.wide)
            given = self.emit(f"sext {kinds[0]} {given} to {kinds[1]}", place.wide, (x,))
        kind, at = self.type_of(code, place.wide), self.fresh("p")
        where = f"{at} = getelementptr {kind}, ptr {place.name}, i32 {index}"
        return InstructionGroup(f"{where}\nstore {kind} {given}, ptr {at}")

    def widest(self, *values: Value) -> bool:
        """Return whether any of the values is wide."""
        return any(self.wide[x] for x in values if is_runtime_value(x))

    def operand(self, x: Value, code: str, wide: bool) -> str:
        """A value as an operand; one that lanes share is spread over them where it has to be."""
        if not is_runtime_value(x):
            text = _literal(x, code)
            return f"splat ({LLVM.get(code, 'i1')} {text})" if wide else text
        if self.wide[x] == wide:
            return str(x)
        kind = self.type_of(code, True)
        scalar = self.type_of(code, False)
        first = self.emit(f"insertelement {kind} poison, {scalar} {x}, i32 0", True, (x,))
        mask = f"<{self.lanes} x i32> zeroinitializer"
        return self.emit(f"shufflevector {kind} {first}, {kind} poison, {mask}", True, (x,))

    def apply(self, instruction: str, code: str, *values: Value) -> str:
        """An instruction whose operands and result have one type."""
        wide = self.widest(*values)
        given = ", ".join(self.operand(x, code, wide) for x in values)
        return self.emit(f"{instruction} {self.type_of(code, wide)} {given}", wide, values)

    def intrinsic(self, name: str, code: str, *values: Value) -> str:
        """One of LLVM's own functions, of numbers of one type, applied to each lane."""
        wide = self.widest(*values)
        kind = self.type_of(code, wide)
        bits = f"{'f' if code[0] == 'f' else 'i'}{8 * int(code[1])}"
        function = f"@llvm.{name}.{f'v{self.lanes}' if wide else ''}{bits}"
        self.declared.add(f"declare {kind} {function}({', '.join([kind] * len(values))})")
        given = ", ".join(f"{kind} {self.operand(x, code, wide)}" for x in values)
        return self.emit(f"call {kind} {function}({given})", wide, values)

    def function(self, name: str, code: str, *values: Value) -> str:
        """A function of C's library of mathematics, called for one lane after another."""
        scalar = self.type_of(code, False)
        symbol = f"@{name}{'f' if code == 'f4' else ''}"
        self.declared.add(f"declare {scalar} {symbol}({', '.join([scalar] * len(values))})")

        def call(asm: Emitter, given: list[str]) -> str:
            arguments = ", ".join(f"{scalar} {x}" for x in given)
            return asm.emit(f"call {scalar} {symbol}({arguments})", False, tuple(given))

        def lanes(asm: Emitter, *given: str) -> tuple[Value]:
            if not asm.widest(*given):
                return (call(asm, list(given)),)
            kind, result = asm.type_of(code, True), "poison"
            for lane in range(asm.lanes):
                apart = [
                    asm.emit(f"extractelement {kind} {x}, i32 {lane}", False, (x,)) for x in given
                ]
                one = call(asm, apart)
                result = asm.emit(
                    f"insertelement {kind} {result}, {scalar} {one}, i32 {lane}", True, (one,)
                )
            return (result,)

        return self.routine(name, code, lanes, *values)[0]

    def routine(
        self, name: str, code: str, build: Callable[..., tuple[Value, ...]], *values: Value
    ) -> list[str]:
        """A function of numbers of one type that is written once, and called where it is needed.

        Args:
            name: of the function.
            code: the type of the operands and the results.
            build: writes it into an assembly, of its operands; gives the results.
            values: operands.

        Returns:
            The results.
        """
        wide = self.widest(*values)
        kind = self.type_of(code, wide)
        symbol = f"@brax.{name}.{code}{f'.{self.lanes}' if wide else ''}"
        if symbol not in self.routines:
            inner = Emitter(self.lanes)
            names = [f"%x{i}" for i in range(len(values))]
            for x in names:
                inner.wide[x], inner._depth[x] = wide, 0
            results = [inner.operand(x, code, wide) for x in build(inner, *names)]
            together = f"{{{', '.join([kind] * len(results))}}}"
            value = "poison"
            for i, x in enumerate(results):
                text = f"insertvalue {together} {value}, {kind} {x}, {i}"
                value = inner.emit(text, wide, (x,))
            given = ", ".join(f"{kind} {x}" for x in names)
            body = [*(line.text for line in inner.blocks[0]), f"ret {together} {value}"]
            text = "\n".join([f"define internal {together} {symbol}({given}) {{", *body, "}"])
            self.routines[symbol] = together, len(results), text
            self.declared |= inner.declared
            self.routines |= inner.routines
        together, count, _ = self.routines[symbol]
        given = ", ".join(f"{kind} {self.operand(x, code, wide)}" for x in values)
        call = self.emit(f"call {together} {symbol}({given})", wide, values)
        return [
            self.emit(f"extractvalue {together} {call}, {i}", wide, (call,)) for i in range(count)
        ]

    def compare(self, predicate: str, code: str, x: Value, y: Value) -> str:
        """A truth value: `fcmp` or `icmp`, with a predicate, of two numbers."""
        return self.apply(predicate, code, x, y)

    def any_lane(self, x: Value) -> str:
        """Return whether a truth value holds in any of the lanes."""
        if not self.widest(x):
            return self.operand(x, "b1", False)
        kind, function = self.type_of("b1", True), f"@llvm.vector.reduce.or.v{self.lanes}i1"
        self.declared.add(f"declare i1 {function}({kind})")
        return self.emit(f"call i1 {function}({kind} {x})", False, (x,))

    def select(self, which: Value, yes: Value, no: Value, code: str) -> Value:
        """One of two values by a truth value."""
        if not is_runtime_value(which):
            return yes if which else no
        if yes is no or (is_runtime_value(yes) and is_runtime_value(no) and yes == no):
            return yes
        wide = self.widest(which, yes, no)
        kind = self.type_of(code, wide)
        spread = wide and self.wide[which]
        mask = f"{self.type_of('b1', spread)} {self.operand(which, 'b1', spread)}"
        pair = ", ".join(f"{kind} {self.operand(x, code, wide)}" for x in (yes, no))
        return self.emit(f"select {mask}, {pair}", wide, (which, yes, no))

    def convert(self, instruction: str, x: Value, before: str, after: str) -> str:
        """A number of another type."""
        wide = self.wide[x]
        kinds = self.type_of(before, wide), self.type_of(after, wide)
        return self.emit(f"{instruction} {kinds[0]} {x} to {kinds[1]}", wide, (x,))

    def rounded(self, name: str, x: Value, before: str, after: str) -> str:
        """A number with a fraction towards zero, as an integer; the nearest there is."""
        wide = self.wide[x]
        kinds = self.type_of(before, wide), self.type_of(after, wide)
        lanes = f"v{self.lanes}" if wide else ""
        ends = f"{lanes}i{8 * int(after[1])}.{lanes}f{8 * int(before[1])}"
        function = f"@llvm.{name}.sat.{ends}"
        self.declared.add(f"declare {kinds[1]} {function}({kinds[0]})")
        return self.emit(f"call {kinds[1]} {function}({kinds[0]} {x})", wide, (x,))

    def multiply(self, code: str, x: Value, y: Value) -> Value:
        """A product of two numbers with a fraction."""
        for a, b in ((x, y), (y, x)):
            if not is_runtime_value(a) and a == 1:
                return b
        name = self.apply("fmul", code, x, y)
        self._factors[name] = x, y
        return name

    def add(self, code: str, x: Value, y: Value) -> Value:
        """A sum of two numbers with a fraction; that of a product is rounded once."""
        for a, b in ((x, y), (y, x)):
            if not is_runtime_value(a) and a == 0:
                return b
        for product, other in ((y, x), (x, y)):
            if is_runtime_value(product) and product in self._factors:
                return self.intrinsic("fma", code, *self._factors[product], other)
        return self.apply("fadd", code, x, y)

    def subtract(self, code: str, x: Value, y: Value) -> Value:
        """A difference of two numbers with a fraction; see `add`."""
        if not is_runtime_value(y) and y == 0:
            return x
        if is_runtime_value(y) and y in self._factors:
            a, b = self._factors[y]
            return self.intrinsic("fma", code, self.negative(code, a), b, x)
        if is_runtime_value(x) and x in self._factors:
            return self.intrinsic("fma", code, *self._factors[x], self.negative(code, y))
        return self.apply("fsub", code, x, y)

    def negative(self, code: str, x: Value) -> Value:
        """Minus a number with a fraction."""
        return self.apply("fneg", code, x) if is_runtime_value(x) else -x


def _stored(code: str) -> str:
    """The type in which numbers of a type are kept."""
    return "i4" if code == "b1" else code


def _literal(x: Any, code: str) -> str:
    """A number as LLVM writes it."""
    if code == "b1":
        return "true" if x else "false"
    if code[0] != "f":
        return str(int(x))
    exact = float(np.float32(x)) if code == "f4" else float(x)
    return f"0x{struct.unpack('<Q', struct.pack('<d', exact))[0]:016X}"
