"""Checkpoints, under the path that users import."""

from brax.training.checkpoints.checkpoint import Checkpoint as Checkpoint
from brax.training.checkpoints.checkpoint import available as available
from brax.training.checkpoints.checkpoint import load as load
from brax.training.checkpoints.checkpoint import restore as restore
