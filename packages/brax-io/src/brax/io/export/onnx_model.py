"""Writes a policy's graph as an ONNX model."""

from types import ModuleType
from typing import Any

import numpy as np

from brax.errors import ConfigError
from brax.io.export.graph import Graph, Operation

OPSET = 18
"""Version of ONNX's operators, old enough for the runtimes in use."""

_ONE = {
    "abs": "Abs",
    "add": "Add",
    "and": "And",
    "ceil": "Ceil",
    "cos": "Cos",
    "div": "Div",
    "eq": "Equal",
    "exp": "Exp",
    "floor": "Floor",
    "ge": "GreaterOrEqual",
    "gt": "Greater",
    "le": "LessOrEqual",
    "log": "Log",
    "logistic": "Sigmoid",
    "lt": "Less",
    "matmul": "MatMul",
    "max": "Max",
    "min": "Min",
    "mul": "Mul",
    "neg": "Neg",
    "not": "Not",
    "or": "Or",
    "pow": "Pow",
    "sign": "Sign",
    "sin": "Sin",
    "sqrt": "Sqrt",
    "sub": "Sub",
    "tanh": "Tanh",
    "where": "Where",
}
_TWO = {
    "expm1": ("Exp", "Sub"),
    "log1p": ("Add", "Log"),
    "ne": ("Equal", "Not"),
    "rsqrt": ("Sqrt", "Reciprocal"),
}
"""Operations that ONNX lacks, as two operators; the second input of the binary one is 1."""

_OVER = {"sum": "ReduceSum", "max_over": "ReduceMax", "min_over": "ReduceMin"}


def model(graph: Graph) -> Any:
    """Return the `onnx.ModelProto`: inputs named as in the graph, and the output `action`.

    A policy with memory has the input `memory` and the output `next_memory` too.

    Raises:
        ConfigError: if the package onnx is not installed.
    """
    return _Writer(_onnx()).model(graph)


def _onnx() -> ModuleType:
    try:
        import onnx
    except ImportError as error:
        raise ConfigError(
            "an ONNX file needs the package onnx: pip install 'brax-io[onnx]'"
        ) from error
    return onnx


class _Writer:
    def __init__(self, onnx: ModuleType) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._numbers: list[Any] = []

    def model(self, graph: Graph) -> Any:
        """Return the whole model, checked by onnx itself."""
        helper = self._onnx.helper
        for name, value in graph.constants.items():
            self._number(value, name)
        for node in graph.nodes:
            self._node(node)
        # The graph's own name of the result depends on the number of operations.
        self._emit("Identity", [graph.output], "action")
        inputs = dict(graph.inputs)
        outputs: dict[str, tuple[int, ...]] = {"action": (graph.action_size,)}
        if graph.memory_size:
            self._emit("Identity", [graph.memory], "next_memory")
            inputs["memory"] = outputs["next_memory"] = (graph.memory_size,)
        body = helper.make_graph(
            self._nodes, "policy", self._infos(inputs), self._infos(outputs), self._numbers
        )
        made = helper.make_model(
            body, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="brax", ir_version=8
        )
        # An invalid model would fail only in the user's runtime.
        self._onnx.checker.check_model(made, full_check=True)
        return made

    def _infos(self, shapes: dict[str, tuple[int, ...]]) -> list[Any]:
        """Return descriptions of inputs or outputs, from their shapes without the batch axis."""
        real = self._onnx.TensorProto.FLOAT
        make = self._onnx.helper.make_tensor_value_info
        return [make(name, real, ["batch", *shape]) for name, shape in shapes.items()]

    def _node(self, node: Operation) -> None:
        inputs, output, setting = list(node.inputs), node.output, node.setting
        if node.op in _ONE:
            self._emit(_ONE[node.op], inputs, output)
        elif node.op == "square":
            self._emit("Mul", inputs * 2, output)
        elif node.op in _TWO:
            self._two(_TWO[node.op], inputs, output)
        elif node.op in _OVER:
            self._emit(_OVER[node.op], [*inputs, self._whole(setting)], output, keepdims=0)
        elif node.op == "cast":
            kind = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(setting))
            self._emit("Cast", inputs, output, to=kind)
        elif node.op == "reshape":
            self._emit("Reshape", [*inputs, self._whole((-1, *setting))], output)
        elif node.op == "expand":
            self._emit("Expand", [*inputs, self._whole((1, *setting))], output)
        elif node.op == "transpose":
            self._emit("Transpose", inputs, output, perm=setting)
        elif node.op == "concat":
            self._emit("Concat", inputs, output, axis=setting)
        else:
            assert node.op == "slice", node.op
            axis, start, end = setting
            self._emit("Slice", [*inputs, *(self._whole((n,)) for n in (start, end, axis))], output)

    def _two(self, operators: tuple[str, str], inputs: list[str], output: str) -> None:
        one = self._number(np.float32(1.0))
        between = f"{output}_"
        for operator, given, result in zip(
            operators, (inputs, [between]), (between, output), strict=True
        ):
            more = [one] if operator in ("Add", "Sub") else []
            self._emit(operator, [*given, *more], result)

    def _emit(self, operator: str, inputs: list[str], output: str, **settings: object) -> None:
        # ONNX Runtime before 1.22 refuses a model in which it makes nodes of several nameless ones.
        settings["name"] = output
        self._nodes.append(self._onnx.helper.make_node(operator, inputs, [output], **settings))

    def _whole(self, values: tuple[int, ...]) -> str:
        return self._number(np.array(values, np.int64))

    def _number(self, value: np.ndarray | np.generic, name: str = "") -> str:
        name = name or f"n{len(self._numbers)}"
        self._numbers.append(self._onnx.numpy_helper.from_array(np.asarray(value), name))
        return name
