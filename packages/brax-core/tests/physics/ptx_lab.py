"""Runs a kernel's PTX on a CPU: each instruction becomes a statement of C with the same rounding.

Threads run one after another. There is one function of C for a kernel, with a variable for each
register, which holds its bits.
"""

import ctypes
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import jax
import numpy as np

from brax.kernels.codegen import cpu, cuda

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")

# The minimum and maximum of PTX's floats: of two zeros, -0 is the smaller one. Those with NaN in
# their name pass it on, the others drop it.
HEAD = r"""
#include <math.h>
#include <stdint.h>
#include <string.h>
#define SAME_BITS(name, to, from) \
  static inline to name(from x) { to y; memcpy(&y, &x, sizeof y); return y; }
SAME_BITS(as_f32, float, uint32_t) SAME_BITS(of_f32, uint32_t, float)
SAME_BITS(as_f64, double, uint64_t) SAME_BITS(of_f64, uint64_t, double)
#define EXTREMUM(name, type, sign) \
  static inline type name(type a, type b) { \
    if (isnan(a)) return b; if (isnan(b)) return a; \
    if (a == b) return (signbit(a) != 0) == (sign < 0) ? a : b; \
    return (a < b) == (sign < 0) ? a : b; } \
  static inline type name##_nan(type a, type b) { \
    return isnan(a) || isnan(b) ? NAN : name(a, b); }
EXTREMUM(max_f32, float, 1) EXTREMUM(min_f32, float, -1)
EXTREMUM(max_f64, double, 1) EXTREMUM(min_f64, double, -1)
static inline int32_t whole_s32(double x) {
  return isnan(x) ? 0 : x <= -2147483648.0 ? INT32_MIN : x >= 2147483647.0 ? INT32_MAX : x; }
static inline uint32_t whole_u32(double x) {
  return isnan(x) || x <= 0 ? 0 : x >= 4294967295.0 ? UINT32_MAX : x; }
"""

C_TYPES = {"f32": "float", "f64": "double", "pred": "uint8_t"}
C_TYPES |= {f"{k}{n}": f"{c}int{n}_t" for n in (8, 16, 32, 64) for k, c in (("s", ""), ("u", "u"))}
C_TYPES |= {"u128": "unsigned __int128", "s128": "__int128"}  # of products of 64 bits
C_TYPES |= {f"b{n}": f"uint{n}_t" for n in (8, 16, 32, 64)}
ROUND = {"rn": "", "rni": "rint", "rmi": "floor", "rpi": "ceil", "rzi": "trunc"}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
COMPARE |= {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "and": "&", "or": "|"}
SIGNS |= {"xor": "^"}


def c_name(register):
    """Return the variable of a register."""
    return "r_" + re.sub(r"\W", "_", register.lstrip("%"))


def read(x, kind):
    """Return a source operand of a type in C."""
    is_float = kind in ("f32", "f64")
    if x.startswith("%"):
        bits = c_name(x)
    elif x[:2] in ("0f", "0d"):
        bits = f"0x{x[2:]}{'u' if x[1] == 'f' else 'ull'}"
    elif x[0].isdigit() or x[0] == "-":
        bits = f"({x}ll)" if kind != "pred" else str(int(int(x) != 0))
    else:
        bits = f"(uint64_t)(uintptr_t){c_name(x)}"  # The address of an array.
    return f"as_{kind}({bits})" if is_float else f"({C_TYPES[kind]})({bits})"


def write(register, kind, value):
    """Return the statement that gives a register a value of a type."""
    value = f"of_{kind}({value})" if kind in ("f32", "f64") else f"({C_TYPES[kind]})({value})"
    return f"{c_name(register)} = {value};"


def converted(parts, x):
    """Return the value of a `cvt`, and its type."""
    to, of = parts[-2:]
    value = read(x, of)
    floats = {"f32", "f64"}
    if to in floats:
        rounding = ROUND[next((p for p in parts if p in ROUND), "rn")]
        # C rounds to nearest as PTX's `rn` does.
        return f"({C_TYPES[to]}){rounding}({value})", to
    if of in floats:
        assert "rzi" in parts and to in ("s32", "u32"), parts
        return f"whole_{to}({value})", to
    return value, to


def computed(op, args):
    """Return the value of an instruction without side effects, and its type."""
    base, *modifiers = op.split(".")
    assert not {"ftz", "approx", "full"} & {*modifiers}, op
    kind = modifiers[-1]
    x = [read(a, kind) for a in args]
    is_float = kind in ("f32", "f64")
    match base:
        case "mov" if args[0] in ("%tid.x", "%ctaid.x", "%ntid.x"):
            return {"%tid.x": "thread", "%ctaid.x": "block", "%ntid.x": "threads"}[args[0]], "u32"
        case "mov" | "cvta":
            bits = {"f32": "b32", "f64": "b64"}.get(kind, kind)
            return read(args[0], bits), bits
        case "fma":
            assert "rn" in modifiers
            return f"fma{'f' if kind == 'f32' else ''}({', '.join(x)})", kind
        case "add" | "sub" | "mul" | "div" if is_float:
            # What does not say that it is rounded, ptxas may fuse.
            assert "rn" in modifiers, op
            return f"{x[0]} {SIGNS[base]} {x[1]}", kind
        case "rcp":
            assert "rn" in modifiers, op
            return f"1 / {x[0]}", kind
        case "sqrt":
            assert "rn" in modifiers, op
            return f"sqrt{'f' if kind == 'f32' else ''}({x[0]})", kind
        case "copysign":
            return f"copysign{'f' if kind == 'f32' else ''}({x[1]}, {x[0]})", kind
        case "mul" | "mad" if "wide" in modifiers or "lo" in modifiers:
            wide = kind if "wide" not in modifiers else kind[0] + str(2 * int(kind[1:]))
            sum_ = f" + {read(args[2], wide)}" if base == "mad" else ""
            return f"({C_TYPES[wide]}){x[0]} * ({C_TYPES[wide]}){x[1]}{sum_}", wide
        case "mul" if "hi" in modifiers:
            wide = C_TYPES[kind[0] + str(2 * int(kind[1:]))]
            return f"({wide}){x[0]} * ({wide}){x[1]} >> {kind[1:]}", kind
        case "neg":
            return f"-{x[0]}", kind
        case "abs":
            return (f"fabs({x[0]})" if is_float else f"{x[0]} < 0 ? -{x[0]} : {x[0]}"), kind
        case "max" | "min" if is_float:
            return f"{base}_{kind}{'_nan' if 'NaN' in modifiers else ''}({x[0]}, {x[1]})", kind
        case "max" | "min":
            return f"{x[0]} {'>' if base == 'max' else '<'} {x[1]} ? {x[0]} : {x[1]}", kind
        case "not":
            return (f"!{x[0]}" if kind == "pred" else f"~{x[0]}"), kind
        case "shl" | "shr":
            # More than all bits are shifted out in PTX, undefined in C.
            by, size = read(args[1], "u32"), int(kind[1:])
            sign = "<<" if base == "shl" else ">>"
            rest = f"{x[0]} >> {size - 1}" if kind[0] == "s" else "0"
            return f"{by} < {size} ? {x[0]} {sign} {by} : {rest}", kind
        case "selp":
            bits = {"f32": "b32", "f64": "b64"}.get(kind, kind)
            yes, no = (read(a, bits) for a in args[:2])
            return f"{read(args[2], 'pred')} ? {yes} : {no}", bits
        case "setp":
            test, nans = modifiers[0], f"(isnan({x[0]}) || isnan({x[1]}))"
            if test in ("nan", "num"):
                return nans if test == "nan" else f"!{nans}", "pred"
            unordered = is_float and test.endswith("u")
            plain = f"{x[0]} {COMPARE[test.removesuffix('u') if is_float else test]} {x[1]}"
            if is_float:
                return (f"{nans} || {plain}" if unordered else f"!{nans} && {plain}"), "pred"
            return plain, "pred"
        case "cvt":
            return converted(op.split("."), args[0])
        case _ if base in SIGNS:
            return f"{x[0]} {SIGNS[base]} {x[1]}", kind
    raise NotImplementedError(f"{op} {args}")


def statement(text):
    """Return an instruction in C."""
    if jump := re.match(r"(?:@(!?)(%\w+) )?bra(?:\.uni)? \$(\w+)$", text):
        test = f"if ({jump[1]}{c_name(jump[2])}) " if jump[2] else ""
        return f"{test}goto {jump[3]};"
    if text == "ret":
        return "return;"
    op, _, rest = text.partition(" ")
    args = [a.strip() for a in rest.split(",")]
    base, *modifiers = op.split(".")
    if base == "ld" and "param" in modifiers:
        (number,) = re.findall(r"_param_(\d+)\]", args[1])
        return f"{c_name(args[0])} = parameters[{number}];"
    if base in ("ld", "st"):
        kind = modifiers[-1]
        bits = {"f32": "b32", "f64": "b64"}.get(kind, kind)
        ((place, offset),) = re.findall(r"\[(%?\w+)([+-]-?\d+)?\]", rest)
        # A vector of numbers lies side by side, and stands in braces.
        numbers = re.sub(r"\[.*?\]|[{}]", "", rest).replace(",", " ").split()
        start = f"({C_TYPES[bits]}*)({read(place, 'u64')} {offset or ''})"
        return " ".join(
            f"{c_name(x)} = ({start})[{i}];"
            if base == "ld"
            else f"({start})[{i}] = {read(x, bits)};"
            for i, x in enumerate(numbers)
        )
    return write(args[0], *reversed(computed(op, args[1:])))


def constants(code):
    """Yield the declarations in C of a module's arrays."""
    pattern = r"^\.(?:global|const) \.align \d+ \.(\w+) (\w+)(?:\[(\d+)\])?(?: = ([^;]*))?;"
    for kind, name, count, values in re.findall(pattern, code, re.MULTILINE):
        given = (values or "0").strip("{}")
        yield f"static const {C_TYPES[kind]} {c_name(name)}[{count or 1}] = {{{given}}};"


def c_of(code):
    """Return a module of PTX with one kernel in C."""
    body = code[code.index(".entry") :].partition("\n{")[2].partition("\n}")[0]
    variables, statements = [], []
    for line in (" ".join(x.split("//")[0].split()) for x in body.splitlines()):
        if registers := re.match(r"\.reg \.(\w+) %(\w+)<(\d+)>;", line):
            kind, name, count = registers.groups()
            bits = {"f32": "b32", "f64": "b64"}.get(kind, kind)
            variables += [f"{C_TYPES[bits]} r_{name}{i} = 0;" for i in range(1, int(count))]
        elif register := re.match(r"\.reg \.(\w+) %(\w+);", line):
            variables.append(f"{C_TYPES[register[1]]} r_{register[2]} = 0;")
        elif array := re.match(r"\.local \.align (\d+) \.b8 (\w+)\[(\d+)\];", line):
            variables.append(
                f"uint8_t {c_name(array[2])}[{array[3]}] __attribute__((aligned({array[1]})));"
            )
        elif label := re.match(r"\$(\w+):$", line):
            statements.append(f"{label[1]}: ;")
        elif line and not line.startswith("."):
            statements += [statement(x.strip()) for x in line.split(";") if x.strip()]
    return "\n".join(
        [
            HEAD,
            *constants(code),
            "static void one(const uint64_t* parameters, uint32_t block, uint32_t threads,",
            "                uint32_t thread) {",
            *variables,
            *statements,
            "}",
            "void run(const uint64_t* parameters, uint32_t blocks, uint32_t threads) {",
            "  for (uint32_t i = 0; i < blocks * threads; i++)",
            "    one(parameters, i / threads, threads, i % threads);",
            "}",
        ]
    )


def runnable(code):
    """Return a function that runs PTX on arrays: operands, and the shapes of the results."""
    assert COMPILER is not None
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "kernel.c", Path(folder) / "kernel.so"
        source.write_text(c_of(code))
        options = ["-O1", "-march=native", "-ffp-contract=off", "-fno-strict-aliasing", "-w"]
        subprocess.run(
            [COMPILER, *options, "-shared", "-fPIC", "-o", library, source, "-lm"], check=True
        )
        function = ctypes.CDLL(str(library)).run

    def run(operands, shapes, threads=64):
        arrays = [np.ascontiguousarray(x) for x in operands]
        results = [np.zeros(s.shape, s.dtype) for s in shapes]
        places = (ctypes.c_uint64 * (len(arrays) + len(results)))(
            *(x.ctypes.data for x in (*arrays, *results))
        )
        size = max(s.shape[-1] for s in shapes)
        function(places, -(-size // threads), threads)
        return results

    return run


def same(x, y):
    """Return whether numbers are the same: all bits but those of NaN and the sign of a zero."""
    x, y = np.asarray(x), np.asarray(y)
    return x == y if x.dtype.kind != "f" else (x == y) | (np.isnan(x) & np.isnan(y))


def use_ptx(monkeypatch):
    """Let programs for a CPU run the PTX of their kernels; return a list of what is launched."""
    launched = []

    def launch(code, operands, shapes, size):
        launched.append(code)
        run = runnable(code)
        return jax.pure_callback(lambda *x: run(x, shapes, cuda.BLOCK_THREADS), shapes, *operands)

    monkeypatch.setattr(cuda, "_launch", launch)
    monkeypatch.setattr(cpu, "supports", cuda.supports)
    monkeypatch.setattr(cpu, "compile", cuda.compile)
    return launched
