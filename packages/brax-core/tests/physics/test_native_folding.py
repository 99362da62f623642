"""Zeros and ones of a model: what they make trivial is left out, and the bits stay."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from native_lab import form_of, kernel_of, translated

from brax.kernels.batch_last import batch_last
from brax.kernels.codegen import cpu, folding, ir
from brax.kernels.codegen.call import Known
from brax.kernels.codegen.ir import Instruction, Type, text_of
from brax.kernels.skip import where_needed

pytestmark = pytest.mark.usefixtures("code_generator")

FLOATS = Type("float", 8)
NUMBERS = [0.0, 1.0, -1.0, 2.5]


def both(fun, args, known):
    """Return a function's results and its text, without and with the numbers that are known."""
    kernel, out = kernel_of(fun, args), []
    for given in ((), known):
        form = form_of(args)._replace(known=given)
        assert cpu.supports(kernel, form).native
        text = cpu._translated(kernel, kernel.batched(form), cpu._patterns(kernel, form), 8, 1)
        out.append((jax.jit(cpu.compile(kernel, form))(*args), text))
    return out


def in_a_loop(a, shared):
    """Carry what is known, and what it is multiplied with, through a loop."""

    def step(i, carried):
        x, y = carried
        return x * shared + a[i], y * shared[1] + 0.0 * x

    return lax.fori_loop(0, 3, step, (a, a + shared * 0.0))


def carried(a, shared):
    """Carry numbers that stay what they are, one that turns into another, and one that swaps."""

    def step(i, carried):
        x, still, later, left, right = carried
        moved = x + still * a + later
        return moved, still * a, later + left[0] - left[0] * right[0], right, left

    zero, one = a * shared[:1], a * shared[:1] + shared[1:2]
    return lax.fori_loop(0, 4, step, (a, zero, zero, one, zero))


def needed(a, shared):
    """Carry what only some environments change."""

    def step(i, x):
        return where_needed(a[:1] > 0, lambda x: x * shared[:1] + shared[1:2], x)

    return lax.fori_loop(0, 3, step, a * shared[:1]), lax.fori_loop(0, 3, step, a)


PROGRAMS = {
    "products": lambda a, c: (a * c, c * a, a * c * c[::-1], -(a * c), a * -c),
    "sums": lambda a, c: (a + c, c + a, a - c, c - a, c - (a - c), -a + c[:1] - a),
    "fused": lambda a, c: (a * c + a, a - a * c, a * c - a, a * a + c, a * a - c, c - a * a),
    "two products": lambda a, c: (a * c + a[::-1] * c[::-1], a * c - c[::-1] * a, c * c + c * a),
    "numbers alone": lambda a, c: (a * (c * c - c + c[::-1] * 2), a + (1 - 2 * (c * c))),
    "a dot product": lambda a, c: (jnp.sum(a * c, axis=0), jnp.sum(c[:3] * c[1:], axis=0) * a),
    "quotients": lambda a, c: (a / (c + 3), c / (a * a + 1), jnp.sqrt(c * c) * a),
    "choices": lambda a, c: (jnp.where(c > 0, a, c), jnp.where(a > 0, c, -c), jnp.maximum(a, c)),
    "what is not finite": lambda a, c: (
        a - jnp.inf * a,
        jnp.minimum(a * c + jnp.inf, c),
        c - jnp.inf,
    ),
    "a loop": in_a_loop,
    "what loops carry": carried,
    "work that some need": needed,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_bits_do_not_depend_on_what_is_known(name, dtype):
    with jax.enable_x64(dtype == np.float64):
        a = jnp.asarray(np.random.default_rng(1).normal(size=(4, 20)), dtype)
        shared = jnp.asarray(NUMBERS, dtype)[:, None]
        args, known = [a, shared], (None, Known(shared[:, 0]))
        (want, long), (got, short) = both(PROGRAMS[name], args, known)
        for x, y in zip(want, got, strict=True):
            # Zeros may differ in their sign.
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
        assert len(short) < len(long)


def test_what_is_not_finite_vanishes_only_where_the_page_on_determinism_says_so():
    x = jnp.asarray([[1.0, np.inf, -np.inf, np.nan]])

    def tested(x):
        finite = jnp.isfinite(x)
        return x - x, 0.0 * x, finite, jnp.isnan(x), jnp.where(finite, 2.0, jnp.nan)

    gone, scaled, finite, odd, carried = translated(tested, [x])
    for zero in (gone, scaled):
        np.testing.assert_array_equal(zero, np.zeros((1, 4)))
    np.testing.assert_array_equal(finite, np.isfinite(x))
    np.testing.assert_array_equal(odd, np.isnan(x))
    np.testing.assert_array_equal(carried, [[2, np.nan, np.nan, np.nan]])


def test_a_dot_product_with_an_axis_is_no_work():
    """The normal of a level floor: its dot product with a vector is one of the components."""
    a = jnp.asarray(np.random.default_rng(1).normal(size=(3, 20)), jnp.float32)
    normal = jnp.asarray([[0.0], [0.0], [1.0]])
    plain, folded = both(
        lambda a, n: (jnp.sum(a * n, axis=0),), [a, normal], (None, Known(normal[:, 0]))
    )
    np.testing.assert_array_equal(folded[0][0], a[2])
    assert plain[1].count("call <8 x float> @llvm.fma") == 2
    assert " fmul " not in folded[1] and "call <8 x float>" not in folded[1]


def test_a_zero_that_a_loop_carries_is_no_work():
    """Friction on a level floor has no component along the normal."""
    a = jnp.asarray(np.random.default_rng(1).normal(size=(3, 20)), jnp.float32)
    normal = jnp.asarray([[0.0], [0.0], [1.0]])

    def friction(a, n):
        """Add what is across the normal, three times."""
        return (lax.fori_loop(0, 3, lambda i, f: f + (a - n * jnp.sum(a * n, 0)), 0 * a),)

    (want, _), (got, text) = both(friction, [a, normal], (None, Known(normal[:, 0])))
    np.testing.assert_array_equal(want[0], got[0])
    np.testing.assert_array_equal(got[0][2], 0)
    assert text.count(" fadd <8 x float>") == 2


def test_only_zeros_and_ones_are_known():
    """Kernels of models that differ in other numbers are the same; minus zero is no zero."""
    assert folding.pattern(np.array([0, 1, -1, 2, -0.0, np.nan], np.float32)) == (
        0,
        1,
        -1,
        None,
        None,
        None,
    )
    assert folding.pattern(np.array([3, -0.0], np.float32)) is None
    assert folding.pattern(np.array([0, 1], np.int32)) is None
    assert folding.pattern(np.array([[0], [7]], np.float64)) == (0, None)


def test_models_that_differ_in_their_masses_share_a_kernel(monkeypatch):
    made = []
    compiled = cpu._compiled

    def watched(*args):
        made.append(args)
        return compiled(*args)

    monkeypatch.setattr(cpu, "_compiled", watched)

    @batch_last
    def scaled(mass, x):
        return mass * x

    x = jnp.ones((70, 2))
    for numbers, count in (((1.0, 3.0), 1), ((1.0, 4.0), 1), ((2.0, 4.0), 2)):
        mass = jnp.asarray(numbers)
        got = jax.jit(lambda x, mass=mass: jax.vmap(scaled, (None, 0))(mass, x))(x)
        np.testing.assert_array_equal(got, mass * x)
        assert len(made) == count


def test_zero_times_what_is_not_finite_is_zero():
    """As the module's docstring says; without the knowledge it is not a number."""
    a, zero = jnp.full((1, 20), jnp.inf), jnp.zeros((1, 1))
    (plain, _), (folded, _) = both(lambda a, c: (a * c,), [a, zero], (None, Known(zero[:, 0])))
    assert np.isnan(plain[0]).all()
    assert (np.asarray(folded[0]) == 0).all()


def call(*operands):
    """Return a fused multiplication and addition."""
    return Instruction("call", ("@llvm.fma.v8f32", *operands), (None, *[FLOATS] * 3), FLOATS, "%x")


def pair(operation, *operands):
    """Return an operation on two numbers."""
    return Instruction(operation, operands, (FLOATS, None), FLOATS, "%x")


NEGATIVE = "%x = fneg <8 x float> %b"


@pytest.mark.parametrize(
    ("instruction", "left"),
    [
        (pair("fmul", "%a", "%one"), "%a"),
        (pair("fmul", "%zero", "%a"), "0x0000000000000000"),
        (pair("fmul", "%minus", "%b"), NEGATIVE),
        (pair("fmul", "%minus", "%minus"), "0x3FF0000000000000"),
        (pair("fadd", "%zero", "%a"), "%a"),
        (pair("fadd", "%one", "%one"), "0x4000000000000000"),
        (pair("fsub", "%a", "%zero"), "%a"),
        (pair("fsub", "%zero", "%b"), NEGATIVE),
        (pair("fsub", "%b", "%b"), "0x0000000000000000"),
        (pair("fsub", "%a", "%b"), "%x = fsub <8 x float> %a, %b"),
        (call("%a", "%zero", "%b"), "%b"),
        (call("%one", "%b", "%zero"), "%b"),
        (call("%one", "%b", "%c"), "%x = fadd <8 x float> %b, %c"),
        (call("%a", "%minus", "%c"), "%x = fsub <8 x float> %c, %a"),
        (call("%a", "%b", "%zero"), "%x = fmul <8 x float> %a, %b"),
        (call("%minus", "%minus", "%zero"), "0x3FF0000000000000"),
    ],
)
def test_each_operation(instruction, left):
    """It leaves a number, another value, or a shorter operation."""
    known = {"%zero": 0.0, "%one": 1.0, "%minus": -1.0}
    store = (ir.store("%x", FLOATS, "%p"),)
    *kept, (stored,) = folding.folded([(instruction,), store], known)
    if kept:
        ((short,),) = kept
        assert (text_of(short), text_of(stored)) == (left, "store <8 x float> %x, ptr %p")
    else:
        value = f"splat (float {left})" if left.startswith("0x") else left
        assert text_of(stored) == f"store <8 x float> {value}, ptr %p"


def test_a_number_that_a_type_rounds_is_not_folded():
    """1 + 2^-30 is no number in single precision: the sum is left to the processor."""
    tiny = f"splat (float {text_of_number(2.0**-30)})"
    given = pair("fadd", "%one", tiny)
    ((short,), _) = folding.folded([(given,), (ir.store("%x", FLOATS, "%p"),)], {"%one": 1.0})
    assert text_of(short).startswith("%x = fadd <8 x float> splat (float 0x3FF0000000000000)")


def text_of_number(number):
    """Return a number as LLVM writes it."""
    return f"0x{np.float64(number).view(np.uint64):016X}"
