"""Arrays of a `System`, one module a kind of element, made from a checked description.

Everything here may assume that the description is sound. Only `brax.builder` imports this folder.
Start reading at `columns`, then `joints`.
"""
