"""Checkpoints, under the path that users import."""

from brax.training.checkpoints.checkpoint import FORMAT as FORMAT
from brax.training.checkpoints.checkpoint import RECORD as RECORD
from brax.training.checkpoints.checkpoint import Checkpoint as Checkpoint
from brax.training.checkpoints.checkpoint import available as available
from brax.training.checkpoints.checkpoint import load as load
from brax.training.checkpoints.checkpoint import name_of as name_of
from brax.training.checkpoints.checkpoint import orbax_of_this_process as orbax_of_this_process
from brax.training.checkpoints.checkpoint import record_of as record_of
from brax.training.checkpoints.checkpoint import restore as restore
