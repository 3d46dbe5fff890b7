"""The function that reads files of a bounded size."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from deconv_ir.formats.files import OversizeError, read_regular


def test_a_file_as_large_as_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789")
    assert read_regular(path, 10) == b"0123456789"
    with pytest.raises(OversizeError, match="the file has 10 bytes, more than the limit of 9") as e:
        read_regular(path, 9)
    assert (e.value.errno, e.value.size, e.value.filename) == (errno.EFBIG, 10, str(path))


@pytest.mark.parametrize("limit", [10, 49, 50, 1000])
def test_a_file_that_grows_is_read_whole_or_refused(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789")
    original = os.fstat

    def grow(descriptor: int) -> os.stat_result:
        found = original(descriptor)
        path.write_bytes(b"0123456789" * 5)
        return found

    monkeypatch.setattr(os, "fstat", grow)
    if limit >= 50:
        assert read_regular(path, limit) == b"0123456789" * 5
    else:
        with pytest.raises(OversizeError):
            read_regular(path, limit)
