"""Convolutions and products with Quantize behind them: one layer, which reads and writes bytes.

Oracle: oneDNN Graph specification, Dequantize and Quantize, on sums of integers; before Quantize
they are rounded to f32 once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from onednn_forms import as_bytes, op, tensor
from onednn_oracle import gather, scatter
from plan_rows import rows_of

import deconv_ir
from deconv_ir.kernels.quantized import kernel as quantized_kernel
from deconv_ir.kernels.quantized.codes import from_codes, to_codes
from deconv_ir.kernels.runtime.extension import compiled_module

MACHINES = ["", "zen3", "zen1", "skylake-x", "sapphire-rapids", "small"]
SIDES = {"u8": (0, np.uint8), "s8": (-128, np.int8)}


class Case(NamedTuple):
    """A graph, arrays for its inputs, and the expected results of the last tensor."""

    graph: list[dict[str, Any]]
    arrays: dict[str, Any]
    expected: Any


def quantize(numbers: Any, scale: float, zero_point: int, to: str) -> Any:
    """Return Quantize by definition."""
    low, dtype = SIDES[to]
    rounded = np.rint(numbers.astype(float) / float(np.float32(scale)) + zero_point)
    return np.clip(rounded, low, low + 255).astype(dtype)


def draw(
    rng: np.random.Generator, kind: str, source: str, to: str, *, last: bool, groups: int,
    per_channel: bool, bias: bool, depth: int, activation: str = "", adds: str = "",
    apart: bool = False,
) -> Case:  # fmt: skip
    """Draw Dequantize twice, a layer of two spatial axes, an activation, and Quantize.

    The bias may be `apart`, in a BiasAdd; Add has the layer's result ``first`` or ``second``.
    """
    forward = kind == "Convolution"
    inputs, outputs, extents, strides, pads = depth * groups, 3 * groups, [5, 4], [2, 1], [1, 0]
    sides = (outputs, depth) if forward else (inputs, outputs // groups)
    first, dtype = SIDES[source]
    data = rng.integers(first, first + 256, (2, inputs, *extents)).astype(dtype)
    weights = rng.integers(-128, 128, (*sides, 3, 2)).astype(np.int8)
    results = [2, 3] if forward else [10, 5]
    zeros = (int(rng.integers(first, first + 256)), int(rng.integers(-9, 9)))
    count = sides[0 if forward else 1] if per_channel else 1
    scales = [float(np.float32(x)) for x in rng.uniform(0.001, 0.02, count)]
    scale = float(np.float32(rng.uniform(0.01, 0.2)))
    total = (gather if forward else scatter)(
        data.astype(float) - zeros[0], weights.astype(float) - zeros[1], strides, pads, results,
        [1, 1], groups=groups,
    )  # fmt: skip
    by_output = np.resize(scales, outputs).reshape(-1, 1, 1)
    added = rng.normal(size=outputs).astype(np.float32) if bias else np.zeros(outputs, np.float32)
    addend = rng.normal(size=total.shape).astype(np.float32) if adds else np.zeros(1, np.float32)
    numbers = total * (by_output * scale) + added.reshape(-1, 1, 1).astype(float) + addend
    numbers = numbers.astype(np.float32)
    step, point = float(numbers.std() / 40), int(rng.integers(SIDES[to][0], SIDES[to][0] + 256))
    bounds = {"ReLU": (0, np.inf), "Clamp": (-20 * step, 30 * step)}.get(activation)
    if bounds is not None:
        numbers = np.clip(numbers, *np.array(bounds, np.float32))
    expected = quantize(numbers, step, point, to)
    axis = 0 if forward else 1
    layout = {"data_format": "NCX", "weights_format": "OIX" if forward else "IOX"}
    if last:
        data, expected = (np.moveaxis(array, 1, -1) for array in (data, expected))
        addend = np.moveaxis(addend, 1, -1) if adds else addend
        weights, axis = np.ascontiguousarray(weights.transpose(2, 3, 1, 0)), 3 if forward else 2
        layout = {"data_format": "NXC", "weights_format": "XIO" if forward else "XOI"}
    x, w, y = (list(array.shape) for array in (data, weights, expected))
    one: dict[str, Any] = {"qtype": "per_tensor", "axis": 1}
    own = {"qtype": "per_channel" if per_channel else "per_tensor", "axis": axis}
    attributes: dict[str, Any] = {
        "strides": strides, "pads_begin": pads, "pads_end": [0, 0], "dilations": [1, 1],
        "groups": groups, **layout,
    }  # fmt: skip
    into = [tensor(1, x), tensor(3, w), *([tensor(6, [outputs])] if bias and not apart else [])]
    graph = [
        op(
            0, "Dequantize", [tensor(0, x, source)], [tensor(1, x)], scales=[scale],
            zps=[zeros[0]], **one,
        ),
        op(
            1, "Dequantize", [tensor(2, w, "s8")], [tensor(3, w)], scales=scales,
            zps=[zeros[1]] * count, **own,
        ),
        op(2, kind, into, [tensor(4, y)], **attributes),
        op(3, "Quantize", [tensor(4, y)], [tensor(5, y, to)], scales=[step], zps=[point], **one),
    ]  # fmt: skip
    now = 4
    if apart:
        pair = [tensor(now, y), tensor(6, [outputs])]
        graph.insert(-1, op(5, "BiasAdd", pair, [tensor(8, y)], data_format=layout["data_format"]))
        now = 8
    if adds:
        pair = [tensor(now, y), tensor(9, y)]
        graph.insert(-1, op(6, "Add", pair[:: 1 if adds == "first" else -1], [tensor(10, y)]))
        now = 10
    if activation:
        given = {} if activation == "ReLU" else {"min": -20 * step, "max": 30 * step}
        graph.insert(-1, op(4, activation, [tensor(now, y)], [tensor(7, y)], **given))
        now = 7
    graph[-1]["inputs"] = [tensor(now, y)]
    arrays = {"0": data, "2": weights} | ({"6": added} if bias else {})
    return Case(graph, arrays | ({"9": addend} if adds else {}), expected)


@pytest.mark.parametrize("kind", ["Convolution", "ConvTranspose"])
@pytest.mark.parametrize("source", ["u8", "s8"])
@pytest.mark.parametrize("last", [False, True], ids=["NCX", "NXC"])
@pytest.mark.parametrize(("groups", "depth"), [(1, 1), (1, 3), (1, 70), (2, 4), (2, 3), (5, 1)])
@pytest.mark.parametrize("machine", MACHINES)
def test_quantize_is_computed_with_the_layer_before_it(
    monkeypatch: pytest.MonkeyPatch, kind: str, source: str, last: bool, groups: int, depth: int,
    machine: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("DECONV_IR_MACHINE", machine)
    rng = np.random.default_rng([depth, groups, last, len(machine), len(kind)])
    to, per_channel, bias = str(rng.choice(["u8", "s8"])), rng.random() < 0.5, rng.random() < 0.5
    case = draw(
        rng, kind, source, to, last=last, groups=groups, per_channel=per_channel, bias=bias,
        depth=depth,
    )  # fmt: skip
    model = deconv_ir.load(as_bytes(*case.graph))
    (found,) = model.run(case.arrays).values()
    assert found.dtype == case.expected.dtype
    np.testing.assert_array_equal(found, case.expected)


@pytest.mark.parametrize("kind", ["Convolution", "ConvTranspose"])
@pytest.mark.parametrize("to", ["u8", "s8"])
@pytest.mark.parametrize("activation", ["ReLU", "Clamp"])
@pytest.mark.parametrize("kernel", ["auto", "numpy"])
def test_an_activation_between_is_part_of_the_layer(
    monkeypatch: pytest.MonkeyPatch, kind: str, to: str, activation: str, kernel: str
) -> None:
    """Its results alone, too, and those of the layer before it."""
    monkeypatch.setenv("DECONV_IR_KERNEL", kernel)
    case = draw(
        np.random.default_rng(12), kind, "u8", to, last=kind == "Convolution", groups=2,
        per_channel=True, bias=True, depth=4, activation=activation,
    )  # fmt: skip
    model = deconv_ir.load(as_bytes(*case.graph))
    (found,) = model.run(case.arrays).values()
    np.testing.assert_array_equal(found, case.expected)
    rows = [row.type for row in rows_of(model, case.arrays).values() if row.type != "Result"]
    assert rows == [kind]
    inner = model.run(case.arrays, outputs=["4", "7"])
    step = case.graph[-1]["attrs"]["scales"]["value"][0]
    low, high = (0, np.inf) if activation == "ReLU" else (-20 * step, 30 * step)
    bounds = np.array([low, high], np.float32)
    np.testing.assert_array_equal(inner["7"], np.clip(inner["4"], *bounds))
    assert not np.array_equal(inner["7"], inner["4"])


@pytest.mark.parametrize("kind", ["Convolution", "ConvTranspose"])
@pytest.mark.parametrize("last", [False, True], ids=["NCX", "NXC"])
@pytest.mark.parametrize(
    ("adds", "apart"), [("first", False), ("second", False), ("", True), ("first", True)]
)
@pytest.mark.parametrize("activation", ["", "ReLU"])
@pytest.mark.parametrize("machine", [*MACHINES, "numpy"])
def test_sums_between_are_part_of_the_layer(
    monkeypatch: pytest.MonkeyPatch, kind: str, last: bool, adds: str, apart: bool,
    activation: str, machine: str,
) -> None:  # fmt: skip
    """BiasAdd, and Add of a tensor on either side: all is rounded once."""
    monkeypatch.setenv("DECONV_IR_MACHINE", "" if machine == "numpy" else machine)
    monkeypatch.setenv("DECONV_IR_KERNEL", "numpy" if machine == "numpy" else "auto")
    rng = np.random.default_rng([len(adds), apart, last, len(machine), len(kind)])
    case = draw(
        rng, kind, "u8", str(rng.choice(["u8", "s8"])), last=last, groups=int(rng.choice([1, 2])),
        per_channel=True, bias=apart or rng.random() < 0.5, depth=int(rng.choice([3, 4, 9])),
        activation=activation, adds=adds, apart=apart,
    )  # fmt: skip
    model = deconv_ir.load(as_bytes(*case.graph))
    for _ in range(2):
        (found,) = model.run(case.arrays).values()
        np.testing.assert_array_equal(found, case.expected)
    rows = [row.type for row in rows_of(model, case.arrays).values() if row.type != "Result"]
    assert rows == [kind]


def test_an_add_that_broadcasts_is_a_step_of_its_own() -> None:
    case = draw(
        np.random.default_rng(15), "Convolution", "u8", "u8", last=False, groups=1,
        per_channel=True, bias=True, depth=4, adds="first",
    )  # fmt: skip
    one = [2, 3, 1, 1]
    case.graph[3]["inputs"][1] = tensor(9, one)
    case.arrays["9"] = np.ones(one, np.float32)
    model = deconv_ir.load(as_bytes(*case.graph))
    found = model.run(case.arrays, outputs=["4", "10"])
    np.testing.assert_array_equal(found["10"], found["4"] + np.float32(1))
    rows = [row.type for row in rows_of(model, case.arrays).values() if row.type != "Result"]
    assert rows == ["Convolution", "Add", "Quantize"]


@pytest.mark.parametrize("shape", ["1", "2x3x1x1", "4x2x3x2x3"])
def test_shapes_of_addends_may_be_overridden(shape: str) -> None:
    """The Add is part of the layer by the shapes that the file declares."""
    case = draw(
        np.random.default_rng(16), "Convolution", "u8", "u8", last=False, groups=1,
        per_channel=True, bias=True, depth=4, adds="first",
    )  # fmt: skip
    extents = tuple(map(int, shape.split("x")))
    addend = np.random.default_rng(17).normal(size=extents).astype(np.float32)
    overrides = deconv_ir.Overrides(in_shapes=f"9:{shape}")
    model = deconv_ir.load(as_bytes(*case.graph), overrides=overrides)
    step, point = (case.graph[-1]["attrs"][name]["value"][0] for name in ("scales", "zps"))
    alone = deconv_ir.load(as_bytes(*case.graph)).run(case.arrays, outputs=["4"])["4"]
    (found,) = model.run(case.arrays | {"9": addend}).values()
    expected = quantize((alone + addend).astype(np.float32), step, point, "u8")
    assert found.shape == expected.shape
    assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1  # rounded once, not twice
    assert (found == expected).mean() > 0.99


@pytest.mark.parametrize("kind", ["Convolution", "ConvTranspose"])
@pytest.mark.parametrize("to", ["u8", "s8"])
def test_results_are_the_same_without_compiled_kernels(
    monkeypatch: pytest.MonkeyPatch, kind: str, to: str
) -> None:
    monkeypatch.setenv("DECONV_IR_KERNEL", "numpy")
    case = draw(
        np.random.default_rng(5), kind, "s8", to, last=True, groups=2, per_channel=True, bias=True,
        depth=4,
    )  # fmt: skip
    (found,) = deconv_ir.load(as_bytes(*case.graph)).run(case.arrays).values()
    np.testing.assert_array_equal(found, case.expected)


def test_plans_have_one_step_for_the_pattern() -> None:
    """Nothing is dequantized; a tensor between is computed if it is an output."""
    case = draw(
        np.random.default_rng(6), "Convolution", "u8", "u8", last=False, groups=1,
        per_channel=True, bias=True, depth=8,
    )  # fmt: skip
    model = deconv_ir.load(as_bytes(*case.graph))
    rows = [row for row in rows_of(model, case.arrays).values() if row.type != "Result"]
    assert [(row.type, row.precision) for row in rows] == [("Convolution", "i8")]
    found = model.run(case.arrays, outputs=["4", "5"])
    np.testing.assert_array_equal(found["5"], case.expected)
    np.testing.assert_array_equal(
        quantize(
            found["4"],
            case.graph[3]["attrs"]["scales"]["value"][0],
            case.graph[3]["attrs"]["zps"]["value"][0],
            "u8",
        ),
        case.expected,
    )


def draw_product(
    rng: np.random.Generator, source: str, to: str, weights_type: str, shape: list[int],
    columns: int, *, transposed: bool, per_channel: bool, bias: bool, activation: str = "",
) -> Case:  # fmt: skip
    """Draw Dequantize twice, MatMul of rows with a matrix, an activation, and Quantize."""
    terms, (first, dtype), (low, narrow) = shape[-1], SIDES[source], SIDES[weights_type]
    data = rng.integers(first, first + 256, shape).astype(dtype)
    weights = rng.integers(low, low + 256, (terms, columns)).astype(narrow)
    zeros = int(rng.integers(first, first + 256)), int(rng.integers(low, low + 256))
    count = columns if per_channel else 1
    scales = [float(np.float32(x)) for x in rng.uniform(0.001, 0.02, count)]
    scale = float(np.float32(rng.uniform(0.01, 0.2)))
    total = (data.astype(float) - zeros[0]) @ (weights.astype(float) - zeros[1])
    added = rng.normal(size=columns).astype(np.float32) if bias else np.zeros(columns, np.float32)
    numbers = (total * (np.resize(scales, columns) * scale) + added).astype(np.float32)
    step, point = float(numbers.std() / 40), int(rng.integers(SIDES[to][0], SIDES[to][0] + 256))
    if activation:
        numbers = np.maximum(numbers, np.float32(0))
    expected = quantize(numbers, step, point, to)
    matrix = np.ascontiguousarray(weights.T) if transposed else weights
    x, w, y = (list(array.shape) for array in (data, matrix, expected))
    one: dict[str, Any] = {"qtype": "per_tensor", "axis": 1}
    own = {"qtype": "per_channel" if per_channel else "per_tensor", "axis": 0 if transposed else 1}
    into = [tensor(1, x), tensor(3, w), *([tensor(6, [columns])] if bias else [])]
    behind = 7 if activation else 4
    graph = [
        op(0, "Dequantize", [tensor(0, x, source)], [tensor(1, x)], scales=[scale],
           zps=[zeros[0]], **one),
        op(1, "Dequantize", [tensor(2, w, weights_type)], [tensor(3, w)], scales=scales,
           zps=[zeros[1]] * count, **own),
        op(2, "MatMul", into, [tensor(4, y)], transpose_b=transposed),
        *([op(4, "ReLU", [tensor(4, y)], [tensor(7, y)])] if activation else []),
        op(3, "Quantize", [tensor(behind, y)], [tensor(5, y, to)], scales=[step], zps=[point],
           **one),
    ]  # fmt: skip
    return Case(graph, {"0": data, "2": matrix} | ({"6": added} if bias else {}), expected)


@pytest.mark.parametrize("source", ["u8", "s8"])
@pytest.mark.parametrize("weights_type", ["u8", "s8"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("shape", "columns"), [([5, 3], 7), ([1, 64], 33), ([2, 3, 70], 16), ([40, 301], 50)]
)
@pytest.mark.parametrize("machine", [*MACHINES, "numpy"])
def test_products_read_and_write_bytes(
    monkeypatch: pytest.MonkeyPatch, source: str, weights_type: str, transposed: bool,
    shape: list[int], columns: int, machine: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("DECONV_IR_MACHINE", "" if machine == "numpy" else machine)
    monkeypatch.setenv("DECONV_IR_KERNEL", "numpy" if machine == "numpy" else "auto")
    rng = np.random.default_rng([columns, transposed, len(machine), len(source)])
    to, per_channel, bias = str(rng.choice(["u8", "s8"])), rng.random() < 0.5, rng.random() < 0.5
    case = draw_product(
        rng, source, to, weights_type, shape, columns, transposed=transposed,
        per_channel=per_channel, bias=bias, activation=str(rng.choice(["", "ReLU"])),
    )  # fmt: skip
    model = deconv_ir.load(as_bytes(*case.graph))
    for _ in range(2):
        (found,) = model.run(case.arrays).values()
        assert found.dtype == case.expected.dtype
        np.testing.assert_array_equal(found, case.expected)
    rows = [row for row in rows_of(model, case.arrays).values() if row.type != "Result"]
    assert [(row.type, row.precision) for row in rows] == [("MatMul", "i8")]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_results_that_are_no_numbers(value: float) -> None:
    """Quantize gives 0 for NaN, as a step of its own does, and saturates infinite numbers."""
    case = draw_product(
        np.random.default_rng(14), "u8", "u8", "s8", [6, 12], 5, transposed=False,
        per_channel=True, bias=True,
    )  # fmt: skip
    case.arrays["6"][2] = value
    (found,) = deconv_ir.load(as_bytes(*case.graph)).run(case.arrays).values()
    others = [0, 1, 3, 4]
    np.testing.assert_array_equal(found[:, others], case.expected[:, others])
    assert (found[:, 2] == (255 if value > 0 else 0)).all()


@pytest.mark.parametrize(
    ("data", "weights", "result", "options"),
    [
        ([2, 3], [3, 4], [2, 4], {}),
        ([3, 2], [3, 4], [2, 4], {"transpose_a": True}),
        ([2, 5, 3], [2, 3, 4], [2, 5, 4], {}),
        ([3], [3, 4], [4], {}),
        ([2, 3], [3], [2], {}),
    ],
)
def test_plans_say_which_sums_are_in_f64(
    data: list[int], weights: list[int], result: list[int], options: dict[str, bool]
) -> None:
    """Those of rows and one matrix have 32 bits."""
    one: dict[str, Any] = {"qtype": "per_tensor", "scales": [0.5]}
    graph = [
        op(0, "Dequantize", [tensor(0, data, "s8")], [tensor(1, data)], **one),
        op(1, "Dequantize", [tensor(2, weights, "s8")], [tensor(3, weights)], **one),
        op(2, "MatMul", [tensor(1, data), tensor(3, weights)], [tensor(4, result)], **options),
    ]
    rng = np.random.default_rng(13)
    arrays = {name: rng.integers(-128, 128, shape).astype(np.int8)
              for name, shape in (("0", data), ("2", weights))}  # fmt: skip
    model = deconv_ir.load(as_bytes(*graph))
    rows = [row for row in rows_of(model, arrays).values() if row.type == "MatMul"]
    is_rows = data[-1] == 3 and len(data) == 2 == len(weights)
    assert [row.precision for row in rows] == ["i8" if is_rows else "f64"]
    a, b = arrays["0"].astype(float), arrays["2"].astype(float)
    product = (a.T if options else a) @ b
    np.testing.assert_array_equal(model.run(arrays)["4"], product * 0.25)


def test_per_channel_quantize_is_a_step_of_its_own() -> None:
    case = draw(
        np.random.default_rng(7), "Convolution", "u8", "u8", last=False, groups=1,
        per_channel=False, bias=False, depth=8,
    )  # fmt: skip
    behind = case.graph[3]["attrs"]
    for name in ("scales", "zps"):
        behind[name]["value"] *= 3
    behind["qtype"]["value"] = "per_channel"
    model = deconv_ir.load(as_bytes(*case.graph))
    (found,) = model.run(case.arrays).values()
    np.testing.assert_array_equal(found, case.expected)


@pytest.mark.skipif(not compiled_module(), reason="NumPy's kernel packs nothing")
def test_weights_are_packed_once_and_again_if_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if they change in place, or only the bias does."""
    counts: list[int] = []
    original: Callable[..., Any] = quantized_kernel.pack_integers

    def counted(*arguments: Any, **named: Any) -> Any:
        counts.append(1)
        return original(*arguments, **named)

    monkeypatch.setattr(quantized_kernel, "pack_integers", counted)
    case = draw(
        np.random.default_rng(8), "ConvTranspose", "u8", "s8", last=False, groups=1,
        per_channel=False, bias=True, depth=8,
    )  # fmt: skip
    model = deconv_ir.load(as_bytes(*case.graph))
    for _ in range(3):
        (found,) = model.run(case.arrays).values()
        np.testing.assert_array_equal(found, case.expected)
    assert len(counts) == 1
    case.arrays["2"][:] = 0
    case.arrays["6"][:] = 0
    (found,) = model.run(case.arrays).values()
    zero = case.graph[1]["attrs"]["zps"]["value"][0]
    same = deconv_ir.load(as_bytes(*case.graph)).run(case.arrays)
    np.testing.assert_array_equal(found, next(iter(same.values())))
    assert zero == 0 or not np.array_equal(found, case.expected)
    assert len(counts) == 3


def test_layers_pass_bytes_to_each_other() -> None:
    """A second layer reads the bytes that the first one wrote.

    With a power of two as scale, ties are exact, and go to even.
    """
    rng = np.random.default_rng(9)
    one: dict[str, Any] = {"qtype": "per_tensor", "axis": 1}
    shape, filter_ = [1, 4, 6, 5], [4, 4, 1, 1]
    fixed: dict[str, Any] = {
        "strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1],
        "groups": 1, "data_format": "NCX", "weights_format": "OIX",
    }  # fmt: skip
    graph, arrays = [], {"0": rng.integers(0, 256, shape).astype(np.uint8)}
    expected: Any = arrays["0"]
    for i in range(2):
        at = 10 * i
        arrays[str(at + 2)] = rng.integers(-128, 128, filter_).astype(np.int8)
        graph += [
            op(at, "Dequantize", [tensor(at, shape, "u8")], [tensor(at + 1, shape)],
               scales=[0.5], zps=[7], **one),
            op(at + 1, "Dequantize", [tensor(at + 2, filter_, "s8")], [tensor(at + 3, filter_)],
               scales=[0.25], **one),
            op(at + 2, "Convolution", [tensor(at + 1, shape), tensor(at + 3, filter_)],
               [tensor(at + 4, shape)], **fixed),
            op(at + 3, "Quantize", [tensor(at + 4, shape)], [tensor(at + 10, shape, "u8")],
               scales=[32.0], zps=[120], **one),
        ]  # fmt: skip
        weights = arrays[str(at + 2)][:, :, 0, 0].astype(float)
        sums = np.einsum("oi,nixy->noxy", weights, expected.astype(float) - 7)
        expected = quantize((sums * 0.125).astype(np.float32), 32.0, 120, "u8")
    model = deconv_ir.load(as_bytes(*graph))
    (found,) = model.run(arrays).values()
    np.testing.assert_array_equal(found, expected)
    rows = [row.type for row in rows_of(model, arrays).values() if row.type != "Result"]
    assert rows == ["Convolution", "Convolution"]


@pytest.mark.parametrize("channels", [1, 3, 4, 6, 8])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_codes_hold_four_channels_of_bytes(channels: int, dtype: Any) -> None:
    """The first byte of an element is the lowest channel's; codes of int8 begin at -128."""
    data = np.random.default_rng(10).integers(0, 256, (2, channels, 3)).astype(np.uint8).view(dtype)
    codes = to_codes(data)
    assert codes.shape == (2, -(-channels // 4), 3)
    least = -128 if dtype == np.int8 else 0
    for at in np.ndindex(*data.shape):
        element = int(codes[at[0], at[1] // 4, at[2]])
        assert element >> 8 * (at[1] % 4) & 255 == int(data[at]) - least
    np.testing.assert_array_equal(from_codes(codes, channels, np.dtype(dtype)), data)
    last = np.ascontiguousarray(np.moveaxis(data, 1, -1))
    np.testing.assert_array_equal(to_codes(np.moveaxis(last, -1, 1)), codes)


def test_zero_points_beyond_bytes_are_summed_in_f64() -> None:
    """They are integers of 64 bits."""
    case = draw(
        np.random.default_rng(11), "Convolution", "u8", "u8", last=False, groups=1,
        per_channel=False, bias=False, depth=4,
    )  # fmt: skip
    data, weights = case.arrays["0"], case.arrays["2"]
    case.graph[0]["attrs"]["zps"]["value"] = [1 << 20]
    case.graph[1]["attrs"]["zps"]["value"] = [0]
    total = gather(
        data.astype(float) - (1 << 20), weights.astype(float), [2, 1], [1, 0], [2, 3], [1, 1]
    )
    attributes = [operation["attrs"] for operation in case.graph]
    factor = float(np.float32(attributes[0]["scales"]["value"][0])) * float(
        np.float32(attributes[1]["scales"]["value"][0])
    )
    found = deconv_ir.load(as_bytes(*case.graph)).run(case.arrays, outputs=["4"])["4"]
    np.testing.assert_array_equal(found, (total * factor).astype(np.float32))
