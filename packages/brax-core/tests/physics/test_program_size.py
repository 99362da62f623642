"""Counts of kernels and bytes of a GPU program, worked out by hand for a small one."""

import pytest

from brax.errors import ConfigError
from brax.kernels.ahead_of_time.described_device import device
from brax.kernels.ahead_of_time.program_size import program_size
from brax.kernels.gpu_options import gpu_options

PROGRAM = """HloModule jit_step, is_scheduled=true

%fused_add (p.0: f32[100], p.1: f32[100]) -> f32[100] {
  %p.0 = f32[100]{0} parameter(0)
  %p.1 = f32[100]{0} parameter(1)
  ROOT %add.1 = f32[100]{0} add(%p.0, %p.1), metadata={op_name="jit(step)/add"}
}

%fused_slices (p.2: f32[100], p.3: f32[8,100], p.4: f32[1,100]) -> (f32[5], f32[8,100]) {
  %p.2 = f32[100]{0} parameter(0)
  %slice.1 = f32[5]{0} slice(%p.2), slice={[0:5]}
  %p.3 = f32[8,100]{1,0} parameter(1)
  %p.4 = f32[1,100]{1,0} parameter(2)
  %constant.1 = s32[] constant(0)
  %update.1 = f32[8,100]{1,0} dynamic-update-slice(%p.3, %p.4, %constant.1, %constant.1)
  ROOT %tuple.1 = (f32[5]{0}, f32[8,100]{1,0}) tuple(%slice.1, %update.1)
}

%body (arg: (s32[], f32[100])) -> (s32[], f32[100]) {
  %arg = (s32[], f32[100]{0}) parameter(0)
  %gte.0 = s32[] get-tuple-element(%arg), index=0
  %gte.1 = f32[100]{0} get-tuple-element(%arg), index=1
  %fusion.1 = f32[100]{0} fusion(%gte.1, %gte.1), kind=kLoop, calls=%fused_add
  %copy.1 = f32[100]{0} copy(%fusion.1)
  ROOT %tuple.2 = (s32[], /*index=1*/f32[100]{0}) tuple(%gte.0, %copy.1)
}

%test (arg.1: (s32[], f32[100])) -> pred[] {
  %arg.1 = (s32[], f32[100]{0}) parameter(0)
  ROOT %constant.2 = pred[] constant(true)
}

ENTRY %main (x: f32[100], y: f32[8,100], z: f32[1,100]) -> f32[5] {
  %x = f32[100]{0} parameter(0)
  %y = f32[8,100]{1,0} parameter(1)
  %z = f32[1,100]{1,0} parameter(2)
  %constant.3 = s32[] constant(0)
  %tuple.3 = (s32[], f32[100]{0}) tuple(%constant.3, %x)
  %while.1 = (s32[], f32[100]{0}) while(%tuple.3), condition=%test, body=%body, TRIPS
  %gte.2 = f32[100]{0} get-tuple-element(%while.1), index=1
  %fusion.2 = (f32[5]{0}, f32[8,100]{1,0}) fusion(%gte.2, %y, %z), kind=kInput, calls=%fused_slices
  ROOT %gte.3 = f32[5]{0} get-tuple-element(%fusion.2), index=0
}
"""


def test_kernels_in_a_loop_count_as_often_as_it_runs():
    size = program_size(PROGRAM.replace("TRIPS", 'backend_config={"known_trip_count":{"n":"3"}}'))
    # In a round the sum reads two arrays and writes one, the copy reads and writes one. After the
    # loop five numbers are read and written, and a row is read and written in place.
    assert size == (3 * 2 + 1, 3 * 4 * 100 * (3 + 2) + 4 * (2 * 5 + 2 * 100), 0)


def test_a_loop_of_unknown_length_is_a_synchronization():
    assert program_size(PROGRAM.replace("TRIPS", "backend_config={}")).syncs == 1


def test_targets_are_those_that_are_described():
    with pytest.raises(ConfigError, match=r"one of the described devices \(sm_90\): 'sm_12'"):
        device("sm_12")


def test_a_cpu_gets_no_options_of_a_gpu():
    assert gpu_options() is None
