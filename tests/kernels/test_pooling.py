"""Compiled pooling against NumPy's passes over each axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels.cases import without_extension
from support import batches

from deconv_ir import Semantics
from deconv_ir.errors import DeconvError
from deconv_ir.kernels import set_threads
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.operations import Context, TensorInfo, find_operation
from deconv_ir.ops.pooling.pooling import Pooling

pytestmark = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built here"
)
ODD = np.array([np.nan, np.inf, -np.inf, 1e-42, -0.0, 3e38], np.float32)


def draw(rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw a layer and its data."""
    rank = int(rng.integers(1, 4))

    def numbers(low: int, high: int) -> tuple[int, ...]:
        return tuple(map(int, rng.integers(low, high, rank)))

    kernel, strides, dilations = numbers(1, 5), numbers(1, 5), numbers(1, 3)
    pads = [tuple(int(rng.integers(0, k)) for k in kernel) for _ in range(2)]
    settings: dict[str, Any] = {"strides": strides, "pads_begin": pads[0], "pads_end": pads[1]}
    rounding = type(find_operation("MaxPool")(kernel=kernel, **settings).rounding_type)
    settings |= {"kernel": kernel, "dilations": dilations}
    settings["rounding_type"] = rng.choice(list(rounding))
    if rng.integers(2):
        layer = find_operation("AvgPool")(exclude_pad=bool(rng.integers(2)), **settings)
    else:
        layer = find_operation("MaxPool")(**settings)
    last = int(rng.choice([1, 5, 16, 33, 70]))
    shape = (*map(int, rng.integers(1, 4, 2)), *numbers(1, 12)[1:], last)
    data = rng.standard_normal(shape, np.float32)
    odd = rng.integers(0, data.size, 3)
    data.flat[odd] = rng.choice(ODD, 3)
    return layer, data


def pooled(layer: Any, data: Any, semantics: Semantics) -> Any:
    context = Context(semantics)
    with np.errstate(all="ignore"):
        return layer.pool(data.shape, data.dtype, context)(data, None)


@pytest.mark.parametrize("seeds", batches(300, 60), ids=str)
def test_random_windows(seeds: range) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        layer, data = draw(rng)
        semantics = Semantics.OPENVINO if seed % 2 else Semantics.SPEC
        try:
            layer.infer([TensorInfo(data.shape)], Context(semantics))
        except DeconvError:
            continue  # no window fits
        found = pooled(layer, data, semantics)
        with without_extension():
            expected = pooled(layer, data, semantics)
        assert found.shape == expected.shape
        if layer.type == "MaxPool":
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_it_is_compiled_and_the_same_on_any_number_of_threads() -> None:
    data = np.random.default_rng(0).standard_normal((1, 7, 90, 110), np.float32)
    layer = find_operation("AvgPool")(
        kernel=(3, 3), strides=(2, 2), pads_begin=(1, 1), pads_end=(1, 1), exclude_pad=True
    )
    pool, compiled = Pooling.sliding(
        layer, None, data.shape, data.dtype, [np.ones(45), np.ones(55)]
    )
    assert compiled
    expected = pool(data, None)
    try:
        for threads in (1, 2, 5):
            set_threads(threads)
            out = np.empty_like(expected)
            assert pooled(layer, data, Semantics.SPEC).shape == expected.shape
            pool(data[:, :, ::-1][:, :, ::-1], out)
            np.testing.assert_array_equal(out, expected)
    finally:
        set_threads(None)


def test_c_refuses_what_does_not_fit() -> None:
    module = compiled_module()
    assert module is not None
    data, out = np.zeros((1, 1, 2, 4), np.float32), np.zeros((1, 1, 1, 2), np.float32)
    none, ones = (None,) * 3, tuple(np.ones(n, np.float32) for n in (1, 1, 2))
    how = {"isa": 0, "pooled": interface.POOLED_MAX, "kernel": (1, 2, 2), "strides": (1, 2, 2)}
    how |= {"dilations": (1, 1, 1), "pads_begin": (0, 0, 0), "threads": 1}
    module.pool(data, out, *none, interface.pool_fields(**how))
    module.pool(data, out, *ones, interface.pool_fields(**how | {"pooled": interface.POOLED_SUM}))
    for bad in ((data[0], out, *none), (data, out.astype("f8"), *none),
                (data, out, *ones[:2], ones[0])):  # fmt: skip
        with pytest.raises(ValueError, match="fit"):
            module.pool(*bad, interface.pool_fields(**how))
    for change in (
        {"isa": 9}, {"pooled": 2}, {"pooled": -1}, {"kernel": (1, 2, 0)},
        {"pads_begin": (0, 0, -1)}, {"strides": (1, 2, 1 << 62)},
        {"kernel": (1, 2, 1 << 39), "dilations": (1, 1, 1 << 39)},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="fit"):
            module.pool(data, out, *none, interface.pool_fields(**how | change))
