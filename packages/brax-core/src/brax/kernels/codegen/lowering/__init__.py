"""Lowering rules: each translates one of JAX's primitives into LLVM instructions.

A rule takes the emitter, the equation of the jaxpr and its operands as arrays of elements, and
returns the results as such arrays. `control_flow.lower_jaxpr` goes through the equations of a jaxpr
and finds the rule of each one, in `control_flow` itself (loops, branches), in the table of `rules`,
or in `arrays_in_memory` (arrays that stay in memory). Behind the table, `scalars`, `integers` and
`elementwise` act on one element of each operand; `arrays`, `indexing`, `matrices` and `sorting` on
whole arrays. Only `brax.kernels.codegen` imports this folder. Start reading at
`control_flow.lower_jaxpr`, then `rules.lower`.
"""
