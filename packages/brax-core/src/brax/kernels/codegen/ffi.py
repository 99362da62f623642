"""How XLA calls a kernel: its foreign-function interface, whose structures are read by offset.

Source: the interface's header, `xla/ffi/api/c_api.h`, which comes with jaxlib and promises that the
structures of a major version only ever grow.
"""

from collections.abc import Sequence
from typing import NamedTuple

from brax.kernels.codegen.jax_internals import ffi_version

MIN_THREAD_BATCH = 64
"""Least environments that are worth another thread."""

MAX_TRANSPOSED_BATCH = 64
"""Most environments that are transposed at once, so that they stay in a core's cache."""


class Array(NamedTuple):
    """An operand or a result of a kernel."""

    own: bool
    """True if it has a batch; otherwise it is the same in all environments."""
    rows: int
    """Elements for each environment."""
    bytes: int
    """Size of an element."""


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
"""What each thread does: pieces of the batch until none is left. A job is what they share: the next
piece, how many are done, how many threads have it, pieces, their size, the batch, operands,
results. A thread that comes late finds no piece left, and touches nothing but the job."""


def ffi_handler(
    operands: Sequence[Array], results: Sequence[Array], lanes: int, threads: bool
) -> str:
    """Return the function `handler` that XLA calls, which calls `kernel`, in LLVM's language.

    XLA's arrays have the batch on the first axis, as users' programs have them, so that XLA has
    nothing to transpose; a kernel's have it on the last. The handler transposes.

    Args:
        operands: of the kernel; one at least has a batch.
        results: of the kernel.
        lanes: environments that the kernel works on at once.
        threads: whether to share the batch among XLA's threads.
    """
    lines = [
        "define ptr @handler(ptr %frame) {",
        f"%operands = alloca ptr, i32 {len(operands)}",
        f"%results = alloca ptr, i32 {len(results)}",
        *_field("extension", "frame", 8),
        "%asked = icmp ne ptr %extension, null",
        "br i1 %asked, label %about, label %call",
        # XLA asks for which version a handler was written before it calls it.
        "about:",
        *_field("metadata", "extension", 24),
        "%major = getelementptr i8, ptr %metadata, i64 24",
        "store i32 0, ptr %major",
        "%minor = getelementptr i8, ptr %metadata, i64 28",
        f"store i32 {ffi_version()}, ptr %minor",
        "ret ptr null",
        "call:",
        *_field("in", "frame", 72),
        *_field("out", "frame", 112),
    ]
    for base, room, arrays in (("in", "operands", operands), ("out", "results", results)):
        for k in range(len(arrays)):
            lines += [
                *_field(f"{base}{k}", base, 8 * k),
                *_field(f"{base}{k}.data", f"{base}{k}", 24),
                f"%{room}{k} = getelementptr ptr, ptr %{room}, i64 {k}",
                f"store ptr %{base}{k}.data, ptr %{room}{k}",
            ]
    batched = next(k for k, x in enumerate(operands) if x.own)
    lines += [
        *_field("dims", f"in{batched}", 40),
        *_field("size", "dims", 0, "i64"),
        *(_shared(lanes) if threads else []),
        "call void @batch(ptr %operands, ptr %results, i64 0, i64 %size)",
        "ret ptr null",
        "}",
        *_batch(operands, results, lanes),
    ]
    return "\n".join(lines) + (_WORK_SHARING if threads else "")


def _batch(operands: Sequence[Array], results: Sequence[Array], lanes: int) -> list[str]:
    """Return the function `batch`, which runs the kernel on the environments from begin to stop.

    It takes a few at a time: transposes their operands, runs the kernel, transposes its results.
    """
    pointers: list[str] = []
    before: list[str] = []
    after: list[str] = []
    room = 0
    for base, arrays in (("in", operands), ("out", results)):
        for k, (own, rows, size) in enumerate(arrays):
            name = f"%{base}{k}"
            pointers += [
                *_field(f"{base}{k}", base, 8 * k),
                f"{name}.row = mul i64 %first, {rows * size}",
                f"{name}.first = getelementptr i8, ptr {name}, i64 {name}.row",
                f"{name}.room = getelementptr i8, ptr %room, i64 {room}",
                f"{name}.to = getelementptr ptr, ptr %{base}s, i64 {k}",
            ]
            if not own or rows == 1:
                pointers.append(f"store ptr {name}{'.first' if own else ''}, ptr {name}.to")
                continue
            pointers.append(f"store ptr {name}.room, ptr {name}.to")
            room += MAX_TRANSPOSED_BATCH * rows * size
            call = f"call void @transpose{8 * size}"
            if base == "in":
                before.append(f"{call}(ptr {name}.room, ptr {name}.first, i64 {rows}, i64 %n)")
            else:
                after.append(f"{call}(ptr {name}.first, ptr {name}.room, i64 %n, i64 {rows})")
    return [
        "define internal void @batch(ptr %in, ptr %out, i64 %begin, i64 %stop) {",
        "entry:",
        f"%ins = alloca ptr, i32 {len(operands)}",
        f"%outs = alloca ptr, i32 {len(results)}",
        f"%room = call ptr @malloc(i64 {room})",
        "br label %few",
        "few:",
        "%at = phi i64 [ %begin, %entry ], [ %next, %few ]",
        # The last may overlap those before them, and those of another thread.
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
        *(_transpose(8 * size) for size in sorted({a.bytes for a in (*operands, *results)})),
    ]


def _transpose(bits: int) -> str:
    """Return a function that sets to[a, b] = from[b, a], for a < outer and b < inner."""
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


def _field(name: str, base: str, offset: int, kind: str = "ptr") -> list[str]:
    """Loads what is so many bytes into a structure."""
    return [
        f"%{name}.at = getelementptr i8, ptr %{base}, i64 {offset}",
        f"%{name} = load {kind}, ptr %{name}.at",
    ]


def _shared(lanes: int) -> list[str]:
    """Shares the batch among threads if it is large; else goes on at `alone`."""
    job = ("0", "0", "%users", "%pieces", "%piece", "%size")
    return [
        "%threads.to = alloca i64",
        "store i64 1, ptr %threads.to",
        "%question = alloca [4 x i64]",
        "%order = alloca [5 x i64]",
        *_field("context", "frame", 24),
        *_field("api", "frame", 16),
        *_store("question", [("i64", "32"), ("i64", "0"), ("ptr", "%context")]),
        "%threads.at = getelementptr i64, ptr %question, i64 3",
        "store ptr %threads.to, ptr %threads.at",
        *_field("count", "api", 144),
        "%refused = call ptr %count(ptr %question)",
        "%threads = load i64, ptr %threads.to",
        f"%most = udiv i64 %size, {MIN_THREAD_BATCH}",
        "%single = icmp slt i64 %threads, 2",
        "%small = icmp slt i64 %most, 2",
        "%one = or i1 %single, %small",
        "br i1 %one, label %alone, label %many",
        "many:",
        # Four pieces for a thread, so that none waits long for another.
        "%wished = shl i64 %threads, 2",
        "%fewer = icmp slt i64 %most, %wished",
        "%about.pieces = select i1 %fewer, i64 %most, i64 %wished",
        "%even = udiv i64 %size, %about.pieces",
        f"%up = add i64 %even, {lanes}",
        f"%piece = and i64 %up, {-lanes}",
        "%up.pieces = add i64 %size, %piece",
        "%less = sub i64 %up.pieces, 1",
        "%pieces = udiv i64 %less, %piece",
        "%enough = icmp slt i64 %pieces, %threads",
        "%users = select i1 %enough, i64 %pieces, i64 %threads",
        "%job = call ptr @malloc(i64 64)",
        *_store("job", [("i64", x) for x in job] + [("ptr", "%operands"), ("ptr", "%results")]),
        "%done.at = getelementptr i64, ptr %job, i64 1",
        "%users.at = getelementptr i64, ptr %job, i64 2",
        # Kept until all is done.
        "%kept = atomicrmw add ptr %users.at, i64 1 acq_rel",
        *_store("order", [("i64", "40"), ("i64", "0"), ("ptr", "%context"), ("ptr", "@work")]),
        "%order.job = getelementptr i64, ptr %order, i64 4",
        "store ptr %job, ptr %order.job",
        *_field("schedule", "api", 136),
        "br label %next",
        "next:",
        "%i = phi i64 [ 1, %many ], [ %i.next, %ordered ]",
        "%more = icmp slt i64 %i, %users",
        "br i1 %more, label %ordered, label %mine",
        "ordered:",
        "%unable = call ptr %schedule(ptr %order)",
        "%i.next = add i64 %i, 1",
        "br label %next",
        "mine:",
        "call void @work(ptr %job)",
        "br label %wait",
        "wait:",
        "%done = load atomic i64, ptr %done.at acquire, align 8",
        "%all = icmp eq i64 %done, %pieces",
        "br i1 %all, label %finished, label %idle",
        "idle:",
        "%yielded = call i32 @sched_yield()",
        "br label %wait",
        "finished:",
        # What `work` does when no piece is left: one user less.
        "call void @work(ptr %job)",
        "ret ptr null",
        "alone:",
    ]


def _store(base: str, values: list[tuple[str, str]]) -> list[str]:
    """Stores numbers and addresses side by side, in eight bytes each."""
    return [
        line
        for i, (kind, x) in enumerate(values)
        for line in (
            f"%{base}.{i} = getelementptr i64, ptr %{base}, i64 {i}",
            f"store {kind} {x}, ptr %{base}.{i}",
        )
    ]
