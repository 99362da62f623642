"""The layout of XLA's structures that handlers rely on, against the header of this jaxlib."""

import re
import shutil
import subprocess
from pathlib import Path

import jax
import pytest

from brax.kernels.codegen.ffi_layout import OFFSETS, SIZES, offset

INCLUDED = Path(jax.ffi.include_dir())
HEADER = Path("xla", "ffi", "api", "c_api.h")
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


def compiled(folder, included):
    """Return the offsets of `OFFSETS` and the sizes of `SIZES`, as a C compiler sees them."""
    places = [(s, f) for s, fields in OFFSETS.items() for f in fields]
    numbers = [f"offsetof(XLA_FFI_{s}, {'XLA_FFI_' * (s == 'Api')}{f})" for s, f in places]
    numbers += [f"sizeof(XLA_FFI_{s})" for s in SIZES]
    prints = "\n".join(f'printf("%zu\\n", (size_t) {n});' for n in numbers)
    names = "\n".join(f"typedef struct XLA_FFI_{s} XLA_FFI_{s};" for s in OFFSETS)
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
    found, sizes = parsed((INCLUDED / HEADER).read_text())
    picked = {s: {f: found[f"XLA_FFI_{s}"][f] for f in fields} for s, fields in OFFSETS.items()}
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
