"""A damaged file of any format is a `System` or a `ModelError`: no other error, and no hang."""

import contextlib
import functools
import signal
import warnings
from collections.abc import Callable

import pytest
from damage import damaged_fields, damaged_json, damaged_text, damaged_xml
from test_mjcf_fuzz import MODEL
from test_text import WALKER
from test_urdf import ARM

from brax import plugins
from brax.base import System
from brax.errors import ModelError
from brax.io import json, mjcf

WHOLE: dict[str, Callable[[], str]] = {
    "xml": lambda: MODEL,
    "urdf": lambda: ARM,
    "textproto": lambda: WALKER,
    "json": functools.cache(lambda: json.dumps(mjcf.loads(MODEL))),
}
STRUCTURED: dict[str, Callable[[str, int], str]] = {
    "xml": damaged_xml,
    "urdf": damaged_xml,
    "json": damaged_json,
    "textproto": damaged_fields,
}
READERS = {"xml": "mjcf", "urdf": "urdf", "json": "json", "textproto": "text"}
LONGEST = 30
"""Seconds after which a reader hangs."""


@contextlib.contextmanager
def limited(what):
    def ring(*_):
        raise AssertionError(f"{what}: hangs")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(suffix, seed, folder):
    """Return the outcome for a seed's damaged file; every third one breaks the grammar."""
    if seed % 3:
        content = STRUCTURED[suffix](WHOLE[suffix](), seed).encode("utf-8", "replace")
    else:
        content = damaged_text(WHOLE[suffix](), seed)
    path = folder / f"model.{suffix}"
    path.write_bytes(content)
    reader = plugins.get("model_format", READERS[suffix])
    with limited(f"{suffix}, seed {seed}"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on odd masses, and inertias that were inferred
        try:
            system = reader.load(path)
        except ModelError as error:
            assert str(error), f"{suffix}, seed {seed}: an empty message"
            return "refused"
    assert isinstance(system, System)
    return "loaded"


def check(suffix, seeds, folder):
    outcomes = []
    for seed in seeds:
        try:
            outcomes.append(outcome(suffix, seed, folder))
        except Exception as error:
            kept = (folder / f"model.{suffix}").read_text("utf-8", "replace")
            raise AssertionError(f"{suffix}, seed {seed}: {error!r}\n{kept}") from error
    assert min(outcomes.count("loaded"), outcomes.count("refused")) > len(outcomes) / 100


@pytest.mark.slow
@pytest.mark.parametrize("suffix", WHOLE)
def test_a_hundred_damaged_files(suffix, tmp_path):
    check(suffix, range(100), tmp_path)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("suffix", WHOLE)
def test_a_thousand_damaged_files(suffix, tmp_path):
    check(suffix, range(100, 1100), tmp_path)
