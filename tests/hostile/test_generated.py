"""Bugs in operations found by generated IRs, each in a minimal example, and a slice of such IRs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support import IR

import deconv_ir

GENERATE = Path(__file__).parent / "generate.py"
Given = str | np.ndarray
"""A Parameter's shape, or a constant."""


def save(
    folder: Path,
    kind: str,
    inputs: Sequence[Given],
    attributes: dict[str, str] | None = None,
    *,
    types: Sequence[str] = (),
) -> Path:
    """Write a network of one layer: ``Gather-8`` is a Gather of opset8."""
    name, _, opset = kind.partition("-")
    ir = IR()
    sources = []
    for i, given in enumerate(inputs):
        if isinstance(given, str):
            element_type = types[i] if i < len(types) else "f32"
            sources.append(ir.parameter(f"x{i}", given, element_type))
        else:
            sources.append(ir.const(given))
    layer = ir.layer(
        name, sources, attributes, version=f"opset{opset or 1}", names="y", precision="dynamic"
    )
    ir.result(layer)
    return ir.save(folder)


def whole(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_a_slice_of_the_generated_irs() -> None:
    """The test runs in its own process: modules loaded by other tests would count as memory."""
    command = [sys.executable, "-P", str(GENERATE), "--count", "300", "--first", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tried 300, failures 0" in done.stdout
    ran = re.search(r"^ *(\d+) ran$", done.stdout, re.MULTILINE)
    assert ran is not None
    assert int(ran[1]) > 60, "what is wrong with them must not keep all of them from running"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("Sqrt", -1.0), ("Sqrt", np.nan), ("Sqrt", -np.inf), ("Log", -1.0), ("Acos", 2.0)),
        *(("Asin", -2.0), ("Acosh-4", 0.5), ("Atanh-4", 2.0), ("Floor", np.nan)),
    ],
)
def test_a_known_value_outside_the_domain_is_nan(kind: str, value: float, tmp_path: Path) -> None:
    """By IEEE 754 an invalid operation gives NaN, and so does each of these functions of a NaN."""
    path = save(tmp_path, kind, [np.array([value], np.float32)])
    findings = deconv_ir.lint(path, severity="info", deep=True)
    assert not any(f.rule == "internal-error" for f in findings)
    assert np.isnan(deconv_ir.load(path, warn=False).run({})["y"]).all()


@pytest.mark.parametrize(("kind", "expected"), [("Floor", np.inf), ("Ceiling", np.inf)])
def test_a_known_infinity_stays_one(kind: str, expected: float, tmp_path: Path) -> None:
    path = save(tmp_path, kind, [np.array([np.inf], np.float32)])
    assert deconv_ir.load(path, warn=False).run({})["y"].tolist() == [expected]


def test_maximum_of_known_values_keeps_nan(tmp_path: Path) -> None:
    """Python's max(1, nan) is 1; shape inference must not use such a scale."""
    ir = IR()
    one, nan = (ir.const(np.array([v], np.float32)) for v in (1.0, np.nan))
    scale = ir.layer("Maximum", [one, nan])
    x, axes = ir.parameter("x", "1,1,4"), ir.const(whole(2))
    attributes = {"mode": "nearest", "shape_calculation_mode": "scales"}
    ir.result(ir.layer("Interpolate", [x, scale, axes], attributes, version="opset11", names="y"))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    with pytest.raises(deconv_ir.ShapeError, match="must be positive, found nan"):
        model.run([np.ones((1, 1, 4), np.float32)])


EMPTY = [
    (
        "Interpolate-11",
        ["1,2,3,4", whole(0, 5), whole(2, 3)],
        {"mode": "nearest", "shape_calculation_mode": "sizes"},
        (1, 2, 0, 5),
    ),
    ("IRDFT-9", ["3,0,2", whole(1)], {}, (3, 0)),
    ("IRDFT-9", ["3,1,2", whole(1)], {}, (3, 0)),
    ("RDFT-9", ["3,0", whole(1)], {}, (3, 0, 2)),
    ("DFT-7", ["0,4,2", whole(0, 1)], {}, (0, 4, 2)),
    ("AdaptiveMaxPool-8", ["2,0,5", whole(3)], {}, (2, 0, 3)),
    ("GridSample-9", ["0,3,4,4", "0,2,5,2"], {}, (0, 3, 2, 5)),
]


@pytest.mark.parametrize(("kind", "inputs", "attributes", "shape"), EMPTY)
def test_operations_on_empty_arrays_run(
    kind: str,
    inputs: list[Given],
    attributes: dict[str, str],
    shape: tuple[int, ...],
    tmp_path: Path,
) -> None:
    """Operations on empty arrays give results."""
    model = deconv_ir.load(save(tmp_path, kind, inputs, attributes), warn=False)
    arrays = [np.zeros(p.shape, np.float32) for p in model.inputs.values()]
    found = model.run(arrays)["y"]
    assert found.shape == shape
    assert model.infer_shapes()["y"] == shape


def test_a_transform_of_no_signal_is_zeros(tmp_path: Path) -> None:
    """Four requested terms of an empty signal are zeros."""
    path = save(tmp_path, "DFT-7", ["3,0,2", whole(1), whole(4)])
    found = deconv_ir.load(path, warn=False).run([np.zeros((3, 0, 2), np.float32)])["y"]
    np.testing.assert_array_equal(found, np.zeros((3, 4, 2)))


def test_attention_without_width_is_the_mean(tmp_path: Path) -> None:
    """All scores are 0, so each key has the same weight."""
    path = save(tmp_path, "ScaledDotProductAttention-13", ["1,2,0", "1,3,0", "1,3,1"], FREE)
    arrays = [np.zeros((1, 2, 0)), np.zeros((1, 3, 0)), np.array([[[1], [2], [6]]])]
    found = deconv_ir.load(path, warn=False).run([a.astype(np.float32) for a in arrays])["y"]
    np.testing.assert_allclose(found, np.full((1, 2, 1), 3), rtol=1e-6)


FREE = {"causal": "false"}
ATTENTION = ["2,5,8", "2,6,8", "2,6,7"]

REFUSED = [
    ("CumSum-3", ["", whole(0)], {}, "axis 0 is outside a rank of 0"),
    ("CumSum-3", [""], {}, "axis 0 is outside a rank of 0"),
    ("CumSum-3", ["2,3", whole(0, 1)], {}, "axis must have one element"),
    ("ReduceSum", ["", whole(0)], {"keep_dims": "false"}, "axes 0 is outside a rank of 0"),
    ("TopK", ["2,3", whole(1, 1)], {"axis": "1", "mode": "max", "sort": "value"}, "k must have"),
    ("Range", [whole(0, 1), whole(3), whole(1)], {}, "start must have one element"),
    ("ScaledDotProductAttention-13", [*ATTENTION, "4,6"], FREE, "does not fit the scores"),
    ("ScaledDotProductAttention-13", [*ATTENTION, "3,5,6"], FREE, "does not fit the scores"),
    ("ScaledDotProductAttention-13", [*ATTENTION, "7,2,5,6"], FREE, "does not fit the scores"),
    ("ScaledDotProductAttention-13", [*ATTENTION, "4"], FREE, "does not fit the scores"),
    (
        "Eye-9",
        [whole(2), whole(2), whole(0), whole(2, -1)],
        {"output_type": "f32"},
        "batch_shape must not be negative, found -1",
    ),
    (
        "ReverseSequence",
        ["2,2", whole(1, 1)],
        {"batch_axis": "0", "seq_axis": "-2"},
        "batch_axis and seq_axis are both 0",
    ),
    (
        "SpaceToBatch-2",
        ["2,4", whole(2, 2), whole(0, 0), whole(0, 0)],
        {},
        "block_shape must be 1 for the batch axis, found 2",
    ),
]


@pytest.mark.parametrize(("kind", "inputs", "attributes", "words"), REFUSED)
def test_refused_when_loaded(
    kind: str, inputs: list[Given], attributes: dict[str, str], words: str, tmp_path: Path
) -> None:
    with pytest.raises(deconv_ir.ShapeError) as caught:
        deconv_ir.load(save(tmp_path, kind, inputs, attributes))
    assert words in str(caught.value)


@pytest.mark.parametrize("attribute", ["dynamic", "undefined", "string"])
@pytest.mark.parametrize(
    ("kind", "inputs", "name"),
    [
        ("Convert", ["2"], "destination_type"),
        ("ShapeOf-3", ["2"], "output_type"),
        ("NonZero-3", ["2"], "output_type"),
        ("Eye-9", [whole(2), whole(2), whole(0)], "output_type"),
        ("AdaptiveMaxPool-8", ["2,3,5", whole(3)], "index_element_type"),
    ],
)
def test_results_of_no_type_of_arrays(
    kind: str, inputs: list[Given], name: str, attribute: str, tmp_path: Path
) -> None:
    with pytest.raises(deconv_ir.AttributeValueError, match=f"'{name}' must be an element type"):
        deconv_ir.load(save(tmp_path, kind, inputs, {name: attribute}))


# Inputs of dynamic rank and unknown values: errors are found when the model runs.
LATE = [
    ("Gather-8", [(2, 3), [0, 1], [0, 1]], {}, "axis must"),
    ("Gather-8", [(2, 3), [0, 1], 7], {}, "axis 7 is outside a rank of 2"),
    ("CumSum-3", [(), 0], {}, "axis 0 is outside a rank of 0"),
    ("Roll-7", [(2, 3), [1], [27]], {}, "axes 27 is outside a rank of 2"),
    ("Roll-7", [(2, 3), [], [1]], {}, "shift must have one element"),
    ("Split", [(2, 5), 1], {"num_splits": "2"}, "num_splits"),
    ("Eye-9", [2, 2, 0, [-1]], {"output_type": "f32"}, "must not be negative"),
    ("Slice-8", [(5,), [0], [5], [0]], {}, "step 0 is 0"),
    ("DFT-7", [(3, 2), [0], [-2]], {}, "signal_size must be positive"),
]


@pytest.mark.parametrize(("kind", "given", "attributes", "words"), LATE)
def test_refused_when_run(
    kind: str,
    given: list[tuple[int, ...] | int | list[int]],
    attributes: dict[str, str],
    words: str,
    tmp_path: Path,
) -> None:
    """Inputs are results of layers whose values shape inference does not know."""
    ir = IR()
    sources = []
    arrays = []
    for i, one in enumerate(given):
        # A tuple is the shape of data; a list becomes the values of a Gather with unknown indices.
        if isinstance(one, tuple):
            sources.append(ir.parameter(f"x{i}", "...", "f32"))
            arrays.append(np.ones(one, np.float32))
            continue
        values = np.array(one, np.int64)
        padded = np.concatenate([values.ravel(), np.zeros(100, np.int64)])
        source = ir.parameter(f"x{i}", "?", "i64")
        count = ir.parameter(f"n{i}", "...", "i64")
        axis = ir.const(np.array(0, np.int64))
        # Shape inference does not follow the values of more than 64 elements.
        arrays += [padded, np.arange(values.size).reshape(values.shape)]
        sources.append(
            ir.layer("Gather", [source, count, axis], version="opset8", precision="dynamic")
        )
    name, _, opset = kind.partition("-")
    outputs = [""] * int(attributes.get("num_splits", 1))
    layer = ir.layer(
        name,
        sources,
        attributes,
        version=f"opset{opset or 1}",
        outputs=outputs,
        precision="dynamic",
    )
    ir.result(layer)
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    with pytest.raises(deconv_ir.ShapeError) as caught:
        model.run(arrays)
    assert words in str(caught.value)
    assert f"({name}, id {layer[0]})" in str(caught.value)


def test_axes_beyond_what_an_array_can_have(tmp_path: Path) -> None:
    """The list of axes once took memory according to its declared length."""
    path = save(tmp_path, "Broadcast-3", ["1", f"{2**40}"], types=("f32", "i64"))
    with pytest.raises(deconv_ir.ShapeError, match="would have 1099511627776 axes"):
        deconv_ir.load(path)


@pytest.mark.parametrize("element_type", ["u3", "u6"])
def test_a_packed_constant_without_elements(element_type: str, tmp_path: Path) -> None:
    ir = IR()
    empty = ir.raw_const(b"", element_type, (0,))
    ir.result(ir.layer("Convert", [empty], {"destination_type": "f32"}, names="y"))
    assert deconv_ir.load(ir.save(tmp_path), warn=False).run({})["y"].shape == (0,)


def test_a_convolution_of_a_type_that_has_none(tmp_path: Path) -> None:
    ones = {"strides": "1", "dilations": "1", "pads_begin": "0", "pads_end": "0"}
    path = save(tmp_path, "Convolution", ["1,1,3", "1,1,1"], ones, types=["f8e5m2", "f8e5m2"])
    model = deconv_ir.load(path, warn=False)
    zeros = [np.zeros(s, ml_dtypes.float8_e5m2) for s in ((1, 1, 3), (1, 1, 1))]
    with pytest.raises(deconv_ir.UnsupportedError, match="do not support element type float8"):
        model.run(zeros)


def test_an_extent_that_no_array_can_have(tmp_path: Path) -> None:
    """The run is refused for its memory before the positions are computed."""
    attributes = {"mode": "linear", "shape_calculation_mode": "sizes"}
    path = save(tmp_path, "Interpolate-11", ["1,1,4", whole(2**60), whole(2)], attributes)
    model = deconv_ir.load(path, warn=False)
    with pytest.raises(deconv_ir.ResourceError):
        model.run([np.zeros((1, 1, 4), np.float32)])


def test_a_constant_computed_of_values_that_inference_cannot_see_fits_or_is_refused(
    tmp_path: Path,
) -> None:
    """The extent is found while constants are folded: a plan refuses it just as a run does."""
    ir = IR()
    x, wanted = ir.const(np.ones((1, 1, 2), np.float32)), ir.const(np.array([2.0**40]))
    extent = ir.layer("Convert", [wanted], {"destination_type": "i64"}, precision="dynamic")
    # Shape inference does not follow the values of more than 64 elements.
    padded = ir.layer("Concat", [extent] * 65, {"axis": "0"}, precision="dynamic")
    first = ir.layer(
        "Gather", [padded, ir.const(whole(0)), ir.const(np.array(0))], precision="dynamic"
    )
    ir.result(ir.layer("AdaptiveAvgPool", [x, first], version="opset8", names="y"))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    for call in (model.run, lambda inputs: model.bind(inputs).plan):
        with pytest.raises(deconv_ir.ResourceError, match="the layer needs 4 TiB of memory"):
            call({})


@pytest.mark.parametrize(
    "call", [lambda bound: bound.run(), lambda bound: bound.plan], ids=["run", "plan"]
)
def test_memory_that_runs_out_in_a_plan(
    call: Callable[[deconv_ir.BoundModel], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NumPy allocates more than the plan counts: one error, with the figure of the plan."""
    from deconv_ir.ops.shape.order import CumSum

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(CumSum, "bind", fail)
    model = deconv_ir.load(save(tmp_path, "CumSum-3", ["2", np.array(0, np.int32)]), warn=False)
    bound = model.bind(np.ones(2, np.float32))
    with pytest.raises(
        deconv_ir.ResourceError, match="needs 4 B of memory, and an allocation failed"
    ):
        call(bound)


def test_a_constant_that_is_nan_makes_no_warning(tmp_path: Path) -> None:
    """Constants are folded as silently as layers run; pytest turns warnings into errors."""
    path = save(tmp_path, "DFT-7", [np.full((2, 2), np.inf, np.float32), whole(0)])
    assert np.isnan(deconv_ir.load(path, warn=False).run({})["y"]).any()


def test_a_deconvolution_of_constants_to_an_extent_that_is_fed(tmp_path: Path) -> None:
    """The packed kernel then lacks its input of data."""
    data, filter_ = np.ones((1, 1, 2), np.float32), np.ones((1, 1, 3), np.float32)
    attributes = {"strides": "2", "pads_begin": "0", "pads_end": "0", "dilations": "1"}
    path = save(
        tmp_path,
        "ConvolutionBackpropData",
        [data, filter_, "1"],
        attributes | {"auto_pad": "same_upper"},
        types=("f32", "f32", "i64"),
    )
    found = deconv_ir.load(path, warn=False).run([whole(5)])["y"]
    # 1 1 1 at 0 and at 2.
    np.testing.assert_array_equal(found, [[[1, 1, 2, 1, 1]]])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("x", [-2.0, 3.0])
def test_prelu_of_a_scalar(x: float, dtype: type, tmp_path: Path) -> None:
    name = {np.float32: "f32", np.float16: "f16"}[dtype]
    model = deconv_ir.load(save(tmp_path, "PReLU", ["", ""], types=(name, name)), warn=False)
    found = model.run([np.array(x, dtype), np.array(-0.5, dtype)])["y"]
    assert found.shape == ()
    assert found == (x if x > 0 else -0.5 * x)


@pytest.mark.parametrize("kind", ["AvgPool", "MaxPool"])
def test_a_kernel_without_extents(kind: str, tmp_path: Path) -> None:
    attributes = {"kernel": "", "strides": "1", "pads_begin": "0", "pads_end": "0"}
    path = save(tmp_path, kind, ["1,1,4"], attributes | {"exclude-pad": "true"})
    with pytest.raises(deconv_ir.ShapeError, match="kernel must have 1 elements"):
        deconv_ir.load(path)


@pytest.mark.parametrize("kind", ["AvgPool", "MaxPool"])
def test_windows_without_number(kind: str, tmp_path: Path) -> None:
    """Padding that holds 2^40 windows is refused before tables of them are made."""
    attributes = {"kernel": "2", "strides": "1", "pads_begin": "0", "pads_end": f"{2**40}"}
    path = save(tmp_path, kind, ["1,1,4"], attributes | {"exclude-pad": "true"})
    model = deconv_ir.load(path, warn=False)
    assert model.bind([np.ones((1, 1, 4), np.float32)]).plan.peak_bytes > 2**40
    with pytest.raises(deconv_ir.ResourceError, match=r"needs \d+ TiB of memory"):
        model.run([np.ones((1, 1, 4), np.float32)])


@pytest.mark.parametrize("kind", ["MaxPool", "AvgPool"])
def test_windows_that_reach_no_data(kind: str, tmp_path: Path) -> None:
    attributes = {"kernel": "2", "strides": "2", "pads_begin": "3", "pads_end": "4"}
    path = save(tmp_path, kind, ["1,1,2"], attributes | {"exclude-pad": "false"})
    x = np.array([[[6.0, 8.0]]], np.float32)
    lowest = {"spec": -np.inf, "openvino": np.finfo(np.float32).min}
    for semantics, least in lowest.items():
        found = deconv_ir.load(path, warn=False, semantics=semantics).run([x])["y"]
        expected = {"MaxPool": [least, 6, 8, least], "AvgPool": [0, 3, 4, 0]}[kind]
        np.testing.assert_array_equal(found, [[expected]])


@pytest.mark.parametrize(("axes", "rank"), [((0, 0), 2), ((0, 1), 3), ((0, 2, 0), 3)])
def test_unsqueeze_by_axes_that_may_be_the_same(
    axes: tuple[int, ...], rank: int, tmp_path: Path
) -> None:
    model = deconv_ir.load(
        save(tmp_path, "Unsqueeze", ["3", f"{len(axes)}"], types=("f32", "i64")), warn=False
    )
    assert model.infer_shapes()["y"] is None
    assert model.run([np.ones(3, np.float32), whole(*axes)])["y"].ndim == rank


def test_more_batch_axes_than_an_unknown_axis_can_follow(tmp_path: Path) -> None:
    path = save(
        tmp_path, "Gather-8", ["4", "4", ""], {"batch_dims": "1"}, types=("f32", "i64", "i64")
    )
    with pytest.raises(deconv_ir.ShapeError, match="batch_dims is 1, greater than the axis 0"):
        deconv_ir.load(path)


@pytest.mark.parametrize(
    ("start", "output_type", "expected"),
    [(2.0**63, "u64", [2**63, 2**63 + 4096]), (2.0**31, "i32", [-(2**31), 4096 - 2**31])],
)
@pytest.mark.parametrize("known", [True, False])
def test_a_range_beyond_its_type_wraps(
    start: float, output_type: str, expected: list[int], known: bool, tmp_path: Path
) -> None:
    """Two numbers, exact in f64, are computed modulo 2^bits."""
    numbers = [np.array(v, np.float64) for v in (start, start + 8192, 4096)]
    given: list[Given] = list(numbers) if known else ["", "", ""]
    path = save(tmp_path, "Range-4", given, {"output_type": output_type}, types=("f64",) * 3)
    model = deconv_ir.load(path, warn=False)
    assert model.run([] if known else numbers)["y"].tolist() == expected


def test_an_extent_beyond_the_type_of_a_shape_wraps(tmp_path: Path) -> None:
    """An empty array of 2^31 rows has a shape in i64, which wraps in i32."""
    for given in (f"{2**31},0", "?,0"):
        model = deconv_ir.load(save(tmp_path, "ShapeOf-3", [given], {"output_type": "i32"}))
        found = model.run([np.empty((2**31, 0), np.float32)])["y"]
        assert found.tolist() == [-(2**31), 0]


MANY = f"{2**40}"
HUGE_LISTS = [
    ("Tile", ["1", MANY], {}),
    ("Reshape", ["1", MANY], {"special_zero": "false"}),
    ("StridedSlice", ["1", MANY, MANY], {"begin_mask": "", "end_mask": ""}),
    ("Unsqueeze", ["1", MANY], {}),
]


@pytest.mark.parametrize(("kind", "inputs", "attributes"), HUGE_LISTS)
def test_a_list_of_more_axes_than_an_array_can_have(
    kind: str, inputs: list[Given], attributes: dict[str, str], tmp_path: Path
) -> None:
    """The list is refused before memory is taken for each axis."""
    path = save(tmp_path, kind, inputs, attributes, types=("f32", "i64", "i64"))
    with pytest.raises(deconv_ir.ShapeError):
        deconv_ir.load(path)


def test_lists_that_no_output_shape_depends_on_are_checked_when_they_run(tmp_path: Path) -> None:
    """The output has the shape of the data, but the updates fit another axis only."""
    inputs: list[Given] = ["4,2", "1", "1,2", ""]
    types = ("f32", "i64", "f32", "i64")
    model = deconv_ir.load(save(tmp_path, "ScatterUpdate-3", inputs, types=types), warn=False)
    data, updates = np.zeros((4, 2), np.float32), np.ones((1, 2), np.float32)
    found = model.run([data, whole(3), updates, np.array(0)])["y"]
    np.testing.assert_array_equal(found, [[0, 0], [0, 0], [0, 0], [1, 1]])
    with pytest.raises(deconv_ir.ShapeError, match=r"updates must have shape \[4,1\]"):
        model.run([data, whole(1), updates, np.array(1)])


@pytest.mark.parametrize("dims", [("2,3", "4,5"), ("2,?", "?,5"), ("...", "...")])
def test_inner_dims_of_a_product_that_differ(dims: tuple[str, str], tmp_path: Path) -> None:
    """The error comes at load time if the dims are known, else in the run; it names both shapes."""
    path = save(tmp_path, "MatMul", dims, {"transpose_a": "false", "transpose_b": "false"})
    words = r"inner dims differ: a \[2,3\] has 3, b \[4,5\] has 4"
    arrays = [np.zeros(s, np.float32) for s in ((2, 3), (4, 5))]
    with pytest.raises(deconv_ir.ShapeError, match=words):
        deconv_ir.load(path, warn=False).run(arrays)
