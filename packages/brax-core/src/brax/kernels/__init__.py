"""Kernels: functions of one environment's numbers that run with the batch on the last axis.

`batch_last` is the boundary through which every pipeline, sensor and dynamics function is called,
and the one place that users' arrays change their layout. The other modules steer how a kernel is
compiled: `codegen` translates it for a CPU, and for kernels left to XLA `tiling` splits the batch,
`materialize` stores values, `fusion_barrier` keeps values from being computed again, and `skip`
leaves out work that no environment needs. All of the engine may import it; it knows no model.
Start reading at `batch_last`.
"""
