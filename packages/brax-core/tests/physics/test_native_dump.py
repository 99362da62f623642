"""Dumps of kernels: the files of each stage, and the counts of a kernel that is known by hand."""

import jax
import jax.numpy as jnp
import pytest

from brax.kernels import explain
from brax.kernels.batch_last import batch_last
from brax.kernels.codegen import dump

pytestmark = pytest.mark.usefixtures("code_generator")


def weighted(x, y):
    """Two products that are summed, for each environment."""
    return x[0] * y[0] + x[1] * y[1]


def run(scale):
    """Compile and run a kernel that no other test has; `scale` makes its text differ."""

    def scaled(x, y):
        return scale * weighted(x, y)

    out = jax.jit(jax.vmap(batch_last(scaled)))(jnp.ones((64, 2)), jnp.ones((64, 2)))
    assert (out == 2 * scale).all()


def test_a_dump_has_every_stage(tmp_path, monkeypatch):
    monkeypatch.setenv("BRAX_DUMP_IR", str(tmp_path / "new"))
    run(3.0)
    (folder,) = (tmp_path / "new").iterdir()
    assert folder.name.startswith("scaled-")
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    assert set(texts) == {"jaxpr.txt", "before.ll", "after.ll", "assembly.s", "summary.txt"}
    assert "mul" in texts["jaxpr.txt"]
    assert "define void @kernel(" in texts["before.ll"]
    assert "define void @kernel(" in texts["after.ll"]
    assert "kernel:" in texts["assembly.s"]
    page = texts["summary.txt"].splitlines()
    # Two products, their sum, and the scale; the loops are those over the batch and its parts.
    assert "  mul                            3" in page
    assert "  add                            1" in page
    assert "loops         2" in page
    # The scale is kept on the stack across the call that brings a part of the batch.
    assert "spills        1" in page


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BRAX_DUMP_IR", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="BRAX_DUMP_IR: the kernel scaled is not written"):
        run(5.0)


def test_nothing_is_compiled_again_without_the_variable(monkeypatch):
    monkeypatch.delenv("BRAX_DUMP_IR", raising=False)
    monkeypatch.setattr("brax.kernels.codegen.dump.stages", None)
    run(7.0)


def test_explain_returns_the_summary_of_each_kernel():
    x = jax.ShapeDtypeStruct((64, 2), jnp.float32)
    # The second time the kernel is known, and is explained all the same.
    for _ in range(2):
        found = explain(jax.vmap(batch_last(weighted)), x, x)
        (kernel,) = found.native
        assert (kernel.kernel, kernel.optimized, kernel.loops) == ("weighted", True, 2)
        assert (kernel.equations["mul"], kernel.equations["add"]) == (2, 1)
        assert str(found) == str(kernel)
    # A batch of one is compiled quickly.
    x = jax.ShapeDtypeStruct((2,), jnp.float32)
    assert not explain(batch_last(weighted), x, x).native[0].optimized


@pytest.mark.filterwarnings("ignore:XLA compiles the kernel")
def test_explain_says_why_a_kernel_is_left_to_xla():
    def ranked(x):
        return jnp.linalg.eigvalsh(jnp.moveaxis(x[:, None] * x[None], -1, 0)).T

    found = explain(batch_last(ranked), jnp.ones(2))
    assert not found.native
    assert str(found).startswith("XLA compiles the kernel ranked, because ")
    assert str(explain(jnp.sin, 1.0)) == "The program has no kernels."


X86 = """kernel:
\t.cfi_startproc
\tpushq\t%rbp
\tsubq\t$88, %rsp
\tvmovups\t(%r15,%rax,4), %zmm1
\tvmulps\t(%r15,%r13,4), %zmm0, %zmm3
\tvfmadd231ps\t(%r12,%rcx,4), %zmm2, %zmm3 # zmm3 = (zmm2 * mem) + zmm3
\tvmovups\t%zmm3, 16(%rsp)                 # 64-byte Spill
\tvmovaps\t%zmm3, %zmm2
\tjmp\t.LBB0_1
\tretq
"""
ARM = """kernel:
\tsub\tsp, sp, #64
\tldr\tq0, [x8]
\tfmla\tv0.4s, v1.4s, v2.4s
\tstr\tq0, [sp, #16]                      // 16-byte Folded Spill
\tb\t.LBB0_1
\tret
"""


@pytest.mark.parametrize(
    ("text", "counts", "frame"),
    [
        # Counted by hand; setting up the frame is arithmetic.
        pytest.param(X86, {"arithmetic": 3, "memory": 2, "other": 4}, 88, id="x86"),
        pytest.param(ARM, {"arithmetic": 2, "memory": 2, "other": 2}, 64, id="arm"),
    ],
)
def test_instructions_are_counted_by_kind(text, counts, frame):
    assert dump._instructions(text) == counts
    assert dump._largest_frame(text) == frame
