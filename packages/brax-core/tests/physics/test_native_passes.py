"""The passes over instructions, each on a few of them."""

import pytest

from brax.kernels.codegen import ir, outlining, target
from brax.kernels.codegen.broadcasts import at_their_uses
from brax.kernels.codegen.ir import Effect, Instruction, Type, text_of
from brax.kernels.codegen.outlining import outlined
from brax.kernels.codegen.schedule import scheduled
from brax.kernels.codegen.stack import allocate_stack

pytestmark = pytest.mark.usefixtures("code_generator")

FLOATS = Type("float", 8)


def number(result, *operands):
    """Return the sum of some numbers."""
    return Instruction("fadd", operands, (FLOATS, *[None] * (len(operands) - 1)), FLOATS, result)


def loaded(result, buffer):
    return ir.address(f"{result}p", FLOATS, buffer, "0"), ir.load(result, FLOATS, f"{result}p")


def stored(x, buffer):
    return ir.address(f"{x}.{buffer}", FLOATS, buffer, "0"), ir.store(x, FLOATS, f"{x}.{buffer}")


# The right texts are from LLVM's language reference.
@pytest.mark.parametrize(
    ("instruction", "text"),
    [
        (number("%c", "%a", "%b"), "%c = fadd <8 x float> %a, %b"),
        (
            Instruction("icmp slt", ("%a", "3"), (ir.I32, None), ir.I1, "%c"),
            "%c = icmp slt i32 %a, 3",
        ),
        (
            Instruction("sext", ("%a",), (ir.I32,), ir.I64, "%c"),
            "%c = sext i32 %a to i64",
        ),
        (
            Instruction("call", ("@f", "%a", "1"), (None, FLOATS, ir.I32), FLOATS, "%c"),
            "%c = call <8 x float> @f(<8 x float> %a, i32 1)",
        ),
        (
            Instruction("extractvalue", ("%a", "1"), (FLOATS._replace(members=2), None), FLOATS),
            "extractvalue {<8 x float>, <8 x float>} %a, 1",
        ),
        (ir.address("%p", FLOATS, "%m1", "%i"), "%p = getelementptr <8 x float>, ptr %m1, i32 %i"),
        (ir.load("%a", FLOATS, "%p", 4), "%a = load <8 x float>, ptr %p, align 4"),
        (ir.store("%a", FLOATS, "%p"), "store <8 x float> %a, ptr %p"),
        (ir.phi("%i", ir.I32, ("0", "x"), ("%j", "y")), "%i = phi i32 [ 0, %x ], [ %j, %y ]"),
        (ir.branch("%c", "yes", "no"), "br i1 %c, label %yes, label %no"),
        (ir.jump("yes"), "br label %yes"),
        (ir.label("yes"), "yes:"),
        (ir.RETURN, "ret void"),
    ],
)
def test_text_of_an_instruction(instruction, text):
    assert text_of(instruction) == text


def test_sizes_of_types():
    assert [Type("float").bytes, FLOATS.bytes, Type("ptr", 4).bytes] == [4, 32, 32]
    assert FLOATS._replace(members=3).bytes == 96


def results(groups):
    return [group[-1].result or group[-1].operation for group in groups]


def test_an_instruction_moves_down_to_its_first_use():
    body = [
        (number("%v1", "1", "2"),),
        (number("%v2", "3", "4"),),
        (number("%v3", "5", "6"),),  # nobody uses it
        (ir.store("%v2", FLOATS, "%out"),),
        (number("%v4", "%v1", "%v2"),),
        (ir.store("%v4", FLOATS, "%out"),),
    ]
    assert results(scheduled(body, ())) == ["%v2", "store", "%v1", "%v4", "store"]


def test_nothing_moves_across_the_end_of_a_block():
    body = [(number("%v1", "1", "2"),), (ir.jump("x"), ir.label("x")), stored("%v1", "%out")]
    assert results(scheduled(body, ())) == ["%v1", "label", "store"]


def test_a_load_stays_between_the_stores_around_it():
    body = [
        stored("1", "%m1"),
        loaded("%v1", "%m1"),
        stored("2", "%m1"),
        stored("%v1", "%m2"),
    ]
    assert list(scheduled(body, ("%m1", "%m2"))) == body
    # The same load may move beyond a store to another buffer.
    body[2] = stored("2", "%m3")
    assert list(scheduled(body, ("%m1", "%m2", "%m3"))) == [body[0], body[2], body[1], body[3]]


def test_values_for_other_blocks_are_ordered_by_the_operations_that_they_share():
    # As of two joints: for each one an axis, of which others need a product and then a sum.
    joints = "ab"
    body = [
        *((number(f"%axis.{x}", "1", "2"),) for x in joints),
        *((number(f"%product.{x}", f"%axis.{x}", "3"),) for x in joints),
        *((number(f"%sum.{x}", f"%axis.{x}", f"%product.{x}"),) for x in joints),
        (ir.jump("next"), ir.label("next")),
        *(stored(f"%{what}.{x}", "%out") for what in ("product", "sum") for x in joints),
    ]
    names = [f"%{what}.{x}" for x in joints for what in ("axis", "product", "sum")]
    assert results(scheduled(body, ()))[:6] == names
    # What comes before a side effect stays before it.
    body.insert(4, stored("1", "%out"))
    names = ["%axis.a", "%product.a", "%axis.b", "%product.b", "store", "%sum.a", "%sum.b"]
    assert results(scheduled(body, ()))[:7] == names


def test_a_value_that_shares_operations_comes_before_one_that_needs_fewer():
    body = [
        (number("%axis", "1", "2"),),
        (number("%product", "%axis", "3"),),
        (number("%other", "4", "5"),),
        (number("%last", "%other", "6"),),
        (number("%x", "7", "8"),),
        (number("%y", "%x", "9"),),
        (number("%sum", "%axis", "%y"),),
        (ir.jump("next"), ir.label("next")),
        *(stored(x, "%out") for x in ("%product", "%last", "%sum")),
    ]
    names = ["%axis", "%product", "%x", "%y", "%sum", "%other", "%last"]
    assert results(scheduled(body, ()))[:7] == names


def test_shared_numbers_are_read_where_they_are_used():
    one = Type("float")
    before = [
        Instruction("insertelement", ("poison", "%n", "0"), (FLOATS, one, ir.I32), FLOATS, "%a"),
        Instruction(
            "shufflevector", ("%a", "poison", "zeroinitializer"), (FLOATS,) * 3, FLOATS, "%b"
        ),
    ]
    body = [
        number("%x", "%b", "%first"),
        number("%y", "%b", "%b"),
        ir.jump("next"),
        ir.label("next"),
        ir.phi("%z", FLOATS, ("%b", "tile"), ("%w", "next")),
        number("%w", "%b", "%z"),
    ]
    result = at_their_uses(before, body, FLOATS, "%t")
    # Two uses in one block, so two copies, which the other block reads again.
    assert result.size == 2
    assert [text_of(i) for i in result.before[2:]] == [
        "%t.in0.place = getelementptr float, ptr %t, i32 0",
        "%t.in0.first = insertelement <2 x float> poison, float %n, i32 0",
        "%t.in0 = shufflevector <2 x float> %t.in0.first, <2 x float> poison, "
        "<2 x i32> zeroinitializer",
        "store <2 x float> %t.in0, ptr %t.in0.place, align 4",
    ]
    read = [i.operands for i in result.body if i.operation == "getelementptr"]
    assert read == [("float", "%t", "0"), ("float", "%t", "1"), ("float", "%t", "0")]
    sums = [i for i in result.body if i.operation == "fadd"]
    assert [i.operands for i in sums] == [
        ("%b.at0", "%first"),
        ("%b.at1", "%b.at1"),
        ("%b.at5", "%z"),
    ]
    assert body[4] in result.body
    # Vectors of another type are left alone.
    assert at_their_uses(before, body, Type("double", 8), "%t") == (before, body, 0)


def test_what_a_loop_carries_is_in_no_stack_slot():
    text = """
    define float @f(float %x) {
    %place = alloca float
    store float %x, ptr %place
    br label %loop
    loop:
    %v = load float, ptr %place
    %w = fmul float %v, %v
    store float %w, ptr %place
    %end = fcmp ogt float %w, 1.0
    br i1 %end, label %out, label %loop
    out:
    ret float %w
    }
    """
    _, optimized = target.machine_code(text, 1)
    assert "alloca" not in optimized
    assert "phi float" in optimized
    _, quick = target.machine_code(text, 0)
    assert "alloca" in quick


def test_buffers_share_memory_when_one_ends_before_the_other_begins():
    sizes = {"%m1": 64, "%m2": 64, "%m3": 100}
    body = [
        stored("1", "%m1"),
        stored("2", "%m3"),  # nobody reads it
        stored("2", "%m2"),
        loaded("%v1", "%m1"),
        loaded("%v2", "%m2"),
    ]
    kept, offsets, used = allocate_stack(body, sizes)
    assert kept == [body[0], *body[2:]]
    assert (offsets, used) == ({"%m1": 0, "%m2": 64}, 128)
    body = [stored("1", "%m1"), loaded("%v1", "%m1"), stored("2", "%m2"), loaded("%v2", "%m2")]
    assert allocate_stack(body, sizes)[1:] == ({"%m1": 0, "%m2": 0}, 64)


def test_what_follows_the_buffers_is_aligned():
    """Stack slots do: a misaligned one made a long kernel crash."""
    body = [stored("1", "%m1"), stored("2", "%m2"), loaded("%v1", "%m1"), loaded("%v2", "%m2")]
    assert allocate_stack(body[::2], {"%m1": 36})[2] == 64
    # A thread of a GPU has no vectors, and little memory.
    sizes = {"%m1": 36, "%m2": 4}
    assert allocate_stack(body, sizes, 16)[1:] == ({"%m1": 0, "%m2": 48}, 64)
    assert allocate_stack(body, sizes)[1:] == ({"%m1": 0, "%m2": 64}, 128)


def test_a_buffer_from_outside_of_a_loop_lives_through_all_of_it():
    body = [
        stored("1", "%m1"),
        (ir.jump("x"), ir.label("x")),
        loaded("%v1", "%m1"),
        stored("2", "%m2"),
        loaded("%v2", "%m2"),
        (ir.branch("%v3", "x", "y"), ir.label("y")),
    ]
    _, offsets, used = allocate_stack(body, {"%m1": 64, "%m2": 64})
    assert (offsets, used) == ({"%m1": 0, "%m2": 64}, 128)


def test_a_call_that_reads_and_writes_keeps_a_buffer():
    call = Instruction("call", ("@f", "%m1"), (None, ir.PTR), effect=Effect.READS_AND_WRITES)
    body = [stored("1", "%m1"), (call,)]
    assert allocate_stack(body, {"%m1": 32})[0] == body


def test_what_goes_from_one_part_to_another_goes_through_memory(monkeypatch):
    monkeypatch.setattr(outlining, "PART_LINES", 2)
    monkeypatch.setattr(outlining, "MIN_PART_LINES", 2)
    less = Instruction("fcmp olt", ("%v1", "%v1"), (FLOATS, None), Type("i1", 8), "%v2")
    which = Instruction("select", ("%v2", "%v1", "%v1"), (Type("i1", 8), FLOATS, FLOATS), FLOATS)
    body = [number("%v1", "%x", "1"), less, which._replace(result="%v3"), number("%v4", "%v3")]
    out = outlined([number("%x", "2", "3")], body, "tile", {}, 0)
    assert [text_of(i).split("(")[0] for i in out.body] == ["call void @part1", "call void @part2"]
    # Eight floats have 32 bytes; truth values are kept as integers of as many bits. Values get
    # their places in the order in which other parts read them.
    assert [text_of(i) for i in out.functions["@part1"].body] == [
        "entry:",
        "%x.entry.from = getelementptr i8, ptr %stack, i64 0",
        "%x.entry = load <8 x float>, ptr %x.entry.from, align 32",
        "%v1 = fadd <8 x float> %x.entry, 1",
        "%v1.to = getelementptr i8, ptr %stack, i64 64",
        "store <8 x float> %v1, ptr %v1.to, align 32",
        "%v2 = fcmp olt <8 x float> %v1, %v1",
        "%v2.to = getelementptr i8, ptr %stack, i64 32",
        "%v2.bits = sext <8 x i1> %v2 to <8 x i32>",
        "store <8 x i32> %v2.bits, ptr %v2.to, align 32",
        "ret void",
    ]
    assert out.used == 96
