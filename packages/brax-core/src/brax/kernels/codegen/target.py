"""Target: compiles LLVM modules for this machine's processor, and caches their machine code."""

import contextlib
import ctypes
import ctypes.util
import functools
import hashlib
import os
import platform
import secrets
import warnings
from pathlib import Path
from typing import Any

import jax
import llvmlite.binding as llvm

from brax.kernels.codegen.emitter import Unsupported
from brax.kernels.codegen.math_functions import FUNCTIONS

_ENGINES: list[Any] = []
"""The owners of the kernels' machine code. They are never freed: JAX may call a kernel any time."""

PASSES: dict[int, tuple[str, ...]] = {0: (), 1: ("sroa",)}
"""LLVM's passes that change a module before its machine code, by optimization level."""

CODE_MODEL = "jitdefault"
"""LLVM's assumption about where a module is in memory."""

MAX_STACK_SHARE = 0.5
"""Largest share of a thread's stack that a kernel may take. The rest is XLA's, which calls it."""


def compile_module(name: str, text: str, opt_level: int) -> int:
    """Compile a module, or take its machine code from JAX's compilation cache.

    Only one thread at a time may call this function.

    Args:
        name: the name of the module's file in the cache; no other module may have it.
        text: the module as LLVM's text.
        opt_level: LLVM's optimization level: 0 compiles quickly, 1 optimizes.

    Returns:
        The address of the module's function `handler`.
    """
    machine = _target_machine(opt_level)()
    cached = _cached(f"{name}-{_circumstances(opt_level)}.o")
    code = _read_cached(cached) if cached else None
    if code is None:
        # With a context of its own, all that LLVM makes for the module is freed with it.
        code = machine.emit_object(_parsed(text, machine, opt_level))
        if cached:
            _write_cached(cached, code)
    # MCJIT links the object file, whether it is new or from the cache, into an empty module.
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append(engine)
    return int(engine.get_function_address("handler"))


def machine_code(text: str, opt_level: int) -> tuple[int, str]:
    """Compile a module that is not run.

    Args:
        text: the module as LLVM's text.
        opt_level: LLVM's optimization level, 0 or 1.

    Returns:
        The bytes of its machine code, and its text after LLVM's passes that change it in place.
    """
    machine = _target_machine(opt_level)()
    module = _parsed(text, machine, opt_level)
    code = machine.emit_object(module)
    sections = llvm.ObjectFileRef.from_data(code).sections()
    # The iterator reads the sections in place, so each is asked while it is at hand.
    return sum(s.size() for s in sections if s.is_text()), str(module)


def assembly(text: str, opt_level: int) -> str:
    """Return the assembly of a module, with LLVM's comments on loops and spilled registers."""
    machine = _target_machine(opt_level)()
    machine.set_asm_verbosity(True)
    return str(machine.emit_assembly(_parsed(text, machine, opt_level)))


def _parsed(text: str, machine: Any, opt_level: int) -> Any:
    """Return LLVM's module of a text, after the passes that change it before its machine code.

    Args:
        text: the module as LLVM's text.
        machine: a target machine.
        opt_level: the machine's optimization level, 0 or 1.
    """
    module = llvm.parse_assembly(text, llvm.create_context())
    # Values that loops carry are in stack slots. As phi nodes they are spilled to one place and not
    # to two, since LLVM does not read a slot again instead of spilling what it has read. Without
    # optimization, phi nodes make code slower.
    if PASSES[opt_level]:
        passes = llvm.create_new_function_pass_manager()
        for name in PASSES[opt_level]:
            getattr(passes, f"add_{name}_pass")()
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(0))
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
    return module


def _cached(name: str) -> Path | None:
    """Return the path of a file in JAX's compilation cache, or None if there is no such folder."""
    folder = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    # JAX's cache may also be at a URL, such as `gs://bucket/cache`, where no files are.
    if not folder or "://" in folder:
        return None
    enabled = jax.config.jax_enable_compilation_cache  # type: ignore[attr-defined]
    return Path(folder) / "brax" / name if enabled else None


def _read_cached(path: Path) -> bytes | None:
    """Return machine code that `_write_cached` has written, or None if it is missing or damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    # The files that were read or written longest ago are removed first, see `_make_room`. A cache
    # that cannot be written is read all the same.
    with contextlib.suppress(OSError):
        os.utime(path)
    # Damaged machine code would crash the process, so the file begins with a checksum.
    digest, code = data[:32], data[32:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write_cached(path: Path, code: bytes) -> None:
    """Write a file of the cache atomically; a cache that cannot be written gives a warning."""
    data = hashlib.sha256(code).digest() + code
    # Not by `tempfile`, whose files no other user can read: users may share a cache.
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not _make_room(path.parent, len(data)):
            return
        # Renaming is atomic within a folder: another process sees the whole file or none.
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        warnings.warn(f"kernels cannot be kept in {path.parent}: {error}", stacklevel=2)
    finally:
        # It is there only if something failed, such as on a full disk.
        with contextlib.suppress(OSError):
            part.unlink()


def _make_room(folder: Path, size: int) -> bool:
    """Remove kernels until another one fits JAX's limit of its cache; return whether it can fit.

    JAX counts its own files only, so that kernels take up to as much again.

    Args:
        folder: the kernels' folder.
        size: the size of the file to be added, in bytes.
    """
    limit = jax.config.jax_compilation_cache_max_size  # type: ignore[attr-defined]
    if limit == -1:  # JAX's value for no limit.
        return True
    if size > limit:
        return False
    found = []
    for file in folder.iterdir():
        # Another process may have removed it meanwhile.
        with contextlib.suppress(FileNotFoundError):
            about = file.stat()
            found.append((about.st_mtime_ns, file, about.st_size))
    total = size + sum(bytes_ for _, _, bytes_ in found)
    for _, file, bytes_ in sorted(found):
        if total <= limit:
            break
        file.unlink(missing_ok=True)
        total -= bytes_
    return True


@functools.lru_cache(maxsize=2)
def _circumstances(opt_level: int) -> str:
    """Return a hash of what machine code depends on besides its module.

    It is of the processor, LLVM, and how LLVM is asked to compile. So a new version of brax-core
    that changes `PASSES` or `CODE_MODEL` loads no code of an older one.
    """
    # A cache may be shared by machines, whose processors differ.
    about = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    version = ".".join(map(str, llvm.llvm_version_info))
    options = f"{opt_level} {PASSES[opt_level]} {CODE_MODEL}"
    return hashlib.sha256(f"{about} {version} {options}".encode()).hexdigest()[:16]


@functools.lru_cache(maxsize=1)
def vector_bytes() -> int:
    """Return the size of the processor's widest vector register, in bytes.

    Raises:
        Unsupported: if it has no fused multiply-add, or if C's library is not found.
    """
    _add_symbols()
    # NEON's registers; every 64-bit ARM processor has them, with fused multiply-add.
    if platform.machine().lower() in ("arm64", "aarch64"):
        return 16
    features = llvm.get_host_cpu_features()
    # Without the instruction, LLVM would call a function for each fused multiply-add.
    if not features.get("fma") or not features.get("avx2"):
        raise Unsupported("a processor without fused multiplication and addition")
    return 64 if features.get("avx512f") else 32


@functools.lru_cache(maxsize=1)
def stack_bytes() -> int:
    """Return how much of a thread's stack a kernel may take, in bytes: `MAX_STACK_SHARE` of it."""
    if platform.system() != "Linux":
        return int(2**19 * MAX_STACK_SHARE)  # Threads of other systems have half a megabyte.
    import resource  # It exists on Unix only.

    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    # Threads get the soft limit, or two megabytes if there is none. Eight are its usual value,
    # and more than that is not relied on.
    size = 2**21 if soft == resource.RLIM_INFINITY else min(soft, 2**23)
    return int(size * MAX_STACK_SHARE)


def _add_symbols() -> None:
    """Tell LLVM the addresses of the C functions that kernels call.

    Raises:
        Unsupported: if one of them is not found.
    """
    try:
        library = ctypes.CDLL(ctypes.util.find_library("m"))
        # C's functions of single precision have an `f` at the end of their names.
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
def _target_machine(opt_level: int) -> Any:
    """Return a function that makes LLVM's target machine for this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    _add_symbols()
    triple = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    # An engine takes ownership of its target machine, so each module needs a new one.
    return lambda: triple.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=opt_level, codemodel=CODE_MODEL
    )
