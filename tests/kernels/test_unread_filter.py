"""A filter that is not read: its runs are planned like those of one that is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import traced_peak

from deconv_ir.kernels import pack_convolution, pack_deconvolution
from deconv_ir.kernels.native import CompiledKernel
from deconv_ir.kernels.runtime.extension import compiled_module


@pytest.mark.parametrize("algorithm", ["auto", "numpy"])
@pytest.mark.parametrize("element", ["float32", "float16", "int8"])
@pytest.mark.parametrize(
    ("kind", "shape", "groups", "strides"),
    [
        (pack_convolution, (64, 64, 3, 3), 1, (1, 1)),
        (pack_convolution, (32, 1, 3, 3), 32, (1, 1)),
        (pack_convolution, (8, 4, 1, 1, 3, 3), 1, (1, 1, 1, 1)),
        (pack_deconvolution, (64, 64, 4, 4), 1, (2, 2)),
        (pack_deconvolution, (64, 1, 4, 4), 1, (2, 2)),  # folded
        (pack_deconvolution, (64, 8, 5), 4, (3,)),
    ],
)
def test_plans_are_those_of_the_filter(
    kind: Any, shape: tuple[int, ...], groups: int, strides: tuple[int, ...], element: str,
    algorithm: str,
) -> None:  # fmt: skip
    filter_ = (np.random.default_rng(0).standard_normal(shape) * 9).astype(element)
    how = {"strides": strides, "dilations": (1,) * len(strides), "groups": groups}
    channels = shape[1] * groups if kind is pack_convolution else shape[0]
    run = ((1, channels, *(24,) * len(strides)), (0,) * len(strides), (20,) * len(strides))
    unread = np.broadcast_to(np.zeros((), filter_.dtype), shape)
    read, other = (
        kind(f, **how, algorithm=algorithm, reads=reads)
        for f, reads in ((filter_, True), (unread, False))
    )
    assert other.packed_bytes == read.packed_bytes
    assert other.plan_once(*run).algorithm == read.plan_once(*run).algorithm


def test_c_does_not_run_what_was_not_read() -> None:
    if compiled_module() is None:
        pytest.skip("the compiled kernel was not built here")
    unread = np.broadcast_to(np.float32(0), (64, 64, 3, 3))
    for algorithm in ("winograd", "direct"):
        kernel = pack_convolution(
            unread, strides=(1, 1), dilations=(1, 1), algorithm=algorithm, reads=False
        )
        assert isinstance(kernel, CompiledKernel)
        assert not kernel.is_filled
        assert kernel.layer.unpack(np.empty((64, 64, 3, 3), np.float32)) is False


def test_numpy_plans_without_the_memory_of_the_filter() -> None:
    unread = np.broadcast_to(np.float32(0), (512, 512, 4, 4))  # 16 MiB
    how = {"strides": (2, 2), "dilations": (1, 1), "algorithm": "numpy"}
    for kind in (pack_convolution, pack_deconvolution):
        assert traced_peak(lambda kind=kind: kind(unread, **how, reads=False)) < 1 << 20
        assert kind(unread, **how, reads=False).packed_bytes == unread.nbytes
