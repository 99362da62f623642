"""The primitive `where_needed`, beside the selection that it stands for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.test_util import check_grads
from native_lab import translated

from brax.kernels.codegen import jax_internals
from brax.kernels.codegen.call import trace
from brax.kernels.skip import where_needed

pytestmark = pytest.mark.usefixtures("code_generator")

RNG = np.random.RandomState(0)
NEEDED = RNG.rand(1, 6) > 0.5
A, B, SCALE = (jnp.asarray(RNG.uniform(0.5, 2.0, (3, 6)), jnp.float32) for _ in range(3))
COUNT = jnp.arange(6)[None]


def work(tree):
    """Return new values of two arrays and a count, of which one belongs to the other."""
    a, b, n = tree
    return a * b * SCALE, jnp.sin(a), n + 1


def skipped(needed, a, b, n):
    return where_needed(needed, work, (a, b, n))


def selected(needed, a, b, n):
    return tuple(
        jnp.where(needed, x, old) for x, old in zip(work((a, b, n)), (a, b, n), strict=True)
    )


def assert_equal(*trees):
    jax.tree.map(np.testing.assert_array_equal, *trees)


@pytest.mark.parametrize("make", [lambda f: f, jax.jit])
def test_it_is_a_selection(make):
    assert_equal(*(make(f)(NEEDED, A, B, COUNT) for f in (skipped, selected)))


def test_its_operands_may_be_mapped():
    given = NEEDED, jnp.stack([A, B]), B, jnp.stack([COUNT, COUNT + 5])
    assert_equal(*(jax.vmap(f, (None, 0, None, 0))(*given) for f in (skipped, selected)))


def test_its_truth_values_may_be_mapped_too():
    needed = jnp.stack([NEEDED, ~NEEDED])
    both = [jax.vmap(f, (0, None, None, None))(needed, A, B, COUNT) for f in (skipped, selected)]
    assert_equal(*both)


def test_its_derivatives_are_those_of_the_selection():
    def of(f):
        return lambda a, b: f(NEEDED, a, b, COUNT)[:2]

    assert_equal(*(jax.jvp(of(f), (A, B), (B, A)) for f in (skipped, selected)))
    losses = [lambda a, b, f=f: sum(x.sum() for x in of(f)(a, b)) for f in (skipped, selected)]
    assert_equal(*(jax.jit(jax.grad(loss, (0, 1)))(A, B) for loss in losses))
    check_grads(of(skipped), (A, B), 2, ["fwd", "rev"], atol=1e-2, rtol=1e-2)


def test_a_result_that_does_not_change_has_a_tangent_that_is_zero_by_its_type():
    """Its derivative leaves nothing to compute."""
    jaxpr = jax.make_jaxpr(lambda t: jax.jvp(lambda b: skipped(NEEDED, A, b, COUNT)[0], (B,), (t,)))
    assert "cos" not in str(jaxpr(A))
    whole = jax.jvp(lambda a: skipped(NEEDED, a, B, COUNT), (A,), (B,))[1]
    assert whole[2].dtype == jax.dtypes.float0


def test_a_linear_one_is_transposed():
    def linear(x):
        return where_needed(jnp.asarray(NEEDED), lambda t: (t[1] * SCALE, t[0]), (x, 2.0 * x))

    found = jax.linear_transpose(linear, A)((A, B))[0]
    # Row by row: (x1 scale, x0) where it is needed, and (x, 2 x) elsewhere.
    right = jnp.where(NEEDED, 2.0 * A * SCALE + B, A + 2.0 * B)
    np.testing.assert_allclose(found, right, rtol=1e-6)


def test_a_result_that_nobody_uses_is_dropped_and_the_work_is_still_skipped():
    """The new value of the first reads the old one of the second, which is no result any more."""
    args = [jnp.asarray(NEEDED), A, B, COUNT]
    shapes = [(x.shape[:-1], x.dtype) for x in args]
    closed, _ = jax_internals.needed(trace(lambda *x: skipped_without_scale(*x)[:1], shapes))
    (eqn,) = [e for e in closed.eqns if e.primitive.name == "where_needed"]
    assert len(eqn.outvars) == 1 and len(eqn.invars) == 3
    assert [eqn.invars[i] for i in eqn.params["old"]] == [closed.jaxpr.invars[1]]
    assert "sin" not in str(closed)
    (found,) = translated(lambda *x: skipped_without_scale(*x)[:1], args)
    assert_equal(found, jnp.where(NEEDED, A * B, A))


def skipped_without_scale(needed, a, b, n):
    return where_needed(needed, lambda t: (t[0] * t[1], jnp.sin(t[0]), t[2] + 1), (a, b, n))


def test_a_function_that_has_its_name_is_an_ordinary_function():
    def of_user(needed, a):
        return lax.cumsum(a, 0) + needed

    of_user.__name__ = "where_needed"
    args = [jnp.asarray(NEEDED), A]
    (found,) = translated(lambda *x: (jax.jit(of_user)(*x),), args)
    np.testing.assert_allclose(found, np.cumsum(A, 0) + NEEDED, rtol=1e-6)
