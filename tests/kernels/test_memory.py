"""Memory for large results is used again."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

import deconv_ir
from deconv_ir.kernels.runtime import memory
from deconv_ir.kernels.runtime.extension import compiled_module

MIB = 1 << 20


def pages() -> int:
    """Bytes of this process that are resident."""
    import psutil

    return int(psutil.Process().memory_info().rss)


@pytest.fixture(autouse=True)
def pool():
    """The pool as it is at the start: a command that ran in this process has turned it off."""
    memory.set_memory_pool_limit(192 * MIB)
    yield
    memory.set_memory_pool_limit(192 * MIB)


def address_of(size: int) -> int:
    """Where an array of so many bytes lay; it is gone when this returns."""
    return int(memory.empty((size,), np.dtype(np.uint8)).ctypes.data)


def test_the_last_size_is_used_again():
    """Those of other sizes, which fill the pool, make room for it."""
    others = [memory.empty((45 * MIB,), np.dtype(np.uint8)) for _ in range(4)]
    del others
    first = address_of(130 * MIB)
    taken = memory.empty((131 * MIB,), np.dtype(np.uint8))  # what the system would give again
    assert taken.ctypes.data != first
    assert address_of(130 * MIB) == first


def touched(size: int) -> np.ndarray:
    """An array all of whose pages are resident."""
    array = memory.empty((size,), np.dtype(np.uint8))
    array[::4096] = 1
    return array


@pytest.mark.skipif(compiled_module() is None, reason="without it, nothing is kept")
@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer keeps what is freed"
)
@pytest.mark.parametrize(("total", "is_kept"), [(270, True), (250, False)])
def test_results_are_kept_within_a_bound_on_all(total: int, is_kept: bool) -> None:
    """Of two arrays of 130 MiB, the second stays when it is freed if both are within the bound.

    It makes way for an array that is larger: else 520 MiB would be resident.
    """
    memory.reuse_within(total * MIB)
    before = pages()
    used, freed = touched(130 * MIB), touched(130 * MIB)
    del freed
    assert (pages() - before > 200 * MIB) is is_kept
    larger = touched(260 * MIB)
    assert pages() - before < 450 * MIB
    del used, larger


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer keeps what is freed"
)
def test_nothing_is_kept_where_that_is_said():
    memory.set_memory_pool_limit(0)
    for _ in range(2):
        between = pages() + 130 * MIB  # far from both: an emulator gives back memory of its own
        array = memory.empty((260 * MIB,), np.dtype(np.uint8))
        array[::4096] = 1
        assert pages() > between
        del array
        assert pages() < between


def test_memory_that_is_not_there_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extension: nothing is given back that was never taken."""
    ignored: list[object] = []
    monkeypatch.setattr(memory, "compiled_module", lambda: None)
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    with pytest.raises(MemoryError):
        memory.empty((1 << 60,), np.dtype(np.uint8))
    assert not ignored


def test_limits_that_do_not_exist_are_refused() -> None:
    with pytest.raises(deconv_ir.SettingError, match="at least 0, not -1"):
        deconv_ir.set_memory_pool_limit(-1)
    with pytest.raises(deconv_ir.SettingError, match="at least 1, not 0"):
        deconv_ir.set_threads(0)
