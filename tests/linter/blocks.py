"""Blocks of drawn networks, in OpenVINO's layout, whose attributes are drawn too."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from support import IR, Out

PADS = {"pads_begin": "1, 1", "pads_end": "1, 1"}
NO_PADS = {"pads_begin": "0, 0", "pads_end": "0, 0"}
NUMPY = {"auto_broadcast": "numpy"}


class Drawing:
    """A graph being drawn: its last tensor of rank 4, and the shape of that."""

    def __init__(self, rng: random.Random, ir: IR, kind: str, *, dynamic: bool) -> None:
        self.rng = rng
        self.arrays = np.random.default_rng(rng.randrange(1 << 30))
        self.ir = ir
        self.kind = kind
        """Element type of the tensors."""
        self.dynamic = dynamic
        """Whether the dims of `shape`, except axis 1, are those of one size only."""
        self.is_whole = True
        """Whether it is not a body."""
        self.shape: list[int] = []
        self.at: Out = (0, 0)

    def begin(self, name: str, shape: Sequence[int]) -> Out:
        """Add a Parameter, and continue from there."""
        self.shape = list(shape)
        self.at = self.ir.parameter(name, ",".join(map(str, shape)), self.kind)
        return self.at

    def const(self, *shape: int) -> Out:
        kind = np.float16 if self.kind == "f16" else np.float32
        return self.ir.const(self.arrays.normal(size=shape).astype(kind))

    def ints(self, *values: int) -> Out:
        return self.ir.const(np.array(values, np.int64))

    def add(self, kind: str, sources: Sequence[Out], version: str = "opset1", **data: Any) -> Out:
        attributes = {name.replace("__", "-"): str(value) for name, value in data.items()}
        return self.ir.layer(kind, [self.at, *sources], attributes, version=version)

    def convolution(self, out: int | None = None, strides: str | None = None) -> None:
        c, k = self.shape[1], self.rng.choice([1, 3])
        out = self.rng.choice([2, 3, 5]) if out is None else out
        pads = PADS if k == 3 else NO_PADS
        strides = strides or self.rng.choice(["1, 1", "2, 2", "1, 2"])
        self.at = self.add(
            "Convolution",
            [self.const(out, c, k, k)],
            strides=strides,
            dilations="1, 1",
            auto_pad="explicit",
            **pads,
        )
        self.at = self.add("Add", [self.const(1, out, 1, 1)], **NUMPY)

    def deconvolution(self, out: int | None = None, doubles: bool = False) -> None:
        c = self.shape[1]
        out = self.rng.choice([2, 3, 5]) if out is None else out
        k, s = self.rng.choice([(2, 2), (3, 2), (4, 2), (3, 1)][: 3 if doubles else 4])
        pads = PADS if k > 2 else NO_PADS
        more = "1, 1" if (k, s) == (3, 2) else "0, 0"
        self.at = self.add(
            "ConvolutionBackpropData",
            [self.const(c, out, k, k)],
            strides=f"{s}, {s}",
            dilations="1, 1",
            auto_pad="explicit",
            output_padding=more,
            **pads,
        )

    def deconvolution_to_size(self) -> None:
        """Add a transposed convolution with an output_shape, from a ShapeOf if dims are dynamic."""
        c, out = self.shape[1], self.rng.choice([2, 3])
        if self.dynamic:
            extents = self.add("ShapeOf", [], "opset3", output_type="i64")
            picked = [self.ints(2), self.ints(4), self.ints(1)]
            masks = dict.fromkeys(("new_axis_mask", "shrink_axis_mask", "ellipsis_mask"), "0")
            masks |= {"begin_mask": "0", "end_mask": "0"}
            extents = self.ir.layer("StridedSlice", [extents, *picked], masks)
            size = self.ir.layer("Multiply", [extents, self.ints(2)], NUMPY)
        else:
            size = self.ints(*(2 * n - self.rng.randrange(2) for n in self.shape[2:]))
        auto_pad = self.rng.choice(["explicit", "same_upper", "same_lower"])
        self.at = self.add(
            "ConvolutionBackpropData",
            [self.const(c, out, 3, 3), size],
            strides="2, 2",
            dilations="1, 1",
            auto_pad=auto_pad,
            output_padding="0, 0",
            **(PADS if auto_pad == "explicit" else NO_PADS),
        )

    def quantized(self) -> None:
        """Add a convolution of 8 bits, as NNCF writes it: FakeQuantize, and weights of i8."""
        c, out = self.shape[1], self.rng.choice([2, 3, 5])
        kind = np.float16 if self.kind == "f16" else np.float32
        low, high = (self.ir.const(np.full((1, 1, 1, 1), x, kind)) for x in (-2, 2))
        levels = self.rng.choice([255, 256])
        self.at = self.add("FakeQuantize", [low, high, low, high], levels=levels, **NUMPY)
        elements = self.arrays.integers(-127, 128, (out, c, 1, 1)).astype(np.int8)
        whole = {"destination_type": self.kind}
        filters = self.ir.layer("Convert", [self.ir.const(elements)], whole)
        scales = self.ir.const(self.arrays.uniform(0.01, 0.02, (out, 1, 1, 1)).astype(kind))
        filters = self.ir.layer("Multiply", [filters, scales], NUMPY)
        plain = {"strides": "1, 1", "dilations": "1, 1", "auto_pad": "explicit", **NO_PADS}
        self.at = self.add("Convolution", [filters], **plain)

    def split(self) -> None:
        """Cut along an axis into parts, one of which is also an output of the network."""
        _, c, _, w = self.shape
        if self.rng.random() < 0.5 and c > 1:
            data = [self.ir.const(np.array(1)), self.ints(1, c - 1)]
            at = self.two_outputs("VariadicSplit", data, {})
            axis = 1
        elif not self.dynamic and w % 2 == 0:
            at = self.two_outputs("Split", [self.ir.const(np.array(3))], {"num_splits": "2"})
            axis = 3
        else:
            axis, at = 2, [self.at, self.add("Tanh", [])]
        if self.rng.random() < 0.5 and self.is_whole:
            self.ir.result(at[0], f"part{len(self.ir.layers)}")
        second = self.ir.layer("ReLU", [at[1]])
        self.at = self.ir.layer("Concat", [second, at[0]], {"axis": str(axis)})

    def two_outputs(self, kind: str, sources: Sequence[Out], data: dict[str, str]) -> list[Out]:
        """Add a layer with two outputs."""
        layer, port = self.ir.layer(kind, [self.at, *sources], data, outputs=("", ""))
        return [(layer, port), (layer, port + 1)]

    def pool(self) -> None:
        data = {
            "kernel": "2, 2",
            "strides": "2, 2",
            "rounding_type": self.rng.choice(["floor", "ceil"]),
            "auto_pad": "explicit",
            **NO_PADS,
        }
        if self.rng.random() < 0.5:
            exclude = self.rng.choice(["true", "false"])
            data |= {"kernel": "3, 3", **PADS}
            self.at = self.add("AvgPool", [], **data, **{"exclude-pad": exclude})
        else:
            self.at = self.add("MaxPool", [], **data)

    def activation(self) -> None:
        kind = self.rng.choice(["ReLU", "Sigmoid", "Tanh", "Elu", "Clamp", "HSwish", "PReLU"])
        if kind == "Elu":
            self.at = self.add(kind, [], alpha=1.0)
        elif kind == "Clamp":
            self.at = self.add(kind, [], min=-1.0, max=1.0)
        elif kind == "PReLU":
            self.at = self.add(kind, [self.const(self.shape[1])])
        else:
            self.at = self.add(kind, [], "opset4" if kind == "HSwish" else "opset1")

    def normalize(self) -> None:
        if self.rng.random() < 0.5:
            axes = self.ints(2, 3)
            variance = self.rng.choice(["true", "false"])
            self.at = self.add(
                "MVN",
                [axes],
                "opset6",
                normalize_variance=variance,
                eps=1e-5,
                eps_mode="inside_sqrt",
            )
        else:
            self.at = self.add("SoftMax", [], "opset8", axis=self.rng.choice([1, -1, 2]))

    def excite(self) -> None:
        c = self.shape[1]
        whole = self.at
        self.at = self.add("ReduceMean", [self.ints(2, 3)], keep_dims="true")
        self.at = self.add(
            "Convolution",
            [self.const(c, c, 1, 1)],
            strides="1, 1",
            dilations="1, 1",
            auto_pad="explicit",
            **NO_PADS,
        )
        self.at = self.add("Sigmoid", [])
        self.at = self.add("Multiply", [whole], **NUMPY)

    def move(self) -> None:
        chosen = self.rng.randrange(5)
        n, c, h, w = self.shape
        if chosen == 0:
            self.at = self.add("Transpose", [self.ints(0, 1, 3, 2)])
        elif chosen == 1:
            self.at = self.add(
                "Pad",
                [self.ints(0, 0, 1, 1), self.ints(0, 0, 1, 0)],
                pad_mode=self.rng.choice(["edge", "reflect", "symmetric"]),
            )
        elif chosen == 2:
            if self.dynamic:
                target = self.add("ShapeOf", [], "opset3", output_type="i64")
            else:
                target = self.ints(n, c, h, w)
            self.at = self.add("Reshape", [self.ints(0, c, -1)], special_zero="true")
            self.at = self.add("Reshape", [target], special_zero="false")
        elif chosen == 3:
            other = self.add("ReLU", [])
            self.at = self.add("Concat", [other], axis=1)
        else:
            self.at = self.add(
                "StridedSlice",
                [self.ints(0, 0, 1, 0), self.ints(0, 0, 0, 0), self.ints(1, 1, 1, 1)],
                begin_mask="1, 1, 0, 1",
                end_mask="1, 1, 1, 1",
                new_axis_mask="",
                shrink_axis_mask="",
                ellipsis_mask="",
            )

    def resize(self) -> None:
        h, w = self.shape[2:]
        calculation = "scales" if self.dynamic else self.rng.choice(["sizes", "scales"])
        scales = self.ir.const(np.array([2, 1], np.float32))
        sizes = [self.ints(2 * h, w), scales, self.ints(2, 3)]
        mode = self.rng.choice(["nearest", "linear_onnx"])
        self.at = self.add(
            "Interpolate",
            sizes,
            "opset4",
            mode=mode,
            shape_calculation_mode=calculation,
            coordinate_transformation_mode=self.rng.choice(["half_pixel", "asymmetric"]),
            nearest_mode="floor",
            antialias="false",
            pads_begin="0",
            pads_end="0",
            cube_coeff=-0.75,
        )

    def finish(self) -> None:
        n, c, h, w = self.shape
        if self.dynamic:
            self.at = self.add("ReduceMax", [self.ints(2, 3)], keep_dims="false")
            h = w = 1
        else:
            self.at = self.add("Reshape", [self.ints(n, c * h * w)], special_zero="false")
        transposed = self.rng.random() < 0.5
        shape = (3, c * h * w) if transposed else (c * h * w, 3)
        self.at = self.add(
            "MatMul", [self.const(*shape)], transpose_a="false", transpose_b=str(transposed).lower()
        )
        self.ir.result(self.at, "y")
