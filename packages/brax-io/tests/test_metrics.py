"""`brax.io.metrics`: the writer of Google's brax."""

import pytest

from brax.io import metrics


def test_scalars_are_written(tmp_path):
    pytest.importorskip("tensorboardX")
    with metrics.Writer(str(tmp_path)) as writer:
        writer.write_scalars(3, {"reward": 1.5})
    (file,) = tmp_path.iterdir()
    assert b"reward" in file.read_bytes()
