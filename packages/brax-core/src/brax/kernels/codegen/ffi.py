"""The handler of a kernel: the function that XLA calls through its foreign-function interface.

*Handler* is XLA's word. It gets one structure, the call frame, with addresses of operands, results
and of XLA's own functions. The structures are read by the offsets of their fields, which are in
`ffi_layout`. The handler transposes parts of the batch, calls the kernel on them, and shares them
among threads.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from brax.kernels.codegen.ffi_layout import SIZES, WORD_BYTES, offset
from brax.kernels.codegen.jax_internals import FFI_MAJOR, ffi_version

MIN_THREAD_BATCH = 64
"""Smallest number of environments that is worth another thread."""

PIECES_PER_THREAD = 4
"""Pieces of the batch for each thread, a power of two, so that none waits long for another."""

MAX_TRANSPOSED_BATCH = 64
"""Largest number of environments that is transposed at once, so that it stays in a core's cache."""

_COUNT, _SCHEDULE = "ThreadPool_NumThreads_Args", "ThreadPool_Schedule_Args"
"""The arguments of XLA's functions that count its threads, and have one of them call a function."""


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
define void @work(ptr %job) {
  br label %again
again:
  %number = atomicrmw add ptr %job, i64 1 acq_rel
  %p1 = getelementptr i64, ptr %job, i64 3
  %pieces = load i64, ptr %p1
  %left = icmp slt i64 %number, %pieces
  br i1 %left, label %run, label %end
run:
  %p2 = getelementptr i64, ptr %job, i64 4
  %piece = load i64, ptr %p2
  %p3 = getelementptr i64, ptr %job, i64 5
  %size = load i64, ptr %p3
  %p4 = getelementptr i64, ptr %job, i64 6
  %in = load ptr, ptr %p4
  %p5 = getelementptr i64, ptr %job, i64 7
  %out = load ptr, ptr %p5
  %begin = mul i64 %number, %piece
  %far = add i64 %begin, %piece
  %beyond = icmp sgt i64 %far, %size
  %stop = select i1 %beyond, i64 %size, i64 %far
  call void @batch(ptr %in, ptr %out, i64 %begin, i64 %stop)
  %p6 = getelementptr i64, ptr %job, i64 1
  %was = atomicrmw add ptr %p6, i64 1 acq_rel
  br label %again
end:
  %p7 = getelementptr i64, ptr %job, i64 2
  %users = atomicrmw sub ptr %p7, i64 1 acq_rel
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
"""The function of each thread: it takes pieces of the batch until none is left."""


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

    def version(part: str) -> int:
        return offset("Metadata.api_version", f"Api_Version.{part}_version")

    lines = [
        "define ptr @handler(ptr %frame) {",
        f"%operands = alloca ptr, i32 {len(operands)}",
        f"%results = alloca ptr, i32 {len(results)}",
        *_load("extension", "frame", offset("CallFrame.extension_start")),
        "%asked = icmp ne ptr %extension, null",
        "br i1 %asked, label %about, label %call",
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
        *_addresses("in", "operands", len(operands)),
        *_addresses("out", "results", len(results)),
    ]
    batched = next(k for k, x in enumerate(operands) if x.batched)
    lines += [
        # The first dimension of an operand with a batch is the size of the batch.
        *_load("dims", f"in{batched}", offset("Buffer.dims")),
        *_load("size", "dims", 0, "i64"),
        *(_shared_call(lanes) if threads else []),
        "call void @batch(ptr %operands, ptr %results, i64 0, i64 %size)",
        # A null pointer is XLA's success.
        "ret ptr null",
        "}",
        *_batch(operands, results, lanes),
    ]
    return "\n".join(lines) + (_WORK_SHARING if threads else "")


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


def _transposed_arrays(
    operands: Sequence[ArrayLayout], results: Sequence[ArrayLayout]
) -> tuple[list[str], list[str], list[str], int]:
    """Lay out the memory of a part of the batch.

    Returns:
        The instructions that set the kernel's addresses; those that transpose operands before the
        kernel and results after it; and the bytes of all transposed arrays.
    """
    pointers: list[str] = []
    before: list[str] = []
    after: list[str] = []
    room = 0
    for base, arrays in (("in", operands), ("out", results)):
        for k, (batched, elements, itemsize) in enumerate(arrays):
            name = f"%{base}{k}"
            pointers += [
                *_load(f"{base}{k}", base, WORD_BYTES * k),
                f"{name}.row = mul i64 %first, {elements * itemsize}",
                f"{name}.first = getelementptr i8, ptr {name}, i64 {name}.row",
                f"{name}.room = getelementptr i8, ptr %room, i64 {room}",
                f"{name}.to = getelementptr ptr, ptr %{base}s, i64 {k}",
            ]
            # One element for each environment is its own transpose: it is used where it lies. So is
            # an empty array, of which `transpose` would copy one element too many.
            if not batched or elements <= 1:
                pointers.append(f"store ptr {name}{'.first' if batched else ''}, ptr {name}.to")
                continue
            pointers.append(f"store ptr {name}.room, ptr {name}.to")
            # Transposed arrays lie one after another in one allocation.
            room += MAX_TRANSPOSED_BATCH * elements * itemsize
            call = f"call void @transpose{8 * itemsize}"
            if base == "in":
                before.append(f"{call}(ptr {name}.room, ptr {name}.first, i64 {elements}, i64 %n)")
            else:
                after.append(f"{call}(ptr {name}.first, ptr {name}.room, i64 %n, i64 {elements})")
    return pointers, before, after, room


def _batch(
    operands: Sequence[ArrayLayout], results: Sequence[ArrayLayout], lanes: int
) -> list[str]:
    """Return the function `batch`, which runs the kernel on the environments from begin to stop.

    It takes at most `MAX_TRANSPOSED_BATCH` at a time: it transposes their operands, runs the
    kernel, and transposes its results.
    """
    pointers, before, after, room = _transposed_arrays(operands, results)
    sizes = sorted({a.itemsize for a in (*operands, *results)})
    return [
        "define internal void @batch(ptr %in, ptr %out, i64 %begin, i64 %stop) {",
        "entry:",
        f"%ins = alloca ptr, i32 {len(operands)}",
        f"%outs = alloca ptr, i32 {len(results)}",
        f"%room = call ptr @malloc(i64 {room})",
        "br label %few",
        "few:",
        "%at = phi i64 [ %begin, %entry ], [ %next, %few ]",
        # A part has at least as many environments as lanes. So the last one may begin earlier and
        # overlap those before it, even of another thread: both write the same numbers.
        "%left = sub i64 %stop, %at",
        f"%short = icmp slt i64 %left, {lanes}",
        f"%late = sub i64 %stop, {lanes}",
        "%first = select i1 %short, i64 %late, i64 %at",
        "%rest = sub i64 %stop, %first",
        f"%many = icmp sgt i64 %rest, {MAX_TRANSPOSED_BATCH}",
        f"%n = select i1 %many, i64 {MAX_TRANSPOSED_BATCH}, i64 %rest",
        *pointers,
        *before,
        "call void @kernel(ptr %ins, ptr %outs, i64 %n)",
        *after,
        "%next = add i64 %first, %n",
        "%more = icmp slt i64 %next, %stop",
        "br i1 %more, label %few, label %end",
        "end:",
        "call void @free(ptr %room)",
        "ret void",
        "}",
        *(_transpose(8 * itemsize) for itemsize in sizes),
    ]


def _transpose(bits: int) -> str:
    """Return a function that sets to[a, b] = from[b, a], for a < outer and b < inner.

    Both are at least 1: the loops test at their ends.
    """
    # The writes are contiguous. `align 1`: parts of users' arrays begin anywhere.
    return f"""
define internal void @transpose{bits}(ptr %to, ptr %from, i64 %outer, i64 %inner) {{
entry:
  br label %line
line:
  %a = phi i64 [ 0, %entry ], [ %a.next, %ended ]
  %start = mul i64 %a, %inner
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
  %i.next = add i64 %i, %outer
  %continue = icmp slt i64 %b.next, %inner
  br i1 %continue, label %each, label %ended
ended:
  %a.next = add i64 %a, 1
  %again = icmp slt i64 %a.next, %outer
  br i1 %again, label %line, label %done
done:
  ret void
}}"""


def _load(name: str, base: str, distance: int, kind: str = "ptr") -> list[str]:
    """Load what lies at a distance from an address, in bytes."""
    return [
        f"%{name}.at = getelementptr i8, ptr %{base}, i64 {distance}",
        f"%{name} = load {kind}, ptr %{name}.at",
    ]


def _shared_call(lanes: int) -> list[str]:
    """Share a large batch among XLA's threads and return; continue at `serial` with a small one."""
    return [
        *_thread_count(),
        "share:",
        *_pieces(lanes),
        *_job(),
        *_scheduled_threads(),
        *_own_share(),
        "serial:",
    ]


def _thread_count() -> list[str]:
    """Ask XLA for the number of its threads, and jump to `share` if several are worth it."""
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
        *_arguments("count.args", _COUNT),
        *_set("threads.at", "count.args", offset(f"{_COUNT}.num_threads"), "%threads.to"),
        *_load("count", "api", offset("Api.ThreadPool_NumThreads")),
        "%count.error = call ptr %count(ptr %count.args)",
        "%threads = load i64, ptr %threads.to",
        f"%most = udiv i64 %size, {MIN_THREAD_BATCH}",
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
        f"%up = add i64 %even, {lanes}",
        f"%piece = and i64 %up, {-lanes}",
        "%up.pieces = add i64 %size, %piece",
        "%less = sub i64 %up.pieces, 1",
        "%pieces = udiv i64 %less, %piece",
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
        *_arguments("schedule.args", _SCHEDULE, ("task", "@work")),
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


def _arguments(base: str, struct: str, *more: tuple[str, str]) -> list[str]:
    """Set the structure of arguments of one of XLA's functions.

    Args:
        base: the name of its address.
        struct: the name of the structure.
        more: fields with addresses, besides size, extension (there is none) and context.
    """
    values = [("struct_size", "i64", str(SIZES[struct])), ("extension_start", "i64", "0")]
    values += [(field, "ptr", x) for field, x in (("ctx", "%context"), *more)]
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
