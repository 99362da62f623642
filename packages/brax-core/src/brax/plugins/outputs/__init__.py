"""Output checks: shapes and types of what the functions of plugins return.

`plugins.get` runs them once for each third-party object, and the conformance kit (`brax.testing`)
for all objects. JAX traces the functions with shapes in place of numbers, so nothing is computed or
compiled. Each module has `problems(value)`, which yields one sentence for each fault. Start reading
at `joint`.
"""
