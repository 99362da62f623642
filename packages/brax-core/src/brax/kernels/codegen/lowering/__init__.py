"""Lowering rules: what each of JAX's primitives becomes in a kernel.

A rule takes the emitter, the equation of the jaxpr and its operands as arrays of elements, and
returns the results. `scalars`, `integers` and `elementwise` act on one element of each operand,
`arrays`, `indexing`, `matrices` and `sorting` on whole arrays, `arrays_in_memory` on arrays that
stay in memory, and `control_flow` on loops and branches. `rules` is the table of them by primitive.
Only `brax.kernels.codegen` imports this folder. Start reading at `control_flow.evaluate`.
"""
