"""The kernels of environments for GPUs, without a GPU: bits by way of C, and `ptxas`.

Nothing here has run on a GPU.
"""

import re
import shutil
import subprocess
import zlib

import jax
import jax.numpy as jnp
import ptx_lab
import pytest

from brax import contact, envs, plugins
from brax.errors import ConfigError
from brax.kernels.ahead_of_time import assembler
from brax.kernels.batch_last import map_step
from brax.kernels.codegen import cuda
from brax.kernels.codegen.emitter import Emitter
from brax.kernels.codegen.math_functions import without_library

PIPELINES = "spring", "positional", "generalized"
STEPS, BATCH = 20, 8


def named(name, pipeline):
    """Return an environment with a pipeline."""
    return envs.get_environment(name, backend=pipeline)


def rollout(env):
    """Return the states of the physics in steps with random actions."""
    key = jax.random.key(zlib.crc32(type(env).__name__.encode()))
    state = jax.jit(jax.vmap(env.reset))(jax.random.split(key, BATCH))
    step = jax.jit(lambda state, action: map_step(env.step)(state, action))
    found = []
    for action in jax.random.uniform(key, (STEPS, BATCH, env.action_size), minval=-1.0, maxval=1.0):
        state = step(state, action)
        found.append(state.pipeline_state)
    return found


def touching(env, states):
    """Return the number of points that overlap in any of the states."""
    points = jax.jit(jax.vmap(lambda x: contact.get(env.sys, x)))
    return sum(int((points(s.x).dist < 0).sum()) for s in states)


QUICKER = [("ant", "spring"), ("ant", "generalized")]
TOUCHING = ("ant", "halfcheetah", "humanoid")
"""Environments whose first steps have contacts."""
OTHERS = [
    (name, p)
    for name in sorted(plugins.specs("environment"))
    for p in PIPELINES
    if name != "fast" and (name, p) not in QUICKER  # `fast` has no physics
]


@pytest.mark.slow
@pytest.mark.skipif(ptx_lab.COMPILER is None, reason="there is no C compiler")
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("name", "pipeline"),
    [*QUICKER, *(pytest.param(*pair, marks=pytest.mark.long) for pair in OTHERS)],
)
def test_a_rollout_by_ptx_has_the_bits_of_the_cpus_kernels(name, pipeline, whole, monkeypatch):
    # A CPU takes `expm1` from C's library, whose last place may differ.
    monkeypatch.setattr(
        Emitter,
        "library_call",
        lambda emitter, name, code, *values: without_library(emitter, name, code, values),
    )
    env = named(name, pipeline)
    want = rollout(env)
    assert name not in TOUCHING or touching(env, want) > 0
    # The physics alone, or the step with observation and reward.
    monkeypatch.setattr(cuda, "fuses_steps", lambda: whole)
    # Kernels are compared too that are left to XLA for their memory, as that of grasp is.
    monkeypatch.setattr(cuda, "MAX_LOCAL_BYTES", 2**19)
    launched = ptx_lab.use_ptx(monkeypatch)
    got = rollout(env)
    assert launched
    for step, (x, y) in enumerate(zip(got, want, strict=True)):
        same = jax.tree.map(lambda a, b: bool(ptx_lab.same(a, b).all()), x, y)
        assert all(jax.tree.leaves(same)), (step, same)


def ptxas():
    """Return the path of NVIDIA's assembler: on the path, or of jax[cuda12]; None without it."""
    try:
        return shutil.which("ptxas") or assembler._assembler()
    except ConfigError:
        return None


SPILLED = {
    ("ant", "spring"): (2360, 3000, 7712),
    ("ant", "positional"): (3000, 4732, 9488),
    ("ant", "generalized"): (2224, 4584, 10644),
    ("halfcheetah", "spring"): (2216, 2716, 6660),
    ("halfcheetah", "positional"): (2720, 4172, 8492),
    ("halfcheetah", "generalized"): (1512, 2036, 6220),
    ("humanoid", "spring"): (3472, 4632, 12784),
    ("humanoid", "positional"): (4712, 7704, 16164),
    ("humanoid", "generalized"): (2960, 5936, 13252),
}
"""The bytes of a thread's frame, of spill stores and of spill loads in the kernel of a step,
measured with ptxas 13.0 for sm_90 and LLVM 22.1. All have 255 registers."""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(ptxas() is None, reason="needs ptxas: hatch run gpu-aot:test, or its package")
@pytest.mark.parametrize(("name", "pipeline"), SPILLED)
def test_ptxas_takes_a_step_and_spills_no_more_than_it_did(name, pipeline, tmp_path, monkeypatch):
    monkeypatch.setenv("BRAX_DUMP_IR", str(tmp_path))
    env = named(name, pipeline)
    keys = jax.ShapeDtypeStruct((8192,), jax.random.key(0).dtype)
    actions = jax.ShapeDtypeStruct((8192, env.action_size), jnp.float32)
    step = jax.jit(lambda state, action: jax.vmap(env.step)(state, action))
    state = jax.eval_shape(jax.vmap(env.reset), keys)
    step.trace(state, actions).lower(lowering_platforms=("cuda",))
    (file,) = tmp_path.glob("*.run-*/kernel.ptx")
    command = [ptxas(), "-arch=sm_90", "-v", "-o", str(tmp_path / "kernel.cubin"), str(file)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    patterns = r"(\d+) bytes stack frame", r"(\d+) bytes spill stores", r"(\d+) bytes spill loads"
    found = [int(re.findall(pattern, told)[0]) for pattern in patterns]
    print(f"\n{name} {pipeline}: {found}")
    # Another version of ptxas or LLVM orders instructions otherwise.
    assert all(x <= 1.25 * before for x, before in zip(found, SPILLED[name, pipeline], strict=True))
