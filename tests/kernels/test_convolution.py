"""pack_convolution kernels against loops over the definition and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import correlate

from deconv_ir.kernels import Activation, ActivationType, naive_convolution, pack_convolution
from deconv_ir.kernels.runtime.extension import compiled_module

ALGORITHMS = [*(["direct", "winograd"] if compiled_module() else []), "im2col"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_random_problems(draw_case, random_values, dtype, algorithm):
    for axes in [1, 2, 3]:
        for seed in range(2):
            case = draw_case(500 * axes + seed, dtype, axes)
            rng = np.random.default_rng(seed)
            groups, channels_in = case.groups, case.filter.shape[0] // case.groups
            channels_out = case.filter.shape[1]
            kernel = case.filter.shape[2:]
            weights = random_values(rng, (groups * channels_out, channels_in, *kernel), dtype)
            output = tuple(int(v) for v in rng.integers(0, 9, axes))
            arguments = {"strides": case.strides, "dilations": case.dilations, "groups": groups}
            expected = naive_convolution(
                case.data,
                weights,
                pads_begin=case.pads_begin,
                output=output,
                bias=case.bias,
                **arguments,
            )
            arguments |= {"bias": case.bias, "algorithm": algorithm}
            for scratch_bytes in (64 << 20, 3000):
                kernel = pack_convolution(weights, scratch_bytes=scratch_bytes, **arguments)
                actual = kernel.run(case.data, case.pads_begin, output)
                if dtype.kind in "iu":
                    np.testing.assert_array_equal(actual, expected)
                    continue
                tolerance = {8: 1e-13, 4: 2e-5, 2: 4e-2}[dtype.itemsize]
                np.testing.assert_allclose(
                    actual.astype(np.float64),
                    expected.astype(np.float64),
                    tolerance,
                    tolerance * 10,
                )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_against_scipy(algorithm):
    rng = np.random.default_rng(0)
    data, weights = rng.standard_normal((2, 3, 11, 12)), rng.standard_normal((5, 3, 3, 4))
    expected = np.stack(
        [[correlate(image, w, "valid")[0][::2, ::3] for w in weights] for image in data]
    )
    kernel = pack_convolution(weights, strides=(2, 3), dilations=(1, 1), algorithm=algorithm)
    np.testing.assert_allclose(kernel.run(data, (0, 0), (5, 3)), expected, rtol=1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_activation(algorithm):
    data = np.array([[[-3.0, 1.0, 4.0, np.nan]]], np.float32)
    relu = Activation(ActivationType.RELU)
    kernel = pack_convolution(
        np.ones((1, 1, 1), np.float32),
        strides=(1,),
        dilations=(1,),
        activation=relu,
        algorithm=algorithm,
    )
    np.testing.assert_array_equal(kernel.run(data, (1,), (6,)), [[[0, 0, 1, 4, np.nan, 0]]])


def test_rejects_groups_that_do_not_divide():
    with pytest.raises(ValueError, match="3 output channels do not make 2 groups"):
        pack_convolution(np.ones((3, 1, 2), np.float32), strides=(1,), dilations=(1,), groups=2)
