"""Memory of large results is reused."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from kernels.cases import without_extension

import deconv_ir
from deconv_ir.kernels.runtime import memory
from deconv_ir.kernels.runtime.extension import compiled_module

MIB = 1 << 20


def pages() -> int:
    """Return the resident bytes of this process."""
    import psutil

    return int(psutil.Process().memory_info().rss)


@pytest.fixture(autouse=True)
def pool():
    """Reset the pool: a command that ran in this process has turned it off."""
    memory.set_memory_pool_limit(192 * MIB)
    yield
    memory.set_memory_pool_limit(192 * MIB)


def address_of(size: int) -> int:
    """Return the address of an array of `size` bytes, which is freed on return."""
    return int(memory.empty((size,), np.dtype(np.uint8)).ctypes.data)


def test_the_last_size_is_used_again():
    """Arrays of other sizes, which fill the pool, make room for the last size."""
    others = [memory.empty((45 * MIB,), np.dtype(np.uint8)) for _ in range(4)]
    del others
    first = address_of(130 * MIB)
    taken = memory.empty((131 * MIB,), np.dtype(np.uint8))  # would get the address if it were freed
    assert taken.ctypes.data != first
    assert address_of(130 * MIB) == first


def touched(size: int) -> np.ndarray:
    """Return an array with all pages resident."""
    array = memory.empty((size,), np.dtype(np.uint8))
    array[::4096] = 1
    return array


@pytest.mark.skipif(compiled_module() is None, reason="without it, nothing is kept")
@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer keeps what is freed"
)
@pytest.mark.parametrize(("total", "is_kept"), [(270, True), (250, False)])
def test_results_are_kept_within_a_bound_on_all(total: int, is_kept: bool) -> None:
    """Of two freed arrays of 130 MiB, the second is kept if both are within the bound.

    It is released for an array that is larger: else 520 MiB would be resident.
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
def test_freed_blocks_are_not_kept_within_a_bound_of_0():
    memory.set_memory_pool_limit(0)
    for _ in range(2):
        between = pages() + 130 * MIB  # generous limits: an emulator also frees memory of its own
        array = memory.empty((260 * MIB,), np.dtype(np.uint8))
        array[::4096] = 1
        assert pages() > between
        del array
        assert pages() < between


def test_memory_that_is_not_there_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extension, memory that was never allocated is not freed."""
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    with without_extension(), pytest.raises(MemoryError):
        memory.empty((1 << 60,), np.dtype(np.uint8))
    assert not ignored


def test_limits_that_do_not_exist_are_refused() -> None:
    with pytest.raises(deconv_ir.SettingError, match="at least 0, not -1"):
        deconv_ir.set_memory_pool_limit(-1)
    with pytest.raises(deconv_ir.SettingError, match="at least 1, not 0"):
        deconv_ir.set_threads(0)
