"""Kernels on a CPU: translated to its instructions, several environments at a time.

A kernel works on arrays whose last axis is the batch, and does to every environment the same. A
general compiler runs such a program operation by operation, or some at a time, over the whole
batch, and the arrays between them go through memory. Here the whole kernel runs for as many
environments as a register holds, then for the next: most numbers between its operations never leave
the processor's nearest cache. Arrays are taken apart into their elements for this, so that moving
them about costs nothing, and structures that are known when the kernel is traced leave no trace.

The way of a kernel: `call.trace` records its operations, `program.translate` writes them in LLVM's
language, element by element (`scalars`, `arrays`, `functions`) into an `assembly.Assembly`,
`machine` compiles that, and XLA calls it through `handler`. In a long kernel large arrays are kept
in memory, and the operations on them are loops over their elements (`large`, `loops`, `arena`).
What has an operation that is not translated here is left to XLA as it is: `assembly.Unsupported`.
"""
