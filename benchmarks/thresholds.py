"""Measures the thresholds of the CPU code generator, on either side of their values.

    python benchmarks/thresholds.py                       all of them, some ten minutes
    python benchmarks/thresholds.py MAX_SORTED ...        some

Each line has a value of the threshold, a workload, the user CPU time that it takes to compile and
to run, and the time to run by the clock. The values are compiled one after another and run in
turns, so that a busy machine slows all of them alike; the least time of each counts.
docs/performance-model.md holds the results.
"""

import functools
import importlib
import itertools
import math
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax import plugins
from brax.io import mjcf
from brax.kernels import batch_last
from brax.kernels.codegen import cpu as cpu_backend
from brax.kernels.codegen import ffi
from brax.kernels.codegen.emitter import Unsupported

ASSETS = Path(__file__).parents[1] / "packages/brax-envs/src/brax/envs/assets"
ROUNDS, CALLS = 7, 20
"""Number of turns of each value, and calls of its program in each turn."""

NEVER = 10**9
"""A threshold that nothing reaches."""


class Work(NamedTuple):
    """A function and its operands."""

    title: str
    function: Callable[..., Any]
    operands: tuple[Any, ...]


class Case(NamedTuple):
    """A threshold, and what is compiled with each of its values."""

    module: str
    values: tuple[Any, ...]
    works: Callable[[], Iterator[Work]]
    fixed: dict[str, Any] | None = None
    """Other attributes of `brax.kernels.codegen.cpu` that are set meanwhile."""


def _step(model: str, pipeline: str, batch: int) -> Work:
    """Return one physics step of a model, for a batch of environments."""
    sys_ = mjcf.load(ASSETS / f"{model}.xml")
    kind = plugins.get("pipeline", pipeline)
    q = jnp.broadcast_to(sys_.init_q, (batch, sys_.q_size()))
    state = jax.jit(jax.vmap(lambda q: kind.init(sys_, q, jnp.zeros(sys_.qd_size()))))(q)
    step = jax.vmap(lambda state: kind.step(sys_, state, jnp.zeros(sys_.act_size()), 2))
    return Work(f"{model} in {pipeline}, {batch} environments", step, (state,))


def _steps(*each: tuple[str, str, int]) -> Callable[[], Iterator[Work]]:
    return lambda: (_step(*one) for one in each)


def _of_numbers(title: str, fun: Callable[..., Any], *shapes: tuple[int, ...]) -> Work:
    """Return a function of one environment, for 64 of them, with random operands."""
    draw = np.random.default_rng(0).normal
    operands = tuple(jnp.asarray(draw(size=(64, *shape)), jnp.float32) for shape in shapes)
    return Work(title, jax.vmap(batch_last.batch_last(_columns(fun))), operands)


def _columns(fun: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *x: jax.vmap(fun, in_axes=-1, out_axes=-1)(*x)


def _sorts() -> Iterator[Work]:
    for n in (32, 64, 128):
        yield _of_numbers(f"argsort of {n} elements", jnp.argsort, (n,))


def _solutions() -> Iterator[Work]:
    for n in (16, 24, 32):
        yield _of_numbers(f"solve with {n} unknowns", jnp.linalg.solve, (n, n), (n,))


def _scatters() -> Iterator[Work]:
    for n in (64, 128, 256):
        yield _of_numbers(
            f"scatter of {n} updates into {n} elements, {n * n} selections",
            lambda x, y: y.at[(x * 10).astype(int)].add(x),
            *((n,), (n,)),
        )


def _long(rounds: int, x: jax.Array, y: jax.Array) -> jax.Array:
    return functools.reduce(lambda a, _: jnp.roll(a, 1) * x + y, range(rounds), x)


def _lengths() -> Iterator[Work]:
    for rounds in (60, 125, 250):
        yield _of_numbers(
            f"{rounds * 500} instructions",
            functools.partial(_long, rounds),
            *((500,), (500,)),
        )


def _untranslated(*_: Any) -> str:
    raise Unsupported("a kernel that is measured in XLA")


XLA = {"translate": _untranslated}
"""Leaves all kernels to XLA."""

LOOPS = {"MAX_UNROLLED_ELEMENTS": -1}
"""Makes loops of the operations on large arrays in every kernel."""

CPU, FFI, TILING = "codegen.cpu", "codegen.ffi", "tiling"
ANT = ("ant", "spring", 2048)

CASES = {
    "MAX_UNROLLED_ELEMENTS": Case(
        CPU,
        (NEVER, -1),
        _steps(ANT, ("ant", "generalized", 2048), ("humanoid", "generalized", 2048)),
    ),
    "MIN_LOOPED_ELEMENTS": Case(CPU, (4, 16, 32), _steps(("humanoid", "generalized", 2048)), LOOPS),
    "MAX_INSTRUCTIONS": Case(CPU, (NEVER,), _lengths, {"MAX_UNROLLED_ELEMENTS": NEVER}),
    "MIN_OPTIMIZED_BATCH": Case(
        CPU, (1, NEVER), _steps(*(("ant", "spring", n) for n in (16, 64, 256)))
    ),
    "MIN_THREAD_BATCH": Case(
        FFI, (NEVER, 32, 64), _steps(*(("ant", "spring", n) for n in (128, 256, 1024)))
    ),
    "PIECES_PER_THREAD": Case(FFI, (1, 4, 16), _steps(ANT)),
    "PART": Case(FFI, (16, 64, 256, 2048), _steps(ANT)),
    "MAX_UNROLLED_TERMS": Case(
        "codegen.loops", (2, 8, 32), _steps(("humanoid", "generalized", 2048)), LOOPS
    ),
    "MAX_SORTED": Case("codegen.lowering.sorting", (NEVER,), _sorts),
    "MAX_UNROLLED_ROWS": Case("codegen.lowering.matrices", (NEVER,), _solutions),
    "MAX_SELECTIONS": Case("codegen.lowering.indexing", (NEVER,), _scatters),
    "MAX_TILE_SIZE": Case(TILING, (64, 128, 256, 512, NEVER), _steps(ANT), XLA),
    "MIN_TILE_LANES": Case(TILING, (1, 16), _steps(("ant", "spring", 2002)), XLA),
    "MAX_RECOMPUTED": Case("materialize", (10, 40, 160), _steps(ANT), XLA),
}


def measured(name: str) -> Iterator[str]:
    """Measure one threshold; yield a line for each workload and value."""
    case = CASES[name]
    module = importlib.import_module(f"brax.kernels.{case.module}")
    for work in case.works():
        found = []
        for value in case.values:
            with _set(module, {name: value}), _set(cpu_backend, case.fixed or {}):
                found.append(_compiled(work))
        best = [(math.inf, math.inf)] * len(found)
        for _ in range(ROUNDS):
            for i, (program, _) in enumerate(found):
                cpu, clock = _seconds(program, *work.operands)
                best[i] = min(best[i][0], cpu), min(best[i][1], clock)
        for value, (_, compiling), (cpu, clock) in zip(case.values, found, best, strict=True):
            times = f"compile {compiling:.2f} s, run {cpu:.3f} ms CPU, {clock:.3f} ms"
            yield f"{name} = {value}: {work.title}: {times}"


_HANDLER, _COUNT = ffi.ffi_handler, itertools.count()
"""A number in each module keeps a kernel from being found that was compiled before."""


def _compiled(work: Work) -> tuple[Any, float]:
    """Return the compiled program, and the user CPU time that tracing and compiling took."""
    salt = next(_COUNT)
    ffi.ffi_handler = lambda *x: f"{_HANDLER(*x)}\n; {salt}"
    jax.clear_caches()
    batch_last._kernel.cache_clear()
    batch_last._compiled.cache_clear()
    begin = _user()
    # A function of its own each time: JAX would find the program of another value by its function.
    program = jax.jit(lambda *x: work.function(*x)).lower(*work.operands).compile()
    return program, _user() - begin


def _seconds(program: Any, *operands: Any) -> tuple[float, float]:
    """Return the mean user CPU time and clock time of some calls, in milliseconds."""
    user, clock = _user(), time.perf_counter()
    for _ in range(CALLS):
        jax.block_until_ready(program(*operands))
    scale = 1e3 / CALLS
    return scale * (_user() - user), scale * (time.perf_counter() - clock)


def _user() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


class _set:
    """Sets attributes of a module for a while."""

    def __init__(self, module: Any, values: dict[str, Any]) -> None:
        self._module, self._values = module, values

    def __enter__(self) -> None:
        self._before = {name: getattr(self._module, name) for name in self._values}
        for name, value in self._values.items():
            setattr(self._module, name, value)

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            setattr(self._module, name, value)


if __name__ == "__main__":
    _compiled(_of_numbers("a first one, which takes longer", jnp.sin, (1,)))
    for name in sys.argv[1:] or CASES:
        for line in measured(name):
            print(line, flush=True)
