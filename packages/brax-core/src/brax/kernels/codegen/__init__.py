"""CPU code generator: translates the jaxpr of a kernel to LLVM.

A kernel works on arrays whose last axis is the batch, and does to every environment the same. A
general compiler runs such a program operation by operation, or some at a time, over the whole
batch, and the arrays between them go through memory. Here the whole kernel runs for as many
environments as a register holds, then for the next: most numbers between its operations never leave
the processor's nearest cache. Arrays are taken apart into their elements for this, so that moving
them about costs nothing, and structures that are known when the kernel is traced leave no trace.

`call.trace` records a kernel's operations, `translate.translate` writes them in LLVM's language by
the rules of `lowering` into an `emitter.Emitter`, `schedule` orders the instructions and `stack`
gives large arrays their places, `target` compiles the module, and XLA calls it through `ffi`. In a
long kernel the operations on large arrays are loops over their elements (`loops`). A kernel with an
operation that is not translated is left to XLA (`emitter.Unsupported`), and `explain` records why.
Only `brax.kernels`, the commands and the checks of plugins import this folder. Start reading at
`call`, then `translate`.
"""
