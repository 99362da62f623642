"""Replay buffers, under the path that users import."""

from typing import TYPE_CHECKING

from brax.training._removed import explain_removed
from brax.training.learning.replay_buffers import ReplayBuffer as ReplayBuffer
from brax.training.learning.replay_buffers import ReplayBufferState as ReplayBufferState
from brax.training.learning.replay_buffers import Sample as Sample

if not TYPE_CHECKING:  # type checkers would take any name for one of this module's
    __getattr__ = explain_removed(__name__)
