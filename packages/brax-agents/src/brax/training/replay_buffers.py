"""Replay buffers, under the path that users import."""

from brax.training.learning.replay_buffers import ReplayBuffer as ReplayBuffer
from brax.training.learning.replay_buffers import ReplayBufferState as ReplayBufferState
from brax.training.learning.replay_buffers import Sample as Sample
