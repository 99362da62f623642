"""How XLA calls a kernel: its foreign-function interface, whose structures are read by offset.

Source: the interface's header, `xla/ffi/api/c_api.h`, which comes with jaxlib and promises that the
structures of a major version only ever grow.
"""

from brax.kernels.codegen.jax_internals import ffi_version

MIN_THREAD_BATCH = 64
"""Least environments that are worth another thread."""

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
  call void @kernel(ptr %in, ptr %out, i64 %size, i64 %begin, i64 %stop)
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
    operands: int, results: int, batch: tuple[int, int], lanes: int, threads: bool
) -> str:
    """The function `ffi_handler` that XLA calls, which calls `kernel`, in LLVM's language.

    Args:
        operands: how many there are.
        results: how many there are.
        batch: an operand that has the batch, and the axis.
        lanes: environments that the kernel works on at once.
        threads: whether to share the batch among XLA's threads.
    """
    lines = [
        "define ptr @handler(ptr %frame) {",
        f"%operands = alloca ptr, i32 {operands}",
        f"%results = alloca ptr, i32 {results}",
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
    for base, room, count in (("in", "operands", operands), ("out", "results", results)):
        for k in range(count):
            lines += [
                *_field(f"{base}{k}", base, 8 * k),
                *_field(f"{base}{k}.data", f"{base}{k}", 24),
                f"%{room}{k} = getelementptr ptr, ptr %{room}, i64 {k}",
                f"store ptr %{base}{k}.data, ptr %{room}{k}",
            ]
    which, axis = batch
    lines += [
        *_field("dims", f"in{which}", 40),
        *_field("size", "dims", 8 * axis, "i64"),
        *(_shared(lanes) if threads else []),
        "call void @kernel(ptr %operands, ptr %results, i64 %size, i64 0, i64 %size)",
        "ret ptr null",
        "}",
    ]
    return "\n".join(lines) + (_WORK_SHARING if threads else "")


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
