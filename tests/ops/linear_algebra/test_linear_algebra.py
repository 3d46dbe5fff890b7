"""Attention agrees with its formula, and Fourier transforms invert each other."""

from __future__ import annotations

import numpy as np

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_attention_is_its_formula(run) -> None:
    query, key, value = normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6)
    weights = np.exp(query @ key.swapaxes(1, 2) / 2)
    expected = weights / weights.sum(-1, keepdims=True) @ value
    found = run("ScaledDotProductAttention-13", query, key, value, causal="false")
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_fourier_transforms_invert_each_other(run) -> None:
    data = normal(3, 8)
    spectrum = run("RDFT-9", data, [1])
    np.testing.assert_allclose(
        spectrum[..., 0] + 1j * spectrum[..., 1], np.fft.rfft(data), atol=1e-5
    )
    np.testing.assert_allclose(run("IRDFT-9", spectrum, [1]), data, atol=1e-5)
    pair = normal(3, 8, 2)
    np.testing.assert_allclose(run("IDFT-7", run("DFT-7", pair, [0, 1]), [0, 1]), pair, atol=1e-5)
