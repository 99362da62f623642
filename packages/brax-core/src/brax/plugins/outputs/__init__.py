"""Output checks: what the functions of plugins return, by shape and type alone.

`plugins.get` runs them once for each object of another package, and the conformance kit
(`brax.testing`) for all. Functions are traced by `jax.eval_shape`, so nothing is computed or
compiled. Each module has `problems(value)`, which gives one sentence for each fault.
Start reading at `joint`.
"""
