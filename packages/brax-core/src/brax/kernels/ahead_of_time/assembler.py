"""NVIDIA's assembler, which says what registers and spills a kernel has."""

import importlib.util
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from brax.errors import ConfigError

_INSTRUCTION = re.compile(r"^[ \t]+(?:@\S+[ \t]+)?[a-z][\w.:]*\b[^;\n]*;", re.MULTILINE)
"""A line of PTX that is an instruction, perhaps after a condition; directives begin with a dot."""


class Registers(NamedTuple):
    """The registers of some kernels."""

    most: int
    """The largest number of registers of a thread."""
    spilled_bytes: int
    """Bytes that the threads of all kernels store because registers do not suffice."""
    instructions: int
    """PTX instructions of all kernels; those in a loop count once."""


def registers(target: str, modules: Iterable[str]) -> Registers:
    """Return the registers of kernels.

    Args:
        target: a compute capability, such as "sm_90".
        modules: PTX.

    Raises:
        ConfigError: if the assembler is not installed, or rejects a module.
    """
    assembler = _assembler()
    most = spilled = instructions = 0
    for text in modules:
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(text)
            file.flush()
            command = [str(assembler), f"-arch={target}a", "-v", "-o", os.devnull, file.name]
            run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            raise ConfigError(f"ptxas rejects a kernel for {target}: {run.stderr.strip()[:300]}")
        most = max([most, *map(int, re.findall(r"Used (\d+) registers", run.stderr))])
        spilled += sum(map(int, re.findall(r"(\d+) bytes spill stores", run.stderr)))
        instructions += len(_INSTRUCTION.findall(text))
    return Registers(most, spilled, instructions)


def _assembler() -> Path:
    """Return the path of ptxas, from the package that comes with JAX's CUDA plugin."""
    try:
        found = importlib.util.find_spec("nvidia.cuda_nvcc")
    except ModuleNotFoundError:
        found = None
    for folder in (found and found.submodule_search_locations) or ():
        path = Path(folder) / "bin" / "ptxas"
        if path.exists():
            return path
    raise ConfigError('ptxas is not installed. Install it by: pip install "jax[cuda12]".')
