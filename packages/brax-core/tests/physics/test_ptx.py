"""Kernels for GPUs, without a GPU: their PTX runs on a CPU, and gives the bits of the CPU's kernel.

Nothing here has run on a GPU.
"""

import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import ptx_lab
import pytest
from jax import lax
from native_lab import by_environment, form_of, kernel_of, translated

from brax.kernels.batch_last import batch_last, map_step
from brax.kernels.codegen import cuda
from brax.kernels.codegen.call import Known
from brax.kernels.codegen.emitter import Emitter
from brax.kernels.codegen.math_functions import without_library
from brax.kernels.skip import where_needed

pytestmark = [
    pytest.mark.usefixtures("code_generator"),
    pytest.mark.skipif(ptx_lab.COMPILER is None, reason="there is no C compiler"),
]


@pytest.fixture(autouse=True)
def own_functions(monkeypatch):
    """Let the CPU's kernels have the GPU's elementary functions in place of C's library."""
    monkeypatch.setattr(
        Emitter,
        "library_call",
        lambda emitter, name, code, *values: without_library(emitter, name, code, values),
    )


def ran(fun, args, known=()):
    """Return what a kernel's PTX computes, and the PTX.

    Args:
        fun: the function of arrays with the batch on the last axis.
        args: its operands.
        known: of each operand, its numbers if they are constants of the kernel.
    """
    form = form_of(args)._replace(platform="cuda", known=known)
    kernel = kernel_of(fun, args)
    constants = kernel.known(form)
    code, outcome = cuda._code(kernel, kernel.batched(form), constants, form.size)
    assert outcome.native, outcome
    given = [x for x, k in zip(kernel.used(args), constants, strict=True) if k is None]
    shapes = [
        jax.ShapeDtypeStruct((*a.shape[:-1], form.size), a.dtype) for a in kernel.closed.out_avals
    ]
    return ptx_lab.runnable(code)(given, shapes), code


def require_same_bits(fun, args, known=()):
    """Require of a kernel's PTX the bits of the CPU's kernel, and return the PTX; see `ran`.

    Both know the same numbers: what is known may change the sign of a zero.
    """
    got, code = ran(fun, args, known)
    for x, y in zip(got, translated(fun, args, known), strict=True):
        assert ptx_lab.same(x, y).all()
    return code


def looped(step, x):
    """Return a number that a loop of four rounds changes."""
    return lax.fori_loop(0, 4, lambda i, y: step(i, y), x)


PROGRAMS = {
    "arithmetic": lambda a, b, n: (a * b - b / 3 + a[::-1] * a, -a, abs(b) > 1, a - b * b),
    "roots": lambda a, b, n: (jnp.sqrt(abs(a)), lax.rsqrt(abs(b)), jnp.sign(a), a**3, a**-2),
    "extremes": lambda a, b, n: (jnp.maximum(a, b), jnp.minimum(a / 0, b), jnp.clip(a, -1, b)),
    "functions": lambda a, b, n: (jnp.sin(9 * a), jnp.cos(a), jnp.exp(b), jnp.expm1(b)),
    "more functions": lambda a, b, n: (jnp.tan(a), jnp.arctan2(a, b), abs(a) ** b, jnp.tanh(a)),
    "integers": lambda a, b, n: (n * 3 // 7, n % 5, n << 2, n >> 1, ~n, n.astype(float) * a),
    "roundings": lambda a, b, n: (jnp.floor(a), jnp.ceil(b), jnp.round(9 * a), (9 * b).astype(int)),
    "truth": lambda a, b, n: ((a > b) & (n > 2), jnp.where(a > b, a, b), jnp.isfinite(a / 0)),
    "an index that is not known": lambda a, b, n: (a[n % 4], b.at[n[0] % 4].set(a[0])),
    "a loop": lambda a, b, n: (looped(lambda i, y: y * 0.9 + a[i] * b, a),),
    "a loop of each environment": lambda a, b, n: (
        lax.while_loop(lambda y: (y < 9).all(), lambda y: y * 1.5 + 0.1, abs(a)),
    ),
    "sorting": lambda a, b, n: (jnp.sort(a), jnp.argmax(b)),
    "a factorization": lambda a, b, n: (jnp.linalg.solve(a[:, None] * b + 3 * jnp.eye(4), b),),
}
"""Functions of one environment: of two arrays of four floats, and one of integers."""


def operands(size=70):
    """Return operands for environments that fill one block and a part of the next."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 4, size)).astype(np.float32)
    return [jnp.asarray(x) for x in (a, b, rng.integers(0, 9, (4, size), np.int32))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_bits_of_the_cpus_kernel(name):
    require_same_bits(by_environment(PROGRAMS[name]), operands())


def test_work_that_is_not_needed_is_a_branch():
    def fun(a, b, n):
        return (where_needed(a[:1] > 0, lambda x: looped(lambda i, y: jnp.sin(y), x), b),)

    code = require_same_bits(fun, operands())
    # A loop and two branches around work: that one, and the threads beyond the batch.
    assert code.count("bra ") == 3


def test_what_is_known_becomes_constants_and_gives_the_same_bits():
    a, _, _ = operands()
    shared, flags = jnp.asarray([[0.1], [0.7], [3.0], [0.0]]), jnp.asarray([[True]] * 4)

    def fun(a, shared, flags):
        return (jnp.where(flags, a * shared + a[::-1] * (shared / 3), a), a - shared * shared)

    args = [a, shared, flags]
    plain = require_same_bits(fun, args)
    constant = require_same_bits(fun, args, (None, Known(shared[:, 0]), Known(flags[:, 0])))
    assert (plain.count(".param .u64"), constant.count(".param .u64")) == (5, 3)
    # LLVM has folded the numbers: only the four that have a batch are loaded.
    assert (plain.count("ld.global"), constant.count("ld.global")) == (12, 4)


def test_an_operand_with_a_batch_is_no_constant():
    """Whatever is said of it: a batch is what the program is called with."""
    a, b, _ = operands()
    got, _ = ran(lambda a, b: (a - b,), [a, b], (None, Known(jnp.zeros((4, 70)))))
    np.testing.assert_array_equal(got[0], a - b)


@pytest.mark.parametrize("least", [1, 8])
def test_arrays_in_memory_give_the_same_bits(least, monkeypatch):
    monkeypatch.setattr(cuda, "MIN_LOOPED_ELEMENTS", least)
    monkeypatch.setattr(cuda, "MAX_UNROLLED_VALUES", 1)
    rng = np.random.default_rng(0)
    a = jnp.asarray(rng.normal(size=(24, 70)), jnp.float32)

    def fun(a):
        total = jnp.cumsum(a, 0) * a[::-1] + jnp.sin(a)
        return (looped(lambda i, y: y * 0.5 + jnp.roll(y, 1, 0) * a, total), (total > 0).any(0))

    code = require_same_bits(fun, [a])
    assert "__local_depot" in code


def test_a_kernel_that_needs_too_much_memory_is_left_to_xla(monkeypatch):
    monkeypatch.setattr(cuda, "MAX_LOCAL_BYTES", 100)
    monkeypatch.setattr(cuda, "MAX_UNROLLED_VALUES", 1)
    a = jnp.ones((64, 70))

    def fun(a):
        return (looped(lambda i, y: y * 0.5 + jnp.roll(y, 1, 0) * a, a),)

    kernel = kernel_of(fun, [a])
    outcome = cuda.supports(kernel, form_of([a])._replace(platform="cuda"))
    assert outcome.reason.startswith("arrays of ")


FUNCTIONS = {
    "tan": (jnp.tan, np.tan, 1e3),
    "asin": (jnp.arcsin, np.arcsin, 1),
    "acos": (jnp.arccos, np.arccos, 1),
    "atan": (jnp.arctan, np.arctan, 1e30),
    "sinh": (lax.sinh, np.sinh, 80),
    "cosh": (lax.cosh, np.cosh, 80),
    "tanh": (jnp.tanh, np.tanh, 10),
    "asinh": (lax.asinh, np.arcsinh, 1e30),
    "acosh": (lax.acosh, np.arccosh, 1e30),
    "atanh": (lax.atanh, np.arctanh, 1),
    "exp2": (lax.exp2, np.exp2, 100),
    "expm1": (jnp.expm1, np.expm1, 80),
    "log1p": (jnp.log1p, np.log1p, 1e30),
    "cbrt": (jnp.cbrt, np.cbrt, 1e30),
}
"""Elementary functions: JAX's, NumPy's, and the largest argument of a test."""

SPECIAL = [0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, 1e-30, -1e-30, np.inf, -np.inf, np.nan]


def require_rounded(got, want):
    """Require single precision that is the number of double precision, rounded."""
    with np.errstate(over="ignore"):
        near = want.astype(np.float32)
    exact = np.isnan(near) | np.isinf(near)
    np.testing.assert_array_equal(got[exact], near[exact])
    # Measured: 0.5000, and half a unit is the rounding.
    error = abs(got[~exact].astype(np.float64) - want[~exact])
    assert (error <= 0.5001 * np.spacing(abs(near[~exact]))).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions_are_rounded_once(name):
    ours, numpys, largest = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    x = np.concatenate([SPECIAL, rng.uniform(-1, 1, 3000), rng.uniform(-1, 1, 3000) ** 9 * largest])
    x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        require_rounded(ran(lambda a: (ours(a),), [x[None]])[0][0][0], numpys(x.astype(np.float64)))


@pytest.mark.parametrize(("ours", "numpys"), [(jnp.arctan2, np.arctan2), (lax.pow, np.power)])
def test_functions_of_two_numbers_are_rounded_once(ours, numpys):
    rng = np.random.default_rng(0)
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    x, y = np.concatenate([[x, y], rng.normal(size=(2, 5000)) * 5], axis=1).astype(np.float32)
    with np.errstate(all="ignore"):
        want = numpys(x.astype(np.float64), y.astype(np.float64))
    require_rounded(ran(lambda a, b: (ours(a, b),), [x[None], y[None]])[0][0][0], want)


@pytest.mark.parametrize(
    ("launch", "reason"),
    [
        (lambda code, x, shapes, size: [x[0] + x[0]], ""),
        (lambda code, x, shapes, size: [x[0] + 1], "PTX, which gives wrong numbers here"),
        (lambda code, x, shapes, size: [x[0] / None], "PTX, which this installation does not run"),
    ],
)
def test_a_small_kernel_is_run_before_the_first(launch, reason, monkeypatch):
    """A CPU takes the part of the GPU, while a program is lowered."""
    monkeypatch.setattr(cuda, "_devices", lambda: jax.devices("cpu"))
    monkeypatch.setattr(cuda, "_launch", launch)
    found = []

    @jax.jit
    def program(x):
        found.append(cuda._probe.__wrapped__())
        return x

    program(1.0)
    assert [f.partition(" (")[0] for f in found] == [reason]


def lowered(fun, *args):
    """Return a program for a GPU, before XLA compiles it."""
    return jax.jit(fun).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


def test_a_program_for_a_gpu_launches_a_kernel_without_the_numbers_that_it_knows():
    mass = jnp.asarray([2.0, 0.5])
    step = batch_last(lambda mass, x: x + jnp.sin(x) * mass)

    def rollout(x, mass):
        return lax.scan(lambda x, _: (jax.vmap(step, (None, 0))(mass, x), None), x, length=3)[0]

    x = jnp.ones((70, 2))
    known, given = lowered(lambda x: rollout(x, mass), x), lowered(rollout, x, mass)
    for text, operands in ((known, 1), (given, 2)):
        (call,) = re.findall(r"custom_call @__gpu\$xla.gpu.ptx\((.*?)\)", text)
        assert call.count("%") == operands
    assert "grid_x = 2 : i32" in known  # two blocks of 64 threads for 70 environments
    derived = lowered(jax.grad(lambda x: rollout(x, mass).sum()), x)
    assert derived.count("custom_call @__gpu$xla.gpu.ptx") > 1


def test_a_variable_leaves_kernels_for_a_gpu_to_xla(monkeypatch):
    monkeypatch.setenv("BRAX_NATIVE", "0")
    assert "xla.gpu.ptx" not in lowered(jax.vmap(batch_last(lambda x: x - 3)), jnp.ones((4, 2)))


def test_a_dump_has_the_ptx(tmp_path, monkeypatch):
    monkeypatch.setenv("BRAX_DUMP_IR", str(tmp_path))
    lowered(jax.vmap(batch_last(lambda x: x * 0.25)), jnp.ones((4, 2)))
    texts = {path.name: path.read_text() for path in tmp_path.glob("*/*")}
    assert set(texts) == {"jaxpr.txt", "before.ll", "kernel.ptx"}
    assert texts["kernel.ptx"].count("mul.rn.f32") == 2


def inner(mass, x):
    """Return a kernel's result, in which a product of known masses is not to be folded early."""
    return x * x + mass * (mass * 0.1)


@pytest.fixture
def fused(monkeypatch):
    """Let steps become one kernel each, as on a GPU, and run it on the CPU."""
    monkeypatch.setattr(cuda, "fuses_steps", lambda: True)
    return ptx_lab.use_ptx(monkeypatch)


def test_a_step_is_one_kernel_with_the_kernels_that_it_calls(fused, monkeypatch):
    def step(x, action):
        y = batch_last(inner)(jnp.asarray([2.7, 0.3]), x + action)
        return y, batch_last(lambda y: jnp.sin(y))(y).sum()

    x, action = jnp.asarray(np.random.default_rng(0).normal(size=(2, 70, 2)), jnp.float32)
    got = jax.jit(lambda *a: map_step(step)(*a))(x, action)
    assert len(fused) == 1
    monkeypatch.undo()
    want = jax.jit(lambda *a: jax.vmap(step)(*a))(x, action)
    assert ptx_lab.same(got[0], want[0]).all()
    np.testing.assert_allclose(got[1], want[1], rtol=1e-6)


def test_a_step_outside_of_jit_is_not_compiled_at_each_call(fused):
    def step(x):
        return batch_last(jnp.square)(x) + 1

    x = jnp.arange(140.0).reshape(70, 2)
    for n in range(3):
        assert (map_step(step)(x + n) == (x + n) ** 2 + 1).all()
    assert len(fused) == 1  # the kernel in it


def test_a_copy_of_a_model_has_the_same_code(monkeypatch):
    compiled, codes = cuda._compiled, []

    def counted(*args):
        codes.append(compiled(*args))
        return codes[-1]

    monkeypatch.setattr(cuda, "_compiled", counted)
    x = jnp.ones((1, 70))
    kernel = kernel_of(lambda x, mass: x * mass, [x, jnp.ones((1, 1))])
    for mass, number in ((2.5, 1), (2.5, 1), (3.5, 2), (2.5, 2), (0.0, 3), (-0.0, 4)):
        form = form_of([x, jnp.ones((1, 1))])._replace(known=(None, Known(np.array([mass], "f4"))))
        assert cuda.supports(kernel, form).native
        assert len(codes) == number


def test_a_step_that_is_not_translated_calls_its_kernels(fused):
    def step(x):
        return jnp.linalg.eigvalsh(batch_last(jnp.multiply)(x, x)[:, None] * x)

    x = jnp.ones((70, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = jax.jit(lambda x: map_step(step)(x))(x)
    assert len(fused) == 1
    np.testing.assert_allclose(got[0], np.linalg.eigvalsh(np.ones((2, 2))), atol=1e-6)


def test_a_step_with_side_effects_or_traced_numbers_stays_a_step(fused, capsys):
    def step(x):
        jax.debug.print("here {}", x[0])
        return x + 1

    jax.block_until_ready(jax.jit(lambda x: map_step(step)(x))(jnp.ones((3, 2))))
    jax.effects_barrier()
    assert capsys.readouterr().out.count("here") == 3
    scaled = jax.jit(lambda x, mass: map_step(lambda x: x * mass)(x))(jnp.ones((3, 2)), 2.0)
    assert (scaled == 2).all() and not fused
