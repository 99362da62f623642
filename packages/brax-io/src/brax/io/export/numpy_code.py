"""Writes a policy's graph as a Python module that needs only NumPy."""

import base64
import textwrap

import numpy as np

from brax.io.export.graph import Graph, Operation

_TEXT = {
    "abs": "np.abs({0})",
    "add": "{0} + {1}",
    "and": "{0} & {1}",
    "ceil": "np.ceil({0})",
    "cos": "np.cos({0})",
    "div": "{0} / {1}",
    "eq": "{0} == {1}",
    "exp": "np.exp({0})",
    "expm1": "np.expm1({0})",
    "floor": "np.floor({0})",
    "ge": "{0} >= {1}",
    "gt": "{0} > {1}",
    "le": "{0} <= {1}",
    "log": "np.log({0})",
    "log1p": "np.log1p({0})",
    "logistic": "1 / (1 + np.exp(-{0}))",
    "lt": "{0} < {1}",
    "max": "np.maximum({0}, {1})",
    "min": "np.minimum({0}, {1})",
    "mul": "{0} * {1}",
    "ne": "{0} != {1}",
    "neg": "-{0}",
    "not": "~{0}",
    "or": "{0} | {1}",
    "pow": "{0} ** {1}",
    "rsqrt": "1 / np.sqrt({0})",
    "sign": "np.sign({0})",
    "sin": "np.sin({0})",
    "sqrt": "np.sqrt({0})",
    "square": "{0} * {0}",
    "sub": "{0} - {1}",
    "tanh": "np.tanh({0})",
    "where": "np.where({0}, {1}, {2})",
    # A text, because NumPy 1.24 to 1.26 have no np.bool.
    "cast": "{0}.astype('{setting}')",
    "matmul": "{0} @ {1}",
    "reshape": "{0}.reshape(-1, *{setting})",
    "expand": "np.broadcast_to({0}, (len({0}), *{setting}))",
    "transpose": "{0}.transpose({setting})",
    "concat": "np.concatenate([{all}], axis={setting})",
    "sum": "{0}.sum(axis={setting})",
    "max_over": "{0}.max(axis={setting})",
    "min_over": "{0}.min(axis={setting})",
}

_MODULE = '''"""A policy of Brax as one NumPy function: `{call}`.

Written by brax.io.export. The function normalizes observations as in training.
"""

import base64

import numpy as np


def policy({parameters}):
    """Return the action, shape (..., {action_size}){returns}.

    Args:
        observation: {arguments}.{memory}
    """
{reads}
    with np.errstate(all="ignore"):
{body}
    return {output}


def _numbers(dtype, shape, text):
    return np.frombuffer(base64.b64decode(text), dtype).reshape(shape)


{constants}
'''


_MEMORY = """
        memory: array of shape (..., {size}): zeros in the first step of an episode, then what the
            last call returned."""


def module(graph: Graph) -> str:
    """Return the text of a module with the function `policy`."""
    shapes = {
        name.removeprefix("observation").removeprefix("_"): s for name, s in graph.inputs.items()
    }
    arguments = ", ".join(f"{key!r}: {_shape(shape)}" for key, shape in shapes.items())
    arguments = arguments.replace('"', "'")  # so no observation's name can end the docstring
    plain = list(shapes) == [""]
    variables = {name: f"o{i}" for i, name in enumerate(graph.inputs)}
    reads = [
        line
        for name, (key, shape) in zip(variables.values(), shapes.items(), strict=True)
        for line in (
            f"{name} = np.asarray(observation{'' if plain else f'[{key!r}]'}, np.float32)",
            f"front = {name}.shape[: {name}.ndim - {len(shape)}]",
            f"{name} = {name}.reshape(-1, *{shape})",
        )
    ]
    output = f"{graph.output}.reshape(*front, {graph.action_size})"
    remembers = graph.memory_size > 0
    if remembers:
        reads.append(f"memory = np.asarray(memory, np.float32).reshape(-1, {graph.memory_size})")
        output = f"{output}, {graph.memory}.reshape(*front, {graph.memory_size})"
    nodes = [n._replace(inputs=tuple(variables.get(i, i) for i in n.inputs)) for n in graph.nodes]
    return _MODULE.format(
        action_size=graph.action_size,
        arguments=f"array of shape {_shape(shapes[''])}"
        if plain
        else f"dictionary {{{arguments}}}",
        reads=textwrap.indent("\n".join(reads), " " * 4),
        body=textwrap.indent("\n".join(map(_line, nodes)), " " * 8),
        output=output,
        parameters="observation, memory" if remembers else "observation",
        returns=", and the memory for the next call" if remembers else "",
        memory=_MEMORY.format(size=graph.memory_size) if remembers else "",
        call="policy(observation, memory) -> (action, memory)"
        if remembers
        else "policy(observation) -> action",
        constants="\n".join(_constant(name, x) for name, x in graph.constants.items()),
    )


def _shape(shape: tuple[int, ...]) -> str:
    return f"(..., {', '.join(map(str, shape))})"


def _line(node: Operation) -> str:
    if node.op == "slice":
        axis, start, end = node.setting
        return f"{node.output} = {node.inputs[0]}[{':, ' * axis}{start}:{end}]"
    text = _TEXT[node.op].format(*node.inputs, setting=node.setting, all=", ".join(node.inputs))
    return f"{node.output} = {text}"


def _constant(name: str, array: np.ndarray) -> str:
    """Return the assignment of a constant: a scalar as text, an array as exact bytes in base64."""
    if not array.shape and np.isfinite(array):
        return f"{name} = {array.item()!r}"
    # The byte order is fixed, so the module computes the same on every machine.
    little = array.astype(array.dtype.newbyteorder("<"))
    text = base64.b64encode(little.tobytes()).decode()
    return f'{name} = _numbers("{little.dtype.str}", {array.shape}, "{text}")'
