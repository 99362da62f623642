"""Export of trained policies for other programs: a NumPy function, or an ONNX model.

A policy is traced by JAX. Any policy can be exported that is deterministic and consists of common
operations: those of all agents here and of plugins, including the normalizer of observations.
"""

import os
from collections.abc import Callable
from typing import Any

from brax.errors import ConfigError, closest
from brax.io import _arguments
from brax.io.export import numpy_code, onnx_model
from brax.io.export.graph import trace

__all__ = ["numpy_module", "save", "to_numpy", "to_onnx", "writer"]


def numpy_module(policy: Callable[..., object], observation_size: object) -> str:
    """Return the text of a Python module whose `policy(observation)` needs only NumPy.

    The function of a policy with memory is `policy(observation, memory) -> (action, memory)`.

    Args:
        policy: `policy(observation, key) -> (action, extras)`, deterministic, as `load_policy`
            and `make_policy(params, deterministic=True)` return; or one with memory.
        observation_size: number of features, or a dictionary of them, as the environment has it.

    Raises:
        ConfigError: if the policy samples its actions, or has an unsupported operation.
    """
    return numpy_code.module(trace(policy, observation_size))


def to_numpy(policy: Callable[..., object], observation_size: object) -> Callable[..., Any]:
    """Return the function of that module, from observations (..., n) to actions (..., m).

    Arguments and errors are those of `numpy_module`.
    """
    names: dict[str, Any] = {}
    exec(numpy_module(policy, observation_size), names)  # safe: `numpy_module` wrote the text
    found: Callable[..., Any] = names["policy"]
    return found


def to_onnx(policy: Callable[..., object], observation_size: object) -> Any:
    """Return an `onnx.ModelProto`.

    Its inputs are `observation` (batch, n), or `observation_KEY` for each entry of a dictionary
    that the policy reads; its output is `action` (batch, m). A policy with memory has an input
    `memory` and an output `next_memory` (batch, k) too. All are float32. Arguments as
    `numpy_module`.

    Raises:
        ConfigError: as `numpy_module`, or if the package onnx is not installed.
    """
    return onnx_model.model(trace(policy, observation_size))


def save(
    path: str | os.PathLike[str], policy: Callable[..., object], observation_size: object
) -> None:
    """Write a policy to a file: a Python module (`.py`) or an ONNX model (`.onnx`).

    Arguments as `numpy_module`.

    Raises:
        ConfigError: as `to_onnx`, or if the suffix is unknown or the file cannot be written.
    """
    target = _arguments.path(path)
    _arguments.write(target, writer(target)(policy, observation_size))


def writer(path: str | os.PathLike[str]) -> Callable[..., bytes]:
    """Return the function that makes the contents of a file, by its suffix.

    Raises:
        ConfigError: if the suffix is unknown.
    """
    suffix = _arguments.path(path).suffix
    if suffix not in _EXPORTERS:
        raise ConfigError(
            f"'{path}': a policy is written to {' or '.join(_EXPORTERS)}."
            f"{closest(suffix, _EXPORTERS)}"
        )
    return _EXPORTERS[suffix]


def _python(policy: Callable[..., object], observation_size: object) -> bytes:
    return numpy_module(policy, observation_size).encode()


def _onnx(policy: Callable[..., object], observation_size: object) -> bytes:
    content: bytes = to_onnx(policy, observation_size).SerializeToString()
    return content


_EXPORTERS: dict[str, Callable[..., bytes]] = {".py": _python, ".onnx": _onnx}
