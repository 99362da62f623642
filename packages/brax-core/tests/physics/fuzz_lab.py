"""Random programs of arrays with the batch last, whose results are defined bit by bit.

A program draws its operations from a seed. Which ones it draws depends on shapes and types only, so
that the function is the same for arrays and for tracers. What LLVM may contract is exact: products
and sums are of small whole numbers. Numbers that were rounded are divided, compared, moved and so
on. Elementary functions come last: on arrays they are computed in double precision.
"""

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from brax.kernels.skip import where_needed

BATCH = 5
SHAPES = {"row": (1, BATCH), "vector": (4, BATCH), "matrix": (3, 4, BATCH)}
BOUND = 64
STEPS = 8


def operands(seed):
    """Return whole numbers, fractions and integers of each shape."""
    rng = np.random.RandomState(seed)
    given = []
    for shape in SHAPES.values():
        given.append(rng.randint(-8, 9, shape).astype(np.float32))
        special = rng.choice([np.nan, np.inf, -np.inf, 0.0, 0.0], shape)
        usual = rng.uniform(-3, 3, shape)
        given.append(np.where(rng.rand(*shape) < 0.1, special, usual).astype(np.float32))
        given.append(rng.randint(-40, 41, shape).astype(np.int32))
    return given


def one_at_least(x):
    """Replace numbers whose neighbour may be denormal: some of XLA's operations flush those."""
    return jnp.where(lax.abs(x) < 1, np.float32(1), x)


def no_nan(x):
    """Replace NaN by one: IEEE 754 leaves the sign of a NaN that was computed open."""
    return lax.select(x == x, x, jnp.ones_like(x))


def converted(x, dtype):
    """Return numbers of another type; NumPy would convert infinity as the processor does."""
    return lax.convert_element_type(jnp.asarray(x), dtype)


def is_traced(x):
    return isinstance(x, jax.core.Tracer)


def whole(x):
    """Bring the result of exact arithmetic back to small numbers."""
    return lax.clamp(np.float32(-BOUND), x, np.float32(BOUND))


class Program:
    """One program while it runs: a pool of arrays by their kind."""

    def __init__(self, seed, given):
        self.rng = random.Random(seed)
        self.pool: dict[str, list[Any]] = {
            "whole": [],
            "rounded": [],
            "int": [],
            "flag": [],
            "near": [],
        }
        for i, x in enumerate(given):
            self.pool[("whole", "rounded", "int")[i % 3]].append(x)
        self.pool["flag"] += [x > 0 for x in self.pool["int"]]

    def pick(self, kind, like=None, shape=None):
        """Return an array of a kind, of some shape or that of another."""
        axes = like.shape if like is not None else SHAPES[shape] if shape else None
        found = [x for x in self.pool[kind] if axes is None or x.shape[:-1] == axes[:-1]]
        return self.rng.choice(found[-6:])

    def number(self, **how):
        """Return floats, whole or rounded."""
        return self.pick(self.rng.choice(["whole", "rounded"]), **how)

    def run(self):
        for _ in range(STEPS):
            self.rng.choice(STEPS_OF)(self)
        near(self)
        return [x for kind in self.pool.values() for x in kind[-4:]]


def exact(p):
    """Multiply and add."""
    x = p.pick("whole")
    y, z = p.pick("whole", x), p.pick("whole", x)
    f = p.rng.choice([
        lambda: x + y, lambda: x - y, lambda: x * y, lambda: x * y + z, lambda: x - y * z,
        lambda: x * y - z, lambda: -x, lambda: lax.square(x), lambda: x * y + z * x,
        lambda: lax.integer_pow(lax.sign(x), 3) * z,
    ])  # fmt: skip
    p.pool["whole"].append(whole(f()))


def rounded(p):
    """Compute what is rounded once, or not at all."""
    x = p.number()
    y = p.number(like=x)
    f = p.rng.choice([
        lambda: x / y, lambda: lax.sqrt(lax.abs(x)), lambda: lax.max(x, y), lambda: lax.min(x, y),
        lambda: -x, lambda: lax.abs(x), lambda: lax.sign(x), lambda: lax.floor(x),
        lambda: lax.ceil(x), lambda: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
        lambda: lax.round(x), lambda: lax.nextafter(one_at_least(x), y),
        lambda: lax.reduce_precision(x, 8, 7),
        lambda: lax.clamp(x, y, np.float32(2)), lambda: lax.rem(x, y),
    ])  # fmt: skip
    p.pool["rounded"].append(f())


def integers(p):
    x = p.pick("int")
    y = p.pick("int", x)
    names = (
        *("add", "sub", "mul", "max", "min", "div", "rem", "bitwise_and", "bitwise_or"),
        *("bitwise_xor", "shift_left", "shift_right_logical", "shift_right_arithmetic"),
    )
    one = "bitwise_not", "neg", "abs", "sign", "clz", "population_count"
    name = p.rng.choice(names + one)
    p.pool["int"].append(getattr(lax, name)(*((x,) if name in one else (x, y))))


def conversions(p):
    f = p.rng.choice([
        lambda: ("int", converted(p.number(), np.int32)),
        lambda: ("int", lax.bitcast_convert_type(no_nan(p.number()), np.int32)),
        lambda: ("int", converted(p.pick("flag"), np.int32)),
        lambda: ("whole", whole(converted(p.pick("int"), np.float32))),
        lambda: ("whole", converted(p.pick("flag"), np.float32)),
        lambda: ("flag", p.pick("int") != 0),
        lambda: ("flag", lax.is_finite(p.number())),
    ])  # fmt: skip
    kind, x = f()
    p.pool[kind].append(x)


def comparisons(p):
    x = p.rng.choice([p.number(), p.pick("int")])
    y = p.pick("int", x) if x.dtype == np.int32 else p.number(like=x)
    p.pool["flag"].append(getattr(lax, p.rng.choice(["lt", "le", "gt", "ge", "eq", "ne"]))(x, y))


def logic(p):
    x = p.pick("flag")
    y = p.pick("flag", x)
    f = p.rng.choice([lambda: x & y, lambda: x | y, lambda: x ^ y, lambda: ~x])
    p.pool["flag"].append(f())


def choices(p):
    kind = p.rng.choice(["whole", "rounded", "int", "flag"])
    x = p.pick(kind)
    n, given = numbers(p.pick("flag", x), x, p.pick(kind, x))
    p.pool[kind].append(n.where(*given))


def reductions(p):
    """Reduce, sort or accumulate along one axis of a matrix."""
    axis = p.rng.randrange(2)
    kind = p.rng.choice(["whole", "rounded", "int", "flag"])
    x = p.pick(kind, shape="matrix")
    names = {
        "whole": ("reduce_sum", "reduce_max", "cumsum", "cummax"),
        "rounded": ("reduce_max", "reduce_min", "argmax", "argmin", "cummin", "sort"),
        "int": ("reduce_sum", "reduce_prod", "reduce_min", "argmax", "cumprod", "sort"),
        "flag": ("reduce_and", "reduce_or"),
    }[kind]
    name = p.rng.choice(names)
    if name == "sort":
        out = lax.sort(x, dimension=axis)
    elif name.startswith("cum"):
        out = getattr(lax, name)(x, axis=axis, reverse=p.rng.random() < 0.5)
    elif name.startswith("arg"):
        kind, out = "int", getattr(lax, name)(x, axis, np.int32)
    else:
        out = getattr(lax, name)(x, (axis,))
    if kind == "whole":
        # The sign of a sum that is zero is not defined: XLA's begin with zero, others do not.
        out = whole(jnp.where(out == 0, np.float32(0), out))
    # The row of a column's reduction has three elements: one is repeated.
    if out.ndim == 2 and axis:
        out = lax.concatenate([out, out[:1]], 0)
    p.pool[kind].append(out)


def movements(p):
    kind = p.rng.choice(["whole", "rounded", "int", "flag"])
    x = p.pick(kind, shape="matrix")
    v, r = p.pick(kind, shape="vector"), p.pick(kind, shape="row")
    i = p.rng.randrange(3)
    n, (x, v, r) = numbers(x, v, r)
    f = p.rng.choice([
        lambda: n.flip(x, i % 2), lambda: x[i], lambda: x[i, 1:2],
        lambda: n.concatenate([v[None], x[1:]], 0), lambda: n.stack([v, v[::-1], v]),
        lambda: n.concatenate([r, v[i : i + 1], v[2:]], 0), lambda: n.tile(r, (4, 1)),
        lambda: n.pad(v[:2], ((1, 1), (0, 0)), constant_values=1),
        lambda: x.transpose(1, 0, 2).reshape(3, 4, x.shape[-1]),
    ])  # fmt: skip
    p.pool[kind].append(f())


def numbers(*arrays):
    """Return NumPy or its twin in JAX, and arrays for it: to move numbers, XLA is not needed."""
    if is_traced(arrays[0]):
        return jnp, arrays
    return np, [np.asarray(x) for x in arrays]


def by_environment(f, *args):
    return jax.vmap(f, in_axes=-1, out_axes=-1)(*args)


def indices(p):
    """Read and write at indices of each environment."""
    kind = p.rng.choice(["whole", "rounded", "int"])
    x, v = p.pick(kind, shape="matrix"), p.pick(kind, shape="vector")
    i = p.pick("int", shape="vector")
    mode = p.rng.choice(["clip", "fill", "promise_in_bounds"])
    near_ = lax.rem(lax.abs(i), np.int32(6)) - 1 if mode != "promise_in_bounds" else (i & 3)
    f = p.rng.choice([
        lambda v, x, i: v.at[i].get(mode=mode),
        lambda v, x, i: x.at[:, i].get(mode=mode),
        lambda v, x, i: lax.dynamic_slice(v, (i[1],), (1,)),
        lambda v, x, i: lax.dynamic_update_slice(v, v[:2], (i[2],)),
        lambda v, x, i: v.at[i].set(v[::-1], mode="clip" if mode == "fill" else mode),
        lambda v, x, i: v.at[i[:2]].max(v[2:]), lambda v, x, i: x.at[i[0], i[1]].min(v[0]),
    ])  # fmt: skip
    p.pool[kind].append(by_environment(f, v, x, near_))


def loops(p):
    """Run a loop of known length; on arrays Python does, so that nothing is compiled."""
    x, v = p.pick("whole", shape="matrix"), p.pick("whole", shape="vector")
    u, reverse = p.pick("whole", shape="vector"), p.rng.random() < 0.5

    def body(carry, row):
        return whole(carry * row + u), lax.max(carry, row)

    kind = p.rng.randrange(3)
    with jax.disable_jit(not is_traced(v)):
        if kind == 0:
            last, rows = lax.scan(body, v, x, reverse=reverse)
            p.pool["whole"].append(rows)
        elif kind == 1:
            last = lax.fori_loop(0, 3, lambda i, c: whole(c + x[i] * u), v)
        else:
            last = lax.fori_loop(
                0, 4, lambda i, c: c.at[i].set(whole(c[3 - i] - u[i])), jnp.asarray(v)
            )
    p.pool["whole"].append(last)


def conditionals(p):
    """Branch, or loop to an end, by environment."""
    v, i = p.pick("whole", shape="vector"), p.pick("int", shape="vector")
    kind = p.rng.randrange(3)
    first, last, end = i[0] > 0, lax.rem(i[1], np.int32(4)) - 1, i[0] & 3
    plus = whole(v + v[0])
    squares = whole(v * v)

    def until(v, end):
        return lax.while_loop(
            lambda s: s[0] < end, lambda s: (s[0] + 1, whole(s[1] * 2 - v)), (np.int32(0), v)
        )[1]

    if is_traced(v):
        out = by_environment(
            lambda v, first, last, end, plus, squares: (
                lax.cond(first, lambda x: plus, lambda x: x[::-1], v),
                lax.switch(last, [lambda x: -x, lambda x: squares, lax.abs], v),
                until(v, end),
            )[kind],
            *(v, first, last, end, plus, squares),
        )
    elif kind == 0:
        out = jnp.where(first, plus, v[::-1])
    elif kind == 1:
        out = jnp.where(last <= 0, -v, jnp.where(last == 1, squares, lax.abs(v)))
    else:
        out = v
        for k in range(3):
            out = jnp.where(k < end, whole(out * 2 - v), out)
    p.pool["whole"].append(out)


def skipping(p):
    """Skip work that only some environments need."""
    needed, v = p.pick("flag", shape="row"), p.pick("whole", shape="vector")
    x = p.pick("rounded", shape="matrix")

    def work(tree):
        return whole(tree[0] * v + tree[0]), lax.max(tree[1], x[::-1])

    if is_traced(v):
        new = where_needed(needed, work, (v, x))
    else:
        first, second = work((v, x))
        new = jnp.where(needed, first, v), jnp.where(needed, second, x)
    p.pool["whole"].append(new[0])
    p.pool["rounded"].append(new[1])


FUNCTIONS = ("sin", "cos", "exp", "tanh", "arctan", "log1p", "expm1", "sinh", "cbrt", "tan")


def near(p):
    """Call elementary functions; those of arrays have the error of double precision."""
    for name in p.rng.sample(FUNCTIONS, 2):
        x = whole(p.number(shape="vector"))
        if is_traced(x):
            p.pool["near"].append(getattr(jnp, name)(x))
        else:
            with np.errstate(all="ignore"):
                out = getattr(np, name)(np.asarray(x, np.float64)).astype(np.float32)
            p.pool["near"].append(out)


STEPS_OF = (
    *(exact, exact, exact, rounded, rounded, rounded, integers, integers, conversions),
    *(comparisons, logic, choices, choices, reductions, reductions, movements, movements),
    *(indices, indices, loops, conditionals, skipping),
)


def difference(mine, right, near):
    """Return the first difference of two arrays in words, or nothing."""
    if mine.dtype != right.dtype or mine.shape != right.shape:
        return f"{mine.dtype}{mine.shape} is not {right.dtype}{right.shape}"
    if right.dtype.kind != "f":
        wrong = mine != right
    else:
        a, b = mine.view(np.int32).astype(np.int64), right.view(np.int32).astype(np.int64)
        a, b = (np.where(x < 0, -(2**31) - x, x) if near else x for x in (a, b))
        wrong = (abs(a - b) > (2 if near else 0)) & ~(np.isnan(mine) & np.isnan(right))
    if not wrong.any():
        return ""
    at = tuple(int(i[0]) for i in np.nonzero(wrong))
    return f"{mine[at]!r} is not {right[at]!r} at {at}"
