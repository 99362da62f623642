"""Ahead-of-time compilation for a GPU that is not in this machine.

JAX's CUDA plugin (`pip install "jax[cuda12]"`) compiles for a described device, without a card or a
driver. `described_device` compiles a function for such a device, and `program_size` counts what the
compiled program launches and moves. Nothing is run. `brax bench --explain --target` and the tests
of `hatch run gpu-aot:test` are built on it. Only developers' tools import this folder.
"""
