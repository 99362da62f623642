"""This machine's processor: from LLVM's language to its instructions."""

import ctypes
import ctypes.util
import functools
import hashlib
import platform
import tempfile
import warnings
from pathlib import Path
from typing import Any

import jax
import llvmlite.binding as llvm

from brax.kernels.codegen.emitter import Unsupported
from brax.kernels.codegen.math_functions import FUNCTIONS

_ENGINES: list[Any] = []
"""What keeps the instructions of kernels in memory: JAX may run them at any time."""


def compile_module(name: str, text: str, effort: int) -> int:
    """Compiles a module, or takes what it became an earlier time from JAX's compilation cache.

    One thread at a time may do so.

    Args:
        name: of a file in the cache; no other module has it.
        text: it, in LLVM's language.
        effort: 0 for soon, 1 for fast.

    Returns:
        The address of its function `handler`.
    """
    machine = _target(effort)()
    kept = _cached(f"{name}-{_processor()}.o")
    code = _kept(kept) if kept else None
    if code is None:
        code = machine.emit_object(llvm.parse_assembly(text, llvm.create_context()))
        if kept:
            _keep(kept, code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append(engine)
    return int(engine.get_function_address("handler"))


def _cached(name: str) -> Path | None:
    folder = jax.config.values["jax_compilation_cache_dir"]
    if not folder or not jax.config.values["jax_enable_compilation_cache"]:
        return None
    return Path(folder) / "brax" / name


def _kept(path: Path) -> bytes | None:
    """What `_keep` has written, if it is all there."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, code = data[:32], data[32:]
    return code if hashlib.sha256(code).digest() == digest else None


def _keep(path: Path, code: bytes) -> None:
    """Writes a file that is whole or not there; a cache that cannot be written is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(code).digest() + code)
        Path(file.name).replace(path)
    except OSError as error:
        warnings.warn(f"kernels cannot be kept in {path.parent}: {error}", stacklevel=2)


@functools.lru_cache(maxsize=1)
def _processor() -> str:
    """What the instructions depend on, beside the module."""
    about = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    version = ".".join(map(str, llvm.llvm_version_info))
    return hashlib.sha256(f"{about} {version}".encode()).hexdigest()[:16]


@functools.lru_cache(maxsize=1)
def vector_bytes() -> int:
    """Bytes of the processor's widest number register.

    Raises:
        Unsupported: if it cannot multiply and add at once, or lacks C's library.
    """
    _add_symbols()
    if platform.machine().lower() in ("arm64", "aarch64"):
        return 16
    features = llvm.get_host_cpu_features()
    if not features.get("fma") or not features.get("avx2"):
        raise Unsupported("a processor without fused multiplication and addition")
    return 64 if features.get("avx512f") else 32


@functools.lru_cache(maxsize=1)
def stack_bytes() -> int:
    """Bytes of a thread's stack that a kernel may take: half of it."""
    if platform.system() != "Linux":
        return 2**18  # half a megabyte is what other systems give
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    # Without a limit threads get two megabytes.
    return (2**21 if soft == resource.RLIM_INFINITY else min(soft, 2**23)) // 2


def _add_symbols() -> None:
    """Says where the functions are that kernels call."""
    try:
        library = ctypes.CDLL(ctypes.util.find_library("m"))
        mathematics = [name + end for name in FUNCTIONS for end in ("", "f")]
        found = {name: getattr(library, name) for name in mathematics}
        process = ctypes.CDLL(None)
        system = process.malloc, process.free, process.sched_yield
        found |= {function.__name__: function for function in system}
    except (OSError, AttributeError, TypeError) as error:
        raise Unsupported(f"a system without C's library: {error}") from error
    for name, function in found.items():
        llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)


@functools.lru_cache(maxsize=2)
def _target(effort: int) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    _add_symbols()
    triple = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return lambda: triple.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=effort, codemodel="jitdefault"
    )
