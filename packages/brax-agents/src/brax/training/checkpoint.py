"""Checkpoints, under the path that users import."""

from typing import TYPE_CHECKING

from brax.training._removed import explain_removed
from brax.training.checkpoints.checkpoint import Checkpoint as Checkpoint
from brax.training.checkpoints.checkpoint import available as available
from brax.training.checkpoints.checkpoint import load as load
from brax.training.checkpoints.checkpoint import restore as restore

if not TYPE_CHECKING:  # type checkers would take any name for one of this module's
    __getattr__ = explain_removed(__name__)
