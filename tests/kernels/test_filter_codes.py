"""Filters that stay as a file stores them give the bits of their weights in f32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.ir.lazy_tensor import Codes, LazyTensor
from deconv_ir.kernels import pack_filter
from deconv_ir.kernels.native import CompiledKernel
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

pytestmark = pytest.mark.skipif(compiled_module() is None, reason="runs unpack weights in C")
ISAS = compiled_module().isas() if compiled_module() else [""]
# OpenVINO, "Low-precision types": the quantiles of NF4.
NF4 = [
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0,
]  # fmt: skip
BYTES = np.arange(256)
NUMBERS = {
    "u8": BYTES,
    "i8": (BYTES ^ 128) - 128,
    "u4": BYTES[:16],
    "i4": (BYTES[:16] ^ 8) - 8,
    "nf4": np.array(NF4, np.float32),
}
# forward, groups, channels in and out of a group, kernel, strides, data
PROBLEMS = [
    (True, 1, 6, 10, (3, 3), (1, 1), (9, 21)),
    (True, 1, 7, 5, (3,), (2,), (40,)),
    (True, 3, 4, 8, (1, 1), (1, 1), (5, 30)),
    (True, 1, 300, 17, (1, 3), (1, 1), (4, 6)),
    (False, 1, 6, 13, (4, 4), (2, 2), (7, 9)),
    (False, 2, 5, 3, (3, 2), (3, 1), (5, 6)),
    (False, 1, 130, 9, (5,), (3,), (20,)),
    (False, 1, 2, 7, (2, 3, 2), (1, 2, 1), (3, 4, 5)),
    (False, 1, 8, 16, (4, 4), (2, 2), (1, 1)),
    (False, 1, 90, 9, (4, 4), (1, 1), (1, 1)),
    (False, 1, 230, 21, (5, 3), (2, 2), (1, 1)),
]


def stored_filter(kind: str, problem: Any, rng: Any) -> tuple[LazyTensor, Any]:
    """Return a filter as a file stores it, and its weights."""
    name, _, form = kind.partition("-")
    forward, groups, inputs, outputs, kernel = problem[:5]
    sides = (groups * outputs, inputs) if forward else (groups * inputs, outputs)
    shape = (*sides, *kernel)
    if groups > 1:
        shape = (groups, *((outputs, inputs) if forward else (inputs, outputs)), *kernel)
    size = int(np.prod(shape))
    bits = parse_element_type(name).bits
    numbers = zero = scale = None
    if bits == 16:
        values = rng.standard_normal(size).astype(np.float32)
        if name == "f16":
            raw = values.astype(np.float16).view(np.uint8)
            weights = values.astype(np.float16).astype(np.float32)
        else:
            raw = (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
            weights = (values.view(np.uint32) & 0xFFFF0000).view(np.float32)
    else:
        numbers = NUMBERS[name].astype(np.float32)
        codes = rng.integers(0, 1 << bits, size)
        weights = numbers[codes]
        raw = codes.astype(np.uint8)
        if bits == 4:
            pairs = np.append(raw, np.zeros(size % 2, np.uint8)).reshape(-1, 2)
            raw = pairs[:, 0] | pairs[:, 1] << 4
    weights = weights.reshape(shape)
    if form:
        extents = [1] * len(shape)
        axis = len(shape) - len(kernel) - (2 if forward else 1)
        extents[axis] = outputs if groups > 1 else shape[axis]
        extents[0] = groups if groups > 1 else extents[0]
        scale = rng.uniform(0.001, 0.02, extents).astype(
            np.float16 if form == "f16" else np.float32
        )
        if name[0] == "u":
            zero = rng.integers(0, 1 << bits, extents).astype(np.float32)
            weights = weights - zero
        weights = weights * scale.astype(np.float32)
        if form == "f16":
            weights = weights.astype(np.float16).astype(np.float32)
    codes_ = Codes(
        parse_element_type(name),
        lambda i, j: raw[i * bits // 8 : -(-j * bits // 8)],
        lambda: numbers,
        shape,
        zero=zero,
        scale=scale,
    )
    flat = weights.reshape(-1)
    lazy = LazyTensor(
        (*sides, *kernel), np.dtype(np.float32), lambda i, j: flat[i:j].copy(), codes=codes_,
        stays_stored=True,
    )  # fmt: skip
    return lazy, weights.reshape(*sides, *kernel)


def sums_of(x: Any, weights: Any, problem: Any, pads: Any, output: Any) -> Any:
    """Sum one tap after the other, in f64: a convolution of stride 1, or a transposed one."""
    forward, groups, inputs, outputs, kernel, strides, _ = problem
    split = x.astype(float).reshape(len(x), groups, inputs, *x.shape[2:])
    sides = (outputs, inputs) if forward else (inputs, outputs)
    taps = weights.astype(float).reshape(groups, *sides, *kernel)
    whole = np.zeros((len(x), groups, outputs, *(2 * n + 8 for n in output)))
    wide = np.pad(split, [(0, 0)] * 3 + [(pad, k) for pad, k in zip(pads, kernel, strict=True)])
    for at in np.ndindex(*kernel):
        tap = taps[(..., *at)]
        if forward:
            window = tuple(slice(a, a + n) for a, n in zip(at, output, strict=True))
            whole[(..., *map(slice, output))] += np.einsum(
                "goi,ngi...->ngo...", tap, wide[(..., *window)]
            )
        else:
            places = zip(at, strides, x.shape[2:], strict=True)
            to = tuple(slice(a, a + s * n, s) for a, s, n in places)
            whole[(..., *to)] += np.einsum("gio,ngi...->ngo...", tap, split)
    begin = [0 if forward else pad for pad in pads]
    window = (slice(pad, pad + n) for pad, n in zip(begin, output, strict=True))
    return whole[(..., *window)].reshape(len(x), groups * outputs, *output)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", ["f16", "bf16", "u8-f32", "i8-f16", "u4-f16", "i4-f32", "nf4-f16"])
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_results_have_the_bits_of_unpacked_weights(
    monkeypatch: pytest.MonkeyPatch, isa: str, kind: str, problem: Any
) -> None:
    """Sums have the same order, whatever the plan."""
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    set_threads(2)
    forward, groups, inputs, outputs, kernel, strides, extents = problem
    rng = np.random.default_rng(48)
    lazy, weights = stored_filter(kind, problem, rng)
    bias = rng.standard_normal(groups * outputs).astype(np.float32)
    arguments: dict[str, Any] = {
        "forward": forward, "strides": strides, "dilations": (1,) * len(kernel), "groups": groups,
        "bias": bias, "algorithm": "direct",
    }  # fmt: skip
    stored, wide = pack_filter(lazy, **arguments), pack_filter(weights, **arguments)
    assert isinstance(stored, CompiledKernel)
    bits = parse_element_type(kind.partition("-")[0]).bits
    own = 12 * groups * outputs + 1100  # bias, scales, zeros and numbers of codes
    # Codes of four bits that cannot share bytes take one each.
    assert stored.packed_bytes <= weights.size * bits / 8 * (2 if bits == 4 else 1) + own
    if bits == 4 and inputs % 2 == 0 and inputs < 100:
        assert stored.packed_bytes <= weights.size / 2 + own
    x = rng.standard_normal((2, groups * inputs, *extents)).astype(np.float32)
    output = tuple(2 * n if not forward else n for n in extents)
    pads = (0,) * len(kernel)
    expected = wide.run(x, pads, output)
    for _ in range(2):
        np.testing.assert_array_equal(stored.run(x, pads, output), expected)
        stored.release()
    np.testing.assert_array_equal(stored.unpacked(), weights)


def test_one_position_unpacks_some_channels_at_a_time() -> None:
    """The weights of all channels of a block of rows would exceed the first-level cache."""
    problem = (False, 1, 512, 16, (4, 4), (1, 1), (1, 1))
    lazy, _ = stored_filter("f16", problem, np.random.default_rng(48))
    stored = pack_filter(lazy, forward=False, strides=(1, 1), dilations=(1, 1))
    assert stored.plan((1, 512, 1, 1), (0, 0), (4, 4)).details["bytes"] < 64 << 10


@pytest.mark.parametrize("why", ["a scale for each input channel", "infinite", "overflow"])
def test_other_filters_are_unpacked(why: str) -> None:
    """They have no zero and scale for each output channel, or weights that are not finite."""
    problem = PROBLEMS[0]
    lazy, weights = stored_filter("i8-f16", problem, np.random.default_rng(0))
    codes = lazy.codes
    assert codes is not None
    if why == "infinite":
        lazy, weights = stored_filter("f16", problem, np.random.default_rng(0))
        raw = weights.astype(np.float16)
        raw[3, 2, 1, 1] = weights[3, 2, 1, 1] = np.inf
        assert lazy.codes is not None
        flat = raw.reshape(-1).view(np.uint8)
        lazy.codes = lazy.codes._replace(read=lambda i, j: flat[2 * i : 2 * j])
    elif why == "overflow":
        lazy.codes = codes._replace(scale=np.full((10, 1, 1, 1), 1000, np.float16))
    else:
        lazy.codes = codes._replace(scale=np.arange(1, 7, dtype=np.float16).reshape(1, 6, 1, 1))
    arguments: dict[str, Any] = {"forward": True, "strides": (1, 1), "dilations": (1, 1)}
    x = np.ones((1, 6, 5, 5), np.float32)
    stored = pack_filter(lazy, **arguments)
    assert stored.precision is None
    with np.errstate(all="ignore"):
        expected = pack_filter(weights, **arguments).run(x, (0, 0), (3, 3))
        np.testing.assert_array_equal(stored.run(x, (0, 0), (3, 3)), expected)


TYPES = [
    "Convolution", "GroupConvolution", "ConvolutionBackpropData", "GroupConvolutionBackpropData",
]  # fmt: skip


def compressed_layer(kind: str, type_: str, channels: int, extent: int) -> tuple[IR, int, Any, Any]:
    """Return a model of one layer, the bytes of its filter, data, and the result in f64."""
    rng, ir = np.random.default_rng(48), IR()
    groups, side = (2, channels // 2) if type_.startswith("Group") else (1, channels)
    shape = (*([groups] if groups > 1 else []), side, side, 3, 3)
    x = ir.parameter("x", f"1,{channels},{extent},{extent}")
    bits = parse_element_type(kind).bits
    if kind == "f16":
        numbers = (rng.standard_normal(shape, dtype=np.float32) / 48).astype(np.float16)
        raw = numbers.tobytes()
    else:
        raw = rng.bytes(int(np.prod(shape)) * bits // 8)
        codes = np.frombuffer(raw, np.uint8)
        codes = np.stack([codes & 15, codes >> 4], -1) if bits == 4 else codes
        numbers = NUMBERS[kind][codes].reshape(shape)
    filter_ = ir.layer("Convert", [ir.raw_const(raw, kind, shape)], {"destination_type": "f32"})
    weights = numbers.astype(float)
    if kind != "f16":
        scale = rng.uniform(1e-4, 1e-3, (*shape[:-4], *(1,) * 4)).astype(np.float32)
        filter_ = ir.layer("Multiply", [filter_, ir.const(scale)])
        weights = weights * scale
    attributes = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    ir.result(ir.layer(type_, [x, filter_], attributes))
    data = rng.standard_normal((1, channels, extent, extent)).astype(np.float32)
    problem = ("Backprop" not in type_, groups, side, side, (3, 3), (1, 1), None)
    return ir, len(raw), data, sums_of(data, weights, problem, (1, 1), (extent, extent))


@pytest.mark.parametrize("extent", [6, 20])
@pytest.mark.parametrize("kind", ["f16", "i8"])
@pytest.mark.parametrize("type_", TYPES)
def test_a_memory_limit_keeps_filters_as_they_are_stored(
    tmp_path: Any, type_: str, kind: str, extent: int
) -> None:
    """1.2 of the stored bytes, tensors and 64 KiB suffice, whether runs use Winograd or not."""
    ir, stored, data, expected = compressed_layer(kind, type_, 256, extent)
    path = ir.save(tmp_path)
    least = int(1.2 * stored) + 2 * data.nbytes + (64 << 10)
    for limit in (least, least + (512 << 10), least + (1 << 20)):
        limited = deconv_ir.load(path, memory_limit=limit).bind([data])
        assert limited.plan.peak_bytes <= limit
        if limit == least:
            assert set(limited.plan.precisions.values()) == {f"f32 ({kind} weights)"}
        (found,) = limited.run().values()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["f16", "i8", "u4", "nf4"])
@pytest.mark.parametrize("type_", TYPES)
def test_filters_stay_as_they_are_stored(tmp_path: Any, type_: str, kind: str) -> None:
    """Without a limit, plans need 1.2 of the stored bytes and tensors, or 1 MiB more."""
    ir, stored, data, expected = compressed_layer(kind, type_, 1088, 5)
    model = deconv_ir.load(ir.save(tmp_path)).bind([data])
    small, least = 64 << 10, stored + data.nbytes  # the result; the data are the caller's
    assert least <= model.plan.bound_bytes <= least + small
    assert model.plan.peak_bytes <= max(1.2 * least, least + (1 << 20)) + small
    assert set(model.plan.precisions.values()) == {f"f32 ({kind} weights)"}
    (found,) = model.run().values()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("type_", "sides", "extent"),
    [
        ("ConvolutionBackpropData", (256, 128, 3, 1), 12),
        ("ConvolutionBackpropData", (128, 64, 4, 2), 12),
        ("ConvolutionBackpropData", (128, 64, 4, 2), 24),
        ("Convolution", (256, 256, 3, 1), 6),
        ("Convolution", (64, 64, 3, 1), 24),
    ],
)
def test_bits_do_not_depend_on_the_batch_threads_or_a_limit_that_runs_stay_within(
    tmp_path: Any, type_: str, sides: tuple[int, ...], extent: int
) -> None:
    """Weights that runs transform pay off for large runs: they do not decide on the algorithm."""
    rng, ir = np.random.default_rng(48), IR()
    inputs, outputs, kernel, stride = sides
    x = ir.parameter("x", f"?,{inputs},{extent},{extent}")
    shape = (outputs, inputs) if type_ == "Convolution" else (inputs, outputs)
    stored = (rng.standard_normal((*shape, kernel, kernel)) / 30).astype(np.float16)
    filter_ = ir.layer("Convert", [ir.const(stored)], {"destination_type": "f32"})
    steps = {"strides": f"{stride},{stride}", "dilations": "1,1"}
    pads = {"pads_begin": "1,1", "pads_end": "1,1"}
    ir.result(ir.layer(type_, [x, filter_], steps | pads))
    path = ir.save(tmp_path)
    data = rng.standard_normal((9, inputs, extent, extent)).astype(np.float32)
    results = []
    try:
        for threads in (2, 1, 3):
            set_threads(threads)
            model = deconv_ir.load(path)
            results += [next(iter(model.run([data[:n]]).values()))[:1] for n in (9, 1, 3)]
            limit = model.bind([data[:3]]).plan.peak_bytes
            limited = deconv_ir.load(path, memory_limit=limit)
            results += [next(iter(limited.run([data[:3]]).values()))[:1]]
    finally:
        set_threads(None)
    for result in results:
        np.testing.assert_array_equal(result, results[0])
