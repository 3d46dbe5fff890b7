"""STFT against sums of cosines and sines; ISTFT recovers the signal from the spectra."""

from __future__ import annotations

import numpy as np
import pytest

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import F32, I64
from deconv_ir.operations import Context, TensorInfo
from deconv_ir.ops.linear_algebra.matmul import Inverse
from deconv_ir.ops.linear_algebra.stft import ISTFT, STFT

SIZE, STEP = np.array(8), np.array(3)


def spectra(signal: np.ndarray, window: np.ndarray) -> np.ndarray:
    """Return spectra [frames, bins], by the definition of the discrete Fourier transform."""
    full = np.zeros(8)
    before = (8 - len(window)) // 2
    full[before : before + len(window)] = window
    frames = [signal[i : i + 8] * full for i in range(0, len(signal) - 7, 3)]
    turns = np.exp(-2j * np.pi * np.outer(np.arange(5), np.arange(8)) / 8)
    return np.array([turns @ frame for frame in frames])


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("length", [8, 5])
def test_stft(length: int, transpose: bool) -> None:
    rng = np.random.default_rng(length)
    signal, window = rng.standard_normal((2, 24)), rng.uniform(0.2, 1, length)
    operation = STFT(transpose_frames=transpose)
    (found,) = operation.execute([signal, window, SIZE, STEP], Context())
    for row, wanted in zip(found, signal, strict=True):
        expected = spectra(wanted, window)
        values = row[..., 0] + 1j * row[..., 1]
        np.testing.assert_allclose(values.T if transpose else values, expected, atol=1e-12)


@pytest.mark.parametrize("normalized", [False, True])
def test_istft_is_the_inverse(normalized: bool) -> None:
    rng = np.random.default_rng(0)
    signal, window = rng.standard_normal(23), rng.uniform(0.2, 1, 8)
    forward = spectra(signal, window).T / (np.sqrt(8) if normalized else 1)
    data = np.stack([forward.real, forward.imag], -1)
    operation = ISTFT(normalized=normalized)
    (found,) = operation.execute([data, window, SIZE, STEP], Context())
    np.testing.assert_allclose(found, signal, atol=1e-12)
    centered = ISTFT(normalized=normalized, center=True)
    (found,) = centered.execute([data, window, SIZE, STEP], Context())
    np.testing.assert_allclose(found, signal[4:-4], atol=1e-12)
    (found,) = operation.execute([data, window, SIZE, STEP, np.array(30)], Context())
    np.testing.assert_allclose(found, np.pad(signal, (0, 7)), atol=1e-12)


def test_short_signals_are_refused() -> None:
    number = TensorInfo((), I64, value=(8,))
    with pytest.raises(ShapeError, match="a frame has 8 elements, the signal has 7"):
        STFT(transpose_frames=True).infer(
            [TensorInfo((7,), F32), TensorInfo((8,), F32), number, number], Context()
        )


@pytest.mark.parametrize("adjoint", [False, True])
def test_inverse(adjoint: bool) -> None:
    data = np.random.default_rng(0).standard_normal((2, 3, 3)) + 2 * np.eye(3)
    (found,) = Inverse(adjoint=adjoint).execute([data], Context())
    matrix = np.swapaxes(data, -1, -2) if adjoint else data
    np.testing.assert_allclose(matrix @ found, np.broadcast_to(np.eye(3), (2, 3, 3)), atol=1e-12)


def test_singular_matrices_are_refused() -> None:
    with pytest.raises(ShapeError, match="singular"):
        Inverse().execute([np.zeros((2, 2))], Context())
