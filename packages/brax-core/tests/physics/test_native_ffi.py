"""The layout of XLA's structures that handlers rely on, against the header of this jaxlib.

Handlers are also called by a frame that is made here, with functions that fail.
"""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jax
import llvmlite.binding as llvm
import numpy as np
import pytest
from native_lab import form_of, kernel_of

from brax.kernels.codegen import cpu, jax_internals, target
from brax.kernels.codegen.ffi_layout import METADATA_EXTENSION, OFFSETS, SIZES, offset

INCLUDED = Path(jax.ffi.include_dir())
HEADER = Path("xla", "ffi", "api", "c_api.h")
BEFORE = {"InternalExtension": "Extension_Base"}
"""Names that structures had before version .5 of the interface."""
BYTES = {"size_t": 8, "int64_t": 8, "int": 4, "int32_t": 4, "uint32_t": 4, "uint8_t": 1}


def parsed(text):
    """Return offsets and sizes of all structures, from the order and the types of their fields."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/|#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.DOTALL)
    text = re.sub(r"\w+ \(\*(\w+)\)\([^)]*\)", r"void* \1", text)  # a function's address
    enums = re.findall(r"typedef enum \{[^}]*\}\s*(\w+);", text)
    size, align = BYTES | dict.fromkeys(enums, 4), BYTES | dict.fromkeys(enums, 4)
    for old, new in re.findall(r"typedef (\w+) (\w+);", text):
        if old in size:
            size[new] = align[new] = size[old]
    found: dict[str, dict[str, int]] = {}
    sizes = {}
    for name, fields in re.findall(r"struct (\w+) \{(.*?)\}", text, re.DOTALL):
        at, widest, found[name] = 0, 1, {}
        for field in filter(None, map(str.strip, fields.split(";"))):
            # A function's address has the name of its type.
            member = re.sub(r"_XLA_FFI_API_STRUCT_FIELD\((\w+)\)", r"\1* \1", field)
            ((kind, label),) = re.findall(r"^(.*?[\s*])(\w+)$", member, re.DOTALL)
            kind = kind.strip()
            bytes_, even = (8, 8) if kind.endswith("*") else (size[kind], align[kind])
            at += -at % even
            found[name][label.removeprefix("XLA_FFI_")] = at
            at, widest = at + bytes_, max(widest, even)
        size[name], align[name], sizes[name] = at + -at % widest, widest, at + -at % widest
    return found, sizes


def name_in(struct, header):
    """Return the name that a structure has in the text of a header."""
    return struct if f"struct XLA_FFI_{struct} " in header else BEFORE[struct]


def compiled(folder, included):
    """Return the offsets of `OFFSETS` and the sizes of `SIZES`, as a C compiler sees them."""
    places = [(s, f) for s, fields in OFFSETS.items() for f in fields]
    numbers = [f"offsetof(XLA_FFI_{s}, {'XLA_FFI_' * (s == 'Api')}{f})" for s, f in places]
    numbers += [f"sizeof(XLA_FFI_{s})" for s in SIZES]
    prints = "\n".join(f'printf("%zu\\n", (size_t) {n});' for n in numbers)
    header = (included / HEADER).read_text()
    names = "\n".join(f"typedef struct XLA_FFI_{name_in(s, header)} XLA_FFI_{s};" for s in OFFSETS)
    source = folder / "layout.c"
    source.write_text(
        f'#include <stddef.h>\n#include <stdio.h>\n#include "{HEADER}"\n{names}\n'
        f"int main(void) {{ {prints} return 0; }}"
    )
    command = ["cc", "-std=c11", f"-I{included}", str(source), "-o", str(folder / "layout")]
    subprocess.run(command, check=True)
    out = subprocess.run([folder / "layout"], check=True, capture_output=True, text=True).stdout
    values = [int(x) for x in out.split()]
    found: dict[str, dict[str, int]] = {s: {} for s in OFFSETS}
    for (struct, field), value in zip(places, values, strict=False):
        found[struct][field] = value
    return found, dict(zip(SIZES, values[len(places) :], strict=True))


def test_the_tables_are_those_of_the_header(tmp_path):
    text = (INCLUDED / HEADER).read_text()
    found, sizes = parsed(text)
    assert f"XLA_FFI_Extension_Metadata = {METADATA_EXTENSION}," in text
    places = {s: found[f"XLA_FFI_{name_in(s, text)}"] for s in OFFSETS}
    picked = {s: {f: places[s][f] for f in fields} for s, fields in OFFSETS.items()}
    assert picked == OFFSETS
    assert {s: sizes[f"XLA_FFI_{s}"] for s in SIZES} == SIZES
    if shutil.which("cc"):
        assert compiled(tmp_path, INCLUDED) == (OFFSETS, SIZES)


def test_a_parsed_header_has_the_layout_of_c():
    """C11, 6.7.2.1: fields in order, each aligned to its type, and so is the whole structure."""
    found, sizes = parsed("""
        typedef enum { A, B } Kind; /* of four bytes */
        struct Part { int a; size_t b; };
        struct Whole { int first; Part part; const Part* more; Kind kind; // an enumeration
          _XLA_FFI_API_STRUCT_FIELD(XLA_FFI_Call); int last; };
    """)
    assert found["Whole"] == dict(first=0, part=8, more=24, kind=32, Call=40, last=48)
    assert sizes == {"Part": 16, "Whole": 56}


def test_a_field_within_a_part_of_a_structure():
    assert offset("CallFrame.args", "Args.args") == 40 + 32
    with pytest.raises(KeyError, match="nothing"):
        offset("Buffer.nothing")


FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
MALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)
FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
BATCH = 1000
AN_ERROR = 0xE4404


class Frame:
    """A call of the handler of x -> 2 x + 1 for a batch, by an XLA whose functions fail."""

    def __init__(self, monkeypatch):
        """Compile the handler, and make the frame."""
        modules = []
        monkeypatch.setattr(cpu, "register", lambda *module: modules.append(module))
        self.x = np.arange(BATCH, dtype=np.float32)
        args = [self.x[None]]
        assert cpu.supports(kernel_of(lambda x: (2 * x + 1,), args), form_of(args)).native
        ((name, text, level),) = modules
        self.y = np.zeros_like(self.x)
        self.kept: list[Any] = []
        self.allocated = self.freed = 0
        self.destroyed: list[int] = []
        # The module's own names, so that no other kernel calls these functions.
        for function, callback in (("malloc", MALLOC(self.malloc)), ("free", FREE(self.free))):
            self.kept.append(callback)
            llvm.add_symbol(f"frame_{function}", ctypes.cast(callback, ctypes.c_void_p).value)
            text = text.replace(f"@{function}(", f"@frame_{function}(")
        monkeypatch.setattr(target, "_cached", lambda name: None)
        self.handler = FUNCTION(target.compile_module(name, text, level))
        functions = dict(
            ThreadPool_NumThreads=self.count, ThreadPool_Schedule=self.fail, Error_Destroy=self.end
        )
        self.frame = self.struct(
            {
                offset("CallFrame.api"): self.struct(
                    {offset(f"Api.{n}"): self.function(f) for n, f in functions.items()}
                ),
                offset("CallFrame.args", "Args.args"): self.struct({0: self.buffer(self.x)}),
                offset("CallFrame.rets", "Rets.rets"): self.struct({0: self.buffer(self.y)}),
            }
        )

    def struct(self, fields):
        """Return the address of a structure of zeros but for some words, by their offsets."""
        memory = (ctypes.c_int64 * 40)()
        for place, word in fields.items():
            memory[place // 8] = word
        self.kept.append(memory)
        return ctypes.addressof(memory)

    def function(self, function):
        """Return the address of a function of the address of its arguments."""
        self.kept.append(FUNCTION(function))
        return ctypes.cast(self.kept[-1], ctypes.c_void_p).value

    def buffer(self, array):
        """Return the address of XLA's description of an array of one number for each row."""
        fields = {"data": array.ctypes.data, "dims": self.struct({0: BATCH, 8: 1})}
        return self.struct({offset(f"Buffer.{f}"): value for f, value in fields.items()})

    def malloc(self, size):
        self.allocated += 1
        self.kept.append(ctypes.create_string_buffer(size + 16))
        return ctypes.addressof(self.kept[-1])

    def free(self, _):
        self.freed += 1

    def count(self, args):
        """Say that there are four threads, and also that something went wrong."""
        place = args + offset("ThreadPool_NumThreads_Args.num_threads")
        threads = ctypes.c_void_p.from_address(place).value
        assert threads
        ctypes.c_int64.from_address(threads).value = 4
        return AN_ERROR

    def fail(self, _):
        return AN_ERROR

    def end(self, args):
        """Destroy an error."""
        error = ctypes.c_int64.from_address(args + offset("Error_Destroy_Args.error"))
        self.destroyed.append(error.value)

    def call(self, **extension):
        """Call the handler, perhaps with an extension of a type."""
        word = ctypes.c_int64.from_address(self.frame + offset("CallFrame.extension_start"))
        version = self.struct({})
        if extension:
            kind, metadata = "InternalExtension.type", "Metadata_Extension.metadata"
            fields = {offset(kind): extension["type"], offset(metadata): version}
            word.value = self.struct(fields)
        assert self.handler(self.frame) is None  # success
        return version


@pytest.mark.usefixtures("code_generator")
def test_threads_that_do_not_come_lose_no_rows_and_no_memory(monkeypatch):
    frame = Frame(monkeypatch)
    frame.call()
    np.testing.assert_array_equal(frame.y, 2 * frame.x + 1)
    # The errors of the count, and of three threads beside this one.
    assert frame.destroyed == [AN_ERROR] * 4
    assert frame.allocated == frame.freed > 1


@pytest.mark.usefixtures("code_generator")
def test_an_extension_that_does_not_ask_for_the_version_is_an_ordinary_call(monkeypatch):
    frame = Frame(monkeypatch)
    version = frame.call(type=METADATA_EXTENSION)
    assert not frame.y.any()
    place = version + offset("Metadata.api_version", "Api_Version.major_version")
    found = [ctypes.c_int32.from_address(place + 4 * i).value for i in range(2)]
    assert found == [jax_internals.FFI_MAJOR, jax_internals.ffi_version()]
    frame.call(type=METADATA_EXTENSION + 1)
    np.testing.assert_array_equal(frame.y, 2 * frame.x + 1)
