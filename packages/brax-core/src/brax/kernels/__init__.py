"""Kernels: functions of arrays whose last axis is the batch, each compiled as one unit.

`batch_last` is the boundary through which every pipeline, sensor and dynamics function is called,
and the only place where users' arrays change their layout. The other modules steer how a kernel is
compiled. On a CPU, `codegen` translates its jaxpr to LLVM: `codegen/translate.py` is where a jaxpr
becomes LLVM. For kernels that are left to XLA, `tiling` splits the batch, `materialize` chooses
which values are stored, and `fusion_barrier` keeps values from being computed again. `skip` marks
work that only some environments need. On a GPU, `gpu_options` has XLA's options for whole rollouts,
and `ahead_of_time` compiles for one that is not there. All of the engine may import this folder; it
knows no model. `explain` returns what became of a function's kernels. Start reading at
`batch_last`, then `codegen/backend.py`; docs/performance-model.md gives an overview.
"""

from brax.kernels.codegen.dump import explain as explain
