"""Random networks of one to three spatial axes, made of operations that can be tiled."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from support import IR, Out

import deconv_ir
from deconv_ir import Model
from deconv_ir.errors import DeconvError


class Network:
    """Adds layers one by one, and keeps a layer if the model still loads."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(f"network/{seed}")
        self.numbers = np.random.default_rng(seed)
        self.rank = self.draw.choice((1, 2, 2, 3))
        most = {1: 24, 2: 11, 3: 7}[self.rank]
        extents = [self.draw.randint(3, most) for _ in range(self.rank)]
        channels = self.draw.randint(1, 4)
        self.shape = (self.draw.choice((1, 1, 2)), channels, *extents)
        self.semantics = self.draw.choice(("spec", "openvino"))
        self.ir = IR()
        self.alive: list[tuple[Out, tuple[int, ...]]] = [
            (self.ir.parameter("x", ",".join(map(str, self.shape))), self.shape)
        ]
        for _ in range(self.draw.randint(2, 6)):
            self._grow()

    def model(self, output: Out | None = None, accuracy: str = "direct") -> Model:
        """Load the current network, with its last tensor as the output."""
        ir = IR(layers=[*self.ir.layers], edges=[*self.ir.edges], weights=self.ir.weights)
        ir.result(output or self.alive[-1][0])
        return deconv_ir.load(
            ir.xml().encode(),
            bytes(ir.weights),
            accuracy=accuracy,
            semantics=self.semantics,
            warn=False,
        )

    def input(self) -> np.ndarray:
        """Return random data."""
        return self.numbers.standard_normal(self.shape).astype(np.float32)

    def _grow(self) -> None:
        kinds = (
            "convolution", "convolution", "deconvolution", "deconvolution", "max_pool", "avg_pool",
            "activation", "prelu", "pad", "interpolate", "slice", "split", "depth_to_space",
            "space_to_depth", "transpose", "batch_norm", "softmax", "mean", "add", "concat",
            "reshape", "window", "strided_slice",
        )  # fmt: skip
        layers, edges = len(self.ir.layers), len(self.ir.edges)
        source, shape = self.draw.choice(self.alive[-2:])
        try:
            made = getattr(self, f"_{self.draw.choice(kinds)}")(source, shape)
            (found,) = self.model(made).infer_shapes().values()
        except (DeconvError, ValueError):
            found = None
        if (
            found is None
            or not all(isinstance(d, int) for d in found)
            or not 0 < np.prod(found) < 4e4
        ):
            del self.ir.layers[layers:], self.ir.edges[edges:]
            return
        self.alive.append((made, found))

    def _weights(self, *shape: int) -> Out:
        return self.ir.const(self.numbers.standard_normal(shape).astype(np.float32))

    def _integers(self, values: Sequence[int]) -> Out:
        return self.ir.const(np.array(values, np.int64))

    def _each(self, low: int, high: int) -> str:
        return ",".join(str(self.draw.randint(low, high)) for _ in range(self.rank))

    def _attributes(self, kernel: Sequence[int], *, crops: bool) -> dict[str, str]:
        low = -1 if crops and self.draw.random() < 0.3 else 0
        return {
            "strides": self._each(1, 3),
            "dilations": self._each(1, 2),
            "pads_begin": self._each(low, 2),
            "pads_end": self._each(low, 2),
            "auto_pad": self.draw.choice(
                ("explicit", "explicit", "same_upper", "same_lower", "valid")
            ),
        }

    def _kernel(self) -> list[int]:
        return [self.draw.randint(1, 4) for _ in range(self.rank)]

    def _convolution(self, x: Out, shape: tuple[int, ...]) -> Out:
        kernel, made = self._kernel(), self.draw.randint(1, 4)
        found = self._attributes(kernel, crops=True)
        if shape[1] % 2 == 0 and self.draw.random() < 0.3:
            weights = self._weights(2, made, shape[1] // 2, *kernel)
            return self.ir.layer("GroupConvolution", [x, weights], found)
        return self.ir.layer("Convolution", [x, self._weights(made, shape[1], *kernel)], found)

    def _deconvolution(self, x: Out, shape: tuple[int, ...]) -> Out:
        kernel, made = self._kernel(), self.draw.randint(1, 3)
        found = self._attributes(kernel, crops=False) | {"output_padding": self._each(0, 1)}
        inputs = [x, self._weights(shape[1], made, *kernel)]
        if self.draw.random() < 0.4:
            inputs.append(self._integers([self.draw.randint(1, 3 * n) for n in shape[2:]]))
        if shape[1] % 2 == 0 and self.draw.random() < 0.3:
            inputs[1] = self._weights(2, shape[1] // 2, made, *kernel)
            return self.ir.layer("GroupConvolutionBackpropData", inputs, found)
        return self.ir.layer("ConvolutionBackpropData", inputs, found)

    def _max_pool(self, x: Out, shape: tuple[int, ...]) -> Out:
        kernel = self._kernel()
        found = self._attributes(kernel, crops=False) | {"kernel": ",".join(map(str, kernel))}
        found["rounding_type"] = self.draw.choice(("floor", "ceil"))
        return self.ir.layer("MaxPool", [x], found, version="opset8", outputs=["", ""])

    def _avg_pool(self, x: Out, shape: tuple[int, ...]) -> Out:
        kernel = self._kernel()
        found = self._attributes(kernel, crops=False) | {"kernel": ",".join(map(str, kernel))}
        found["rounding_type"] = self.draw.choice(("floor", "ceil"))
        found["exclude-pad"] = self.draw.choice(("true", "false"))
        return self.ir.layer("AvgPool", [x], found)

    def _activation(self, x: Out, shape: tuple[int, ...]) -> Out:
        kind, version = self.draw.choice(
            (("ReLU", "opset1"), ("Sigmoid", "opset1"), ("Tanh", "opset1"), ("Exp", "opset1"),
             ("HSwish", "opset4"), ("Mish", "opset4"), ("Sin", "opset1"))
        )  # fmt: skip
        return self.ir.layer(kind, [x], version=version)

    def _prelu(self, x: Out, shape: tuple[int, ...]) -> Out:
        return self.ir.layer("PReLU", [x, self._weights(shape[1])])

    def _pad(self, x: Out, shape: tuple[int, ...]) -> Out:
        pads = [[0, 0, *(self.draw.randint(-1, 3) for _ in range(self.rank))] for _ in "be"]
        mode = self.draw.choice(("constant", "edge", "reflect", "symmetric"))
        inputs = [x, *map(self._integers, pads)]
        return self.ir.layer("Pad", inputs, {"pad_mode": mode}, version="opset12")

    def _interpolate(self, x: Out, shape: tuple[int, ...]) -> Out:
        sizes = self._integers([self.draw.randint(1, 2 * n + 1) for n in shape[2:]])
        scales = self.ir.const(np.ones(self.rank, np.float32))
        axes = self._integers(range(2, 2 + self.rank))
        found = {
            "mode": self.draw.choice(("nearest", "linear", "linear_onnx", "cubic")),
            "shape_calculation_mode": "sizes",
            "coordinate_transformation_mode": self.draw.choice(
                ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
            ),
            "antialias": self.draw.choice(("true", "false")),
        }
        return self.ir.layer("Interpolate", [x, sizes, scales, axes], found, version="opset4")

    def _slice(self, x: Out, shape: tuple[int, ...]) -> Out:
        step = self.draw.choice((1, 2, -1, -2))
        axis = self.draw.randrange(1, len(shape))
        start, stop = (1, shape[axis]) if step > 0 else (shape[axis] - 1, 0)
        lists = [self._integers([n]) for n in (start, stop, step, axis)]
        return self.ir.layer("Slice", [x, *lists], version="opset8")

    def _strided_slice(self, x: Out, shape: tuple[int, ...]) -> Out:
        lists = [[0, 0, 1], [0, 0, -1], [1, 1, self.draw.choice((1, 2))]]
        masks = {"begin_mask": "1,1,0", "end_mask": "1,1,0"}
        return self.ir.layer("StridedSlice", [x, *map(self._integers, lists)], masks)

    def _split(self, x: Out, shape: tuple[int, ...]) -> Out:
        axis = self.draw.randrange(1, len(shape))
        parts = self.draw.choice((2, 3))
        layer, first = self.ir.layer(
            "Split",
            [x, self.ir.const(np.array(axis, np.int64))],
            {"num_splits": str(parts)},
            outputs=[""] * parts,
        )
        a, b = ((layer, first + i) for i in (0, parts - 1))
        return a if self.draw.random() < 0.3 else self.ir.layer("Subtract", [a, b])

    def _depth_to_space(self, x: Out, shape: tuple[int, ...]) -> Out:
        mode = self.draw.choice(("blocks_first", "depth_first"))
        return self.ir.layer("DepthToSpace", [x], {"block_size": "2", "mode": mode})

    def _space_to_depth(self, x: Out, shape: tuple[int, ...]) -> Out:
        mode = self.draw.choice(("blocks_first", "depth_first"))
        return self.ir.layer("SpaceToDepth", [x], {"block_size": "2", "mode": mode})

    def _transpose(self, x: Out, shape: tuple[int, ...]) -> Out:
        order = [0, 1, *self.draw.sample(range(2, len(shape)), self.rank)]
        return self.ir.layer("Transpose", [x, self._integers(order)])

    def _batch_norm(self, x: Out, shape: tuple[int, ...]) -> Out:
        vectors = [self._weights(shape[1]) for _ in range(3)]
        positive = self.ir.const(self.numbers.uniform(0.5, 2, shape[1]).astype(np.float32))
        return self.ir.layer(
            "BatchNormInference", [x, *vectors, positive], {"epsilon": "1e-5"}, version="opset5"
        )

    def _softmax(self, x: Out, shape: tuple[int, ...]) -> Out:
        return self.ir.layer("SoftMax", [x], {"axis": "1"})

    def _mean(self, x: Out, shape: tuple[int, ...]) -> Out:
        mean = self.ir.layer("ReduceMean", [x, self._integers([1])], {"keep_dims": "true"})
        return self.ir.layer("Subtract", [x, mean])

    def _add(self, x: Out, shape: tuple[int, ...]) -> Out:
        same = [out for out, other in self.alive if other == shape]
        return self.ir.layer("Add", [x, self.draw.choice(same)])

    def _concat(self, x: Out, shape: tuple[int, ...]) -> Out:
        axis = self.draw.randrange(1, len(shape))
        fitting = [
            out
            for out, other in self.alive
            if len(other) == len(shape)
            and all(a == b for i, (a, b) in enumerate(zip(other, shape, strict=True)) if i != axis)
        ]
        return self.ir.layer("Concat", [x, self.draw.choice(fitting), x], {"axis": str(axis)})

    def _reshape(self, x: Out, shape: tuple[int, ...]) -> Out:
        target = self._integers([shape[0], 1, *shape[1:]])
        back = self._integers([shape[0], -1, *shape[2:]])
        wide = self.ir.layer("Reshape", [x, target], {"special_zero": "false"})
        return self.ir.layer("Reshape", [wide, back], {"special_zero": "false"})

    def _window(self, x: Out, shape: tuple[int, ...]) -> Out:
        """Add a constant that varies along the spatial axes."""
        return self.ir.layer("Add", [x, self._weights(1, *shape[1:])])
