"""Counts of executed instructions, by hand for short kernels."""

import pytest

from brax.kernels.ahead_of_time.executed import executed

HEAD = """
.visible .entry kernel(
	.param .u64 .ptr .global .align 16 kernel_param_0
)
{
	.reg .pred 	%p<3>;
	.reg .b32 	%r<9>;
"""

PROGRAMS = {
    # Three instructions, of which one is conditional.
    "straight": (
        3,
        """
	ld.param.b64 	%rd1, [kernel_param_0];
	@%p1 st.global.b32 	[%rd1], 0f3F800000;
	ret;
""",
    ),
    # Two before, four in each of ten rounds, one after.
    "a loop": (
        2 + 10 * 4 + 1,
        """
	mov.b32 	%r1, 0;
	mov.b32 	%r2, 0f00000000;
$L__BB0_1:
	add.rn.f32 	%r2, %r2, 0f3F800000;
	add.s32 	%r1, %r1, 1;
	setp.ne.b32 	%p1, %r1, 10;
	@%p1 bra 	$L__BB0_1;
	ret;
""",
    ),
    # The outer loop counts down from five, and has four instructions beside the inner one's twelve.
    "a loop in a loop": (
        2 + 5 * (4 + 4 * 3) + 1,
        """
	mov.b32 	%r5, 5;
	mov.b32 	%r1, %r5;
$L__BB0_1:
	mov.b32 	%r3, 0;
$L__BB0_2:
	add.s32 	%r3, %r3, 2;
	setp.lt.s32 	%p2, %r3, 8;
	@%p2 bra 	$L__BB0_2;
	add.s32 	%r1, %r1, -1;
	setp.ne.b32 	%p1, %r1, 0;
	@%p1 bra 	$L__BB0_1;
	ret;
""",
    ),
    # The counter is compared before it changes: rounds of 0, 1, 2 and 3.
    "a test of the old number": (
        1 + 4 * 4 + 1,
        """
	mov.b32 	%r1, 0;
$L__BB0_1:
	add.s32 	%r2, %r1, 1;
	setp.ne.b32 	%p1, %r1, 3;
	mov.b32 	%r1, %r2;
	@%p1 bra 	$L__BB0_1;
	ret;
""",
    ),
    # Newton's method: at most three rounds, two ends, and blocks out of order.
    "a loop that may end before": (
        2 + 3 * 5 + 2,
        """
	mov.b32 	%r1, 0;
	bra.uni 	$L__BB0_2;
$L__BB0_1:
	add.s32 	%r1, %r1, 1;
	setp.ne.b32 	%p1, %r1, 3;
	@%p1 bra 	$L__BB0_2;
	ret;
$L__BB0_2:
	setp.gt.f32 	%p2, %r2, 0f00000000;
	@%p2 bra 	$L__BB0_1;
	ret;
""",
    ),
    # Without a counter: once.
    "a loop of unknown length": (
        4,
        """
$L__BB0_1:
	mul.rn.f32 	%r2, %r2, %r2;
	setp.gt.f32 	%p1, %r2, 0f3F800000;
	@%p1 bra 	$L__BB0_1;
	ret;
""",
    ),
    # Both branches count.
    "a choice": (
        6,
        """
	setp.gt.f32 	%p1, %r2, 0f3F800000;
	@%p1 bra 	$L__BB0_1;
	mul.rn.f32 	%r2, %r2, %r2;
	bra.uni 	$L__BB0_2;
$L__BB0_1:
	sub.rn.f32 	%r2, %r2, %r2;
$L__BB0_2:
	ret;
""",
    ),
    # Nobody comes there.
    "what is not reached": (
        1,
        """
	ret;
	mul.rn.f32 	%r2, %r2, %r2;
	bra.uni 	$L__BB0_2;
$L__BB0_2:
	ret;
""",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_instructions_of_a_kernel(name):
    count, body = PROGRAMS[name]
    assert executed(f"{HEAD}{body}}}\n") == count
