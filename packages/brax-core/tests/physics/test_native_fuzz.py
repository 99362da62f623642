"""Random programs, translated, beside the same operations one by one on arrays."""

import itertools

import fuzz_lab
import jax.numpy as jnp
import numpy as np
import pytest
from native_lab import translated

from brax.kernels.codegen import cpu

pytestmark = pytest.mark.usefixtures("code_generator")

PROGRAMS_IN_A_KERNEL = 25
"""XLA compiles the call of each kernel, which takes longer than to translate a program."""


def failures(seeds, monkeypatch):
    """Return the first differences of some programs, which are translated as one kernel."""
    given = [[jnp.asarray(x) for x in fuzz_lab.operands(seed)] for seed in seeds]

    def programs(*arrays):
        mine = iter(arrays)
        parts = [list(itertools.islice(mine, len(one))) for one in given]
        return [x for s, p in zip(seeds, parts, strict=True) for x in fuzz_lab.Program(s, p).run()]

    # One kernel in two keeps its arrays in memory.
    if seeds[0] // len(seeds) % 2:
        monkeypatch.setattr(cpu, "MAX_UNROLLED_ELEMENTS", -1)
        monkeypatch.setattr(cpu, "MIN_LOOPED_ELEMENTS", 4)
    found = iter(translated(programs, [x for one in given for x in one]))
    wrong = []
    for seed, one in zip(seeds, given, strict=True):
        program = fuzz_lab.Program(seed, one)
        results = program.run()
        count = len(results) - len(program.pool["near"][-4:])
        for k, right in enumerate(results):
            mine = np.asarray(next(found))
            if text := fuzz_lab.difference(mine, np.asarray(right), k >= count):
                wrong.append(f"program {seed}, result {k}: {text}")
    return wrong


def in_parts(start, stop):
    return range(start, stop, PROGRAMS_IN_A_KERNEL)


# On arrays, XLA compiles each operation when it is first met, which takes longest.
@pytest.mark.parametrize(
    "first",
    [*in_parts(0, 50), *(pytest.param(i, marks=pytest.mark.slow) for i in in_parts(50, 500))],
)
def test_random_programs(first, monkeypatch):
    assert failures(range(first, first + PROGRAMS_IN_A_KERNEL), monkeypatch) == []


@pytest.mark.parametrize("seed", [1001350, 1002189, 1002223])
def test_programs_that_found_a_fault(seed, monkeypatch):
    """The bits of a NaN, infinity as a whole number, and the order of zeros of both signs."""
    assert failures([seed], monkeypatch) == []
