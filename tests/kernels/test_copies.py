"""Copies of transposed arrays against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from support import batches

from deconv_ir.kernels import set_threads
from deconv_ir.kernels.copies import contiguous, copy_into, reshape_into
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.extension import compiled_module

module = compiled_module()
ISAS = [] if module is None else module.isas()
EXTENTS = (1, 2, 3, 8, 15, 16, 17, 70, 300)


@pytest.mark.parametrize("seeds", batches(150, 50), ids=str)
def test_random_orders(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds:
        if ISAS:
            monkeypatch.setenv("DECONV_IR_ISA", ISAS[seed % len(ISAS)])
        rng = np.random.default_rng(seed)
        shape = [int(rng.choice(EXTENTS[:6])) for _ in range(rng.integers(0, 3))]
        shape += [int(rng.choice(EXTENTS)) for _ in range(2)]
        array = rng.standard_normal(shape).astype(np.float32)
        other = int(rng.integers(len(shape))) if seed % 2 else -2
        array = np.moveaxis(array, -1, other) if seed % 2 else array.swapaxes(-1, other)
        kind = rng.integers(6)
        if kind == 1:
            array = array[..., ::-1, ::2]
        elif kind == 2:
            array = array[..., 1:]
        elif kind == 3:
            array = np.broadcast_to(array[None], (3, *array.shape))
        elif kind == 4:
            array = array.astype(np.float64)
        array.flags.writeable = False
        found = contiguous(array)
        assert found.flags.c_contiguous
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)
        for order in "CF":
            out, flat = np.empty_like(array, order=order), np.empty(array.size, array.dtype)
            copy_into(array, out)
            reshape_into(array, flat)
            np.testing.assert_array_equal(out, array)
            np.testing.assert_array_equal(flat, array.ravel())


@pytest.mark.parametrize("columns", [2, 3, 4, 7, 8, 9])
def test_short_rows_are_interleaved(columns: int) -> None:
    """There are more rows than one piece has, and more pieces than one job."""
    array = np.arange(20 * columns * 530, dtype=np.float32).reshape(20, columns, 530)
    np.testing.assert_array_equal(contiguous(array.swapaxes(1, 2)), array.swapaxes(1, 2))
    part = array[:, :, 5:300:1].swapaxes(1, 2)
    np.testing.assert_array_equal(contiguous(part), part)


def test_bits_are_kept() -> None:
    bits = np.random.default_rng(0).integers(0, 1 << 32, (300, 40), np.uint32)
    array = bits.view(np.float32).T
    for threads in (1, 3):
        set_threads(threads)
        try:
            found = contiguous(array)
        finally:
            set_threads(None)
        np.testing.assert_array_equal(found.view(np.uint32), bits.T)


def test_an_array_that_is_not_aligned() -> None:
    memory = np.zeros(4 * 100 * 90 + 1, np.uint8)
    array = memory[1:].view(np.float32).reshape(100, 90).T
    np.testing.assert_array_equal(contiguous(array), array)


@pytest.mark.skipif(module is None, reason="the compiled kernel was not built here")
def test_c_refuses_what_does_not_fit() -> None:
    assert module is not None
    data, out = np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32)
    for pair in ((data, out[:2]), (data[0], out[0]), (data.astype("f8"), out.astype("f8")),
                 (data[:0], out[:0])):  # fmt: skip
        with pytest.raises(ValueError, match="fit"):
            module.copy_matrices(*pair, interface.copy_matrices_fields(isa=0, threads=1))
