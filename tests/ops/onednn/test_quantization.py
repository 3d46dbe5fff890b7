"""Quantization of oneDNN Graph, and int8 patterns in exact integers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onednn_forms import ZEROS, as_bytes, deconvolution, op, tensor, windows
from onednn_oracle import RNG, close, floats, gather, run, scatter
from plan_rows import rows_of

import deconv_ir
from deconv_ir.formats.conversion import convert
from deconv_ir.formats.openvino_xml import OPENVINO_XML
from deconv_ir.kernels.quantized import plan
from deconv_ir.kernels.runtime.extension import compiled_module


def quantized_graph(
    source: str, scales: Sequence[float], zps: Sequence[int], groups: int, *, added: bool
) -> list[dict[str, Any]]:
    """Return the int8 pattern: Dequantize twice, ConvTranspose, [Add], Quantize."""
    one: dict[str, Any] = {"qtype": "per_tensor", "axis": 1}
    channel = {"qtype": "per_channel", "axis": 1} if len(scales) > 4 else one
    x, w, y = [2, 4, 5, 5], [4, 6 // groups, 3, 3], [2, 6, 5, 5]
    pads = windows(
        [1, 1], [1, 1], [1, 1], groups=groups, weights_format="IOX", output_padding=ZEROS
    )
    result = [
        op(
            7,
            "Dequantize",
            [tensor(0, x, source)],
            [tensor(1, x)],
            scales=[scales[0]],
            zps=[zps[0]],
            **one,
        ),
        op(
            8,
            "Dequantize",
            [tensor(2, w, "s8")],
            [tensor(3, w)],
            scales=list(scales[3:]),
            zps=[zps[1]] * len(scales[3:]),
            **channel,
        ),
        op(9, "ConvTranspose", [tensor(1, x), tensor(3, w)], [tensor(4, y)], **pads),
    ]
    last_tensor = 4
    if added:
        result += [
            op(
                10,
                "Dequantize",
                [tensor(5, y, "s8")],
                [tensor(6, y)],
                scales=[scales[1]],
                zps=[zps[2]],
                **one,
            ),
            op(11, "Add", [tensor(4, y), tensor(6, y)], [tensor(7, y)], auto_broadcast="none"),
        ]
        last_tensor = 7
    result.append(
        op(
            12,
            "Quantize",
            [tensor(last_tensor, y)],
            [tensor(8, y, "u8")],
            scales=[scales[2]],
            zps=[zps[3]],
            **one,
        )
    )
    return result


@pytest.mark.parametrize("source", ["u8", "s8"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("weights_zero", [-5, 0])
def test_int8_patterns_sum_exact_integers(
    source: str, groups: int, per_channel: bool, weights_zero: int
) -> None:
    """Before Quantize: the exact rational number, rounded to f32 once."""
    weights = [0.37, 0.11, 2.25, 0.013, 1.7, 0.6][: 6 // groups] if per_channel else [0.37]
    scales = [0.12, 1.0, 3.3, *weights]
    if per_channel and groups == 2:
        scales = [0.12, 1.0, 3.3, 0.37, 0.11, 2.25]
    zps = [3, weights_zero, 0, 100]
    graph = quantized_graph(source, scales, zps, groups, added=False)
    low, high = (0, 256) if source == "u8" else (-128, 128)
    x = RNG.integers(low, high, (2, 4, 5, 5)).astype("u1" if source == "u8" else "i1")
    w = RNG.integers(-128, 128, (4, 6 // groups, 3, 3)).astype("i1")
    model = deconv_ir.load(as_bytes(*graph))
    found = model.run({"0": x, "2": w}, outputs=["4", "8"])
    total = scatter(
        x.astype(object) - zps[0], w.astype(object) - zps[1], [1, 1], [1, 1], [5, 5], groups=groups
    )
    factors = [Fraction(float(np.float32(s))) for s in scales[3:]]
    source_scale = Fraction(float(np.float32(scales[0])))
    exact = np.zeros(total.shape, np.float32)
    levels = np.zeros(total.shape, np.uint8)
    step = Fraction(float(np.float32(scales[2])))
    for at in np.ndindex(*total.shape):
        factor = factors[at[1] % len(factors)]
        exact[at] = np.float32(float(total[at] * source_scale * factor))
        level = round(Fraction(float(exact[at])) / step + zps[3])
        levels[at] = min(255, max(0, level))
    np.testing.assert_array_equal(found["4"], exact)
    np.testing.assert_array_equal(found["8"], levels)


@pytest.mark.parametrize("source", ["u8", "s8"])
def test_plans_and_profiles_say_that_sums_are_of_integers(source: str) -> None:
    graph = quantized_graph(source, [0.1, 1.0, 3.0, 0.2], [3, 0, 0, 100], 1, added=False)
    model = deconv_ir.load(as_bytes(*graph))
    x = np.zeros((2, 4, 5, 5), "u1" if source == "u8" else "i1")
    arrays = {"0": x, "2": np.zeros((4, 6, 3, 3), "i1")}
    profile = deconv_ir.Profile()
    model.run(arrays, profile=profile)
    rows = rows_of(model, arrays).values()
    assert [row.precision for row in rows if row.type == "ConvTranspose"] == ["i8"]
    assert [row.precision for row in profile.layers if row.type == "ConvTranspose"] == ["i8"]


@pytest.mark.parametrize("kind", ["Convolution", "ConvTranspose"])
@pytest.mark.parametrize("source", ["u8", "s8"])
@pytest.mark.parametrize("last", [False, True], ids=["NCX", "NXC"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("stored", "weights_zero"), [("s8", 0), ("s8", 3), ("s8", -100), ("u8", 128), ("u8", 7)]
)
@pytest.mark.parametrize("machine", ["", "zen3"])
def test_bytes_are_summed_in_32_bits(
    monkeypatch: pytest.MonkeyPatch, kind: str, source: str, last: bool, groups: int,
    stored: str, weights_zero: int, machine: str,
) -> None:  # fmt: skip
    """In all layouts, with zero points and pads, by the kernels of quantised layers."""
    sums: list[Any] = []
    original = plan.QuantizedPlan.run

    def watched(self: Any, *arguments: Any) -> Any:
        sums.append(original(self, *arguments))
        return sums[-1]

    monkeypatch.setenv("DECONV_IR_MACHINE", machine)
    monkeypatch.setattr(plan.QuantizedPlan, "run", watched)
    forward = kind == "Convolution"
    inputs, outputs, strides, extents = 10, 6, [2, 1], [4, 6]
    low, high = (0, 256) if source == "u8" else (-128, 128)
    data = RNG.integers(low, high, (2, inputs, *extents)).astype("u1" if low == 0 else "i1")
    sides = (outputs, inputs // groups) if forward else (inputs, outputs // groups)
    # Less the zero point, they may have nine bits.
    least = -128 if stored == "s8" else 0
    weights = RNG.integers(least, least + 256, (*sides, 3, 2)).astype("i1" if least else "u1")
    pads = [1, 0]
    results = [(n + 1 - 3) // 2 + 1 if forward else 2 * (n - 1) + 3 - 1 for n in extents[:1]]
    results.append(extents[1] - 1 if forward else extents[1] + 1)
    compute = gather if forward else scatter
    total = compute(
        data.astype(float) - 7, weights.astype(float) - weights_zero, strides, pads, results,
        [1, 1], groups=groups,
    )  # fmt: skip
    expected = (total / 4).astype(np.float32)
    layout = {"data_format": "NCX", "weights_format": "OIX" if forward else "IOX"}
    if last:
        data, expected = (np.moveaxis(array, 1, -1) for array in (data, expected))
        weights = np.ascontiguousarray(np.transpose(weights, (2, 3, 1, 0)))
        layout = {"data_format": "NXC", "weights_format": "XIO" if forward else "XOI"}
    one: dict[str, Any] = {"qtype": "per_tensor", "axis": 1, "scales": [0.5]}
    x, w, y = (list(a.shape) for a in (data, weights, expected))
    attributes: dict[str, Any] = {
        "strides": strides, "pads_begin": pads, "pads_end": [0, 0], "dilations": [1, 1],
        "groups": groups, **layout,
    }  # fmt: skip
    graph = [
        op(0, "Dequantize", [tensor(0, x, source)], [tensor(1, x)], zps=[7], **one),
        op(1, "Dequantize", [tensor(2, w, stored)], [tensor(3, w)], zps=[weights_zero], **one),
        op(2, kind, [tensor(1, x), tensor(3, w)], [tensor(4, y)], **attributes),
    ]
    (found,) = run(*graph, arrays=[data, weights])
    np.testing.assert_array_equal(found, expected)
    assert len(sums) == (1 if compiled_module() else 0)


def test_the_pattern_with_a_residual_and_a_bias() -> None:
    """Dequantize, Dequantize, ConvTranspose with bias; Add of a dequantized tensor; Quantize."""
    graph = quantized_graph("s8", [1.0, 0.5, 1.0, 2.25], [2, 0, 1, 3], 1, added=True)
    graph[2]["inputs"].append(tensor(20, [6]))
    x = RNG.integers(-128, 128, (2, 4, 5, 5)).astype("i1")
    w = RNG.integers(-20, 20, (4, 6, 3, 3)).astype("i1")
    b = floats(6)
    r = RNG.integers(-128, 128, (2, 6, 5, 5)).astype("i1")
    model = deconv_ir.load(as_bytes(*graph))
    found = model.run({"0": x, "2": w, "20": b, "5": r})["8"]
    total = scatter(x.astype(float) - 2, w.astype(float), [1, 1], [1, 1], [5, 5]) * 2.25
    added = (total + b.reshape(-1, 1, 1)).astype(np.float32) + ((r - 1.0) * 0.5).astype(np.float32)
    wanted = np.clip(np.rint(added.astype(float) + 3), 0, 255)
    np.testing.assert_array_equal(found, wanted)


def test_quantize_rounds_half_to_even_and_saturates() -> None:
    """round(src / scale + zp): the sum is rounded, not the quotient."""
    values = np.array([0.5, 1.5, 2.5, -0.5, 1e9, -1e9, np.nan, 0.25], np.float32)
    graph = op(
        0,
        "Quantize",
        [tensor(0, [8])],
        [tensor(1, [8], "s8")],
        scales=[1.0],
        zps=[1],
        qtype="per_tensor",
    )
    (found,) = run(graph, arrays=[values])
    assert found.tolist() == [2, 2, 4, 0, 127, -128, 0, 1]


@pytest.mark.parametrize("dtype", ["s8", "f8_e5m2"])
def test_a_scalar_is_quantized_and_dequantized(dtype: str) -> None:
    fixed = {"qtype": "per_tensor", "scales": [0.5]}
    there = op(0, "Quantize", [tensor(0, [])], [tensor(1, [], dtype)], **fixed)
    back = op(1, "Dequantize", [tensor(1, [], dtype)], [tensor(2, [])], **fixed)
    (found,) = run(there, back, arrays=[np.float32(1.75)])
    assert found.shape == ()
    assert found == (2.0 if dtype == "s8" else 1.75)
    inputs = [tensor(0, []), tensor(1, [1]), tensor(2, [1], "s32")]
    (found,) = run(
        op(0, "DynamicQuantize", inputs, [tensor(3, [], "s8")], qtype="per_tensor"),
        arrays=[np.float32(np.nan), np.float32([0.5]), np.int32([3])],
    )
    assert found.shape == ()
    assert found == 0


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_per_channel_quantization_on_any_axis(axis: int) -> None:
    """One scale and zero point for each element of the axis."""
    data = RNG.integers(0, 256, (2, 3, 4)).astype(np.uint8)
    count = data.shape[axis]
    scales, zps = [0.5 + i for i in range(count)], list(range(count))
    graph = op(
        0,
        "Dequantize",
        [tensor(0, data.shape, "u8")],
        [tensor(1, data.shape)],
        qtype="per_channel",
        axis=axis,
        scales=scales,
        zps=zps,
    )
    (found,) = run(graph, arrays=[data])
    moved = np.moveaxis(data, axis, -1).astype(float)
    wanted = np.moveaxis((moved - zps) * scales, -1, axis)
    np.testing.assert_array_equal(found, wanted)


def test_dynamic_dequantize_by_groups() -> None:
    """Scales of shape data / group_shape."""
    data = RNG.integers(-8, 8, (4, 6)).astype(np.int8)
    scales, zps = floats(2, 6), RNG.integers(-3, 3, (2, 6)).astype(np.int8)
    graph = op(
        0,
        "DynamicDequantize",
        [tensor(0, [4, 6], "s8"), tensor(1, [2, 6]), tensor(2, [2, 6], "s8")],
        [tensor(3, [4, 6])],
        qtype="per_group",
        axis=0,
        group_shape=[2, 1],
    )
    (found,) = run(graph, arrays=[data, scales, zps])
    wanted = np.zeros((4, 6))
    for i, j in np.ndindex(4, 6):
        wanted[i, j] = (int(data[i, j]) - int(zps[i // 2, j])) * float(scales[i // 2, j])
    close(found, wanted, 1e-6)


def test_one_zero_point_holds_for_every_channel() -> None:
    """The option lines of public graphs have one zero point; a single scale is an error."""
    data = RNG.integers(-8, 8, (4, 6)).astype(np.int8)
    scales = floats(6)
    inputs = [tensor(0, [4, 6], "s8"), tensor(1, [6]), tensor(2, [1], "s32")]
    graph = op(0, "DynamicDequantize", inputs, [tensor(3, [4, 6])], qtype="per_channel")
    (found,) = run(graph, arrays=[data, scales, np.int32([5])])
    close(found, (data - 5.0) * scales, 1e-6)
    graph["inputs"][1] = tensor(1, [1])
    with pytest.raises(deconv_ir.ShapeError, match="scales must have 6 elements"):
        deconv_ir.load(as_bytes(graph))


@pytest.mark.parametrize(("mask", "shape"), [(0, ()), (2, (6,)), (3, (4, 6)), (5, (4, 3))])
def test_a_mask_tells_which_dims_have_scales(mask: int, shape: tuple[int, ...]) -> None:
    """Bit i: dim i has scales of its own; the scales of all such dims are packed."""
    data = floats(4, 6, 3) * 40
    scales = np.abs(floats(*shape)) + np.float32(0.5)
    graph = op(
        0,
        "DynamicQuantize",
        [tensor(0, [4, 6, 3]), tensor(1, shape)],
        [tensor(2, [4, 6, 3], "s8")],
        mask=mask,
    )
    (found,) = run(graph, arrays=[data, scales])
    wanted = np.zeros((4, 6, 3))
    for at in np.ndindex(4, 6, 3):
        own = tuple(i for axis, i in enumerate(at) if mask >> axis & 1)
        wanted[at] = min(127, max(-128, round(float(data[at]) / float(scales[own]))))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_integers_are_exact_through_a_cast(dtype: str) -> None:
    """Dequantize, TypeCast, ConvTranspose: one rounding, to the type of the output."""
    one: dict[str, Any] = {"qtype": "per_tensor", "axis": 1}
    x, w, y = [1, 8, 6], [8, 2, 3], [1, 2, 8]
    graph = [
        op(0, "Dequantize", [tensor(0, x, "u8")], [tensor(1, x)], scales=[0.3], zps=[7], **one),
        op(1, "TypeCast", [tensor(1, x)], [tensor(2, x, dtype)]),
        op(2, "Dequantize", [tensor(3, w, "s8")], [tensor(4, w)], scales=[0.7], **one),
        op(3, "TypeCast", [tensor(4, w)], [tensor(5, w, dtype)]),
        deconvolution(x, w, y, dtype)
        | {
            "id": 4,
            "inputs": [tensor(2, x, dtype), tensor(5, w, dtype)],
            "outputs": [tensor(6, y, dtype)],
        },
    ]
    model = deconv_ir.load(as_bytes(*graph))
    data = RNG.integers(0, 256, x).astype("u1")
    weights = RNG.integers(-128, 128, w).astype("i1")
    (found,) = model.run([data, weights]).values()
    total = scatter(data.astype(object) - 7, weights.astype(object), [1], [0], [8])
    scale = float(np.float32(0.3)) * float(np.float32(0.7))
    element = model.outputs["6"].element_type
    assert element is not None
    wanted = (total.astype(float) * scale).astype(element.numpy())
    np.testing.assert_array_equal(found.view(np.uint16), wanted.view(np.uint16))


def test_a_product_of_two_lists_is_a_scalar() -> None:
    """MatMul of dequantized vectors: the exact sum, of rank 0."""
    one: dict[str, Any] = {"qtype": "per_tensor", "scales": [0.5]}
    graph = [
        op(0, "Dequantize", [tensor(0, [3], "s8")], [tensor(1, [3])], **one),
        op(1, "Dequantize", [tensor(2, [3], "s8")], [tensor(3, [3])], **one),
        op(2, "MatMul", [tensor(1, [3]), tensor(3, [3])], [tensor(4, [])]),
    ]
    x = np.array([1, 2, 3], np.int8)
    (found,) = run(*graph, arrays=[x, x])
    assert found.shape == ()
    assert found == 3.5


def decoded(code: int, exponent: int) -> float:
    """Return the value of a byte of f8_e4m3 or f8_e5m2, by its number of exponent bits."""
    digits = 7 - exponent
    bias, power, rest = 2 ** (exponent - 1) - 1, code >> digits & 2**exponent - 1, code % 2**digits
    sign = -1.0 if code >> 7 else 1.0
    if power == 2**exponent - 1 and (exponent == 5 or rest == 2**digits - 1):
        return math.nan if rest else sign * math.inf
    if power == 0:
        return sign * rest * 2.0 ** (1 - bias - digits)
    return sign * (1 + rest / 2**digits) * 2.0 ** (power - bias)


@pytest.mark.parametrize(("dtype", "exponent"), [("f8_e4m3", 4), ("f8_e5m2", 5)])
def test_f8_is_dequantized_and_quantized(dtype: str, exponent: int) -> None:
    """All bytes are dequantized; values are quantized to the nearest, ties to even, saturated."""
    shape, scale = [256], {"qtype": "per_tensor", "scales": [0.5]}
    graph = op(0, "Dequantize", [tensor(0, shape, dtype)], [tensor(1, shape)], **scale)
    element = deconv_ir.load(as_bytes(graph)).inputs["0"].element_type
    assert element is not None
    codes = np.arange(256, dtype=np.uint8).view(element.numpy())
    values = [decoded(code, exponent) for code in range(256)]
    (found,) = run(graph, arrays=[codes])
    np.testing.assert_array_equal(found, np.multiply(values, 0.5))

    finite = {value: code for code, value in enumerate(values[:128]) if math.isfinite(value)}
    ladder = sorted(finite)
    between = [(low + high) / 2 for low, high in itertools.pairwise(ladder)]
    given = [0.0, *between, *(v + 2.0**-30 for v in ladder[:40]), 1e9, ladder[-1] * 1.01]
    back = op(0, "Quantize", [tensor(0, [len(given)])], [tensor(1, [len(given)], dtype)], **scale)
    (found,) = run(back, arrays=[np.float32(np.multiply(given, 0.5))])
    for value, byte in zip(given, found.view(np.uint8), strict=True):
        nearest = min(ladder, key=lambda v: (abs(v - value), finite[v] % 2))
        assert byte == finite[nearest], value


@pytest.mark.parametrize(("dtype", "least", "most"), [("s4", -8, 7), ("u4", 0, 15)])
def test_four_bits_are_dequantized(dtype: str, least: int, most: int) -> None:
    """Every value, with zero points of the same type."""
    count = most - least + 1
    inputs = [tensor(0, [count], dtype), tensor(1, []), tensor(2, [1], dtype)]
    graph = op(0, "DynamicDequantize", inputs, [tensor(3, [count])], qtype="per_tensor")
    element = deconv_ir.load(as_bytes(graph)).inputs["0"].element_type
    assert element is not None
    data = np.arange(least, most + 1).astype(element.numpy())
    zero = np.array([most], element.numpy())
    (found,) = run(graph, arrays=[data, np.float32(0.25), zero])
    assert found.tolist() == [(value - most) * 0.25 for value in range(least, most + 1)]
    with pytest.raises(deconv_ir.InputError, match="takes"):
        run(graph, arrays=[np.full(count, 99), np.float32(0.25), zero])


def test_scalars_of_the_host_are_inputs_like_others() -> None:
    """`host_scalar` only states where the value is stored."""
    scalar = tensor(1, [], property_type="host_scalar")
    graph = op(0, "Multiply", [tensor(0, [3]), scalar], [tensor(2, [3])], auto_broadcast="numpy")
    (found,) = run(graph, arrays=[np.float32([1, 2, 3]), np.float32(0.5)])
    assert found.tolist() == [0.5, 1.0, 1.5]


@pytest.mark.parametrize(
    ("kind", "source", "to"),
    [("Quantize", "f32", "bf16"), ("Dequantize", "u8", "s8"), ("Quantize", "f32", "undef")],
)
def test_types_that_an_operation_does_not_make(kind: str, source: str, to: str) -> None:
    graph = op(0, kind, [tensor(0, [2], source)], [tensor(1, [2], to)], scales=[1.0])
    with pytest.raises(deconv_ir.ShapeError, match="the output must have"):
        deconv_ir.load(as_bytes(graph))


BY_CHANNEL = [2, 1, 1, 2, 0.25, 4, 0.125, 8, 0.0625, 16, 0.03125, 32, 0.25, 0.25, 16, 0.125]
"""Powers of two for 16 channels; rounded as int8, half to even, those below 0.5 are 0."""


@pytest.mark.parametrize("layout", ["IOX", "XOI"])
@pytest.mark.parametrize("alone", [False, True])
def test_scales_of_all_groups_of_a_transposed_convolution(layout: str, alone: bool) -> None:
    """As the public file int8_convtranspose_post_ops_add_fusion, which oneDNN 3.2 runs.

    Weights [16, 1, 3, 3] in 16 groups have one output channel in each, and 16 scales along it.
    """
    weights = np.zeros((16, 1, 3, 3), np.int8)
    weights[:, :, 1, 1] = 1
    axis = 1
    if layout == "XOI":
        weights, axis = np.moveaxis(weights, (0, 1), (3, 2)), 2
    shape, data = [1, 16, 5, 5], np.ones((1, 16, 5, 5), np.int8)
    scale: Any = {"qtype": "per_tensor", "scales": [1.0], "zps": [0], "axis": 0}
    channels = {"qtype": "per_channel", "scales": BY_CHANNEL, "zps": [0] * 16, "axis": axis}
    up = deconvolution(
        shape, weights.shape, shape, groups=16, weights_format=layout,
        pads_begin=[1, 1], pads_end=[1, 1],
    )  # fmt: skip
    up |= {"id": 2, "inputs": [tensor(10, shape), tensor(11, weights.shape)]}
    up["outputs"] = [tensor(12, shape)]
    nodes = [
        op(0, "Dequantize", [tensor(0, shape, "s8")], [tensor(10, shape)], **scale),
        op(
            1,
            "Dequantize",
            [tensor(1, weights.shape, "s8")],
            [tensor(11, weights.shape)],
            **channels,
        ),
        up,
        op(3, "Quantize", [tensor(12, shape)], [tensor(13, shape, "s8")], **scale),
    ]
    if alone:  # the weights are dequantized by themselves
        nodes, data = [nodes[1], up], data.astype(np.float32)
        up["inputs"][0]["id"] = 0
    (found,) = run(*nodes, arrays=[data, weights] if not alone else [weights, data])
    centre = found[0, :, 2, 2].tolist()
    if alone:
        assert centre == BY_CHANNEL
    else:
        assert centre == [2, 1, 1, 2, 0, 4, 0, 8, 0, 16, 0, 32, 0, 0, 16, 0]


@pytest.mark.parametrize("zps", [[0] * 6, [0, 0, 1, 0, 0, 0]])
def test_scales_of_groups_with_several_channels(zps: list[int], tmp_path: Path) -> None:
    """4 -> 6 channels in 2 groups: scale g * 3 + o of output channel o of group g."""
    weights = np.ones((4, 3, 1), np.int8)
    scales = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    channels = {"qtype": "per_channel", "scales": scales, "zps": zps, "axis": 1}
    up = deconvolution([1, 4, 2], [4, 3, 1], [1, 6, 2], groups=2)
    up |= {"id": 1, "inputs": [tensor(0, [1, 4, 2]), tensor(11, [4, 3, 1])]}
    up["outputs"] = [tensor(12, [1, 6, 2])]
    nodes = [
        op(0, "Dequantize", [tensor(1, [4, 3, 1], "s8")], [tensor(11, [4, 3, 1])], **channels),
        up,
    ]
    arrays = [weights, np.ones((1, 4, 2), np.float32)]
    (found,) = run(*nodes, arrays=arrays)
    wanted = [2 * (1 - zp) * scale for zp, scale in zip(zps, scales, strict=True)]
    assert found[0, :, 0].tolist() == wanted
    convert(as_bytes(*nodes), tmp_path / "model.xml", OPENVINO_XML)
    (again,) = deconv_ir.load(tmp_path / "model.xml").run(arrays).values()
    np.testing.assert_array_equal(again, found)
    wider = deconv_ir.Overrides(in_shapes="0:1x4x7")
    model = deconv_ir.load(as_bytes(*nodes), overrides=wider)
    arrays[1] = np.ones((1, 4, 7), np.float32)
    assert next(iter(model.run(arrays).values()))[0, :, 6].tolist() == wanted
    channels |= {"scales": scales[:5]}
    nodes[0] = op(
        0, "Dequantize", [tensor(1, [4, 3, 1], "s8")], [tensor(11, [4, 3, 1])], **channels
    )
    with pytest.raises(deconv_ir.ShapeError, match="scales must have 3 elements"):
        deconv_ir.load(as_bytes(*nodes))
