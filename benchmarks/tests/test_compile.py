"""A chain of 100 links compiles in under 30 s, by the time of all cores."""

import resource
import sys
from contextlib import closing

import models
import pytest
from sides import Side

LINKS, MOST = 100, 30.0
IMPORT_AND_RESET = 40
"""Seconds of the process for what is not counted, so that it ends soon after a miss."""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("pipeline", models.PIPELINES)
def test_a_long_chain_compiles_in_time(pipeline):
    settings = {"model": models.chain(LINKS), "backend": pipeline, "batch": 256}
    with closing(Side(pipeline, sys.executable, settings)) as side:
        seconds = int(MOST + IMPORT_AND_RESET)
        resource.prlimit(side.process.pid, resource.RLIMIT_CPU, (seconds, seconds))
        assert side.ask("compile")["cores"] < MOST
