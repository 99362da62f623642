"""A policy as a list of array operations, found by tracing it.

The traced program handles one observation. Every value that depends on the observation gets a
leading batch axis, so the result accepts batches of any size. All other values are constants.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from brax.errors import ConfigError
from brax.io._arguments import kind
from brax.kernels.fusion_barrier import BARRIER_NAME
from brax.plugins.outputs.policy import act, first_memory

ELEMENTWISE = frozenset(
    (
        "abs",
        "add",
        "and",
        "ceil",
        "cos",
        "div",
        "eq",
        "exp",
        "expm1",
        "floor",
        "ge",
        "gt",
        "le",
        "log",
        "log1p",
        "logistic",
        "lt",
        "max",
        "min",
        "mul",
        "ne",
        "neg",
        "not",
        "or",
        "pow",
        "rsqrt",
        "sign",
        "sin",
        "sqrt",
        "square",
        "sub",
        "tanh",
    )
)
"""Elementwise operations, by their names in JAX."""

_IDENTITY_PRIMITIVES = ("copy", "copy_p", "stop_gradient", "optimization_barrier", BARRIER_NAME)
_REDUCTIONS = {"reduce_sum": "sum", "reduce_max": "max_over", "reduce_min": "min_over"}


class Operation(NamedTuple):
    """One array operation."""

    op: str
    """`ELEMENTWISE`, or `where`, `cast`, `matmul`, `reshape`, `expand`, `transpose`, `slice`,
    `concat`, `sum`, `max_over`, `min_over`."""
    inputs: tuple[str, ...]
    output: str
    setting: Any
    """Static argument: a shape without the batch axis, axes that count it, or a dtype."""


class Graph(NamedTuple):
    """A policy as operations from observations to an action."""

    inputs: dict[str, tuple[int, ...]]
    """Shape, without the batch axis, of each observation that the policy reads, by name."""
    constants: dict[str, np.ndarray]
    """The parameters and other constants."""
    nodes: list[Operation]
    output: str
    action_size: int
    memory: str = ""
    """The memory after the step, for a policy with memory, whose input `memory` is that before."""
    memory_size: int = 0


class _Value(NamedTuple):
    """A value in the traced program: a name if it depends on the observation, else a constant."""

    name: str
    shape: tuple[int, ...]
    number: Any = None


def _shape(size: object) -> tuple[int, ...]:
    """Return the shape of an observation from its size or shape."""
    shape = (size,) if isinstance(size, int) else size
    if isinstance(shape, list | tuple) and all(type(n) is int and n >= 0 for n in shape):
        return tuple(shape)
    raise ConfigError(
        "observation_size must be a number of features, a shape, or a dictionary of them, got "
        f"{size!r:.60}"
    )


def trace(policy: Callable[..., object], observation_size: object) -> Graph:
    """Return the operations of a policy.

    Args:
        policy: `policy(observation, key) -> (action, extras)`, deterministic; or one with memory.
        observation_size: number of features, or a dictionary of them or of shapes.

    Raises:
        ConfigError: if the policy samples its actions, or has an unsupported operation.
    """
    if not callable(policy) or isinstance(policy, type):
        raise ConfigError(f"policy must be a function policy(observation, key), got {kind(policy)}")
    sizes = observation_size if isinstance(observation_size, Mapping) else {"": observation_size}
    shapes = {key: _shape(size) for key, size in sizes.items()}
    structs = {key: jax.ShapeDtypeStruct(shape, jnp.float32) for key, shape in shapes.items()}
    example = structs if isinstance(observation_size, Mapping) else structs[""]

    before = first_memory(policy)
    closed = jax.make_jaxpr(functools.partial(act, policy))(example, jax.random.key(0), before)
    names = [f"observation_{key}" if key else "observation" for key in sorted(shapes)]
    inputs = [_Value(n, shapes[key]) for n, key in zip(names, sorted(shapes), strict=True)]
    builder = _Builder()
    remembered = [_Value("memory", x.shape) for x in before]
    action, *after = builder.run(closed, [*inputs, _Value("key", ()), *remembered])
    if action.number is not None or len(action.shape) != 1:
        raise ConfigError("the policy's action is not a vector that depends on its observation")
    return builder.graph({value.name: value.shape for value in inputs}, action, after)


class _Builder:
    """Interprets a jaxpr and records the operations that depend on its inputs."""

    def __init__(self) -> None:
        self._nodes: list[Operation] = []
        self._constants: dict[str, np.ndarray] = {}
        self._joined: dict[str, tuple[int, list[_Value]]] = {}
        """Axis and parts of each concatenation, by the name of its result."""

    def graph(
        self, inputs: dict[str, tuple[int, ...]], action: _Value, memory: Sequence[_Value]
    ) -> Graph:
        """Return the operations that the action needs, and the memory after it, if there is one."""
        needed, nodes = {value.name for value in (action, *memory)}, []
        # The operations are in topological order, so one pass from the end finds all that are
        # needed.
        for node in reversed(self._nodes):
            if node.output in needed:
                nodes.append(node)
                needed.update(node.inputs)
        # A deterministic policy takes a key and ignores it, so this finds the ones that sample.
        if "key" in needed:
            raise ConfigError("the policy samples its actions: export the deterministic one")
        unsupported = [node.op[1:] for node in nodes if node.op.startswith("?")]
        if "conv_general_dilated" in unsupported:
            raise ConfigError("a policy that reads images, by convolutions, cannot be exported")
        if unsupported:
            raise ConfigError(
                f"the policy has an operation that is not supported: {unsupported[0]}"
            )
        return Graph(
            {name: shape for name, shape in inputs.items() if name in needed},
            {name: value for name, value in self._constants.items() if name in needed},
            nodes[::-1],
            action.name,
            action.shape[0],
            "".join(value.name for value in memory),
            sum(value.shape[0] for value in memory),
        )

    def run(self, closed: ClosedJaxpr, args: list[_Value]) -> list[_Value]:
        """Interpret a jaxpr and those that it calls, and return its outputs."""
        jaxpr = closed.jaxpr
        known = dict(zip(jaxpr.invars, args, strict=True))
        known |= {
            var: _Value("", np.shape(value), value)
            for var, value in zip(jaxpr.constvars, closed.consts, strict=True)
        }

        def value(atom: object) -> _Value:
            if isinstance(atom, Literal):
                number = np.asarray(atom.val, getattr(atom.aval, "dtype", None))
                return _Value("", number.shape, number)
            return known[atom]

        for eqn in jaxpr.eqns:
            results = self._equation(eqn, [value(atom) for atom in eqn.invars])
            known.update(zip(eqn.outvars, results, strict=True))
        return [value(atom) for atom in jaxpr.outvars]

    def _equation(self, eqn: Any, args: list[_Value]) -> list[_Value]:
        inner = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
        if isinstance(inner, Jaxpr):
            inner = ClosedJaxpr(inner, ())
        if inner is not None:
            return self.run(inner, args)
        # Constant folding: what does not depend on the observation is computed now.
        if all(arg.number is not None for arg in args):
            found = eqn.primitive.bind(*(arg.number for arg in args), **eqn.params)
            parts = found if eqn.primitive.multiple_results else [found]
            return [_Value("", np.shape(part), part) for part in parts]
        shapes = [tuple(var.aval.shape) for var in eqn.outvars]
        if eqn.primitive.name == "split":
            return self._split(args[0], eqn.params["axis"], shapes)
        return [self._operation(eqn.primitive.name, args, eqn.params, shape) for shape in shapes]

    def _operation(
        self, name: str, args: list[_Value], params: Mapping[str, Any], shape: tuple[int, ...]
    ) -> _Value:
        """Record one operation that depends on the observation."""
        first = args[0]
        if name in _IDENTITY_PRIMITIVES:
            return first
        if name in ELEMENTWISE:
            return self._add(name, [self._aligned(a, len(shape)) for a in args], shape)
        if name == "select_n" and len(args) == 3:
            test, no, yes = (self._aligned(a, len(shape)) for a in args)
            return self._add("where", [test, yes, no], shape)
        if name == "integer_pow":
            power = _Value("", (), np.float32(params["y"]))
            return self._add("pow", [first, power], shape)
        if name == "convert_element_type":
            return self._add("cast", args, shape, np.dtype(params["new_dtype"]).name)
        if name in _REDUCTIONS:
            return self._add(_REDUCTIONS[name], args, shape, tuple(a + 1 for a in params["axes"]))
        if name in ("reshape", "squeeze", "expand_dims"):
            return self._add("reshape", args, shape, shape)
        if name == "broadcast_in_dim":
            return self._broadcast(first, params["broadcast_dimensions"], shape)
        if name == "transpose":
            order = (0, *(axis + 1 for axis in params["permutation"]))
            return self._add("transpose", args, shape, order)
        if name == "concatenate":
            axis = params["dimension"]
            joined = self._add("concat", [self._batched(arg) for arg in args], shape, axis + 1)
            self._joined[joined.name] = axis, args
            return joined
        if name == "slice" and not params["strides"]:
            return self._slice(first, params["start_indices"], params["limit_indices"])
        if name == "dot_general":
            return self._dot(args, params["dimension_numbers"], shape)
        return self._add(
            # The mark `?` is an error only if the action depends on the operation.
            name if "random" in name or "threefry" in name else f"?{name}",
            args,
            shape,
        )

    def _add(
        self, op: str, args: list[_Value], shape: tuple[int, ...], setting: object = None
    ) -> _Value:
        output = f"x{len(self._nodes)}"
        self._nodes.append(Operation(op, tuple(self._name(arg) for arg in args), output, setting))
        return _Value(output, shape)

    def _name(self, arg: _Value) -> str:
        """Return the name of a value; a constant gets one at its first use."""
        if arg.number is None:
            return arg.name
        array = np.asarray(arg.number)
        # Equal constants share a name, so each array is written once.
        for name, known in self._constants.items():
            if known.dtype == array.dtype and np.array_equal(known, array):
                return name
        self._constants[f"c{len(self._constants)}"] = array
        return f"c{len(self._constants) - 1}"

    def _aligned(self, arg: _Value, rank: int) -> _Value:
        """Return a value with ones inserted behind its batch axis, up to rank `rank`.

        JAX broadcasts from the right; without this the batch axis would move with it.
        """
        if arg.number is not None or len(arg.shape) == rank:
            return arg
        shape = (1,) * (rank - len(arg.shape)) + arg.shape
        return self._add("reshape", [arg], shape, shape)

    def _batched(self, arg: _Value) -> _Value:
        """Return a value that has a batch axis; record an unsupported operation for a constant."""
        if arg.number is None:
            return arg
        return self._add("?concatenate with a constant", [], arg.shape)

    def _broadcast(self, arg: _Value, axes: tuple[int, ...], shape: tuple[int, ...]) -> _Value:
        spread = tuple(arg.shape[axes.index(i)] if i in axes else 1 for i in range(len(shape)))
        placed = self._add("reshape", [arg], spread, spread) if spread != arg.shape else arg
        return self._add("expand", [placed], shape, shape) if spread != shape else placed

    def _slice(self, arg: _Value, starts: Any, ends: Any) -> _Value:
        for axis, (start, end) in enumerate(zip(starts, ends, strict=True)):
            arg = self._cut(arg, axis, int(start), int(end))
        return arg

    def _cut(self, arg: _Value, axis: int, start: int, end: int) -> _Value:
        """Return a value from `start` to `end` along an axis.

        A slice that is one part of a concatenation is that part itself.
        """
        if (start, end) == (0, arg.shape[axis]):
            return arg
        joined, parts = self._joined.get(arg.name, (None, []))
        if joined == axis:
            ends = np.cumsum([part.shape[axis] for part in parts])
            for part, last in zip(parts, ends, strict=True):
                if (start, end) == (last - part.shape[axis], last):
                    return part
        shape = (*arg.shape[:axis], end - start, *arg.shape[axis + 1 :])
        return self._add("slice", [arg], shape, (axis + 1, start, end))

    def _split(self, arg: _Value, axis: int, shapes: list[tuple[int, ...]]) -> list[_Value]:
        ends = np.cumsum([shape[axis] for shape in shapes])
        return [
            self._cut(arg, axis, int(end - s[axis]), int(end))
            for s, end in zip(shapes, ends, strict=True)
        ]

    def _dot(self, args: list[_Value], numbers: Any, shape: tuple[int, ...]) -> _Value:
        """Return the product of a value that depends on the observation and a matrix."""
        (left, right), (batch_left, _) = numbers
        a, b = args
        flat = len(a.shape) == len(b.shape) == 2 and len(left) == 1 and not batch_left
        if flat and a.number is not None:  # the constant must be on the right: transpose both
            transposed = self._dot([b, a], ((right, left), ((), ())), shape[::-1])
            return self._add("transpose", [transposed], shape, (0, 2, 1))
        if flat and left[0] == 0:
            a, left = self._add("transpose", [a], a.shape[::-1], (0, 2, 1)), (1,)
        plain = len(left) == 1 and not batch_left and len(b.shape) == 2 and a.number is None
        if not plain or left[0] != len(a.shape) - 1 or b.number is None:
            return self._add("?dot_general of this kind", args, shape)
        matrix = np.asarray(b.number)
        return self._add("matmul", [a, b._replace(number=matrix.T if right[0] else matrix)], shape)
