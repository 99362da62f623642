"""The boundary under every transformation, against the same function without it.

Run as a script, on eight virtual devices, it checks the sharded cases.
"""

import os
import subprocess
import sys
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from physics_lab import FAST_COMPILE, PIPELINES

from brax import plugins
from brax.builder import ModelBuilder
from brax.kernels import tiling
from brax.kernels.batch_last import batch_last


class Spring(NamedTuple):
    """Parameters: two that are differentiable, one integer, one boolean."""

    stiffness: jax.Array
    mass: jax.Array
    order: jax.Array
    on: jax.Array


def kernel(spring, pos, vel, push):
    """Return a step of three springs on a line (2, 3, batch), with gathers and selections."""
    far = jnp.take(pos, jnp.array([2, 0, 1]), axis=1)
    weights = jnp.array([[1.0], [2.0], [0.5]])
    force = -spring.stiffness * weights * (pos - 0.5 * far) + jnp.where(spring.on, push, 0.0)
    vel = vel + 0.1 * jnp.tanh(force) * spring.order / spring.mass
    pos = pos + 0.1 * vel
    return {"pos": pos, "vel": vel, "below": (pos[0] < 0).astype(jnp.int32)}


def plain(fun):
    """Return the same function for one environment, by a batch of one."""

    def per_environment(*args):
        out = fun(*jax.tree.map(lambda x: jnp.asarray(x)[..., None], args))
        return jax.tree.map(lambda x: x[..., 0], out)

    return per_environment


BOUNDARY = batch_last(kernel, full=(1, 2))
PLAIN = plain(kernel)
N = 8
FIELDS: Any = (
    np.array([1, 2, 3], np.float32),
    np.float32(2.0),
    np.array([1, 2, 1], np.int32),
    np.array([True, False, True]),
)
SPRING = Spring(*FIELDS)
MANY_FIELDS: dict[str, Any] = {
    "stiffness": np.linspace(0.5, 2, 3 * N, dtype=np.float32).reshape(N, 3),
    "mass": np.linspace(1, 2, N, dtype=np.float32),
}
MANY = SPRING._replace(**MANY_FIELDS)
MANY_AXES: Any = Spring._make((0, 0, None, None))


def draw(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


X, V, U = draw(0, 2, 3), draw(1, 2, 3), draw(2, 3)
XS, VS, US = draw(3, N, 2, 3), draw(4, N, 2, 3), draw(5, N, 3)
XSS, VSS = draw(6, 2, N, 2, 3), draw(7, 2, N, 2, 3)
ROWS = (None, 0, 0, 0)


def loss(f):
    def of(spring, pos, vel, push):
        out = f(spring, pos, vel, push)
        return jnp.sum(out["pos"] ** 2) + jnp.sum(jnp.sin(out["vel"]))

    return of


def slopes(f):
    """Return derivatives by all arguments; those by integers or booleans are not compared."""
    grad = jax.grad(loss(f), argnums=(0, 1, 2, 3), allow_int=True)
    return lambda *args: [g for g in jax.tree.leaves(grad(*args)) if g.dtype != jax.dtypes.float0]


def position(f):
    return lambda x: f(SPRING, x, V, U)["pos"]


def rollout(f, wrap=lambda step: step):
    def run(spring, x, v, u):
        def body(carry, _):
            out = f(spring, *carry, u)
            return (out["pos"], out["vel"]), jnp.sum(out["pos"])

        return lax.scan(wrap(body), (x, v), None, length=3)

    return run


def rollout_loss(f, **wrap):
    def of(spring, x, v, u):
        (pos, vel), sums = rollout(f, **wrap)(spring, x, v, u)
        return jnp.sum(pos**2) + jnp.sum(vel) + jnp.sum(sums**2)

    return of


def summed(f):
    """Return the loss of a batch that shares the parameters."""
    return lambda *args: jnp.sum(jax.vmap(loss(f), ROWS)(*args))


def repeated(f, times):
    """Run a loop whose end depends on a value."""
    return lambda x: lax.while_loop(
        lambda c: c[1] < times, lambda c: (position(f)(c[0]), c[1] + 1), (x, 0)
    )[0]


def branched(f):
    return lambda x: lax.cond(x[0, 0] > 0, position(f), lambda x: 2.0 * x, x)


def along(f, x, d):
    return jax.jvp(f, (x,), (d,))


CASES = {
    "plain call": lambda f: f(SPRING, X, V, U),
    "vmap": lambda f: jax.vmap(f, ROWS)(SPRING, XS, VS, US),
    "vmap of one": lambda f: jax.vmap(f, ROWS)(SPRING, XS[:1], VS[:1], US[:1]),
    "vmap of parameters": lambda f: jax.vmap(f, (MANY_AXES, 0, 0, 0))(MANY, XS, VS, US),
    "vmap of parameters alone": lambda f: jax.vmap(f, (MANY_AXES, None, None, None))(MANY, X, V, U),
    "vmap of a narrow argument alone": lambda f: jax.vmap(f, (None, None, None, 0))(
        SPRING, X, V, US
    ),
    "vmap over other axes": lambda f: jax.vmap(f, (None, 1, 2, 0), out_axes=-1)(
        SPRING, np.moveaxis(XS, 0, 1), np.moveaxis(VS, 0, 2), US
    ),
    "nested vmap": lambda f: jax.vmap(jax.vmap(f, ROWS), (None, 0, 0, None))(SPRING, XSS, VSS, US),
    "nested vmap, each of its own": lambda f: jax.vmap(
        jax.vmap(f, (None, 0, None, None)), (None, None, 0, None)
    )(SPRING, XS, VS, U),
    "grad": lambda f: slopes(f)(SPRING, X, V, U),
    "vmap of grad": lambda f: jax.vmap(slopes(f), ROWS)(SPRING, XS, VS, US),
    "vmap of grad, many parameters": lambda f: jax.vmap(slopes(f), (MANY_AXES, 0, 0, 0))(
        MANY, XS, VS, US
    ),
    "grad of vmap, shared parameters": lambda f: [
        g
        for g in jax.tree.leaves(
            jax.grad(summed(f), (0, 1, 2, 3), allow_int=True)(SPRING, XS, VS, US)
        )
        if g.dtype != jax.dtypes.float0
    ],
    "vmap of grad of vmap": lambda f: jax.vmap(jax.grad(summed(f), (1, 2, 3)), (None, 0, 0, None))(
        SPRING, XSS, VSS, US
    ),
    "jvp": lambda f: along(position(f), X, V),
    "jvp of integers": lambda f: jax.jvp(lambda x: f(SPRING, x, V, U)["vel"], (X,), (V,)),
    "vmap of jvp": lambda f: jax.vmap(lambda x, d: along(position(f), x, d))(XS, VS),
    "vmap of tangents": lambda f: jax.vmap(lambda d: along(position(f), X, d))(VS),
    "jvp of vmap": lambda f: along(jax.vmap(position(f)), XS, VS),
    "jacfwd": lambda f: jax.jacfwd(position(f))(X),
    "jacrev": lambda f: jax.jacrev(position(f))(X),
    "vmap of jacrev": lambda f: jax.vmap(jax.jacrev(position(f)))(XS),
    "hessian": lambda f: jax.hessian(lambda x: loss(f)(SPRING, x, V, U))(X),
    "third derivative": lambda f: jax.grad(
        jax.grad(jax.grad(lambda s: loss(f)(SPRING, s * X, V, U)))
    )(0.3),
    "linearize": lambda f: jax.linearize(position(f), X)[1](V),
    "transpose of linearize": lambda f: jax.linear_transpose(jax.linearize(position(f), X)[1], X)(
        V
    ),
    "scan": lambda f: rollout(f)(SPRING, X, V, U),
    "vmap of scan": lambda f: jax.vmap(rollout(f), ROWS)(SPRING, XS, VS, US),
    "grad of scan": lambda f: jax.grad(rollout_loss(f), (1, 2, 3))(SPRING, X, V, U),
    "vmap of grad of scan": lambda f: jax.vmap(jax.grad(rollout_loss(f), (1, 2, 3)), ROWS)(
        SPRING, XS, VS, US
    ),
    "checkpoint": lambda f: jax.grad(rollout_loss(f, wrap=jax.checkpoint), (1, 2, 3))(
        SPRING, X, V, U
    ),
    "vmap of checkpoint": lambda f: jax.vmap(
        jax.grad(rollout_loss(f, wrap=jax.checkpoint), (1, 3)), ROWS
    )(SPRING, XS, VS, US),
    "while": lambda f: along(repeated(f, 3), X, V),
    "vmap of while": lambda f: jax.vmap(lambda x, n: along(repeated(f, n), x, x))(
        XS, jnp.arange(N)
    ),
    "cond": lambda f: jax.grad(lambda x: jnp.sum(branched(f)(x)))(X),
    "vmap of cond": lambda f: jax.vmap(jax.grad(lambda x: jnp.sum(branched(f)(x))))(XS),
    "named axis": lambda f: jax.vmap(lambda x: lax.pmean(position(f)(x), "i"), axis_name="i")(XS),
}


def compare(case):
    """Return the greatest difference between the function behind the boundary and the plain one."""
    # float32; a sum over a batch rounds in another order. 2e-7
    got, want = jax.jit(lambda: case(BOUNDARY))(), jax.jit(lambda: case(PLAIN))()
    chex.assert_trees_all_equal_structs(got, want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_boundary_is_closed_under(name):
    compare(CASES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in CASES if "vmap" in n])
def test_a_large_batch_runs_in_tiles(name, monkeypatch):
    # What XLA compiles. Three tiles for eight environments: the last is filled up.
    monkeypatch.setenv("BRAX_NATIVE", "0")
    monkeypatch.setattr(tiling, "MAX_TILE_SIZE", 3)
    monkeypatch.setattr(tiling, "MIN_TILE_LANES", 1)
    compare(CASES[name])


def test_function_sees_one_trailing_axis(monkeypatch):
    # Shared arguments have size one, those that are asked for in full the size of the batch.
    monkeypatch.setenv("BRAX_NATIVE", "0")
    seen = []

    def fun(a, b, c):
        seen.append((a.shape, b.shape, c.shape))
        return b + c

    f = batch_last(fun, full=(1,))
    nested = jax.vmap(jax.vmap(f, (None, None, 0)), (None, None, 0))
    out = nested(jnp.ones(3), jnp.zeros(2), jnp.ones((4, 5, 2)))
    assert out.shape == (4, 5, 2)
    assert seen[-1] == ((3, 1), (2, 20), (2, 20))


def test_without_jit_it_gives_the_same():
    np.testing.assert_allclose(
        BOUNDARY(SPRING, X, V, U)["pos"], PLAIN(SPRING, X, V, U)["pos"], rtol=1e-6
    )


@pytest.mark.parametrize("compiled", [jax.jit, lambda fun: fun])
def test_a_batch_of_no_environments_stays_empty(compiled):
    """With an operand that all share, whose last axis has size one, and with nested batches."""
    f = jax.vmap(batch_last(lambda m, x: m * x), (None, 0))
    m, none = jnp.arange(5.0), jnp.ones((0, 5))
    assert compiled(f)(m, none).shape == (0, 5)
    assert compiled(jax.vmap(f, (None, 0)))(m, jnp.ones((3, 0, 5))).shape == (3, 0, 5)
    assert compiled(jax.vmap(f, (0, None)))(jnp.ones((3, 5)), none).shape == (3, 0, 5)
    assert compiled(jax.vmap(f, (0, None)))(none, jnp.ones((4, 5))).shape == (0, 4, 5)
    change = compiled(jax.grad(lambda m: f(m, none).sum()))(m)
    np.testing.assert_array_equal(change, np.zeros(5))


@pytest.mark.parametrize("compiled", [jax.jit, lambda fun: fun])
def test_the_structure_of_results_is_that_of_the_operands_shapes(compiled):
    """Also where kernels of other shapes were traced in between."""
    by_size = batch_last(lambda x: {f"size {len(x)}": x * 2.0, "sums": [sum(x)] * len(x)})
    f = compiled(jax.vmap(jax.grad(lambda x: jnp.sum(by_size(x)[f"size {len(x)}"] * x))))
    for size in (3, 2, 3):
        found = compiled(jax.vmap(by_size))(jnp.ones((4, size)))
        np.testing.assert_array_equal(found[f"size {size}"], np.full((4, size), 2.0))
        assert [x.shape for x in found["sums"]] == [(4,)] * size
        np.testing.assert_array_equal(f(jnp.ones((4, size))), np.full((4, size), 4.0))


@pytest.mark.parametrize("native", ["0", "1"])
@pytest.mark.parametrize("first", [False, True])
def test_a_kernel_has_the_precision_that_jax_is_set_to(first, native, monkeypatch):
    """In single precision, a third is wrong by 1e-8."""
    monkeypatch.setenv("BRAX_NATIVE", native)
    f = batch_last(lambda x: x.astype(float) + jnp.arange(1.0)[:, None] + 1 / jnp.arange(3.0, 4.0))
    whole = np.ones((4, 1), np.int32)
    for x64 in (first, not first, first):
        with jax.enable_x64(x64):
            run = jax.jit(jax.vmap(f)).trace(whole)
            found = run.lower().compile()(whole)
            change = jax.vmap(jax.grad(lambda x: f(x).sum()))(jnp.ones((4, 1)))
        dtype = np.float64 if x64 else np.float32
        assert found.dtype == change.dtype == dtype
        assert (abs(np.float64(found) - 4 / 3).max() < 1e-12) == x64
        # The settings at the time of the trace count, not those at the time of the lowering.
        late = run.lower().compile()(whole)
        assert (late.dtype, late.tolist()) == (dtype, found.tolist())


def test_a_kernel_has_the_rules_of_promotion_that_jax_is_set_to():
    f = jax.vmap(batch_last(lambda x, y: x + y))
    x, y = jnp.ones((4, 2)), jnp.ones((4, 2), jnp.int32)
    assert f(x, y).dtype == jnp.float32
    # A ValueError of its own class, which the oldest JAX keeps to itself.
    with jax.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="promotion"):
        f(x, y)


@pytest.mark.slow
def test_a_gpu_multiplies_in_full_precision(monkeypatch):
    """TF32, which XLA lets a GPU round factors to by default, has ten bits of mantissa."""
    monkeypatch.setenv("BRAX_NATIVE", "0")
    multiply = batch_last(lambda a, b: jnp.einsum("ijb,jkb->ikb", a, b))

    def gradient(a, b):
        return jax.grad(lambda a: jnp.sum(multiply(a, b) ** 2))(a)

    a = jnp.ones((4, 3, 3))
    lowered = jax.jit(jax.vmap(gradient)).trace(a, a).lower(lowering_platforms=("cuda",))
    products = [line for line in lowered.as_text().splitlines() if "dot_general" in line]
    # At least those of the function and of its transposed derivative.
    assert len(products) >= 2
    assert all("precision = [HIGHEST, HIGHEST]" in line for line in products)


@pytest.mark.slow
def test_boundary_on_eight_devices():
    done = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "JAX_NUM_CPU_DEVICES": "8", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == [str(len(sharded_cases())), "agree"]


def sharded_cases():
    """Cases on a mesh of all devices, the batch split over it."""
    devices = np.array(jax.devices())
    mesh = Mesh(devices, ("e",))
    named = Mesh(devices, ("e",), axis_types=(AxisType.Explicit,))
    e = P("e")

    def sharded(fun, *args, on=mesh):
        rows = [jax.device_put(x, NamedSharding(on, e)) for x in args]
        with jax.set_mesh(on):
            return jax.jit(fun)(*rows)

    def mapped(fun, specs, out, *args):
        return jax.jit(jax.shard_map(fun, mesh=mesh, in_specs=specs, out_specs=out))(*args)

    def shared(f):
        def total(k, x, v, u):
            return summed(f)(SPRING._replace(stiffness=k), x, v, u)

        return total

    grads = lambda f: jax.vmap(  # noqa: E731
        jax.grad(rollout_loss(f), (1, 2, 3)), ROWS
    )
    return {
        "sharded jit": lambda f: sharded(lambda *a: jax.vmap(f, ROWS)(SPRING, *a), XS, VS, US),
        "sharded grad": lambda f: sharded(lambda *a: grads(f)(SPRING, *a), XS, VS, US),
        "sharded grad, shared": lambda f: sharded(
            lambda *a: jax.grad(shared(f))(jnp.asarray(SPRING.stiffness), *a), XS, VS, US
        ),
        "explicit mesh": lambda f: sharded(
            lambda *a: jax.vmap(f, ROWS)(SPRING, *a), XS, VS, US, on=named
        ),
        "explicit mesh, grad": lambda f: sharded(
            lambda *a: grads(f)(SPRING, *a), XS, VS, US, on=named
        ),
        "shard_map": lambda f: mapped(
            lambda *a: jax.vmap(f, ROWS)(SPRING, *a), (e, e, e), e, XS, VS, US
        ),
        "shard_map, grad": lambda f: mapped(
            lambda *a: grads(f)(SPRING, *a), (e, e, e), e, XS, VS, US
        ),
        "shard_map, jvp": lambda f: mapped(
            jax.vmap(lambda x, d: along(position(f), x, d)), (e, e), e, XS, VS
        ),
        "shard_map, shared": lambda f: mapped(
            jax.grad(lambda k, *a: lax.psum(shared(f)(k, *a), "e")),
            (P(), e, e, e),
            P(),
            jnp.asarray(SPRING.stiffness),
            XS,
            VS,
            US,
        ),
    }


def sharded_batches_stay():
    """Check that a split batch stays on its devices, whatever the rank of the shared operand."""
    mesh = Mesh(np.array(jax.devices()), ("e",))
    scaled = batch_last(lambda m, x: jnp.sin(x) * m.sum(tuple(range(m.ndim - 1))))
    rows = jax.device_put(US, NamedSharding(mesh, P("e")))
    for rank in range(5):
        shared = jax.device_put(jnp.ones((2,) * rank), NamedSharding(mesh, P()))
        run = jax.jit(jax.vmap(scaled, (None, 0))).lower(shared, rows).compile()
        assert "all-gather" not in str(run.as_text()), rank
        np.testing.assert_allclose(run(shared, rows), 2**rank * np.sin(US), rtol=1e-6)


def main():
    assert jax.device_count() == N, jax.devices()
    cases = sharded_cases()
    sharded_batches_stay()
    agree(cases)
    models_agree()
    os.environ["BRAX_NATIVE"] = "0"
    for tile in (1, 512):
        tiling.MAX_TILE_SIZE = tile
        jax.clear_caches()
        agree(cases)
    del os.environ["BRAX_NATIVE"]
    print(len(cases), "agree")


def models_agree():
    """Step a limb in a closed loop, a motor and a ball on the floor, on an `Explicit` mesh."""
    model = ModelBuilder()
    for i in range(2):
        parent = f"link{i - 1}" if i else "world"
        model.add_body(
            f"link{i}", parent, pos=(0, 0, 2 if not i else -0.5), mass=1.0, inertia=(1, 1, 1)
        )
        name = model.add_joint(f"link{i}", "hinge", axis=(0, 1, 0), range=(-1, 1), frictionloss=0.1)
    model.add_actuator(name)
    model.add_connect("link1", anchor=(0, 0, -0.5))
    model.add_body("ball", pos=(1, 0, 0.1), mass=1.0, inertia=(1, 1, 1))
    model.add_joint("ball", "free")
    model.add_geom("ball", "sphere", size=(0.1,))
    model.add_geom("world", "plane")
    sys = model.build()
    mesh = Mesh(np.array(jax.devices()), ("e",), axis_types=(AxisType.Explicit,))
    q, qd, act = np.tile(sys.init_q, (N, 1)), np.zeros((N, sys.qd_size())), np.ones((N, 1))
    qd[:, :2] = np.random.default_rng(0).normal(size=(N, 2))
    for pipeline in PIPELINES:
        kind = plugins.get("pipeline", pipeline)

        def run(q, qd, act, kind=kind):
            return kind.step(sys, kind.init(sys, q, qd), act, 2).q

        want = jax.jit(jax.vmap(run), compiler_options=FAST_COMPILE)(q, qd, act)
        for spec in (P("e"), P()) if pipeline == "spring" else (P("e"),):
            with jax.set_mesh(mesh):
                given = [jax.device_put(x, NamedSharding(mesh, spec)) for x in (q, qd, act)]
                got = jax.jit(jax.vmap(run), compiler_options=FAST_COMPILE)(*given)
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-6)


def agree(cases):
    for name, case in cases.items():
        got, want = case(BOUNDARY), case(PLAIN)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(
                np.asarray(a), np.asarray(b), rtol=2e-5, atol=2e-5, err_msg=name
            )


if __name__ == "__main__":
    main()
