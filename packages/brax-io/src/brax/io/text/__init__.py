"""Brax's own model format of 2021: bodies and the joints between them, as text or made in Python.

Users call `Config`, `load`, `loads`, `build` and `default_q`. The messages are those of
`config.proto`, read with protobuf's text format. Neither MuJoCo nor `brax.io.mjcf` is imported.
Start reading at `reader`, then `builder`.
"""

from brax.io.text.reader import IGNORED_FIELDS as IGNORED_FIELDS
from brax.io.text.reader import READER as READER
from brax.io.text.reader import Config as Config
from brax.io.text.reader import build as build
from brax.io.text.reader import default_q as default_q
from brax.io.text.reader import load as load
from brax.io.text.reader import loads as loads
from brax.io.text.reader import report as report
