"""Small networks with one convolution each, quantised in many ways.

One thing at a time differs from a plain layer, whose data and weights have one scale and codes of
8 bits; `drawn` combines them at random.  `tools/check_int8.py` asks OpenVINO which of them it
computes in integers.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support import IR, Out  # noqa: E402

NAME = "the_layer"
CHANNELS = 32
EXTENT = 9
Ends = float | tuple[float, ...]


class Fake(NamedTuple):
    """A FakeQuantize; several ranges lie along `axis`, or along `output channels` of weights."""

    low: Ends = 0.0
    high: Ends = 2.55
    levels: int = 256
    output: tuple[Ends, Ends] | None = None
    """The output range; None: the input range."""
    axis: int | str | tuple[int, ...] = 1
    constant: bool = True


class Scaled(NamedTuple):
    """Integers that are converted; a number is subtracted, and the result multiplied."""

    element_type: str = "i8"
    zero_point: float | None = None
    axis: int | str | None = "output channels"
    """Where scales vary; None: one scale."""
    points_type: str = "f32"
    constant: bool = True
    quantized: bool = False
    """Whether the integers come from a FakeQuantize, as in ONNX's QuantizeLinear."""


UNSIGNED = Fake()
SIGNED = Fake(-1.28, 1.27)
ASYMMETRIC = Fake(-1.0, 2.0)
NARROW = Fake(-1.27, 1.27, 255)
PER_CHANNEL = NARROW._replace(axis="output channels")


class Case(NamedTuple):
    """A layer, what quantises its inputs, and what is around it."""

    kind: str = "ConvolutionBackpropData"
    data: Fake | Scaled | None = UNSIGNED
    weights: Fake | Scaled | None = NARROW
    rank: int = 4
    kernel: tuple[int, ...] = (3,)
    stride: tuple[int, ...] = (2,)
    dilation: int = 1
    groups: int = 1
    channels: tuple[int, int] = (CHANNELS, CHANNELS)
    before: tuple[str, ...] = ()
    """Layers between the quantiser of the data and the layer."""
    after: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Other layers that take the quantised data."""
    filter_path: tuple[str, ...] = ()
    """What is special about the way of the weights."""
    dynamic: str = ""
    output_shape: str = ""

    @property
    def is_transposed(self) -> bool:
        """Whether the layer is a deconvolution."""
        return "Backprop" in self.kind

    @property
    def is_grouped(self) -> bool:
        """Whether the filter has an axis of groups."""
        return self.kind.startswith("Group")

    @property
    def spatial(self) -> int:
        """The number of spatial axes."""
        return self.rank - 2

    @property
    def filter_shape(self) -> tuple[int, ...]:
        """The shape of the filter."""
        into, out = (n // self.groups for n in self.channels)
        ends = (into, out) if self.is_transposed else (out, into)
        return (*((self.groups,) if self.is_grouped else ()), *ends, *self.each(self.kernel))

    @property
    def output_axes(self) -> tuple[int, ...]:
        """The axes of the filter that are output channels."""
        axis = int(self.is_transposed) + int(self.is_grouped)
        return (0, axis) if self.is_grouped else (axis,)

    def each(self, value: tuple[int, ...]) -> tuple[int, ...]:
        """Return a number for each spatial axis; the last one is repeated."""
        return (value + value[-1:] * self.spatial)[: self.spatial]

    def __str__(self) -> str:
        defaults = Case._field_defaults
        parts = [f"{k}={_short(v)}" for k, v in self._asdict().items() if v != defaults[k]]
        return " ".join([self.kind, *(p for p in parts if not p.startswith("kind="))])


def _short(value: Any) -> str:
    if isinstance(value, Fake | Scaled):
        defaults = type(value)._field_defaults
        parts = [f"{k}={_short(v)}" for k, v in value._asdict().items() if v != defaults[k]]
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, tuple) and len(value) > 4:
        return f"({value[0]:.3g}..{value[-1]:.3g})"
    return str(value).replace(" ", "")


class _Writer:
    """Writes the network of a case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.ir = IR()
        self.random = np.random.default_rng(47)

    def network(self) -> IR:
        case, ir = self.case, self.ir
        kind = "f32"
        if isinstance(case.data, Scaled) and not case.data.quantized:
            kind = case.data.element_type
        data = self.quantize(ir.parameter("x", self.input_shape(), kind))
        for other in case.others:
            ir.result(self.other(data, other))
        for word in case.before:
            data = self.step(data, word, case.channels[0])
        weights = self.weights(case)
        extra = [self.output_shape(data)] if case.output_shape else []
        layer = self.layer(case, [data, weights, *extra], NAME)
        if "shared" in case.filter_path:
            # A layer that equals another is merged with it.
            ir.result(self.layer(case, [data, weights, *extra], "twin", pad="1"))
        for word in case.after:
            layer = self.step(layer, word, case.channels[1])
        ir.result(layer)
        return ir

    def input_shape(self) -> str:
        case = self.case
        dims = [str(d) for d in (1, case.channels[0], *[EXTENT] * case.spatial)]
        first, last = {"batch": (0, 1), "spatial": (2, None), "all": (0, None)}.get(
            case.dynamic, (0, 0)
        )
        dims[first:last] = ["?"] * len(dims[first:last])
        return ",".join(dims)

    def layer(self, case: Case, inputs: list[Out], name: str, pad: str = "0") -> Out:
        pads = ",".join(pad * case.spatial)
        places = {
            "strides": ",".join(map(str, case.each(case.stride))),
            "dilations": ",".join(map(str, case.each((case.dilation,)))),
            "pads_begin": pads,
            "pads_end": pads,
        }
        return self.ir.layer(case.kind, inputs, places, name=name)

    def output_shape(self, data: Out) -> Out:
        sizes = [(EXTENT - 1) * stride + 3 for stride in self.case.each(self.case.stride)]
        made = self.ir.const(np.array(sizes))
        if self.case.output_shape == "constant":
            return made
        shape = self.ir.layer("ShapeOf", [data], version="opset1", precision="I64")
        first = self.integers(2)
        last, step = self.integers(self.case.rank), self.integers(1)
        masks = {"begin_mask": "0", "end_mask": "0"}
        extents = self.ir.layer("StridedSlice", [shape, first, last, step], masks, precision="I64")
        return self.ir.layer("Multiply", [extents, self.integers(2)], precision="I64")

    # Quantisers

    def quantize(self, x: Out) -> Out:
        case, spec = self.case, self.case.data
        if spec is None:
            return x
        if isinstance(spec, Fake):
            return self.fake(x, spec, (1, case.channels[0], *[EXTENT] * case.spatial))
        if spec.quantized:
            ends = (-128.0, 127.0) if spec.element_type == "i8" else (0.0, 255.0)
            within = (ends[0] / 100, ends[1] / 100)
            shape = (1, case.channels[0], *[EXTENT] * case.spatial)
            x = self.fake(x, Fake(*within, output=ends), shape)
            kind = {"destination_type": spec.element_type}
            x = self.ir.layer("Convert", [x], kind, precision=spec.element_type.upper())
        axes = (1,) if spec.axis == "output channels" else ()
        return self.scaled(x, spec, (1, case.channels[0], *[1] * case.spatial), axes)

    def fake(
        self, source: Out, spec: Fake, shape: tuple[int, ...], output_axes: tuple[int, ...] = ()
    ) -> Out:
        output = (spec.low, spec.high) if spec.output is None else spec.output
        every = (spec.low, spec.high, *output)
        if output_axes and (spec.axis == "output channels" or isinstance(spec.axis, tuple)):
            axes = spec.axis if isinstance(spec.axis, tuple) else output_axes
            extents = [n if axis in axes else 1 for axis, n in enumerate(shape)]
            factor = np.random.default_rng(7).uniform(0.5, 1, extents).astype(np.float32)
            ends = [self.ir.const(factor * np.float32(end)) for end in every]
        else:
            axis = spec.axis if isinstance(spec.axis, int) else 0
            ends = [self.end(end, axis, len(shape)) for end in every]
        if not spec.constant:
            ends[1] = ends[3] = self.ir.parameter(f"high{len(self.ir.layers)}", "1")
        return self.ir.layer("FakeQuantize", [source, *ends], {"levels": str(spec.levels)})

    def end(self, values: Ends, axis: int, rank: int) -> Out:
        array = np.asarray(values, np.float32)
        if array.ndim:
            array = array.reshape([array.size if i == axis else 1 for i in range(rank)])
        return self.ir.const(array)

    def scaled(
        self, source: Out, spec: Scaled, shape: tuple[int, ...], axes: tuple[int, ...]
    ) -> Out:
        ir = self.ir
        found = ir.layer("Convert", [source], {"destination_type": "f32"})
        where = (spec.axis,) if isinstance(spec.axis, int) else axes if spec.axis else ()
        extents = [n if axis in where else 1 for axis, n in enumerate(shape)]
        if spec.zero_point is not None:
            points = np.full(extents, spec.zero_point, np.float32)
            if spec.points_type == "f32":
                point = ir.const(points)
            else:
                codes = points.astype({"i8": np.int8, "u8": np.uint8}[spec.points_type])
                point = ir.layer("Convert", [ir.const(codes)], {"destination_type": "f32"})
            found = ir.layer("Subtract", [found, point])
        scales = self.random.uniform(0.001, 0.01, extents).astype(np.float32)
        return ir.layer("Multiply", [found, ir.const(scales)])

    def weights(self, case: Case) -> Out:
        ir, shape, axes = self.ir, case.filter_shape, case.output_axes
        if "Reshape" in case.filter_path:  # as NNCF writes grouped filters
            shape, axes = (shape[0] * shape[1], *shape[2:]), (0,)
        if "Transpose" in case.filter_path:
            shape, axes = (shape[1], shape[0], *shape[2:]), (1 - axes[0],)
        spec = case.weights
        if isinstance(spec, Scaled):
            if spec.constant:
                dtype = np.uint8 if spec.element_type.startswith("u") else np.int8
                codes = self.random.integers(0, 7, shape).astype(dtype)
                data, kind = codes.tobytes(), spec.element_type
                if kind in ("i4", "u4"):
                    flat = codes.reshape(-1)
                    data = (flat[::2] | flat[1::2] << 4).astype(np.uint8).tobytes()
                source = ir.raw_const(data, kind, shape)
            else:
                extents = ",".join(map(str, shape))
                source = ir.parameter("codes", extents, spec.element_type)
            found = self.scaled(source, spec, shape, axes)
        else:
            found = self.plain_weights(case, shape)
            if spec is not None:
                found = self.fake(found, spec, shape, axes)
        if "Reshape" in case.filter_path:
            target = self.integers(*case.filter_shape)
            return ir.layer("Reshape", [found, target], {"special_zero": "false"})
        if "Transpose" in case.filter_path:
            order = self.integers(1, 0, *range(2, len(shape)))
            return ir.layer("Transpose", [found, order])
        return found

    def plain_weights(self, case: Case, shape: tuple[int, ...]) -> Out:
        if "Parameter" in case.filter_path:
            return self.ir.parameter("filter", ",".join(map(str, shape)))
        values = self.random.uniform(-1, 1, shape).astype(np.float32)
        if "f16" not in case.filter_path:
            return self.ir.const(values)
        half = self.ir.const(values.astype(np.float16))
        return self.ir.layer("Convert", [half], {"destination_type": "f32"})

    # Layers around

    def integers(self, *values: int) -> Out:
        return self.ir.const(np.array(values, np.int64))

    def step(self, source: Out, word: str, channels: int) -> Out:
        """Add a layer behind another."""
        made = STEPS[word](self, source, channels)
        return made

    def other(self, data: Out, word: str) -> Out:
        """Add another layer that takes the data."""
        if word in STEPS:
            return self.step(data, word, self.case.channels[0])
        count = self.case.channels[0]
        plain = Case(rank=self.case.rank, channels=(count, count), stride=(1,))
        kind = word.removeprefix("plain ")
        if kind != word:
            plain = plain._replace(weights=None)
        plain = plain._replace(kind=kind, groups=2 if kind.startswith("Group") else 1)
        return self.layer(plain, [data, self.weights(plain)], f"other{len(self.ir.layers)}")


_WINDOW = {"rounding_type": "floor", "auto_pad": "explicit"}
_RESIZE = {
    "shape_calculation_mode": "scales",
    "coordinate_transformation_mode": "asymmetric",
    "nearest_mode": "floor",
    "antialias": "false",
    "pads_begin": "0",
    "pads_end": "0",
    "cube_coeff": "-0.75",
}
_MASKS = dict.fromkeys(
    ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask"), ""
)
Step = Callable[[_Writer, Out, int], Out]


def _unary(kind: str, version: str = "opset1", **attributes: str) -> Step:
    return lambda w, x, c: w.ir.layer(kind, [x], attributes, version=version)


def _pool(kind: str, **attributes: str) -> Step:
    def add(w: _Writer, x: Out, channels: int) -> Out:
        ones = ",".join("1" * w.case.spatial)
        kernel = ",".join("3" * w.case.spatial)
        places = {"strides": ones, "kernel": kernel, "pads_begin": ones, "pads_end": ones}
        return w.ir.layer(kind, [x], places | _WINDOW | attributes)

    return add


def _pad(mode: str, value: float | None = None) -> Step:
    def add(w: _Writer, x: Out, channels: int) -> Out:
        amounts = [w.integers(0, 0, *[1] * w.case.spatial) for _ in range(2)]
        last = [] if value is None else [w.ir.const(np.float32(value))]
        return w.ir.layer("Pad", [x, *amounts, *last], {"pad_mode": mode})

    return add


def _with_constant(kind: str, *, scalar: bool) -> Step:
    def add(w: _Writer, x: Out, channels: int) -> Out:
        shape = () if scalar else (1, channels, *[1] * w.case.spatial)
        array = w.random.uniform(0.5, 1, shape).astype(np.float32)
        return w.ir.layer(kind, [x, w.ir.const(np.asarray(array))])

    return add


def _concat(axis: int, change: Callable[[Fake], Fake] | None) -> Step:
    """Concatenate with data of the same FakeQuantize, or a changed one, or without (None)."""

    def add(w: _Writer, x: Out, channels: int) -> Out:
        case = w.case
        # Along the channels, both inputs are half as wide.
        shape = (1, channels, *[EXTENT] * case.spatial)
        if axis == 1:
            half = channels // 2
            shape = (1, half, *shape[2:])
            last = w.integers(1, half)
            slices = [x, w.integers(0, 0), last, w.integers(1, 1)]
            x = w.ir.layer("StridedSlice", slices, {"begin_mask": "0", "end_mask": "0"})
        second = w.ir.parameter(f"x{len(w.ir.layers)}", ",".join(map(str, shape)))
        if change is not None:
            spec = case.data if isinstance(case.data, Fake) else UNSIGNED
            second = w.fake(second, change(spec), shape)
        return w.ir.layer("Concat", [x, second], {"axis": str(axis)})

    return add


def _reshaped(*kinds: str) -> Step:
    def add(w: _Writer, x: Out, channels: int) -> Out:
        for kind in kinds:
            x = w.ir.layer(kind, [x, w.integers(1)])
        return x

    return add


def _split(kind: str) -> Step:
    def add(w: _Writer, x: Out, channels: int) -> Out:
        ports, data, attributes = ("", ""), [x, w.ir.const(np.array(1))], {"num_splits": "2"}
        if kind == "VariadicSplit":
            data.append(w.integers(channels // 4, channels - channels // 4))
            attributes = {}
        index, first = w.ir.layer(kind, data, attributes, outputs=ports)
        return w.ir.layer("Concat", [(index, first + 1), (index, first)], {"axis": "1"})

    return add


def _reduce(kind: str) -> Step:
    def add(w: _Writer, x: Out, channels: int) -> Out:
        reduced = w.ir.layer(kind, [x, w.integers(0)], {"keep_dims": "true"})
        return reduced

    return add


def _interpolate(mode: str) -> Step:
    def add(w: _Writer, x: Out, channels: int) -> Out:
        axes = range(2, w.case.rank)
        scales = w.ir.const(np.full(w.case.spatial, 2, np.float32))
        sizes = w.integers(*[2 * EXTENT] * w.case.spatial)
        inputs = [x, sizes, scales, w.integers(*axes)]
        return w.ir.layer("Interpolate", inputs, _RESIZE | {"mode": mode}, version="opset4")

    return add


def _batches(w: _Writer, x: Out, channels: int) -> Out:
    rest = [1] * (w.case.spatial - 1)
    blocks, zeros = w.integers(1, 1, 3, *rest), w.integers(*[0] * w.case.rank)
    return w.ir.layer("SpaceToBatch", [x, blocks, zeros, zeros], version="opset2")


def _transposed(w: _Writer, x: Out, channels: int) -> Out:
    order = w.integers(0, 1, *range(w.case.rank - 1, 1, -1))
    return w.ir.layer("Transpose", [x, order])


def _reshape(w: _Writer, x: Out, channels: int) -> Out:
    target = w.integers(0, 0, *[EXTENT] * (w.case.spatial - 1), -1)
    return w.ir.layer("Reshape", [x, target], {"special_zero": "true"})


def _slope(w: _Writer, x: Out, channels: int) -> Out:
    return w.ir.layer("PReLU", [x, w.ir.const(np.array([0.1], np.float32))])


def _gather(w: _Writer, x: Out, channels: int) -> Out:
    inputs = [x, w.integers(*reversed(range(channels))), w.ir.const(np.array(1))]
    return w.ir.layer("Gather", inputs, {"batch_dims": "0"}, version="opset8")


def _slice(w: _Writer, x: Out, channels: int) -> Out:
    inputs = [x, w.integers(1), w.integers(8), w.integers(1), w.integers(2)]
    return w.ir.layer("Slice", inputs, version="opset8")


def _strided(w: _Writer, x: Out, channels: int) -> Out:
    ends = [w.integers(0, 0, 1), w.integers(1, channels, 8), w.integers(1, 1, 1)]
    return w.ir.layer("StridedSlice", [x, *ends], _MASKS)


def _tile(w: _Writer, x: Out, channels: int) -> Out:
    return w.ir.layer("Tile", [x, w.integers(1, 1, 2, *[1] * (w.case.spatial - 1))])


def _converted(w: _Writer, x: Out, channels: int) -> Out:
    half = w.ir.layer("Convert", [x], {"destination_type": "f16"}, precision="FP16")
    return w.ir.layer("Convert", [half], {"destination_type": "f32"})


def _times(spec: Fake, by: float) -> Fake:
    low, high = (tuple(np.atleast_1d(end) * by) for end in (spec.low, spec.high))
    return spec._replace(
        low=low if len(low) > 1 else float(low[0]), high=high if len(high) > 1 else float(high[0])
    )


STEPS: dict[str, Step] = {
    "MaxPool": _pool("MaxPool"),
    "AvgPool": _pool("AvgPool", **{"exclude-pad": "true"}),
    "ReLU": _unary("ReLU"),
    "Sigmoid": _unary("Sigmoid"),
    "Abs": _unary("Abs"),
    "HSwish": _unary("HSwish", "opset4"),
    "Clamp": _unary("Clamp", min="0", max="1"),
    "PReLU": _slope,
    "Pad": _pad("constant"),
    "Pad by 1": _pad("constant", 1.0),
    "Pad by edges": _pad("edge"),
    "Pad by reflection": _pad("reflect"),
    "Transpose": _transposed,
    "Reshape": _reshape,
    "Unsqueeze, Squeeze": _reshaped("Unsqueeze", "Squeeze"),
    "Split": _split("Split"),
    "VariadicSplit": _split("VariadicSplit"),
    "Gather": _gather,
    "Slice": _slice,
    "StridedSlice": _strided,
    "ShuffleChannels": _unary("ShuffleChannels", "opset3", axis="1", group="2"),
    "SpaceToDepth": _unary("SpaceToDepth", mode="blocks_first", block_size="1"),
    "SpaceToBatch": _batches,
    "Tile": _tile,
    "ReduceMax": _reduce("ReduceMax"),
    "ReduceMin": _reduce("ReduceMin"),
    "ReduceMean": _reduce("ReduceMean"),
    "Interpolate nearest": _interpolate("nearest"),
    "Interpolate linear": _interpolate("linear_onnx"),
    "Convert": _converted,
    "Concat": _concat(2, lambda spec: spec),
    "Concat of others": _concat(2, lambda spec: _times(spec, 2)),
    "Concat of much larger": _concat(2, lambda spec: _times(spec, 1000)),
    "Concat of signed": _concat(2, lambda spec: SIGNED),
    "Concat of unsigned": _concat(2, lambda spec: UNSIGNED),
    "Concat of 255 levels": _concat(2, lambda spec: NARROW),
    "Concat of unquantised": _concat(2, None),
    "Concat of channels": _concat(1, lambda spec: spec),
    "Concat of other channels": _concat(1, lambda spec: _times(spec, 2)),
    "Add": _with_constant("Add", scalar=False),
    "Multiply": _with_constant("Multiply", scalar=False),
    "Multiply by a number": _with_constant("Multiply", scalar=True),
    "FakeQuantize": lambda w, x, c: w.fake(x, UNSIGNED, (1, c, *[EXTENT] * w.case.spatial)),
    "Result": lambda w, x, c: x,
}
"""Word -> how a layer is added behind another."""
BEFORE = [word for word in STEPS if word not in ("HSwish", "Result", "Add")]
OTHERS = (
    *("Result", "Sigmoid", "MaxPool", "Convolution", "plain Convolution", "GroupConvolution"),
    *("ConvolutionBackpropData", "plain ConvolutionBackpropData"),
)
CONVOLUTION = Case("Convolution", stride=(1,))
DECONVOLUTION = Case()
GROUPED = Case("GroupConvolution", stride=(1,), groups=2)
DEPTHWISE = GROUPED._replace(groups=CHANNELS)
GROUPED_DECONVOLUTION = Case("GroupConvolutionBackpropData", groups=2)
PLAIN = (CONVOLUTION, DECONVOLUTION, GROUPED, DEPTHWISE, GROUPED_DECONVOLUTION)

_RISING = tuple(1 + i / (CHANNELS - 1) for i in range(CHANNELS))
_FALLING = tuple(-end for end in _RISING)
_ZEROS = (0.0,) * CHANNELS
_ONES = (1.0,) * CHANNELS
_HALVES = (1.0,) * (CHANNELS // 2) + (2.0,) * (CHANNELS // 2)

DATA: tuple[Fake | Scaled | None, ...] = (
    UNSIGNED,
    SIGNED,
    ASYMMETRIC,
    NARROW,
    *(Fake(levels=levels) for levels in (2, 15, 16, 100, 255, 257, 65536)),
    *(Fake(-0.8, 0.7, levels) for levels in (15, 16)),
    Fake(-1.28, 1.28),
    Fake(-1.0, 1.001, 255),
    Fake(-1.0, 1.003, 255),
    Fake(-2e-6, 2.55),
    Fake(0.004, 2.55),
    Fake(0.5, 2.0),
    Fake(-2.0, -1.0),
    Fake(-1.0, 0.0),
    Fake(output=(2.55, 0.0)),
    Fake(output=(-1.28, 1.27)),
    Fake(_ZEROS, _RISING),
    Fake(_FALLING, _RISING, 255),
    Fake(_ZEROS, _HALVES),
    Fake(tuple(-end for end in _HALVES), _HALVES, 255),
    Fake(_ZEROS, _ONES),
    Fake((-0.5,) * CHANNELS, _RISING),
    Fake((0.5, *_ZEROS[1:]), (1.5, *_ONES[1:])),
    Fake(_ZEROS, _RISING, output=(0.0, 2.55)),
    Fake(_ZEROS[:EXTENT], _RISING[:EXTENT], axis=2),
    Fake(_ZEROS[:EXTENT], _ONES[:EXTENT], axis=2),
    Fake(constant=False),
    None,
    Scaled("u8", axis=None),
    Scaled("i8", axis=None),
    Scaled("u8", 3, axis=None),
    Scaled("u8", 0.2, axis=None),
    Scaled("u8", 300, axis=None),
    Scaled("u8", 3, axis=None, points_type="u8"),
    Scaled("u8", 3, axis=None, points_type="i8"),
    Scaled("i8", 3, axis=None),
    Scaled("u8"),
    Scaled("u8", axis=None, quantized=True),
    Scaled("i8", axis=None, quantized=True),
    Scaled("u8", 3, axis=None, quantized=True),
    Scaled("i8", quantized=True),
)
WEIGHTS: tuple[Fake | Scaled | None, ...] = (
    NARROW,
    None,
    PER_CHANNEL,
    Fake(-1.28, 1.27),
    PER_CHANNEL._replace(low=-1.28, levels=256),
    Fake(-1.0, 1.0),
    Fake(-1.0, 2.0, 255),
    Fake(-1.0, 1.001, 255),
    Fake(-1.0, 1.003, 255),
    PER_CHANNEL._replace(low=-1.0, high=2.0),
    Fake(-1.0, 2.0, 255, output=(-2.54, 2.54)),
    *(NARROW._replace(levels=levels) for levels in (15, 16, 100, 65536)),
    Fake(-0.8, 0.7, 16),
    NARROW._replace(constant=False),
    NARROW._replace(axis=(2,)),
    NARROW._replace(axis=(0, 1)),
    NARROW._replace(axis=(0, 1, 2)),
    Scaled(),
    Scaled(axis=None),
    Scaled("u8"),
    Scaled("u8", 128),
    Scaled("u8", 128, points_type="u8"),
    Scaled("i4"),
    Scaled("u4"),
    Scaled(zero_point=0),
    Scaled(zero_point=0.3),
    Scaled(zero_point=2),
    Scaled(zero_point=2, points_type="i8"),
    Scaled(axis=2),
    Scaled(axis=3),
    Scaled(constant=False),
)
_FORMS: tuple[dict[str, Any], ...] = (
    *({"rank": rank} for rank in (3, 5)),
    *(
        {"kernel": (kernel,), "stride": (stride,)}
        for kernel, stride in ((1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 4), (4, 4), (5, 4))
    ),
    {"kernel": (5, 3), "stride": (4, 2)},
    {"kernel": (3, 5), "stride": (2, 4)},
    {"kernel": (1, 3)},
    {"dilation": 2},
    *({"dynamic": dynamic} for dynamic in ("batch", "spatial", "all")),
)
_GROUPS = ((1, 32, 32), (2, 8, 8), (32, 32, 64), (4, 64, 64))
_CHANNELS = ((1, 1), (3, 5), (16, 16), (17, 33))
_AFTER = (("Add",), ("Add", "ReLU"), ("HSwish",), ("FakeQuantize",), ("Add", "FakeQuantize"))
_PATHS = (("Parameter",), ("f16",), ("shared",))


def cases() -> Iterator[Case]:
    """Iterate over the cases: plain layers, and those that differ from one in one thing."""
    for plain in PLAIN:
        yield from (plain._replace(data=data) for data in DATA)
        yield from (plain._replace(weights=weights) for weights in WEIGHTS[1:])
        yield plain._replace(data=None, weights=None)
        yield plain._replace(data=Scaled("u8", axis=None), weights=Scaled())
        yield from (plain._replace(**form) for form in _FORMS)
        yield plain._replace(rank=5, data=SIGNED)
        for path in _PATHS:
            yield plain._replace(filter_path=path)
        for before in BEFORE:
            for data in (UNSIGNED, SIGNED):
                yield plain._replace(data=data, before=(before,))
        for after in _AFTER:
            yield plain._replace(after=after)
        for others in OTHERS:
            yield plain._replace(data=SIGNED, others=(others,))
        if plain.is_grouped:
            for groups, into, out in _GROUPS:
                yield plain._replace(groups=groups, channels=(into, out))
            for weights in (NARROW, PER_CHANNEL, Scaled()):
                yield plain._replace(filter_path=("Reshape",), weights=weights)
        else:
            yield from (plain._replace(channels=channels) for channels in _CHANNELS)
            for weights in (NARROW, PER_CHANNEL, Scaled()):
                yield plain._replace(filter_path=("Transpose",), weights=weights)
        if plain.is_transposed:
            yield plain._replace(output_shape="constant")
            yield plain._replace(output_shape="computed")
            yield plain._replace(output_shape="computed", dynamic="spatial")


def drawn(seed: int, count: int) -> Iterator[Case]:
    """Iterate over random cases: several things differ from a plain layer."""
    draw = random.Random(seed)
    for _ in range(count):
        case = draw.choice((*PLAIN[:2], *PLAIN))
        changes: list[dict[str, Any]] = [
            {"data": draw.choice(DATA)},
            {"weights": draw.choice(WEIGHTS)},
            dict(draw.choice(_FORMS)),
            {"before": tuple(draw.choices(BEFORE, k=draw.randint(1, 3)))},
            {"after": draw.choice(_AFTER)},
            {"others": tuple(draw.choices(OTHERS, k=draw.randint(1, 2)))},
            {"filter_path": draw.choice(_PATHS)},
        ]
        for change in draw.sample(changes, draw.randint(2, 5)):
            case = case._replace(**change)
        yield case


def write(case: Case) -> IR:
    """Write the network of a case."""
    return _Writer(case).network()
