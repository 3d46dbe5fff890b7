"""<conv(x), y> = <x, deconv(y)>, with conv computed by SciPy's correlate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import correlate
from support import batches

from deconv_ir.kernels import pack_deconvolution


def convolve(data, weights, strides, dilations):
    """Forward convolution without pads: data [N, O, *Y], weights [I, O, *K] -> [N, I, *X]."""
    dilated = np.zeros(
        (
            *weights.shape[:2],
            *((k - 1) * d + 1 for k, d in zip(weights.shape[2:], dilations, strict=True)),
        )
    )
    dilated[(..., *(slice(None, None, d) for d in dilations))] = weights
    step = (..., *(slice(None, None, s) for s in strides))
    return np.stack(
        [np.stack([correlate(image, w, mode="valid")[0][step] for w in dilated]) for image in data]
    )


@pytest.mark.parametrize("seeds", batches(12, 12), ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_adjoint_identity(algorithm, axes, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        strides, dilations = rng.integers(1, 4, axes), rng.integers(1, 3, axes)
        kernel, extents = rng.integers(1, 5, axes), rng.integers(1, 6, axes)
        # At most one more than the natural extent: the convolution must not gain a position.
        natural = strides * (extents - 1) + dilations * (kernel - 1) + 1 + rng.integers(0, strides)
        weights = rng.standard_normal((3, 2, *kernel))
        x = rng.standard_normal((2, 2, *natural))
        y = rng.standard_normal((2, 3, *extents))
        forward = convolve(x, weights, strides, dilations)
        assert forward.shape == y.shape
        static = {"strides": strides, "dilations": dilations, "algorithm": algorithm}
        back = pack_deconvolution(weights, **static).run(y, (0,) * axes, natural)
        assert np.vdot(forward, y) == pytest.approx(np.vdot(x, back), rel=1e-12)
