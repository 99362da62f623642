"""Dump: writes and summarizes the stages of a kernel, for who debugs it.

If the environment variable `BRAX_DUMP_IR` names a folder, each kernel that is compiled gets a
folder there. `explain` returns the summaries of a function's kernels. The handler, by which XLA
calls the kernel, only moves operands and results, and is left out.
"""

import os
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from brax.kernels.codegen import jax_internals, target
from brax.kernels.codegen.explain import Outcome, collected


@dataclass(frozen=True)
class Summary:
    """The size of a kernel at each stage of its compilation."""

    kernel: str
    """The function that the kernel computes."""
    optimized: bool
    """True if LLVM optimizes the kernel, false if it compiles it quickly."""
    equations: dict[str, int]
    """The number of equations of the jaxpr and of those within it, by primitive."""
    loops: int
    """Loops in the assembly, with that over the batch."""
    stack_bytes: int
    """The largest frame of a function on the stack, in bytes, as far as the assembly tells."""
    instructions: dict[str, int]
    """The number of instructions: `arithmetic`, `memory` for loads and stores, and `other`."""
    spills: int
    """Registers that are stored on the stack for want of room."""
    reloads: int
    """Loads of such registers, alone or as an operand of another instruction."""
    code_bytes: int
    """The size of the machine code, without constants, in bytes."""
    seconds: float
    """The time that LLVM took to make machine code of the kernel's text."""

    def __str__(self) -> str:
        """Return a page of text."""
        counts = sorted(self.equations.items(), key=lambda x: (-x[1], x[0]))
        return "\n".join(
            [
                f"kernel        {self.kernel}, {'optimized' if self.optimized else 'quick'}",
                f"equations     {sum(self.equations.values())}",
                *(f"  {name:24}{n:8}" for name, n in counts),
                f"loops         {self.loops}",
                f"instructions  {sum(self.instructions.values())}",
                *(f"  {kind:24}{n:8}" for kind, n in self.instructions.items()),
                f"spills        {self.spills}",
                f"reloads       {self.reloads}",
                f"stack         {self.stack_bytes} bytes",
                f"code          {self.code_bytes} bytes",
                f"compiled in   {self.seconds:.3f} s",
            ]
        )


@dataclass(frozen=True)
class Explanation:
    """The kernels of a program for a CPU."""

    native: tuple[Summary, ...]
    """The kernels that are native code."""
    left: tuple[Outcome, ...]
    """The kernels that are left to XLA, with the reason."""

    def __str__(self) -> str:
        """Return a page for each native kernel, then a sentence for each of the others."""
        pages = [*map(str, self.native), *(f"{outcome}." for outcome in self.left)]
        return "\n\n".join(pages) or "The program has no kernels."


explained: ContextVar[dict[str, Summary] | None] = ContextVar("explained", default=None)
"""The summaries of the kernels of a program that `explain` lowers, by their native functions."""


def explain(f: Callable[..., Any], *args: Any) -> Explanation:
    """Compile the kernels of a function for a CPU and return their summaries, without running it.

    A kernel is compiled for the batch of the arguments, so vmap the function for that of a rollout.

    Args:
        f: a function of pytrees of arrays, as for `jax.jit`.
        *args: its arguments, or their shapes (`jax.ShapeDtypeStruct`).
    """
    found: dict[str, Summary] = {}
    token = explained.set(found)
    try:
        with collected() as outcomes:
            # A function that JAX has not seen, or it may take a program that it lowered before.
            jax.jit(lambda *args: f(*args)).trace(*args).lower(lowering_platforms=("cpu",))
    finally:
        explained.reset(token)
    return Explanation(tuple(found.values()), tuple(o for o in outcomes if not o.native))


@dataclass(frozen=True)
class Stages:
    """The text of a kernel at each stage, and the summary."""

    jaxpr: str
    before: str
    """LLVM's intermediate representation as the code generator writes it."""
    after: str
    """The representation after the passes of LLVM that precede the choice of instructions."""
    assembly: str
    summary: Summary


def stages(title: str, closed: Any, text: str, opt_level: int) -> Stages:
    """Compile a kernel once more and keep each stage.

    Args:
        title: the kernel's name in messages.
        closed: its closed jaxpr.
        text: its module as LLVM's text, without the handler.
        opt_level: LLVM's optimization level, 0 or 1.
    """
    begin = time.perf_counter()
    code_bytes, after = target.machine_code(text, opt_level)
    seconds = time.perf_counter() - begin
    assembly = target.assembly(text, opt_level)
    summary = Summary(
        title,
        bool(opt_level),
        dict(_equations(closed.jaxpr)),
        len(re.findall(r"=>\s*This (?:Inner )?Loop Header", assembly)),
        _largest_frame(assembly),
        _instructions(assembly),
        len(re.findall(r"-byte (?:Folded )?Spill", assembly)),
        len(re.findall(r"-byte (?:Folded )?Reload", assembly)),
        code_bytes,
        seconds,
    )
    return Stages(str(closed), text, after, assembly, summary)


def _equations(jaxpr: Any) -> Counter[str]:
    """Count the equations of a jaxpr, and of the jaxprs within it, by primitive."""
    count = Counter(eqn.primitive.name for eqn in jaxpr.eqns)
    for eqn in jaxpr.eqns:
        for inner in jax_internals.inner(eqn):
            count += _equations(inner)
    return count


# The stack pointer goes down at the start of a function: on x86 and on ARM.
_FRAME = re.compile(r"^\tsubq\t\$(\d+), %rsp|^\tsub\tsp, sp, #(\d+)", re.MULTILINE)


def _largest_frame(assembly: str) -> int:
    """Return the largest step of the stack pointer, in bytes."""
    return max((int(x or y) for x, y in _FRAME.findall(assembly)), default=0)


# Names of instructions on x86 (`v` stands before those on vectors) and on ARM.
_ARITHMETIC = re.compile(
    r"v?p?(?:f?n?m(?:add|sub|ul|ls|la|ax|in)|f(?:add|sub|mul|div|m|nm|sqrt|cvt|abs|neg|cm|rint)|"
    r"add|sub|i?mul|div|sqrt|max|min|cvt|rndscale|round|and|or|xor|not|neg|cmp|test|tern|sll|srl|"
    r"sra|shl|shr|sar|inc|dec|abs|s?cvtf|eor|lsl|lsr|asr|madd|cmeq|cmg)"
)
_MEMORY = re.compile(r"(?:ld|st)\w*$")
_MOVES = re.compile(r"v?p?(?:mov|broadcast)")


def _instructions(assembly: str) -> dict[str, int]:
    """Count instructions; one that computes with an operand in memory is arithmetic."""
    count = {"arithmetic": 0, "memory": 0, "other": 0}
    for line in assembly.splitlines():
        if not line.startswith("\t") or line[1:2] in ".#/":
            continue
        name, _, operands = line.split("#")[0].strip().partition("\t")
        # An address is in round brackets on x86; on ARM its loads and stores have their own names.
        if _MEMORY.match(name) or (_MOVES.match(name) and "(" in operands):
            count["memory"] += 1
        else:
            count["arithmetic" if _ARITHMETIC.match(name) else "other"] += 1
    return count


def write_ptx(title: str, name: str, closed: Any, text: str, code: str) -> None:
    """Write the stages of a kernel for a GPU to the folder that `BRAX_DUMP_IR` names, if it is set.

    Args:
        title: the kernel's name in messages.
        name: the name of the kernel in PTX.
        closed: the closed jaxpr.
        text: the module as LLVM's text.
        code: the PTX.
    """
    _write(title, name, lambda: {"jaxpr.txt": f"{closed}\n", "before.ll": text, "kernel.ptx": code})


def write(title: str, name: str, closed: Any, text: str, opt_level: int) -> None:
    """Write a kernel's stages to the folder that `BRAX_DUMP_IR` names, if it is set.

    A folder that cannot be written gives a warning.

    Args:
        title: the kernel's name in messages.
        name: the name of the native function, which no other kernel has.
        closed: the closed jaxpr.
        text: the module as LLVM's text, without the handler.
        opt_level: LLVM's optimization level, 0 or 1.
    """

    def texts() -> dict[str, str]:
        made = stages(title, closed, text, opt_level)
        return {
            "jaxpr.txt": f"{made.jaxpr}\n",
            "before.ll": f"{made.before}\n",
            "after.ll": made.after,
            "assembly.s": made.assembly,
            "summary.txt": f"{made.summary}\n",
        }

    _write(title, name, texts)


def _write(title: str, name: str, texts: Callable[[], dict[str, str]]) -> None:
    """Write files to a kernel's folder of the dump, if there is to be one.

    Args:
        title: the kernel's name in messages.
        name: the name of the native function, which no other kernel has.
        texts: returns the text of each file, by its name.
    """
    dumped = os.environ.get("BRAX_DUMP_IR")
    if not dumped:
        return
    # A title may have spaces and brackets; a few digits of the name tell its variants apart.
    folder = Path(dumped) / f"{re.sub('[^A-Za-z0-9.]+', '-', title)}-{name[-8:]}"
    made = texts()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in made.items():
            (folder / file).write_text(text)
    except OSError as error:
        warnings.warn(
            f"BRAX_DUMP_IR: the kernel {title} is not written to {folder}, because of {error}; "
            "name a folder that can be written",
            RuntimeWarning,
            stacklevel=2,
        )
