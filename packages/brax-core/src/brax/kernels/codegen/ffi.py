"""The handler of a kernel: the function that XLA calls through its foreign-function interface.

*Handler* is XLA's word. It gets one structure, the call frame, with addresses of operands, results
and of XLA's own functions. The structures are read by the offsets of their fields, which are in
`ffi_layout`. The handler shares the batch among threads, which take it piece by piece. Each thread
calls the kernel once, which asks `next` for a part of a piece after the other: it transposes.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from brax.kernels.codegen.ffi_layout import METADATA_EXTENSION, SIZES, WORD_BYTES, offset
from brax.kernels.codegen.jax_internals import FFI_MAJOR, ffi_version
from brax.kernels.codegen.stack import allocation

MIN_THREAD_BATCH = 64
"""Smallest number of environments that is worth another thread."""

PIECES_PER_THREAD = 8
"""Pieces of the batch for each thread, a power of two, so that none waits long for another."""

PART = 64
"""Largest number of environments that is transposed at once, so that it stays in a core's cache."""

_COUNT, _SCHEDULE = "ThreadPool_NumThreads_Args", "ThreadPool_Schedule_Args"
"""The arguments of XLA's functions that count its threads, and have one of them call a function."""

_DESTROY = "Error_Destroy_Args"
"""The arguments of XLA's function that frees an error."""


class ArrayLayout(NamedTuple):
    """The layout of an operand or a result of a kernel."""

    batched: bool
    """True if it has a batch; otherwise it is the same in all environments."""
    elements: int
    """The number of elements for each environment."""
    itemsize: int
    """The size of an element, in bytes."""


# The job is eight words of eight bytes, which the threads share:
#   0 the next piece    1 pieces that are done    2 threads that hold the job    3 pieces
#   4 size of a piece   5 size of the batch       6 operands                     7 results
# A thread that comes late finds no piece left, and touches nothing but the job. The last thread
# that lets go of the job frees it, since XLA may start a thread after the handler has returned.
_WORK_SHARING = """
define internal i1 @taken(ptr %job, ptr %begin.to, ptr %stop.to) {
  %number = atomicrmw add ptr %job, i64 1 acq_rel
  %p1 = getelementptr i64, ptr %job, i64 3
  %pieces = load i64, ptr %p1
  %left = icmp slt i64 %number, %pieces
  br i1 %left, label %take, label %none
take:
  %p2 = getelementptr i64, ptr %job, i64 4
  %piece = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %job, i64 5
  %size = load i64, ptr %p3
  %begin = mul i64 %number, %piece
  %far = add i64 %begin, %piece
  %beyond = icmp sgt i64 %far, %size
  %stop = select i1 %beyond, i64 %size, i64 %far
  store i64 %begin, ptr %begin.to
  store i64 %stop, ptr %stop.to
  ret i1 true
none:
  ret i1 false
}
define void @work(ptr %job) {
  %begin.to = alloca i64
  %stop.to = alloca i64
  %some = call i1 @taken(ptr %job, ptr %begin.to, ptr %stop.to)
  br i1 %some, label %run, label %end
run:
  %p1 = getelementptr i64, ptr %job, i64 6
  %in = load ptr, ptr %p1
  %p2 = getelementptr i64, ptr %job, i64 7
  %out = load ptr, ptr %p2
  %begin = load i64, ptr %begin.to
  %stop = load i64, ptr %stop.to
  call void @batch(ptr %in, ptr %out, i64 %begin, i64 %stop, ptr %job)
  br label %end
end:
  %p3 = getelementptr i64, ptr %job, i64 2
  %users = atomicrmw sub ptr %p3, i64 1 acq_rel
  %last = icmp eq i64 %users, 1
  br i1 %last, label %drop, label %done
drop:
  call void @free(ptr %job)
  br label %done
done:
  ret void
}
declare i32 @sched_yield()
"""
"""The function of each thread, and the one that takes a piece of the batch if one is left."""


def ffi_handler(
    operands: Sequence[ArrayLayout], results: Sequence[ArrayLayout], lanes: int, threads: bool
) -> str:
    """Return the function `handler`, which XLA calls and which calls `kernel`, as LLVM's text.

    XLA's arrays have the batch on the first axis, as users' programs have them, so that XLA has
    nothing to transpose; a kernel's arrays have it on the last. The handler transposes.

    Args:
        operands: the layouts of the kernel's operands; at least one has a batch.
        results: the layouts of its results, which all have a batch.
        lanes: environments that the kernel works on at once.
        threads: whether to share the batch among XLA's threads.
    """
    batched = next(k for k, x in enumerate(operands) if x.batched)
    shared = _shared_call(_thread_count(MIN_THREAD_BATCH), _pieces(lanes)) if threads else []
    lines = _handler(len(operands), len(results), batched, shared)
    lines += _batch(operands, results, lanes, threads)
    return "\n".join(lines) + (_WORK_SHARING + _failed() if threads else "")


def block_handler(operands: int, results: int, room: int, prepare: Sequence[str]) -> str:
    """Return the function `handler` of a kernel that works on blocks of rows of XLA's own arrays.

    The first axis of the first operand counts the blocks. The handler calls `block` for each, with
    the addresses of operands and results, that of memory for its own use, and the block's number.
    Threads take one block after another, so that results do not depend on their number as long as
    no block writes what another one does.

    Args:
        operands: the number of operands.
        results: the number of results.
        room: the size of the memory, in bytes.
        prepare: instructions before the first block, which may fill the memory `%stack` from the
            operands `%in0`, `%in1` and so on.
    """
    allocated, freed = allocation(max(room, 1))
    names = [f"in{k}" for k in range(operands)] + [f"out{k}" for k in range(results)]
    arguments = "".join(f"ptr %{name}, " for name in names) + "ptr %stack"
    each_block = ["%pieces = add i64 %size, 0", "%piece = add i64 0, 1", *_users()]
    lines = [
        *_handler(operands, results, 0, _shared_call(_thread_count(1), each_block)),
        "define internal void @batch(ptr %in, ptr %out, i64 %begin, i64 %stop, ptr %job) {",
        "%begin.at = alloca i64",
        "%stop.at = alloca i64",
        *allocated,
        *(line for k in range(operands) for line in _load(f"in{k}", "in", WORD_BYTES * k)),
        *(line for k in range(results) for line in _load(f"out{k}", "out", WORD_BYTES * k)),
        *prepare,
        "store i64 %begin, ptr %begin.at",
        "store i64 %stop, ptr %stop.at",
        "br label %enter",
        "enter:",
        "%from = load i64, ptr %begin.at",
        "%to = load i64, ptr %stop.at",
        "br label %each",
        "each:",
        "%number = phi i64 [ %from, %enter ], [ %number.next, %each ]",
        f"call void @block({arguments}, i64 %number)",
        "%number.next = add i64 %number, 1",
        "%more = icmp slt i64 %number.next, %to",
        "br i1 %more, label %each, label %ran",
        "ran:",
        *_next_piece("%begin.at", "%stop.at"),
        "end:",
        *freed,
        "ret void",
        "}",
    ]
    return "\n".join(lines) + _WORK_SHARING + _failed()


def _handler(operands: int, results: int, sized: int, shared: Sequence[str]) -> list[str]:
    """Return the function `handler`, which calls `batch` with arrays of the arrays' addresses.

    Args:
        operands: the number of operands.
        results: the number of results.
        sized: number of an operand whose first dimension is the size of the batch.
        shared: instructions that share a large batch among threads.
    """

    def version(part: str) -> int:
        return offset("Metadata.api_version", f"Api_Version.{part}_version")

    return [
        "define ptr @handler(ptr %frame) {",
        f"%operands = alloca ptr, i32 {operands}",
        f"%results = alloca ptr, i32 {results}",
        *_load("extension", "frame", offset("CallFrame.extension_start")),
        "%extended = icmp ne ptr %extension, null",
        "br i1 %extended, label %asked, label %call",
        "asked:",
        *_load("type", "extension", offset("InternalExtension.type"), "i32"),
        f"%version.asked = icmp eq i32 %type, {METADATA_EXTENSION}",
        # Extensions of other types, which a later XLA may have, are of no concern to a kernel.
        "br i1 %version.asked, label %about, label %call",
        # Before the first call XLA asks for the version that the handler was written for, in an
        # extension of the frame. The answer is the only thing that is done then.
        "about:",
        *_load("metadata", "extension", offset("Metadata_Extension.metadata")),
        f"%major = getelementptr i8, ptr %metadata, i64 {version('major')}",
        f"store i32 {FFI_MAJOR}, ptr %major",
        f"%minor = getelementptr i8, ptr %metadata, i64 {version('minor')}",
        f"store i32 {ffi_version()}, ptr %minor",
        "ret ptr null",
        "call:",
        *_load("in", "frame", offset("CallFrame.args", "Args.args")),
        *_load("out", "frame", offset("CallFrame.rets", "Rets.rets")),
        *_addresses("in", "operands", operands),
        *_addresses("out", "results", results),
        *_load("dims", f"in{sized}", offset("Buffer.dims")),
        *_load("size", "dims", 0, "i64"),
        *shared,
        "call void @batch(ptr %operands, ptr %results, i64 0, i64 %size, ptr null)",
        # A null pointer is XLA's success.
        "ret ptr null",
        "}",
    ]


def _addresses(base: str, to: str, count: int) -> list[str]:
    """Copy the addresses of the data of XLA's buffers into an array of addresses."""
    lines = []
    for k in range(count):
        lines += [
            *_load(f"{base}{k}", base, WORD_BYTES * k),
            *_load(f"{base}{k}.data", f"{base}{k}", offset("Buffer.data")),
            f"%{to}{k} = getelementptr ptr, ptr %{to}, i64 {k}",
            f"store ptr %{base}{k}.data, ptr %{to}{k}",
        ]
    return lines


class _Array(NamedTuple):
    """An operand or a result of a kernel."""

    base: str
    """`in` for an operand, `out` for a result."""
    number: int
    """Its number among these."""
    layout: ArrayLayout
    place: int
    """Its offset in the memory of a part, in bytes, if it has a batch."""

    @property
    def name(self) -> str:
        """The name of XLA's address of it."""
        return f"{self.base}{self.number}"


def _arrays(
    operands: Sequence[ArrayLayout], results: Sequence[ArrayLayout]
) -> tuple[list[_Array], int]:
    """Return all arrays of a kernel, and the bytes of the memory of a part."""
    found, room = [], 0
    for base, layouts in (("in", operands), ("out", results)):
        for k, layout in enumerate(layouts):
            found.append(_Array(base, k, layout, room))
            room += PART * layout.elements * layout.itemsize * layout.batched
    return found, room


# What `next` is called with are seven words of eight bytes:
#   0 operands    1 results    2 memory of the part    3 end of the piece
#   4 first environment of the part    5 number of its environments, 0 before the first part
#   6 job that has more pieces, or null
_PART_WORDS = {
    **{"in": "ptr", "out": "ptr", "room": "ptr"},
    **{"stop": "i64", "first": "i64", "n": "i64", "job": "ptr"},
}


def _batch(
    operands: Sequence[ArrayLayout], results: Sequence[ArrayLayout], lanes: int, threads: bool
) -> list[str]:
    """Return the function `batch`, which runs the kernel on the environments from begin to stop.

    If it is given a job, it goes on with pieces of it. The kernel calls `next` before each part of
    at most `PART` environments.
    """
    arrays, room = _arrays(operands, results)
    # Rows begin at cache lines, so that no load is split. An allocation is not empty.
    allocated, freed = allocation(max(room, 1))
    words = "%in", "%out", "%stack", "%stop", "%begin", "0", "%job"
    return [
        "define internal void @batch(ptr %in, ptr %out, i64 %begin, i64 %stop, ptr %job) {",
        f"%ins = alloca ptr, i32 {len(operands)}",
        f"%outs = alloca ptr, i32 {len(results)}",
        f"%words = alloca [{len(_PART_WORDS)} x i64]",
        *allocated,
        *(line for array in arrays for line in _kernel_address(array)),
        *_store("words", enumerate(zip(_PART_WORDS.values(), words, strict=True))),
        "call void @kernel(ptr %ins, ptr %outs, ptr @next, ptr %words)",
        *freed,
        "ret void",
        "}",
        *_next(arrays, lanes, threads),
        *(_transpose(8 * size) for size in sorted({x.layout.itemsize for x in arrays})),
    ]


def _kernel_address(array: _Array) -> list[str]:
    """Set the address that the kernel knows an array by: in the part's memory, or XLA's own."""
    name, own = array.name, _load(array.name, array.base, WORD_BYTES * array.number)
    mine = [f"%{name} = getelementptr i8, ptr %stack, i64 {array.place}"]
    return [
        *(mine if array.layout.batched else own),
        f"%{name}.to = getelementptr ptr, ptr %{array.base}s, i64 {array.number}",
        f"store ptr %{name}, ptr %{name}.to",
    ]


def _next(arrays: Sequence[_Array], lanes: int, threads: bool) -> list[str]:
    """Return the function `next`: it ends a part and begins the next one.

    It transposes the results of the part before, if there is one, and the operands of the next one,
    and returns the number of its environments, or 0 at the end. At the end of a piece it takes the
    next one from the job.
    """

    def transposed(base: str, first: str, count: str) -> Iterator[str]:
        for array in arrays:
            # `transpose` would copy an element of an empty array, which has no memory of its own.
            if array.base == base and array.layout.batched and array.layout.elements:
                yield from _transposition(array, first, count)

    return [
        "define internal i64 @next(ptr %words) {",
        *(
            line
            for i, (name, kind) in enumerate(_PART_WORDS.items())
            for line in _load(name, "words", WORD_BYTES * i, kind)
        ),
        "%ran = icmp sgt i64 %n, 0",
        "br i1 %ran, label %leave, label %seek",
        "leave:",
        *transposed("out", "%first", "%n"),
        "br label %seek",
        "seek:",
        "%after = add i64 %first, %n",
        "store i64 %after, ptr %first.at",
        "%more = icmp slt i64 %after, %stop",
        "br i1 %more, label %enter, label %piece",
        "piece:",
        *(_next_piece("%first.at", "%stop.at") if threads else ["br label %end"]),
        "end:",
        "ret i64 0",
        "enter:",
        "%from = load i64, ptr %first.at",
        "%to = load i64, ptr %stop.at",
        # A part has at least as many environments as lanes. So the last one may begin earlier and
        # overlap those before it, even of another thread: both write the same numbers.
        "%left = sub i64 %to, %from",
        f"%short = icmp slt i64 %left, {lanes}",
        f"%late = sub i64 %to, {lanes}",
        "%begin = select i1 %short, i64 %late, i64 %from",
        "%rest = sub i64 %to, %begin",
        f"%many = icmp sgt i64 %rest, {PART}",
        f"%count = select i1 %many, i64 {PART}, i64 %rest",
        *transposed("in", "%begin", "%count"),
        "store i64 %begin, ptr %first.at",
        "store i64 %count, ptr %n.at",
        "ret i64 %count",
        "}",
    ]


def _next_piece(begin: str, stop: str) -> list[str]:
    """Count a piece as done, and jump to `enter` if there is another one, or else to `end`.

    Args:
        begin: address at which to store the first environment of the next piece.
        stop: address at which to store its end.
    """
    return [
        "%alone = icmp eq ptr %job, null",
        "br i1 %alone, label %end, label %shared",
        "shared:",
        "%done = getelementptr i64, ptr %job, i64 1",
        "%was = atomicrmw add ptr %done, i64 1 acq_rel",
        # From here on, what is not the job may be gone, unless a piece is left.
        f"%taken = call i1 @taken(ptr %job, ptr {begin}, ptr {stop})",
        "br i1 %taken, label %enter, label %end",
    ]


def _transposition(array: _Array, first: str, count: str) -> list[str]:
    """Transpose an array of a part: an operand into the part's memory, a result out of it.

    Args:
        array: the array, which has a batch.
        first: the first environment of the part.
        count: the number of its environments.
    """
    name, elements, itemsize = f"%{array.name}", array.layout.elements, array.layout.itemsize
    mine, theirs = f"ptr {name}.mine, i64 {PART}", f"ptr {name}.theirs, i64 {elements}"
    arguments = (
        (mine, theirs, f"i64 {elements}, i64 {count}")
        if array.base == "in"
        else (theirs, mine, f"i64 {count}, i64 {elements}")
    )
    return [
        *_load(array.name, array.base, WORD_BYTES * array.number),
        f"{name}.row = mul i64 {first}, {elements * itemsize}",
        f"{name}.theirs = getelementptr i8, ptr {name}, i64 {name}.row",
        f"{name}.mine = getelementptr i8, ptr %room, i64 {array.place}",
        f"call void @transpose{8 * itemsize}({', '.join(arguments)})",
    ]


def _transpose(bits: int) -> str:
    """Return a function that sets to[a, b] = from[b, a], for a < outer and b < inner.

    Both are at least 1: the loops test at their ends. Rows may be longer than what is set of them.
    Tiles of `_TILE` by `_TILE` elements are transposed in registers. The last tiles begin earlier
    and overlap those before them.
    """
    tile = "\n".join(_tile(f"i{bits}"))
    # The writes are contiguous. `align 1`: parts of users' arrays begin anywhere.
    return f"""
define internal void @transpose{bits}(
    ptr %to, i64 %to.row, ptr %from, i64 %from.row, i64 %outer, i64 %inner
) {{
entry:
  %long = icmp sge i64 %outer, {_TILE}
  %wide = icmp sge i64 %inner, {_TILE}
  %large = and i1 %long, %wide
  br i1 %large, label %tiled, label %line
tiled:
  %last.a = sub i64 %outer, {_TILE}
  %last.b = sub i64 %inner, {_TILE}
  br label %tiles
tiles:
  %far.a = phi i64 [ 0, %tiled ], [ %far.a.next, %tiles.ended ]
  %over.a = icmp sgt i64 %far.a, %last.a
  %at.a = select i1 %over.a, i64 %last.a, i64 %far.a
  br label %tile
tile:
  %far.b = phi i64 [ 0, %tiles ], [ %far.b.next, %tile ]
  %over.b = icmp sgt i64 %far.b, %last.b
  %at.b = select i1 %over.b, i64 %last.b, i64 %far.b
{tile}
  %far.b.next = add i64 %far.b, {_TILE}
  %tile.more = icmp slt i64 %far.b.next, %inner
  br i1 %tile.more, label %tile, label %tiles.ended
tiles.ended:
  %far.a.next = add i64 %far.a, {_TILE}
  %tiles.more = icmp slt i64 %far.a.next, %outer
  br i1 %tiles.more, label %tiles, label %done
line:
  %a = phi i64 [ 0, %entry ], [ %a.next, %ended ]
  %start = mul i64 %a, %to.row
  br label %each
each:
  %b = phi i64 [ 0, %line ], [ %b.next, %each ]
  %i = phi i64 [ %a, %line ], [ %i.next, %each ]
  %j = add i64 %start, %b
  %source = getelementptr i{bits}, ptr %from, i64 %i
  %target = getelementptr i{bits}, ptr %to, i64 %j
  %x = load i{bits}, ptr %source, align 1
  store i{bits} %x, ptr %target, align 1
  %b.next = add i64 %b, 1
  %i.next = add i64 %i, %from.row
  %continue = icmp slt i64 %b.next, %inner
  br i1 %continue, label %each, label %ended
ended:
  %a.next = add i64 %a, 1
  %again = icmp slt i64 %a.next, %outer
  br i1 %again, label %line, label %done
done:
  ret void
}}"""


_TILE = 8
"""Rows and columns of a tile that is transposed in registers."""


def _tile(kind: str) -> list[str]:
    """Return instructions that transpose the tile from[at.b, at.a] into to[at.a, at.b]."""
    vector = f"<{_TILE} x {kind}>"
    lines, rows = [], [f"%tile.{k}" for k in range(_TILE)]

    def place(name: str, base: str, row: str, column: str, k: int) -> None:
        """Set a name to the address of row k of the tile in one of the matrices."""
        lines.extend(
            [
                f"%{name}.line = add i64 {row}, {k}",
                f"%{name}.start = mul i64 %{name}.line, %{base}.row",
                f"%{name}.index = add i64 %{name}.start, {column}",
                f"%{name} = getelementptr {kind}, ptr %{base}, i64 %{name}.index",
            ]
        )

    for k, row in enumerate(rows):
        place(f"source.{k}", "from", "%at.b", "%at.a", k)
        lines.append(f"{row} = load {vector}, ptr %source.{k}, align 1")
    # Two by two tiles of one element each, then of two by two elements, and so on: the upper right
    # one and the lower left one change places.
    for distance in (1, 2, 4):
        for upper in (k for k in range(_TILE) if not k & distance):
            lower = upper | distance
            pair = f"{vector} {rows[upper]}, {vector} {rows[lower]}"
            # Elements are numbered through both rows.
            left = [k if not k & distance else _TILE + k - distance for k in range(_TILE)]
            right = [k + distance if not k & distance else _TILE + k for k in range(_TILE)]
            for number, order in ((upper, left), (lower, right)):
                rows[number] = f"%tile.{number}.{distance}"
                mask = ", ".join(f"i32 {k}" for k in order)
                lines.append(f"{rows[number]} = shufflevector {pair}, <{_TILE} x i32> <{mask}>")
    for k, row in enumerate(rows):
        place(f"target.{k}", "to", "%at.a", "%at.b", k)
        lines.append(f"store {vector} {row}, ptr %target.{k}, align 1")
    return lines


def _load(name: str, base: str, distance: int, kind: str = "ptr") -> list[str]:
    """Load what lies at a distance from an address, in bytes."""
    return [
        f"%{name}.at = getelementptr i8, ptr %{base}, i64 {distance}",
        f"%{name} = load {kind}, ptr %{name}.at",
    ]


def _shared_call(count: Sequence[str], pieces: Sequence[str]) -> list[str]:
    """Share a large batch among XLA's threads and return; continue at `serial` with a small one.

    Args:
        count: see `_thread_count`.
        pieces: see `_pieces`.
    """
    return [
        *count,
        "share:",
        *pieces,
        *_job(),
        *_scheduled_threads(),
        *_own_share(),
        "serial:",
    ]


def _thread_count(least: int) -> list[str]:
    """Ask XLA for the number of its threads, and jump to `share` if several are worth it.

    `least` is the size of a batch that is worth another thread.
    """
    return [
        # One thread is assumed if XLA does not answer.
        "%threads.to = alloca i64",
        "store i64 1, ptr %threads.to",
        *(
            f"%{name}.args = alloca [{SIZES[struct] // WORD_BYTES} x i64]"
            for name, struct in (("count", _COUNT), ("schedule", _SCHEDULE))
        ),
        *_load("context", "frame", offset("CallFrame.ctx")),
        *_load("api", "frame", offset("CallFrame.api")),
        *_arguments("count.args", _COUNT, ("ctx", "%context")),
        *_set("threads.at", "count.args", offset(f"{_COUNT}.num_threads"), "%threads.to"),
        *_load("count", "api", offset("Api.ThreadPool_NumThreads")),
        "%count.error = call ptr %count(ptr %count.args)",
        "%uncounted = call i1 @failed(ptr %api, ptr %count.error)",
        "%threads = load i64, ptr %threads.to",
        f"%most = udiv i64 %size, {least}",
        "%single = icmp slt i64 %threads, 2",
        "%small = icmp slt i64 %most, 2",
        "%one = or i1 %single, %small",
        "br i1 %one, label %serial, label %share",
    ]


def _pieces(lanes: int) -> list[str]:
    """Compute the size and the number of pieces, and the number of threads that work on them."""
    return [
        f"%wished = shl i64 %threads, {PIECES_PER_THREAD.bit_length() - 1}",
        "%fewer = icmp slt i64 %most, %wished",
        "%about.pieces = select i1 %fewer, i64 %most, i64 %wished",
        "%even = udiv i64 %size, %about.pieces",
        # Rounded up to a multiple of the lanes, so that pieces need not overlap.
        f"%up = add i64 %even, {lanes - 1}",
        f"%piece = and i64 %up, {-lanes}",
        "%up.pieces = add i64 %size, %piece",
        "%less = sub i64 %up.pieces, 1",
        "%pieces = udiv i64 %less, %piece",
        *_users(),
    ]


def _users() -> list[str]:
    """Compute the number of threads that work on the pieces."""
    return [
        "%enough = icmp slt i64 %pieces, %threads",
        "%users = select i1 %enough, i64 %pieces, i64 %threads",
    ]


def _job() -> list[str]:
    """Allocate the job and set its eight words, see `_WORK_SHARING`."""
    words = ("0", "0", "%users", "%pieces", "%piece", "%size")
    return [
        "%job = call ptr @malloc(i64 64)",
        *_store(
            "job",
            enumerate([("i64", x) for x in words] + [("ptr", "%operands"), ("ptr", "%results")]),
        ),
        "%done.at = getelementptr i64, ptr %job, i64 1",
        "%users.at = getelementptr i64, ptr %job, i64 2",
        # The handler holds the job once more, so that it can read when all pieces are done.
        "%kept = atomicrmw add ptr %users.at, i64 1 acq_rel",
    ]


def _scheduled_threads() -> list[str]:
    """Have XLA call `work` in all threads but this one."""
    return [
        *_arguments("schedule.args", _SCHEDULE, ("ctx", "%context"), ("task", "@work")),
        *_set("schedule.job", "schedule.args", offset(f"{_SCHEDULE}.data"), "%job"),
        *_load("schedule", "api", offset("Api.ThreadPool_Schedule")),
        "br label %next",
        "next:",
        # From 1: this thread is the first.
        "%i = phi i64 [ 1, %share ], [ %i.next, %ordered ]",
        "%more = icmp slt i64 %i, %users",
        "br i1 %more, label %ordered, label %mine",
        "ordered:",
        "%schedule.error = call ptr %schedule(ptr %schedule.args)",
        # A thread that does not come holds no job. Other threads take its pieces.
        "%missing = call i1 @failed(ptr %api, ptr %schedule.error)",
        "%lost = zext i1 %missing to i64",
        "%held = atomicrmw sub ptr %users.at, i64 %lost acq_rel",
        "%i.next = add i64 %i, 1",
        "br label %next",
    ]


def _own_share() -> list[str]:
    """Work on pieces in this thread, wait for the other threads, let go of the job, and return."""
    return [
        "mine:",
        "call void @work(ptr %job)",
        "br label %wait",
        # The handler may not return before all results are written. A piece is short, so that
        # asking again and again costs less than to sleep and be woken.
        "wait:",
        "%done = load atomic i64, ptr %done.at acquire, align 8",
        "%all = icmp eq i64 %done, %pieces",
        "br i1 %all, label %finished, label %idle",
        "idle:",
        "%yielded = call i32 @sched_yield()",
        "br label %wait",
        "finished:",
        # With no piece left, `work` only lets go of the job.
        "call void @work(ptr %job)",
        "ret ptr null",
    ]


def _failed() -> str:
    """Return the function `failed`, which says whether a function of XLA has returned an error.

    It frees the error.
    """
    lines = [
        "define internal i1 @failed(ptr %api, ptr %error) {",
        "%fine = icmp eq ptr %error, null",
        "br i1 %fine, label %end, label %free",
        "free:",
        f"%args = alloca [{SIZES[_DESTROY] // WORD_BYTES} x i64]",
        *_arguments("args", _DESTROY, ("error", "%error")),
        *_load("destroy", "api", offset("Api.Error_Destroy")),
        "call void %destroy(ptr %args)",
        "ret i1 true",
        "end:",
        "ret i1 false",
        "}",
    ]
    return "\n".join(lines)


def _arguments(base: str, struct: str, *more: tuple[str, str]) -> list[str]:
    """Set the structure of arguments of one of XLA's functions.

    Args:
        base: the name of its address.
        struct: the name of the structure.
        more: fields with addresses, besides size and extension (there is none).
    """
    values = [("struct_size", "i64", str(SIZES[struct])), ("extension_start", "i64", "0")]
    values += [(field, "ptr", x) for field, x in more]
    return _store(
        base, [(offset(f"{struct}.{field}") // WORD_BYTES, (kind, x)) for field, kind, x in values]
    )


def _set(name: str, base: str, distance: int, value: str) -> list[str]:
    """Store an address at a distance from an address, in bytes."""
    return [
        f"%{name} = getelementptr i64, ptr %{base}, i64 {distance // WORD_BYTES}",
        f"store ptr {value}, ptr %{name}",
    ]


def _store(base: str, values: Iterable[tuple[int, tuple[str, str]]]) -> list[str]:
    """Store numbers and addresses, in eight bytes each, at places that are counted in these."""
    return [
        line
        for i, (kind, x) in values
        for line in (
            f"%{base}.{i} = getelementptr i64, ptr %{base}, i64 {i}",
            f"store {kind} {x}, ptr %{base}.{i}",
        )
    ]
