"""Kernels of dense layers on a CPU: the layers of many rows, and their gradient.

The rows are cut into blocks, whose arrays stay in a core's cache from one layer to the next. Each
block has its own sum of the gradient by the weights. So neither results nor their last bits depend
on the number of threads.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.kernels.codegen import ffi, target
from brax.kernels.codegen.call import trace
from brax.kernels.codegen.emitter import Emitter, Unsupported
from brax.kernels.codegen.ir import text_of
from brax.kernels.codegen.lowering.control_flow import lower_jaxpr
from brax.kernels.codegen.matrices_text import (
    FunctionText,
    Matrix,
    Number,
    column_product,
    product,
)
from brax.kernels.codegen.stack import aligned

BLOCK_ROWS = 128
"""Rows of a block. With fewer, more blocks' sums are added up; with more, threads wait longer for
the last block."""


class Layers(NamedTuple):
    """Dense layers: all that the code of their kernels depends on."""

    sizes: tuple[int, ...]
    """The number of inputs, and of the outputs of each layer."""
    activation: Callable[[jax.Array], jax.Array]
    """The function after each layer, or after each but the last, of arrays of any shape."""
    activate_final: bool
    """True if the function follows the last layer too."""

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The number of inputs and of outputs of each layer."""
        return list(itertools.pairwise(self.sizes))

    @property
    def weights(self) -> int:
        """The number of all weights and biases."""
        return sum((inputs + 1) * outputs for inputs, outputs in self.pairs)

    @property
    def activated(self) -> tuple[int, ...]:
        """The number of outputs of each layer that the activation follows."""
        return self.sizes[1:] if self.activate_final else self.sizes[1:-1]


def padded(size: int) -> int:
    """Return the length of a row of activations in memory, which whole registers cover."""
    return aligned(size, target.vector_bytes() // 4)


def forward_text(layers: Layers, keep: bool) -> str:
    """Return a module that computes layers.

    Operands are the rows (blocks, rows, inputs), and each layer's weights (inputs, outputs) and
    bias. Results are the rows (blocks, rows, outputs); with `keep` also the activations
    (blocks, rows, `padded` outputs) after each layer, and their derivatives.
    """
    kernel = _Kernel(layers, 1 + 2 * len(layers.pairs), 1 + 2 * len(layers.activated) * keep)
    text = kernel.text
    data = kernel.rows("in0", layers.sizes[0])
    for i, (inputs, outputs) in enumerate(layers.pairs):
        weights, bias = Matrix(f"%in{1 + 2 * i}", outputs), f"%in{2 + 2 * i}"
        result = kernel.rows("out0", outputs)
        if i >= len(layers.activated):
            _last_layer(text, data, weights, bias, result, (inputs, outputs))
            break
        stride = padded(outputs)
        before = Matrix(kernel.memory(BLOCK_ROWS * stride), stride)
        product(
            text,
            data,
            weights,
            (BLOCK_ROWS, outputs, inputs),
            _stored(text, before, whole=True),
            _bias(text, bias),
        )
        if keep:
            data, slope = (kernel.rows(f"out{1 + 2 * i + k}", stride) for k in range(2))
            kernel.call("activated_with_slope", before, data, slope)
        else:
            data = Matrix(kernel.memory(BLOCK_ROWS * stride), stride)
            kernel.call("activated", before, data)
    if layers.activate_final:
        _copy(text, data, result, outputs)
    return kernel.module(["activated_with_slope" if keep else "activated"])


def backward_text(layers: Layers, needed: tuple[bool, bool]) -> str:
    """Return a module that computes the gradient of layers.

    Operands are the rows (blocks, rows, inputs), each layer's weights, activations and derivatives
    as `forward_text` keeps them, and the cotangents of the results (blocks, rows, outputs). Results
    are the cotangents of the rows and of the weights, if they are needed. The latter are
    (blocks, weights), layer by layer, each layer's weights before its bias, to be added up.
    """
    for_data, for_weights = needed
    number, kept = len(layers.pairs), len(layers.activated)
    kernel = _Kernel(layers, 2 + number + 2 * kept, for_data + for_weights)
    text, end = kernel.text, layers.weights
    all_sums = kernel.of_block(f"out{int(for_data)}", end) if for_weights else ""
    cotangents = kernel.rows(f"in{1 + number + 2 * kept}", layers.sizes[-1])
    if layers.activate_final:
        cotangents = _scaled(kernel, cotangents, kernel.kept(kept - 1)[1])
    for i, (inputs, outputs) in reversed(list(enumerate(layers.pairs))):
        data = kernel.kept(i - 1)[0] if i else kernel.rows("in0", inputs)
        if for_weights:
            end -= (inputs + 1) * outputs
            sums = Matrix(text.address(all_sums, end), outputs)
            _weights_cotangents(text, data, cotangents, sums, (inputs, outputs))
            bias = text.address(all_sums, end + inputs * outputs)
            _column_sums(text, cotangents, bias, outputs)
        if not i and not for_data:
            break
        # Transposed, so that the inputs are the lanes.
        weights = kernel.transposed(f"%in{1 + i}", inputs, outputs)
        if i:
            slope = kernel.kept(i - 1)[1]
            after = Matrix(kernel.memory(BLOCK_ROWS * slope.row), slope.row)
            finish, columns = _stored(text, after, by=slope), slope.row
        else:
            after, columns = kernel.rows("out0", inputs), inputs
            finish = _stored(text, after)
        product(text, cotangents, weights, (BLOCK_ROWS, columns, outputs), finish)
        cotangents = after
    return kernel.module([])


class _Kernel:
    """The function `block` of a kernel, and what goes around it."""

    def __init__(self, layers: Layers, operands: int, results: int) -> None:
        """Start without instructions."""
        self._layers, self._operands, self._results = layers, operands, results
        self.text = FunctionText(target.vector_bytes() // 4)
        self._room, self._prepared = 0, FunctionText(self.text.lanes)

    def rows(self, name: str, stride: int) -> Matrix:
        """Return the block's rows of an operand or a result."""
        return Matrix(self.of_block(name, BLOCK_ROWS * stride), stride)

    def of_block(self, name: str, size: int) -> str:
        """Return the address of the block's part, of some size, of an operand or a result."""
        return self.text.address(f"%{name}", self.text.multiply("%number", size))

    def kept(self, layer: int) -> tuple[Matrix, Matrix]:
        """Return the activations that the forward pass kept of a layer, and their derivatives."""
        first = 1 + len(self._layers.pairs) + 2 * layer
        stride = padded(self._layers.activated[layer])
        return self.rows(f"in{first}", stride), self.rows(f"in{first + 1}", stride)

    def memory(self, size: int) -> str:
        """Return the address of memory for some floats, which belongs to a thread."""
        at = self._room
        self._room += aligned(4 * size)
        return self.text.let(f"getelementptr i8, ptr %stack, i64 {at}")

    def transposed(self, weights: str, inputs: int, outputs: int) -> Matrix:
        """Return transposed weights, which each thread computes once, with padded rows."""
        stride, at = padded(inputs), self._room
        place = self.memory(outputs * stride)
        to = self._prepared.let(f"getelementptr i8, ptr %stack, i64 {at}")
        self._prepared.lines.append(
            f"call void @transposed(ptr {to}, ptr {weights}, i64 {inputs}, i64 {outputs}, "
            f"i64 {stride})"
        )
        return Matrix(place, stride)

    def call(self, function: str, *arrays: Matrix) -> None:
        """Call a function of the block's rows of some arrays, which are equally long."""
        operands = ", ".join(f"ptr {x.address}" for x in arrays)
        size = BLOCK_ROWS * arrays[0].row
        self.text.lines.append(f"call void @{function}({operands}, i64 {size})")

    def module(self, functions: Sequence[str]) -> str:
        """Return the text of the module, with the activation functions that it calls."""
        names = [f"%in{k}" for k in range(self._operands)]
        names += [f"%out{k}" for k in range(self._results)]
        arguments = ", ".join(f"ptr noalias {name}" for name in (*names, "%stack"))
        activations = [_activation(self._layers.activation, name) for name in functions]
        handler = ffi.block_handler(self._operands, self._results, self._room, self._prepared.lines)
        declared = {
            *self.text.declarations(),
            "declare ptr @malloc(i64)",
            "declare void @free(ptr)",
        }
        return "\n".join(
            [
                f"define internal void @block({arguments}, i64 %number) {{",
                *self.text.lines,
                "ret void",
                "}",
                *(line for lines, _ in activations for line in lines),
                *([_TRANSPOSED] if self._prepared.lines else []),
                handler,
                *sorted(declared.union(*(more for _, more in activations))),
            ]
        )


def _stored(
    text: FunctionText, to: Matrix, by: Matrix | None = None, whole: bool = False
) -> Callable[[Number, Number, str, int], None]:
    """Return a function that stores results of `product` in a matrix.

    Args:
        text: receives the instructions.
        to: the matrix.
        by: numbers that the results are multiplied by first, if any.
        whole: whether to store all lanes of each vector, also into the padding of a row.
    """

    def store(row: Number, column: Number, x: str, count: int) -> None:
        if by is not None:
            x = text.apply("fmul", x, text.load(text.place(by, row, column), count))
        text.store(x, text.place(to, row, column), text.lanes if whole else count)

    return store


def _bias(text: FunctionText, bias: str) -> Callable[[Number, int], str]:
    """Return a function that loads a part of a bias, with which the sums of `product` start."""
    return lambda column, count: text.load(text.address(bias, column), count)


def _last_layer(
    text: FunctionText,
    data: Matrix,
    weights: Matrix,
    bias: str,
    result: Matrix,
    shape: tuple[int, int],
) -> None:
    """Multiply rows by the weights of the last layer, and add its bias."""
    inputs, outputs = shape
    if outputs > 1:
        shape_of_product, finish = (BLOCK_ROWS, outputs, inputs), _stored(text, result)
        product(text, data, weights, shape_of_product, finish, _bias(text, bias))
        return

    def store(row: Number, x: str) -> None:
        total = text.let(f"fadd float {x}, {text.let(f'load float, ptr {bias}, align 4')}")
        text.lines.append(f"store float {total}, ptr {text.place(result, row, 0)}, align 4")

    column_product(text, data, weights.address, (BLOCK_ROWS, inputs), store)


def _weights_cotangents(
    text: FunctionText, data: Matrix, cotangents: Matrix, sums: Matrix, shape: tuple[int, int]
) -> None:
    """Compute the cotangents of weights: the transposed rows times the cotangents of results."""
    inputs, outputs = shape
    if outputs > 1:
        turned = Matrix(data.address, data.column, data.row)
        finish = _stored(text, sums)
        product(text, turned, cotangents, (inputs, outputs, BLOCK_ROWS), finish)
    else:
        # With one output, the inputs are the lanes, of the transposed product.
        turned = Matrix(cotangents.address, cotangents.column, cotangents.row)
        finish = _stored(text, Matrix(sums.address, inputs))
        product(text, turned, data, (1, inputs, BLOCK_ROWS), finish)


def _column_sums(text: FunctionText, x: Matrix, result: str, columns: int) -> None:
    """Store the sum of a block's rows."""
    counts = text.vectors(columns)

    def add(row: Number, sums: Sequence[str]) -> Sequence[str]:
        return [
            text.apply("fadd", total, text.load(text.place(x, row, i * text.lanes), count))
            for i, (total, count) in enumerate(zip(sums, counts, strict=True))
        ]

    sums = text.loop(BLOCK_ROWS, add, ["zeroinitializer"] * len(counts))
    for i, (total, count) in enumerate(zip(sums, counts, strict=True)):
        text.store(total, text.address(result, i * text.lanes), count)


def _row_by_row(
    text: FunctionText, columns: int, store: Callable[[Number, int, int], None]
) -> None:
    """Call a function for each vector of each row of a block, in a loop over the rows.

    The function takes the row, the first column of the vector, and its number of columns.
    """

    def row(number: Number, _: Sequence[str]) -> Sequence[str]:
        for i, count in enumerate(text.vectors(columns)):
            store(number, i * text.lanes, count)
        return ()

    text.loop(BLOCK_ROWS, row)


def _copy(text: FunctionText, data: Matrix, to: Matrix, columns: int) -> None:
    """Copy the rows of a block, without their padding."""

    def store(row: Number, column: int, count: int) -> None:
        text.store(
            text.load(text.place(data, row, column), count), text.place(to, row, column), count
        )

    _row_by_row(text, columns, store)


def _scaled(kernel: _Kernel, x: Matrix, by: Matrix) -> Matrix:
    """Return the products of numbers with others, whose rows are padded, of a block's rows."""
    text, out = kernel.text, Matrix(kernel.memory(BLOCK_ROWS * by.row), by.row)

    def store(row: Number, column: int, count: int) -> None:
        mine, other = (text.load(text.place(a, row, column), count) for a in (x, by))
        text.store(text.apply("fmul", mine, other), text.place(out, row, column), text.lanes)

    _row_by_row(text, x.row, store)
    return out


_TRANSPOSED = """
define internal void @transposed(ptr %to, ptr %from, i64 %rows, i64 %columns, i64 %stride) {
entry:
  br label %column
column:
  %j = phi i64 [ 0, %entry ], [ %j.next, %ended ]
  %line = mul i64 %j, %stride
  br label %row
row:
  %i = phi i64 [ 0, %column ], [ %i.next, %stored ]
  %inside = icmp slt i64 %i, %rows
  br i1 %inside, label %read, label %stored
read:
  %first = mul i64 %i, %columns
  %at = add i64 %first, %j
  %place = getelementptr float, ptr %from, i64 %at
  %number = load float, ptr %place, align 4
  br label %stored
stored:
  %x = phi float [ 0.0, %row ], [ %number, %read ]
  %index = add i64 %line, %i
  %target = getelementptr float, ptr %to, i64 %index
  store float %x, ptr %target, align 4
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %stride
  br i1 %more, label %row, label %ended
ended:
  %j.next = add i64 %j, 1
  %again = icmp slt i64 %j.next, %columns
  br i1 %again, label %column, label %done
done:
  ret void
}"""
"""The function that transposes a matrix, and fills its rows up with zeros."""


@functools.lru_cache(maxsize=64)
def _activation(
    activation: Callable[[jax.Array], jax.Array], name: str
) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return a function of the module that activates numbers, and the declarations it needs.

    `activated` stores the activations; `activated_with_slope` also their derivatives.

    Raises:
        Unsupported: if the activation has an operation without a lowering rule.
    """

    def both(x: jax.Array) -> Any:
        return jax.jvp(activation, (x,), (jnp.ones_like(x),))

    slope = name == "activated_with_slope"
    closed = trace(both if slope else lambda x: (activation(x),), [((), jnp.float32)])
    emitter = Emitter(target.vector_bytes() // 4, single_precision=True)
    operand = np.empty(1, object)
    operand[0] = emitter.parameter("%z")
    found = lower_jaxpr(emitter, closed.jaxpr, closed.consts, [operand])
    if emitter.slots or emitter.constants or emitter.routines:
        raise Unsupported("an activation that needs memory")
    kind = emitter.type_of("f4", True)
    values = [emitter.operand(x.reshape(-1)[0], "f4", True) for x in found]
    targets = ["value", "slope"] if slope else ["value"]
    hoisted, body = ([text_of(i) for group in part for i in group] for part in emitter.blocks)
    return tuple(
        _elementwise(name, kind, emitter.lanes, targets, values, hoisted, body)
    ), frozenset(emitter.declarations)


def _elementwise(
    name: str,
    kind: object,
    lanes: int,
    targets: Sequence[str],
    values: Sequence[str],
    hoisted: Sequence[str],
    body: Sequence[str],
) -> Iterator[str]:
    """Yield the lines of a function that computes numbers from an array, vector by vector.

    Args:
        name: its name.
        kind: the type of a vector.
        lanes: the lanes of a vector.
        targets: names of the arrays of results.
        values: the vectors of results.
        hoisted: instructions before the loop.
        body: instructions that compute the results from `%z`.
    """
    arrays = ", ".join(f"ptr %{x}" for x in ("from", *targets))
    yield f"define internal void @{name}({arrays}, i64 %count) {{"
    yield from hoisted
    yield from ("br label %before", "before:", "br label %each", "each:")
    yield "%i = phi i64 [ 0, %before ], [ %i.next, %each ]"
    yield "%at = getelementptr float, ptr %from, i64 %i"
    yield f"%z = load {kind}, ptr %at, align 4"
    yield from body
    for to, x in zip(targets, values, strict=True):
        yield f"%{to}.at = getelementptr float, ptr %{to}, i64 %i"
        yield f"store {kind} {x}, ptr %{to}.at, align 4"
    yield f"%i.next = add i64 %i, {lanes}"
    yield "%more = icmp slt i64 %i.next, %count"
    yield from ("br i1 %more, label %each, label %end", "end:", "ret void", "}")
