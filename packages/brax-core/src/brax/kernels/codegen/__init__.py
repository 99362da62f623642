"""CPU code generator: translates the jaxpr of a kernel to LLVM and compiles it.

A kernel works on arrays whose last axis is the batch, and does the same to every environment. XLA
runs such a program operation by operation over the whole batch, and the arrays between operations
go through memory. Here the whole kernel runs for as many environments as a vector register holds,
then for the next ones, so that most values stay in registers or in the nearest cache. Arrays are
taken apart into their elements (unrolled). So moving elements costs nothing, and structures that
are known when the kernel is traced leave no instructions.

From a jaxpr to machine code:

1. `call.trace` traces the function to a jaxpr, which `call.Kernel` holds. The platform's backend
   decides how it is compiled: `cpu`, `cuda` or `xla`.
2. `translate.translate` turns the jaxpr into LLVM. It calls `lowering.control_flow.lower_jaxpr`,
   which finds the lowering rule of each equation; the rules emit into an `emitter.Emitter`. In a
   long kernel operations on large arrays become `loops`.
3. `schedule` orders the instructions, which are records of `ir`, `stack` allocates the buffers of
   large arrays, `broadcasts` keeps numbers that all environments share in a table, and `outlining`
   cuts a long kernel into functions. Their text is printed last.
4. `target` compiles the module. XLA calls it through the handler of `ffi`, which reads XLA's
   structures by the offsets of `ffi_layout`.

A kernel with an operation that has no lowering rule is left to XLA (`emitter.Unsupported`), and
`explain` records why. `dump` writes the stages of a kernel for who debugs it. `jax_internals` reads
what JAX keeps private, and says which other modules do so. The thresholds are explained in
docs/performance-model.md. Only `brax.kernels`, the commands and the checks of plugins import this
folder. Start reading at `call`, then `translate`.
"""
