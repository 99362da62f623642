"""Lowering rules: each translates one of JAX's primitives into LLVM instructions.

A rule takes the emitter, the equation of the jaxpr and its operands as arrays of elements, and
returns the results as such arrays. `control_flow.lower_jaxpr` goes through the equations of a jaxpr
and finds the rule of each one in the `registry`. The rules of loops, branches and calls are in
`control_flow`. Those of `scalars`, `integers` and `elementwise` act on one element of each operand;
those of `arrays`, `indexing`, `matrices` and `sorting` on whole arrays, and those of
`arrays_in_memory` on arrays that stay in memory. Only `brax.kernels.codegen` imports this folder.
Start reading at `control_flow.lower_jaxpr`, then `registry`.
"""
