"""Backends of kernels: the first that supports a call compiles it."""

import functools
from types import SimpleNamespace
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import pytest
from jax.extend.core import jaxpr_as_fun
from native_lab import form_of, kernel_of

from brax.kernels.batch_last import BACKENDS, batch_last
from brax.kernels.codegen import cpu, xla
from brax.kernels.codegen.backend import compiled
from brax.kernels.codegen.call import Known
from brax.kernels.codegen.explain import Outcome
from brax.kernels.codegen.loop_constants import with_constants_in_loops
from brax.kernels.codegen.unrolling import unrolled


def backend(reason, result) -> Any:
    """Return a backend that supports a call if there is no reason against it."""
    return SimpleNamespace(
        supports=lambda kernel, form: Outcome(kernel.title, reason),
        compile=lambda kernel, form: lambda *operands: result,
    )


def test_the_first_backend_that_supports_a_call_compiles_it():
    args = [jnp.ones((2, 3))]
    kernel, form = kernel_of(lambda x: (x,), args), form_of(args)
    backends = [backend("a size of three", 1), backend("", 2), backend("", 3)]
    run: Any = compiled(kernel, form, backends)
    assert run(*args) == 2


def test_xla_is_the_last_backend_of_each_platform():
    assert {platform: backends[-1] for platform, backends in BACKENDS.items()} == dict.fromkeys(
        BACKENDS, xla
    )
    assert BACKENDS["cpu"][0] is cpu


@pytest.mark.usefixtures("code_generator")
def test_a_call_with_nothing_to_compute_is_left_to_xla():
    for args in ([jnp.ones((2, 0))], []):
        outcome = cpu.supports(kernel_of(lambda *x: (jnp.ones((1, 1)),), args), form_of(args))
        assert outcome.reason == "nothing to compute"


def test_an_exported_program_has_xlas_operations_only():
    """`jax.export` rejects calls of native functions, which another process does not have."""
    step = jax.jit(jax.vmap(batch_last(lambda x: x * x - 1)))
    for platforms in (["cpu"], ["cuda"], ["cpu", "cuda"]):
        exported = jax.export.export(step, platforms=platforms)(jnp.ones((3, 2)))
        assert "custom_call" not in exported.mlir_module()


def rounds(x):
    """Return x times 2^6: two rounds of a loop around one of three rounds."""
    inner = functools.partial(jax.lax.fori_loop, 0, 3, lambda i, x: x + x)
    return jax.lax.fori_loop(0, 2, lambda i, x: inner(x), x)


@pytest.mark.parametrize(
    ("platform", "most", "loops"), [("cpu", 99, 2), ("cuda", 5, 2), ("cuda", 8, 1), ("cuda", 99, 0)]
)
def test_short_loops_are_unrolled_off_the_cpu(platform, most, loops, monkeypatch):
    """On a GPU a loop has kernels of its own. The inner one has six operations in its rounds."""
    monkeypatch.setattr(xla, "MAX_UNROLLED_OPERATIONS", most)
    # A function of its own: JAX keeps what it lowered.
    step = jax.jit(jax.vmap(batch_last(lambda x: rounds(x))))
    exported = jax.export.export(step, platforms=[platform])(jnp.ones((3, 2)))
    assert exported.mlir_module().count("stablehlo.while") == loops


def test_an_unrolled_loop_computes_the_same():
    closed = unrolled(jax.make_jaxpr(rounds)(1.0), 8)
    (outer,) = [eqn for eqn in closed.eqns if eqn.primitive.name == "scan"]
    (inner,) = [x for x in outer.params["jaxpr"].eqns if x.primitive.name == "scan"]
    assert (outer.params["unroll"], inner.params["unroll"]) == (1, 3)
    assert jaxpr_as_fun(closed)(jnp.float32(3.0)) == [192.0]


def decayed(x, rate, gain):
    """Return x (n, batch) after two rounds that each halve it thrice and then multiply it."""
    rate, gain = jax.lax.optimization_barrier((rate, gain))
    kept = 1.0 - rate
    inner = functools.partial(jax.lax.fori_loop, 0, 3, lambda i, x: kept * x)
    return (jax.lax.fori_loop(0, 2, lambda i, x: gain * inner(x), x),)


def test_loops_hold_known_numbers_and_what_follows_from_them():
    x, rate, gain = jnp.asarray([[64.0, 128.0]]), jnp.full((1, 1), 0.5), jnp.asarray([[4.0, 2.0]])
    closed = jax.make_jaxpr(decayed)(x, rate, gain)
    changed = with_constants_in_loops(closed, [None, Known(rate[:, 0]), None])
    (outer,) = [eqn for eqn in changed.eqns if eqn.primitive.name == "scan"]
    (inner,) = [eqn for eqn in outer.params["jaxpr"].eqns if eqn.primitive.name == "scan"]
    for loop in (outer, inner):
        held = [eqn.primitive.name for eqn in loop.params["jaxpr"].eqns[:2]]
        assert held == ["constant", "sub"]
    # 64 / 2^6 * 4^2 and 128 / 2^6 * 2^2, for every rate that is given: the known one is used.
    lowered = jax.jit(jaxpr_as_fun(changed)).lower(x, 0 * rate, gain)
    assert "optimization_barrier" not in lowered.as_text()
    assert lowered.compile()(x, 0 * rate, gain)[0].tolist() == [[16.0, 8.0]]


def test_results_on_a_gpu_keep_the_layout_of_the_kernel(monkeypatch):
    """Otherwise XLA gives the layout of a batch on the first axis to the operations before."""
    monkeypatch.setenv("BRAX_NATIVE", "0")
    step = jax.jit(jax.vmap(batch_last(lambda x: x * x - 1)))
    lowered = step.trace(jnp.ones((3, 2))).lower(lowering_platforms=("cuda",)).as_text()
    assert "LayoutConstraint" in lowered
