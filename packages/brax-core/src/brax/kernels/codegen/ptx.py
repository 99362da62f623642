"""PTX: turns the jaxpr of a kernel into a kernel for NVIDIA's GPUs, in which a thread is a lane.

The instructions are those of the CPU's kernel for a batch of one: `translate.lower_kernel` emits
them. What differs is around them. Operands and results are parameters, the number of the thread is
that of its environment, work that is skipped is a branch of the thread, and LLVM optimizes the
module, since otherwise the carries of loops would stay in memory.

A shared operand whose numbers are known while the program is lowered, such as a model's, is a
constant of the module. The emitter does not see the numbers, so that it fuses the same products
with sums; LLVM folds them exactly. So the bits do not depend on what is known.
"""

import re
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from brax.kernels.codegen.emitter import Emitter, code_of
from brax.kernels.codegen.folding import folded, pattern
from brax.kernels.codegen.ir import text_of
from brax.kernels.codegen.loops import Loops
from brax.kernels.codegen.stack import allocate_stack
from brax.kernels.codegen.translate import lower_kernel, routine_texts

TRIPLE = "nvptx64-nvidia-cuda"

ARCHITECTURE, VERSION = "sm_80", "+ptx80"
"""The oldest GPUs whose minimum of two floats passes NaN on, and CUDA 12's version of PTX. A driver
compiles the text for the GPU that it has."""

_ALIGNMENT = 16
"""Offsets of a thread's buffers are multiples of it, the largest access to memory, in bytes."""

_THREAD = "tid.x", "ctaid.x", "ntid.x"
"""The registers with the thread's number in its block, the block's number, and its size."""


def translate(
    closed: Any,
    batched: Sequence[bool],
    known: Sequence[Any],
    size: int,
    name: str,
    min_elements: int = 0,
    max_values: int = 0,
) -> str:
    """Translate a kernel to an LLVM module for a GPU.

    Args:
        closed: the closed jaxpr, traced with a batch of size `BATCH_MARK`.
        batched: whether each operand has a batch; the others are the same in all environments.
        known: the numbers of each operand that becomes a constant; None for those that do not.
        size: the size of the batch.
        name: the name of the kernel.
        min_elements: the smallest number of elements of an array that is kept in memory; 0 to
            unroll all operations.
        max_values: the largest number of values; 0 for no limit.

    Returns:
        A module with a kernel whose parameters are the addresses of the operands that are not
        constants, and of the results; the batch is their last axis.

    Raises:
        Unsupported: if an operation has no lowering rule.
        TooLong: if there are more than `max_values` values.
    """
    # The stride is a constant, so that an element's address is that of the first and a constant.
    emitter = Emitter(1, size, max_values, for_gpu=True)
    if min_elements:
        emitter.loops = Loops(emitter, min_elements)
    parameters: list[str] = []
    casts: list[str] = []

    def address(kind: str, k: int) -> str:
        if kind == "in" and known[k] is not None:
            dtype = closed.jaxpr.invars[k].aval.dtype
            return emitter.operand_in_memory(np.asarray(known[k], dtype), code_of(dtype))
        at = emitter.declare(f"%{kind}{k}")
        access = "noalias readonly" if kind == "in" else "noalias"
        parameters.append(f"ptr addrspace(1) {access} align 16 {at}.given")
        casts.append(f"{at} = addrspacecast ptr addrspace(1) {at}.given to ptr")
        return at

    patterns = [None if x is None else pattern(x) for x in known]
    lower_kernel(emitter, closed, batched, address, patterns)
    head, body = emitter.blocks
    # There is no loop over the batch: each thread computes what environments share. The order stays
    # that of the trace. It leaves `ptxas`, which schedules anew, more to do at the same time than
    # the order for a CPU.
    groups, places, used = allocate_stack(
        folded([*head, *body], emitter.known, emitter.slots), emitter.buffer_sizes, _ALIGNMENT
    )
    registers = [f"@llvm.nvvm.read.ptx.sreg.{x}" for x in _THREAD]
    return "\n".join(
        [
            f'target triple = "{TRIPLE}"',
            *(
                f"{x} = private unnamed_addr constant {text}"
                for text, x in emitter.constants.items()
            ),
            f"define ptx_kernel void @{name}({', '.join(parameters)}) {{",
            *(f"{x} = alloca {kind}, i32 {n}" for x, (kind, n) in emitter.slots.items()),
            f"%stack = alloca i8, i64 {used}, align {_ALIGNMENT}" if used else "",
            *(f"{b} = getelementptr i8, ptr %stack, i64 {at}" for b, at in places.items()),
            *casts,
            *(f"%thread{i} = call i32 {x}()" for i, x in enumerate(registers)),
            "%begin = mul i32 %thread1, %thread2",
            "%number = add i32 %begin, %thread0",
            # The last block has threads beyond the batch.
            f"%inside = icmp ult i32 %number, {size}",
            "br i1 %inside, label %tile, label %finish",
            "tile:",
            "%first = zext i32 %number to i64",
            *(text_of(instruction) for group in groups for instruction in group),
            "br label %finish",
            "finish:",
            "ret void",
            "}",
            *routine_texts(emitter.routines),
            *sorted(emitter.declarations),
            *(f"declare i32 {x}()" for x in registers),
        ]
    )


def compiled(text: str) -> str:
    """Return the PTX of a module, optimized by LLVM."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu=ARCHITECTURE, features=VERSION, opt=2
    )
    module = llvm.parse_assembly(text, llvm.create_context())
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=1)
    # Loops stay loops: a step is longer than a GPU's instruction cache already.
    tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return str(machine.emit_assembly(module))


def local_bytes(text: str) -> int:
    """Return the bytes of the arrays that each thread of a kernel in PTX keeps in memory."""
    return sum(map(int, re.findall(r"__local_depot\d+\[(\d+)\]", text)))
