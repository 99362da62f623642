"""The base class of environments, for training.md."""

from brax.env import Env
