"""Kernels as this project translates them, beside the same operations compiled by XLA."""

import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.interpreters import partial_eval
from native_lab import by_environment, by_xla, form_of, kernel_of, native, translated
from physics_lab import PIPELINES, chain

from brax import plugins
from brax.kernels.batch_last import batch_last
from brax.kernels.codegen import cpu, ffi, jax_internals, target
from brax.kernels.codegen.call import Form, Kernel, trace
from brax.kernels.codegen.emitter import TooLong
from brax.kernels.codegen.explain import collected
from brax.kernels.codegen.operations import operation
from brax.kernels.codegen.translate import translate
from brax.kernels.skip import where_needed

pytestmark = pytest.mark.usefixtures("code_generator")

SHAPES = ((4,), (4,), (4, 3), (3,))
"""Shapes of each program's operands. All environments share the last operand."""


def at_places(change):
    """Return a program that changes elements at places that it computes."""
    return lambda a, b, m, c: by_environment(
        lambda a, b, m: change(a, b, m, (3 * b).astype(jnp.int32))
    )(a, b, m)


PROGRAMS = {
    "arithmetic": lambda a, b, m, c: (a + b * c[:1], a - b * a, a * b - 1, -a / (b + 3), a**3 / a),
    "powers": lambda a, b, m, c: (lax.integer_pow(a, -2), jnp.square(b), jnp.abs(a) ** b, a**0.5),
    "extremes": lambda a, b, m, c: (jnp.maximum(a, b), jnp.minimum(a, c[:1]), jnp.clip(a, -0.5, b)),
    "not a number": lambda a, b, m, c: (
        jnp.maximum(jnp.sqrt(a), b),
        jnp.minimum(b, jnp.log(a)),
        jnp.isfinite(jnp.sqrt(a)),
        jnp.argmax(jnp.sqrt(jnp.stack([a, b])), axis=0),
        jnp.sign(jnp.sqrt(a)),
        jnp.sqrt(a) != jnp.sqrt(a),
    ),
    "comparisons": lambda a, b, m, c: (a < b, a >= c[:1], (a > 0) & (b > 0), (a > 0) | ~(b < 0)),
    "choices": lambda a, b, m, c: (jnp.where(a > b, a, b), jnp.where(c[:1] > 0, a, b)),
    "waves": lambda a, b, m, c: (jnp.sin(40 * a), jnp.cos(3e4 * b), jnp.tan(a), jnp.sin(c)),
    "inverses": lambda a, b, m, c: (
        jnp.arctan2(a, b),
        jnp.arcsin(a / 4),
        jnp.arccos(a / 4),
        jnp.arctan(c),
    ),
    "growth": lambda a, b, m, c: (
        jnp.exp(a),
        jnp.expm1(a),
        jnp.log(jnp.abs(b)),
        jnp.log1p(jnp.abs(b)),
        jnp.tanh(a),
        jax.nn.sigmoid(a),
        jnp.sinh(a),
        jnp.cbrt(a),
    ),
    "roots": lambda a, b, m, c: (jnp.sqrt(jnp.abs(a)), lax.rsqrt(jnp.abs(b)), jnp.hypot(a, b)),
    "rounding": lambda a, b, m, c: (
        jnp.floor(3 * a),
        jnp.ceil(3 * a),
        jnp.fmod(a, 0.3),
        jnp.round(jnp.floor(6 * a) / 2),
        lax.round(jnp.floor(6 * a) / 2),
        a // 0.3,
    ),
    "special functions": lambda a, b, m, c: (
        jax.scipy.special.erf(a),
        jax.scipy.special.erfc(a),
        jax.scipy.special.gammaln(a),
        jax.nn.gelu(a, approximate=False),
        jnp.logaddexp(a, b),
        jnp.abs(a) ** (2 * b).astype(jnp.int32),
    ),
    "types": lambda a, b, m, c: (
        (a > 0).astype(jnp.int32) * 3,
        (a > 0).astype(a.dtype),
        (a > b).astype(jnp.int32).sum(0),
        jnp.arange(4)[:, None] * (b > 0),
        a.astype(jnp.float32).astype(jnp.float64),
        (3 * a).astype(jnp.int32),
        (1e10 * a).astype(jnp.int32) + jnp.log(b).astype(jnp.int32),
    ),
    "sums": lambda a, b, m, c: (m.sum(0), m.sum(1), m.sum((0, 1)), m.prod(1), m.max(0), m.min(1)),
    "sums of nothing": lambda a, b, m, c: (a[:0].sum(0) + b[0], m[:, :0].prod(1) * a),
    "truths": lambda a, b, m, c: ((m > 0).all(0), (m > 1).any(1)),
    "cumulative sums": lambda a, b, m, c: (
        jnp.cumsum(m, 0),
        lax.cumsum(m, 1, reverse=True),
        jnp.cumprod(m, 0),
        lax.cummax(m, 1),
        lax.cummin(m, 0, reverse=True),
        lax.cumlogsumexp(jnp.concatenate([jnp.log(jnp.maximum(a, 0)), m[0]]), 0),
    ),
    "places": lambda a, b, m, c: (
        m.reshape(3, 4, -1),
        m.transpose(1, 0, 2),
        m[::2],
        m[:, ::-1],
        jnp.pad(m, ((1, 0), (0, 2), (0, 0)), constant_values=2.0),
        lax.pad(a, jnp.zeros((), a.dtype), ((0, -1, 1), (0, 0, 0))),
        jnp.concatenate([a, b[:2]]),
        jnp.tile(m, (2, 1, 1)),
        jnp.stack([a, b], 1),
        m[jnp.array([2, 0, 0]), 1],
        a.at[jnp.array([1, 3])].set(b[:2]),
        a.at[jnp.array([1, 1])].add(b[:2]),
    ),
    "products": lambda a, b, m, c: (
        jnp.einsum("inb,nb->ib", m, m[0]),
        jnp.einsum("ij,jnb->inb", jnp.arange(8.0).reshape(2, 4), m),
        jnp.einsum("inb,jnb->ijb", m, m),
    ),
    "extreme places": lambda a, b, m, c: (
        jnp.argmax(m, 0),
        jnp.argmin(m, 1),
        jnp.sort(m, 0),
        jnp.take_along_axis(m, jnp.argmax(m, 0)[None], 0, mode="promise_in_bounds"),
    ),
    "the largest": lambda a, b, m, c: (
        *(jnp.moveaxis(x, -1, 0) for x in lax.top_k(jnp.moveaxis(m, 0, -1), 3)),
        *lax.top_k(jnp.floor(m), 2, axis=1),
    ),
    "places that are found": lambda a, b, m, c: (
        jnp.take_along_axis(m, (b[:3, None] > 0) * 2, 0, mode="clip"),
        jnp.take_along_axis(a * c[:1], (jnp.abs(3 * b)).astype(jnp.int32), 0, mode="clip"),
        lax.fori_loop(
            0,
            4,
            lambda i, x: x + lax.dynamic_slice(m, (i - 1, 1, 0), (2, 2, 1 * m.shape[-1])),
            m[:2, :2],
        ),
        lax.fori_loop(0, 4, lambda i, x: lax.dynamic_update_slice(x, m[:1, 0] * i, (i, 0)), a),
    ),
    "elements that are found": lambda a, b, m, c: by_environment(
        lambda a, b, m: (
            (i := (3 * b).astype(jnp.int32)),
            a[i[0]],
            m[i[1], i[2]],
            m[i],
            jnp.take(a, i),
            jnp.take(i, i),
            a.at[i].get(mode="fill", fill_value=7.0),
            lax.dynamic_slice(m, (i[0], i[1]), (2, 2)),
        )
    )(a, b, m),
    "elements of known places": lambda a, b, m, c: (
        a.at[jnp.array([3, 9, 0, 4])].get(mode="fill", fill_value=7.0),
        a.at[jnp.array([3, 9, 0])].get(mode="clip"),
        m[jnp.array([[0, 1], [2, 3]])],
        m.at[jnp.array([3, 4, 1]), jnp.array([1, 1, 3])].get(mode="fill", fill_value=-1.0),
        m.at[:, jnp.array([2, 3])].get(mode="fill", fill_value=5.0),
    ),
    **{
        f"places that change: {name}": at_places(change)
        for name, change in {
            "one": lambda a, b, m, i: a.at[i[0]].set(b[1]),
            "some": lambda a, b, m, i: a.at[i].add(b),
            "clipped": lambda a, b, m, i: a.at[i].multiply(b, mode="clip"),
            "less": lambda a, b, m, i: a.at[i].min(b),
            "dropped": lambda a, b, m, i: a.at[jnp.array([0, 9])].max(b[:2], mode="drop"),
            "of two axes": lambda a, b, m, i: m.at[i[0], 1].subtract(2.0),
            "a row": lambda a, b, m, i: m.at[i[0]].set(b[:3]),
            "a column": lambda a, b, m, i: m.at[:, i[3] % 3].add(b),
            "a part": lambda a, b, m, i: lax.dynamic_update_slice(m, m[1:, 1:] + 1, (i[0], i[1])),
            "a derivative": lambda a, b, m, i: jax.grad(lambda a: jnp.take(a, i, mode="clip") @ b)(
                a
            ),
        }.items()
    },
    "elements that a loop finds": lambda a, b, m, c: (
        lax.fori_loop(0, 4, lambda i, x: x.at[i].set(x[i - 1] * b[i]), a),
        lax.fori_loop(1, 3, lambda i, x: x.at[i, i].add(a[i]), m),
    ),
    "whole numbers": lambda a, b, m, c: (
        (i := (40 * a).astype(jnp.int32)),
        (j := (2 * b).astype(jnp.int32)),
        lax.div(i, j),
        lax.rem(i, j),
        i // (j + 20),
        i % 7,
        lax.div(lax.bitcast_convert_type(i, jnp.uint32), jnp.uint32(3)),
        lax.div(jnp.full_like(i, -(2**31)), jnp.minimum(j, -1)),
        lax.rem(jnp.full_like(i, -(2**31)), jnp.minimum(j, -1)),
        i << 3,
        i >> 2,
        lax.shift_right_logical(i, jnp.abs(j)),
        lax.shift_left(i, 20 * jnp.abs(j)),
        lax.shift_right_arithmetic(i, 20 * jnp.abs(j)),
        lax.population_count(i),
        lax.clz(i),
        lax.clz(lax.bitcast_convert_type(i, jnp.uint32) >> 5),
        i**3,
        lax.reduce_xor(i, (0,)),
    ),
    "bits": lambda a, b, m, c: (
        lax.bitcast_convert_type(a.astype(jnp.float32), jnp.int32),
        jnp.signbit(a),
        jnp.copysign(a, b),
        jnp.nextafter(a, b),
        jnp.frexp(a)[0],
        jnp.ldexp(a, (2 * b).astype(jnp.int32)),
        lax.reduce_precision(a.astype(jnp.float32), 8, 7),
        *by_environment(
            lambda a, b: (
                jnp.searchsorted(jnp.sort(b), a),
                jnp.interp(a, jnp.arange(-2.0, 3.0), jnp.arange(-2.0, 3.0) ** 2),
            )
        )(a, b),
    ),
    "choices by number": lambda a, b, m, c: (
        lax.select_n(jnp.abs(b).astype(jnp.int32) % 3, a, 2 * a, 3 * a),
        jnp.select([a > 1, b > 0], [a, b], a * b),
    ),
    "products of several types": lambda a, b, m, c: (
        jnp.einsum("inb,nb->ib", m > 0, m[0]),
        jnp.einsum("inb,nb->ib", (2 * m).astype(jnp.int32), m[0].astype(jnp.int32)),
        jnp.einsum("inb,nb->ib", (2 * m).astype(jnp.int32), m[0]),
    ),
    "what others have computed": lambda a, b, m, c: (
        (lambda x: x + x[::-1] * x[1])(a * b),
        (lambda x, y: (x[::-1] + y) * (y[::-1] - x))(a * b, (a + b)[::-1]),
        (lambda x: jnp.concatenate([x[2:], b, x[:2]]) * x[0])(a * b),
        (lambda x, y: jnp.concatenate([x[::-2], y[::2], x[1::2]]) * 2.0)(
            jnp.tile(m.reshape(12, -1) * 1.5, (2, 1)), jnp.sin(jnp.tile(a + b, (6, 1)))
        ),
    ),
    "arrays that are handed on": lambda a, b, m, c: (
        *lax.fori_loop(
            0, 3, lambda i, x: (x[1], x[0][::-1] + i * x[1], x[2] + x[0][0]), (a, b, a[0])
        ),
        *lax.scan(lambda s, r: ((s[0] + r.sum(0), s[1]), s[0] * s[1]), (a[:3], b[:3]), m[:, None])[
            0
        ],
        lax.scan(lambda s, r: (s[::-1] * r, s + r), a, (m * c[:1])[:, 0])[1],
        lax.fori_loop(0, 2, lambda i, x: lax.fori_loop(0, 2, lambda j, y: y[::-1] + x, a) * b, a),
    ),
    "loops": lambda a, b, m, c: (
        lax.fori_loop(0, 5, lambda i, x: jnp.cos(x) + i * b, a),
        lax.fori_loop(0, 3, lambda i, x: x + m[i, :1] * c[:1], a),
        lax.scan(lambda s, r: (s * 0.5 + r.sum(0), s * c[0]), a[0], m)[0],
        *lax.scan(lambda s, r: (s + r, s * r), b[:3], m),
        *lax.scan(lambda s, r: (s + r, r[0] * s), b[:3], m, reverse=True),
        lax.fori_loop(0, 2, lambda _, x: lax.fori_loop(0, 3, lambda _, y: y * 0.9 + b, x), a),
    ),
    "a loop that exchanges": lambda a, b, m, c: lax.fori_loop(
        0, 5, lambda i, x: (x[1], x[0] + i * x[1]), (a, b)
    ),
    "a loop of its own length": lambda a, b, m, c: (
        lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] * 0.5 + b), (0, a))[1],
    ),
    "loops that end by environment": lambda a, b, m, c: (
        by_environment(
            lambda a: lax.while_loop(lambda x: (jnp.abs(x) > 0.3).any(), lambda x: x / 2, a)
        )(a)[0],
        by_environment(
            lambda a, b: lax.fori_loop(0, (9 * b[0] ** 2).astype(int), lambda i, x: x + i * b, a)
        )(a, b)[0],
        by_environment(
            jax.vmap(lambda r: lax.while_loop(lambda x: x[0] > 0.1, lambda x: x / 2, r))
        )(m)[0],
        by_environment(lambda a, b: lax.cond(a[0] > b[0], jnp.sin, jnp.cos, a))(a, b)[0],
        by_environment(
            lambda a, b: lax.switch((3 * b[1]).astype(int), [jnp.sin, jnp.cos, jnp.exp], a)
        )(a, b)[0],
    ),
    "a shared value that a loop makes its own": lambda a, b, m, c: (
        lax.fori_loop(0, 4, lambda _, x: x * 0.5 + a[0], jnp.zeros_like(a[0]) + c[0]),
    ),
    "branches": lambda a, b, m, c: (
        lax.cond(True, jnp.sin, jnp.cos, a),
        lax.switch(2, [jnp.sin, jnp.cos, jnp.exp], a),
        jnp.stack([lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], a) for i in range(3)]),
    ),
    "work that some need": lambda a, b, m, c: (
        *where_needed(a[:1] > 0, lambda x: (jnp.sin(x[0]) + b, x[1] * x[0][0]), (a, m)),
        where_needed(a[:1] > 1e9, jnp.cos, b),
        lax.fori_loop(0, 4, lambda _, x: where_needed(x[:1] > 0, lambda x: x - b * b, x), a),
    ),
    "what is known": lambda a, b, m, c: (
        jnp.sin(jnp.arange(3.0))[:, None] * a[:1],
        jnp.sqrt(2.0) * a,
        jnp.zeros_like(a),
        jnp.arange(4)[:, None] + jnp.zeros_like(a, jnp.int32),
        a * 1 + 0,
        lax.stop_gradient(a) + 1,
    ),
}


def operands(size, dtype=np.float32):
    """Numbers for `size` environments."""
    rng = np.random.default_rng(size)
    return [
        jnp.asarray(rng.normal(size=(*s, 1 if i == 3 else size)), dtype)
        for i, s in enumerate(SHAPES)
    ]


def leaves(size, fun):
    """Return a function's results with a batch each."""

    def whole(*args):
        return tuple(jnp.broadcast_to(x, (*x.shape[:-1], args[0].shape[-1])) for x in fun(*args))

    return whole


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 3, 70])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_xla_makes_of_it(name, size):
    args = operands(size)
    fun = leaves(size, PROGRAMS[name])
    for got, want in zip(translated(fun, args), by_xla(fun, args), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        # XLA's own functions are good to some units in the last place.
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)


QUICK = (
    "elements that are found",
    "sums",
    "products",
    "what others have computed",
    "extreme places",
    "the largest",
    "arrays that are handed on",
    "loops",
    "work that some need",
)


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in PROGRAMS]
)
def test_a_program_whose_arrays_are_large(name, monkeypatch):
    """Each array is gone through by a loop, for nine groups of environments in turn."""
    monkeypatch.setattr(cpu, "MAX_UNROLLED_ELEMENTS", -1)
    monkeypatch.setattr(cpu, "MIN_LOOPED_ELEMENTS", 1)
    args = operands(70)
    fun = leaves(70, PROGRAMS[name])
    for got, want in zip(translated(fun, args), by_xla(fun, args), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)


def in_parts(monkeypatch):
    """Let kernels with loops become many small functions."""
    where = "brax.kernels.codegen"
    monkeypatch.setattr(f"{where}.translate.MAX_WHOLE_LINES", 0)
    monkeypatch.setattr(f"{where}.outlining.PART_LINES", 40)
    monkeypatch.setattr(f"{where}.outlining.MIN_PART_LINES", 5)


IN_PARTS = ("loops", "work that some need", "elements that are found", "the largest")


@pytest.mark.parametrize(
    "name", [n if n in IN_PARTS else pytest.param(n, marks=pytest.mark.slow) for n in PROGRAMS]
)
def test_a_kernel_in_parts_gives_the_bits_of_the_whole(name, monkeypatch):
    monkeypatch.setattr(cpu, "MAX_UNROLLED_ELEMENTS", -1)
    monkeypatch.setattr(cpu, "MIN_LOOPED_ELEMENTS", 1)
    args = operands(70)
    texts = []

    def noted(*a):
        texts.append(translate(*a))
        return texts[-1]

    monkeypatch.setattr(cpu, "translate", noted)
    whole = translated(leaves(70, PROGRAMS[name]), args)
    in_parts(monkeypatch)
    parts = translated(leaves(70, PROGRAMS[name]), args)
    assert ["@part1(" in text for text in texts] == [False, True]
    for got, want in zip(parts, whole, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("large", [None, 4])
@pytest.mark.parametrize("length", [1, 9])
def test_a_loop_over_single_numbers(large, length, monkeypatch):
    """The first loop keeps one number a round that all environments share, over which another goes.

    The derivative of a loop whose rounds have a factor of their own is such a program.
    """
    if large:
        monkeypatch.setattr(cpu, "MAX_UNROLLED_ELEMENTS", -1)
        monkeypatch.setattr(cpu, "MIN_LOOPED_ELEMENTS", large)

    def summed(x):
        _, factors = jax.lax.scan(lambda k, _: (k + 1, k / (k + 3)), 1.0, length=length)
        return jax.lax.scan(lambda s, r: (r * s + 1, s * r), x[0], factors, reverse=True)

    x = np.random.default_rng(0).normal(size=(2, 5)).astype(np.float32)
    for got, want in zip(native(summed, x), by_xla(by_environment(summed), [x]), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_in_double_precision(name):
    with jax.enable_x64(True):
        args = operands(5, np.float64)
        fun = leaves(5, PROGRAMS[name])
        for got, want in zip(translated(fun, args), by_xla(fun, args), strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


BATCHES = ("waves", "growth", "inverses", "loops", "products", "work that some need")


@pytest.mark.parametrize("name", BATCHES)
def test_the_bits_do_not_depend_on_the_batch(name):
    # One lane and many, compiled soon and fast, tiles that overlap.
    args = operands(77)
    fun = leaves(77, PROGRAMS[name])
    whole = translated(fun, args)
    for start, stop in ((0, 1), (3, 6), (50, 58), (0, 66)):
        part = [x if x.shape[-1] == 1 else x[..., start:stop] for x in args]
        some = translated(leaves(stop - start, PROGRAMS[name]), part)
        for a, b in zip(whole, some, strict=True):
            np.testing.assert_array_equal(a[..., start:stop], b)


def test_work_that_none_needs_is_passed_by():
    """A jump over the sine, and none around what every environment needs."""
    args = [((4,), np.float32)]
    one = trace(lambda a: where_needed(a[:1] > 0, jnp.sin, a), args)
    every = trace(lambda a: jnp.where(a[:1] > 0, jnp.sin(a), a), args)
    assert "@llvm.vector.reduce.or" in translate(one, [True], 8)
    assert "@llvm.vector.reduce.or" not in translate(every, [True], 8)


def test_what_a_branch_alone_reads_is_computed_in_it():
    """A sine of what the branch does not change, which could be computed before it."""
    args = [((4,), np.float32)] * 2
    fun = trace(lambda a, b: where_needed(a[:1] > 0, lambda x: x + jnp.sin(b), a), args)
    kernel, _ = translate(fun, [True, True], 8).split("\ndefine internal", 1)
    # The jump follows the test of the lanes.
    first, _, rest = kernel.partition("@llvm.vector.reduce.or")
    second, _, branch = rest.partition("br i1")
    assert "@brax.sincos" in branch
    assert "@brax.sincos" not in first + second


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8])
@pytest.mark.parametrize("elements", [1, 7, 8, 9, 27])
def test_parts_of_every_width(elements, kind):
    """Arrays are transposed tile by tile; tiles overlap at the ends, and small arrays have none."""
    for size in (1, 7, 8, 64, 75, 200):
        # Rests of a division by a prime: neither rows nor columns repeat within a byte.
        a = (np.arange(elements * size).reshape(elements, size) % 127).astype(kind)
        (found,) = translated(lambda a: (a[::-1],), (jnp.asarray(a),))
        np.testing.assert_array_equal(found, a[::-1])


@pytest.mark.parametrize("size", [1, 8, 63, 64, 65, 129, 200])
def test_parts_of_every_length(size):
    """A part has 64 environments; the last one has fewer, and may begin in the one before."""
    a = np.arange(3 * size, dtype=np.float32).reshape(3, size)
    shared = np.array([[2], [5]], np.float32)
    args = jnp.asarray(a), jnp.asarray(shared)
    scaled, total = translated(lambda a, c: (a * c[:1] + c[1:], a.sum(0)), args)
    np.testing.assert_array_equal(scaled, 2 * a + 5)
    np.testing.assert_array_equal(total, a.sum(0))


def test_what_all_environments_share_is_read_once_and_where_it_is_needed():
    """Among a hundred shared numbers the one of which the result is made, before all parts."""
    given = [((1,), np.float32), ((100,), np.float32)]
    text = translate(trace(lambda a, shared: a * shared.at[7].get(), given), [True, False], 8)
    before, _, tile = text.partition("br label %part")
    assert before.count("load float") == 1
    assert "i64 7" in before
    assert tile.count("fmul") == 1


def test_a_single_operation_may_be_too_long():
    """A gather from a large table ends when there are too many values, not when it is complete."""
    given = [((1,), np.int32), ((2000,), np.float32)]
    mode = "promise_in_bounds"
    kernel = trace(lambda i, table: jnp.take_along_axis(table, i, axis=0, mode=mode), given)
    translate(kernel, [True, False], 8, max_values=20_000)
    with pytest.raises(TooLong):
        translate(kernel, [True, False], 8, max_values=6000)


def test_a_kernel_takes_no_more_of_the_stack_than_there_is(monkeypatch):
    """A kernel that exceeds the stack has loops; if these exceed it, XLA compiles it."""

    def long(a, b, m, c):
        x = m.reshape(12, -1)
        for _ in range(40):
            x = jnp.sin(x) * 0.5 + x[::-1] * 0.3 * jnp.cos(a[:1])
        return (x.sum(0, keepdims=True) + b,)

    args, taken = operands(70), []
    want = by_xla(long, args)

    def watched(*args):
        taken.append(args[3])
        return translate(*args)

    monkeypatch.setattr(cpu, "translate", watched)
    lane = (
        target.vector_bytes()
    )  # a wider register holds more environments, whose values take more room
    for room, loops in ((2**16 * lane, 0), (2**9 * lane, cpu.MIN_LOOPED_ELEMENTS)):
        monkeypatch.setattr(target, "stack_bytes", lambda room=room: room)
        for got, right in zip(translated(long, args), want, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-4)
        assert taken[-1] == loops
    monkeypatch.setattr(target, "stack_bytes", lambda: 2**4 * lane)
    assert not cpu.supports(kernel_of(long, args), form_of(args)).native


def test_threads_give_the_same_bits():
    # Of sizes that pieces do not divide, many times over.
    for size in (128, 1000, 4001):
        args = operands(size)
        fun = leaves(size, PROGRAMS["loops"])
        kernel = kernel_of(fun, args)
        alone = jax.jit(cpu.compile(kernel, form_of(args, devices=2)))(*args)
        shared = jax.jit(cpu.compile(kernel, form_of(args)))
        for _ in range(50):
            for a, b in zip(alone, shared(*args), strict=True):
                np.testing.assert_array_equal(a, b)


def test_threads_that_trace_the_same_kernel_compile_it_once(monkeypatch):
    """As a training and its evaluation do."""
    sizes, compiled, modules = [((4,), jnp.float32)], target.compile_module, []

    def slowly(*args):
        modules.append(args)
        time.sleep(0.05)
        return compiled(*args)

    monkeypatch.setattr(target, "compile_module", slowly)

    def name(_):
        kernel = Kernel(trace(lambda a: (jnp.sinh(a) + 0.7131,), sizes))
        assert cpu.supports(kernel, Form("cpu", (64,))).native
        return [name for name, _ in kernel.made.values()]

    with ThreadPoolExecutor(8) as threads:
        names = list(threads.map(name, range(8)))
    assert names == [[modules[0][0]]] * 8
    assert len(modules) == 1


@pytest.mark.parametrize("batch", [5, 1 << 16])
def test_denormal_numbers_are_zero_as_in_xlas_programs(batch):
    def fun(x, y):
        return (x * y, x + x / 3, x - x / 2, jnp.sqrt(x), x.sum(0), x > 0, x == 0, y / x)

    x = jnp.full((2, batch), 1e-40)
    args = x, jnp.ones_like(x)
    for got, want, exact in zip(
        translated(fun, args), by_xla(fun, args), (0, 0, 0, 0, 0, False, True, np.inf), strict=True
    ):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(got, np.full_like(got, exact))


def test_sines_and_cosines_are_right_to_the_last_place():
    rng = np.random.default_rng(0)
    near, far = rng.uniform(-10, 10, 20_000), rng.uniform(-1e8, 1e8, 20_000)
    x = np.concatenate([near, far, [0.0, -0.0, 1e-30]]).astype(np.float32)
    sine, cosine = translated(lambda x: (jnp.sin(x), jnp.cos(x)), [jnp.asarray(x)[None]])
    for got, want in ((sine, np.sin(x.astype(float))), (cosine, np.cos(x.astype(float)))):
        unit = np.spacing(np.abs(want).astype(np.float32)).astype(float)
        assert (np.abs(np.asarray(got[0], float) - want) <= 0.5001 * unit).all()  # .49998
    for odd in (np.inf, -np.inf, np.nan):
        assert np.isnan(translated(lambda x: (jnp.sin(x),), [jnp.full((1, 9), odd)])).all()
    assert np.abs(translated(lambda x: (jnp.sin(x),), [jnp.full((1, 9), 3e38)])).max() <= 1


def test_exponentials_and_logarithms_are_right_to_the_last_place():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-87, 88, 20_000), rng.uniform(0, 3, 20_000)])
    x = np.concatenate([x, np.exp(rng.uniform(-87, 88, 20_000))]).astype(np.float32)
    grown, log = translated(lambda x: (jnp.exp(x), jnp.log(x)), [jnp.asarray(x)[None]])
    with np.errstate(all="ignore"):
        wanted = np.exp(x.astype(float)), np.log(x.astype(float))
    for got, want in zip((grown, log), wanted, strict=True):
        usual = np.isfinite(want) & (np.abs(want) > 2e-38) & (np.abs(want) < 3.4e38)
        unit = np.spacing(np.abs(want[usual]).astype(np.float32)).astype(float)
        assert (np.abs(np.asarray(got[0], float)[usual] - want[usual]) <= 0.5001 * unit).all()
    odd = jnp.asarray([[0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 3e38, -3e38, 1.0]])
    grown, log = translated(lambda x: (jnp.exp(x), jnp.log(x)), [odd])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(grown, np.exp(np.float64(odd)).astype(np.float32))
        np.testing.assert_allclose(log, np.log(np.float64(odd)), rtol=1e-7)


REFUSED = {
    "a sum over environments": lambda a: a.sum(-1, keepdims=True) + a,
    "one environment for all": lambda a: a + a[:, :1],
    "the order of environments": lambda a: a[:, ::-1],
    "an environment's number": lambda a: a + jnp.arange(a.shape[-1]),
    "environments side by side": lambda a: a.reshape(-1).reshape(a.shape) + 0,
    "a product over environments": lambda a: a + a @ a.T @ a,
    "an operation that is not known": lambda a: lax.digamma(a + 1),
    "one environment's new numbers": lambda a: lax.dynamic_update_slice(
        a, jnp.ones((4, 1)), (0, 0)
    ),
    "a number for one environment": lambda a: a.at[0, 0].set(2.0),
    "a side effect": lambda a: (jax.debug.callback(lambda: None), a)[1],
}


@pytest.mark.filterwarnings("ignore:XLA compiles the kernel")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_translated_is_left_to_xla(name):
    kernel = Kernel(trace(lambda a: (REFUSED[name](a),), [((4,), jnp.float32)]))
    assert not cpu.supports(kernel, Form("cpu", (64,))).native
    f = batch_last(REFUSED[name])
    assert np.isfinite(jax.jit(f)(jnp.arange(4.0))).all()


@pytest.mark.slow
@pytest.mark.parametrize("large", [None, 1, 8])
@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipelines_step_is_translated_and_xlas(name, large, monkeypatch, f64):
    if large == 8:
        in_parts(monkeypatch)
    if large:
        monkeypatch.setattr(cpu, "MAX_UNROLLED_ELEMENTS", -1)
        monkeypatch.setattr(cpu, "MIN_LOOPED_ELEMENTS", large)
    pipeline = plugins.get("pipeline", name)
    sys = chain(3, free=True)
    rng = np.random.default_rng(0)
    q = sys.init_q + 0.1 * rng.normal(size=(9, sys.q_size()))
    qd = rng.normal(size=(9, sys.qd_size()))

    def step(q, qd):
        return pipeline.step(sys, pipeline.init(sys, q, qd), jnp.zeros(sys.act_size()), 2)

    with collected() as outcomes:
        got = jax.jit(jax.vmap(lambda *x: step(*x)))(q, qd)
    assert outcomes and all(o.native for o in outcomes)
    monkeypatch.setenv("BRAX_NATIVE", "0")
    want = jax.jit(jax.vmap(lambda *x: step(*x)))(q, qd)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_a_damaged_file_in_the_cache_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(target, "_cached", lambda name: tmp_path / "kernels" / name)
    text = "define ptr @handler(ptr %x) {\n%y = getelementptr i8, ptr %x, i64 7\nret ptr %y\n}"
    target.compile_module("seven", text, 0)
    (file,) = (tmp_path / "kernels").iterdir()
    whole = file.read_bytes()
    assert whole[:32] == hashlib.sha256(whole[32:]).digest()
    for damaged in (b"", whole[:40], whole[:-1] + b"x"):
        file.write_bytes(damaged)
        assert target.compile_module("seven", text, 0)
        assert file.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_said_once(tmp_path, monkeypatch):
    (tmp_path / "kernels").write_text("not a folder")
    monkeypatch.setattr(target, "_cached", lambda name: Path(tmp_path / "kernels" / name))
    text = "define ptr @handler(ptr %x) {\nret ptr %x\n}"
    with pytest.warns(UserWarning, match="kernels cannot be kept in"):
        assert target.compile_module("same", text, 0)


NOTHING = "define ptr @handler(ptr %x) {\nret ptr null\n}"
"""A module whose handler does nothing."""


@pytest.fixture
def jax_cache(tmp_path, monkeypatch):
    """Return a function that sets JAX's compilation cache, and the working folder to an empty one.

    It is called with the cache's folder, within the test's own, and the largest size in bytes.
    """
    names = (
        "jax_compilation_cache_dir",
        "jax_enable_compilation_cache",
        "jax_compilation_cache_max_size",
    )
    before = [getattr(jax.config, name) for name in names]
    monkeypatch.chdir(tmp_path)

    def use(folder, limit=-1):
        for name, value in zip(names, (folder, True, limit), strict=True):
            jax.config.update(name, value)
        return tmp_path / folder / "brax"

    yield use
    for name, value in zip(names, before, strict=True):
        jax.config.update(name, value)


def test_a_cache_at_a_url_is_no_folder(tmp_path, jax_cache):
    jax_cache("gs://bucket/cache")
    assert target.compile_module("nothing", NOTHING, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_the_cache_has_the_rights_of_any_file(tmp_path, jax_cache):
    """So that all users of a shared cache can read it."""
    folder = jax_cache("cache")
    target.compile_module("nothing", NOTHING, 0)
    (file,) = folder.iterdir()
    (tmp_path / "plain").touch()
    assert file.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_that_cannot_be_written_leaves_nothing_behind(jax_cache, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    folder = jax_cache("cache")
    monkeypatch.setattr(Path, "replace", full)
    with pytest.warns(UserWarning, match="No space left"):
        assert target.compile_module("nothing", NOTHING, 0)
    assert list(folder.iterdir()) == []


def test_code_that_was_compiled_otherwise_is_not_taken_from_the_cache(jax_cache, monkeypatch):
    folder = jax_cache("cache")
    text = """define ptr @handler(ptr %x) {
        %slot = alloca ptr
        store ptr %x, ptr %slot
        %y = load ptr, ptr %slot
        ret ptr %y
    }"""
    found: dict[str, set[Path]] = {}
    for name, passes, model, level in (
        ("as it is", target.PASSES, target.CODE_MODEL, 1),
        ("without passes", {0: (), 1: ()}, target.CODE_MODEL, 1),
        ("far away", target.PASSES, "large", 1),
        ("quickly", target.PASSES, target.CODE_MODEL, 0),
    ):
        monkeypatch.setattr(target, "PASSES", passes)
        monkeypatch.setattr(target, "CODE_MODEL", model)
        target._circumstances.cache_clear()
        target.compile_module("slot", text, level)
        found[name] = set(folder.iterdir()).difference(*found.values())
    target._circumstances.cache_clear()
    files = {name: file for name, (file,) in found.items()}
    # Without the pass, the operand is stored and loaded again.
    assert files["without passes"].read_bytes() != files["as it is"].read_bytes()


def test_the_code_that_was_used_longest_ago_leaves_a_full_cache(jax_cache):
    folder, code = jax_cache("cache", limit=400), bytes(68)
    sizes = {"a": 100, "b": 100, "c": 100, "d": 150, "e": 300}
    for time_, (name, size) in enumerate(sizes.items()):
        if name == "d":  # 450 bytes with it
            assert target._read_cached(folder / "a") == code
        if name == "e":  # 650 bytes with it
            assert target._read_cached(folder / "c") == code
        # A checksum of 32 bytes comes first.
        target._write_cached(folder / name, bytes(size - 32))
        os.utime(folder / name, (time_, time_))
        assert sum(f.stat().st_size for f in folder.iterdir()) <= 400
        left = {"d": {"a", "c", "d"}, "e": {"c", "e"}}
        assert name not in left or {f.name for f in folder.iterdir()} == left[name]
    target._write_cached(folder / "too large", bytes(400))
    assert {f.name for f in folder.iterdir()} == {"c", "e"}


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        ((0, 9, 9), "install one of these"),
        ((0, 10, 0), "a fault of brax-core: please report it"),
        ((0, 12, 0), "a fault of brax-core: please report it"),
        ((0, 12, 1), "install one of these"),
    ],
)
def test_an_error_of_the_code_generator_is_said_once_and_leaves_the_kernel_to_xla(
    version, advice, monkeypatch
):
    """The message blames a version of JAX only if that was not tested."""

    def broken(*_):
        raise KeyError("axis")

    monkeypatch.setattr("brax.kernels.codegen.cpu.translate", broken)
    monkeypatch.setattr(jax_internals, "CHECKED", ("0.10.0", "0.12.0"))
    monkeypatch.setattr(jax, "__version_info__", version)
    jax_internals.warn.cache_clear()
    closed = trace(lambda a: (a + 1,), [((4,), jnp.float32)])
    said = rf"slower .* failed on the kernel hip \(KeyError: 'axis'\), so XLA .*{advice}"
    with pytest.warns(RuntimeWarning, match=said) as warned:
        assert not cpu.supports(Kernel(closed, "hip"), Form("cpu", (64,))).native
        assert not cpu.supports(Kernel(closed, "hip"), Form("cpu", (64,))).native
    assert len(warned) == 1


@pytest.mark.parametrize("reverse", [False, True])
def test_a_cumulative_sum_along_an_empty_axis_is_empty(reverse):
    rows = jnp.ones((0, 2, 5))
    (out,) = translated(lambda a: (lax.cumsum(a, axis=0, reverse=reverse),), [rows])
    assert out.shape == rows.shape


def _equation(function, *given):
    *_, eqn = jax.make_jaxpr(function)(*given).jaxpr.eqns
    return eqn


def test_parameters_that_another_version_of_jax_adds_or_drops_are_unknown_forms():
    eqn = _equation(lambda x: jax.lax.cumsum(x), jnp.ones(3))
    known = operation(eqn).parameters
    jax_internals.check(eqn, known)
    for params, words in (
        ({**eqn.params, "exclusive": True}, "'cumsum' has a parameter 'exclusive'"),
        ({"axis": 0}, "'cumsum' has no parameter 'reverse'"),
    ):
        with pytest.raises(jax_internals.UnknownForm, match=words):
            jax_internals.check(eqn.replace(params=params), known)


def test_a_scan_has_the_operands_that_its_body_takes_whatever_the_version():
    def loop(shift):
        def body(carry, row):
            return carry * row + shift, carry.sum()

        return jax.lax.scan(body, jnp.ones(3), jnp.ones((4, 3)), reverse=True)

    eqn = _equation(loop, jnp.ones(3))
    found = jax_internals.scan(eqn)
    assert (found.length, found.reverse, found.consts, found.carry) == (4, True, 1, 1)
    other = {k: v for k, v in eqn.params.items() if k not in ("num_carry", "ft_in")}
    with pytest.raises(jax_internals.UnknownForm, match="which operands are its carry"):
        jax_internals.scan(eqn.replace(params=other))


def test_a_rule_for_dead_code_is_given_the_equation_whatever_the_version(monkeypatch):
    """From JAX 0.12 on, another argument is before it."""
    rules: dict[str, Any] = {}
    monkeypatch.setattr(partial_eval, "dce_rules", rules)
    jax_internals.register_dead_code_rule("add", lambda used, eqn: (used, eqn))
    assert rules["add"]([True], "equation") == ([True], "equation")
    assert rules["add"]([True], "new argument", "equation") == ([True], "equation")


def test_another_interface_of_xla_is_an_unknown_form(tmp_path, monkeypatch):
    header = tmp_path / "xla" / "ffi" / "api" / "c_api.h"
    header.parent.mkdir(parents=True)
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    read = jax_internals.ffi_version.__wrapped__
    for newest, written in ((9, 3), (1, 1)):
        header.write_text(f"#define XLA_FFI_API_MAJOR 0\n#define XLA_FFI_API_MINOR {newest}\n")
        assert read() == written
    header.write_text("#define XLA_FFI_API_MAJOR 1\n#define XLA_FFI_API_MINOR 0\n")
    with pytest.raises(jax_internals.UnknownForm, match="foreign-function interface"):
        read()


def test_an_empty_array_is_not_transposed():
    """It has no memory of its own: one element of it would be written over something else.

    Empty cotangents of models without some feature did so to the gradient of a long scan.
    """
    empty, two = ffi.ArrayLayout(True, 0, 8), ffi.ArrayLayout(True, 2, 8)
    text = ffi.ffi_handler([empty, two], [two, empty, two], 1, False)
    assert text.count("call void @transpose64(ptr %in1") == 1
    assert text.count("call void @transpose64(") == 3
