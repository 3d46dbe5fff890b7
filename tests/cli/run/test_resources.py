"""Memory settings of the process of deconv-run."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace
from typing import cast

import pytest
from deconv_cli.run.resources import hand_back

from deconv_ir import Plan, kernels

MMAP_THRESHOLD = -3
"""M_MMAP_THRESHOLD of mallopt(3)."""
MIB = 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is glibc's")
@pytest.mark.parametrize(
    ("bound", "threshold"),
    [
        (0, MIB // 32),
        (MIB, MIB // 32),
        (8 * MIB, MIB // 8),
        (64 * MIB, MIB),
        (128 * MIB, 2 * MIB),
        (1 << 40, 2 * MIB),
    ],
)
def test_large_arrays_of_small_models_go_back_to_the_system(
    bound: int, threshold: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size from which malloc maps arrays separately grows with the model, up to 2 MiB."""
    calls: dict[int, int] = {}
    limits: list[int] = []
    library = SimpleNamespace(mallopt=calls.__setitem__)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    monkeypatch.setattr(kernels, "reuse_within", limits.append)
    hand_back(cast(Plan, SimpleNamespace(bound_bytes=bound, constant_bytes=bound // 4)))
    assert calls[MMAP_THRESHOLD] == threshold
    tensors = bound - bound // 4
    assert limits == [tensors if tensors >= MIB else 0]
