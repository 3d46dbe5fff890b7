"""A builder of old networks that computes each layer in torch, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from old_ir import OldIR, Tensor

F = torch.nn.functional


class OldNetwork(NamedTuple):
    """A network as an old IR, and its inputs and results of torch by name."""

    ir: OldIR
    given: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]


class Value(NamedTuple):
    """A tensor in the old IR, and in torch."""

    old: Tensor
    torch: torch.Tensor


class Builder:
    """Adds each layer to an old IR, and computes it in torch."""

    def __init__(self, version: int, precision: str, seed: int) -> None:
        self.ir = OldIR(version, precision)
        self.half = precision == "FP16"
        self.version = version
        self.rng = np.random.default_rng(seed)
        self.given: dict[str, np.ndarray] = {}
        self.named: dict[str, Value] = {}

    def weights(self, *shape: int, scale: float | None = None) -> np.ndarray:
        fan = int(np.prod(shape[1:])) or 1
        made = self.rng.standard_normal(shape) * (scale or 1 / np.sqrt(fan))
        return made.astype(np.float32)

    def stored(self, array: np.ndarray) -> torch.Tensor:
        """Return weights as torch has them: rounded to f16 in such a file."""
        found = torch.tensor(array)
        return found.half().float() if self.half else found

    def input(self, *shape: int, name: str = "x") -> Value:
        array = self.rng.standard_normal(shape).astype(np.float32)
        self.given[name] = array
        return Value(self.ir.input(*shape, name=name), torch.tensor(array))

    def layer(
        self, kind: str, inputs: Sequence[Value], result: torch.Tensor, **options: Any
    ) -> Value:
        old = self.ir.layer(kind, [v.old for v in inputs], tuple(result.shape), **options)
        return Value(old, result)

    def window(self, kernel: int, stride: int, pad: int, dilation: int = 1) -> dict[str, object]:
        """Return the attributes of a square window as the version spells them."""
        if self.version == 2:
            names = {"kernel": kernel, "stride": stride, "pad": pad, "dilation": dilation}
            return {f"{name}-{axis}": value for name, value in names.items() for axis in "xy"}
        both = {"kernel": kernel, "strides": stride, "pads_begin": pad, "pads_end": pad}
        return {k: f"{v},{v}" for k, v in {**both, "dilations": dilation}.items()}

    def conv(
        self,
        x: Value,
        out: int,
        kernel: int = 3,
        stride: int = 1,
        pad: int | None = None,
        group: int = 1,
        bias: bool = True,
        dilation: int = 1,
    ) -> Value:
        pad = dilation * (kernel // 2) if pad is None else pad
        w = self.weights(out, x.torch.shape[1] // group, kernel, kernel)
        blobs = {"weights": w} | ({"biases": self.weights(out)} if bias else {})
        result = F.conv2d(
            x.torch,
            self.stored(w),
            self.stored(blobs["biases"]) if bias else None,
            stride,
            pad,
            dilation,
            group,
        )
        data = {**self.window(kernel, stride, pad, dilation), "output": out, "group": group}
        return self.layer("Convolution", [x], result, attributes=data, blobs=blobs)

    def up(
        self,
        x: Value,
        out: int,
        kernel: int = 4,
        stride: int = 2,
        pad: int = 1,
        group: int = 1,
        bias: bool = True,
    ) -> Value:
        w = self.weights(x.torch.shape[1], out // group, kernel, kernel)
        blobs = {"weights": w} | ({"biases": self.weights(out)} if bias else {})
        result = F.conv_transpose2d(
            x.torch,
            self.stored(w),
            self.stored(blobs["biases"]) if bias else None,
            stride,
            pad,
            0,
            group,
        )
        data = {**self.window(kernel, stride, pad), "output": out, "group": group}
        return self.layer("Deconvolution", [x], result, attributes=data, blobs=blobs)

    def act(self, x: Value, kind: str = "relu") -> Value:
        if kind == "leaky":
            return self.layer(
                "ReLU", [x], F.leaky_relu(x.torch, 0.1), attributes={"negative_slope": 0.1}
            )
        if kind == "prelu":
            w = self.weights(x.torch.shape[1], scale=0.2)
            return self.layer(
                "PReLU",
                [x],
                F.prelu(x.torch, self.stored(w)),
                blobs={"weights": w},
                attributes={"channel_shared": 0},
            )
        if kind == "relu6":
            return self.layer("Clamp", [x], x.torch.clamp(0, 6), attributes={"min": 0, "max": 6})
        if kind == "elu":
            return self.layer("ELU", [x], F.elu(x.torch), attributes={"alpha": 1})
        names = {
            "relu": ("ReLU", torch.relu),
            "tanh": ("TanH", torch.tanh),
            "sigmoid": ("Activation", torch.sigmoid),
        }
        name, function = names[kind]
        data = {"type": "sigmoid"} if name == "Activation" else None
        return self.layer(name, [x], function(x.torch), attributes=data)

    def scale(self, x: Value) -> Value:
        """Add a batch normalization as Model Optimizer left it: a ScaleShift."""
        w, b = (self.weights(x.torch.shape[1], scale=1.0) for _ in range(2))
        shape = (1, -1, *(1,) * (x.torch.dim() - 2))
        result = x.torch * self.stored(w).reshape(shape) + self.stored(b).reshape(shape)
        return self.layer("ScaleShift", [x], result, blobs={"weights": w, "biases": b})

    def norm(self, x: Value) -> Value:
        mean, variance = self.weights(x.torch.shape[1]), self.weights(x.torch.shape[1]) ** 2 + 1
        shape = (1, -1, 1, 1)
        result = (x.torch - self.stored(mean).reshape(shape)) / torch.sqrt(
            self.stored(variance).reshape(shape) + 1e-3
        )
        return self.layer(
            "BatchNormalization",
            [x],
            result,
            attributes={"epsilon": 1e-3},
            blobs={"weights": variance, "biases": mean},
        )

    def add(self, *values: Value) -> Value:
        result = sum((v.torch for v in values[1:]), values[0].torch)
        return self.layer("Eltwise", values, result, attributes={"operation": "sum"})

    def mul(self, a: Value, b: Value) -> Value:
        return self.layer("Eltwise", [a, b], a.torch * b.torch, attributes={"operation": "mul"})

    def concat(self, *values: Value, axis: int = 1) -> Value:
        result = torch.cat([v.torch for v in values], axis)
        return self.layer("Concat", values, result, attributes={"axis": axis})

    def pool(
        self, x: Value, kernel: int = 2, stride: int = 2, method: str = "max", pad: int = 0
    ) -> Value:
        data = {**self.window(kernel, stride, pad), "pool-method": method, "exclude-pad": "true"}
        data = {k: v for k, v in data.items() if not k.startswith("dilation")}
        if method == "max":
            result = F.max_pool2d(x.torch, kernel, stride, pad)
        else:
            result = F.avg_pool2d(x.torch, kernel, stride, pad, count_include_pad=False)
        return self.layer("Pooling", [x], result, attributes=data)

    def interp(self, x: Value, factor: int) -> Value:
        size = [n * factor for n in x.torch.shape[2:]]
        result = F.interpolate(x.torch, size, mode="bilinear", align_corners=True)
        data = {"height": size[0], "width": size[1], "align_corners": 1, "pad_beg": 0, "pad_end": 0}
        return self.layer("Interp", [x], result, attributes=data)

    def nearest(self, x: Value, factor: int) -> Value:
        result = F.interpolate(x.torch, scale_factor=factor)
        data = {"factor": f"{factor}.0", "type": "caffe.ResampleParameter.NEAREST", "antialias": 0}
        return self.layer("Resample", [x], result, attributes=data)

    def crop(self, x: Value, like: Value, offset: int) -> Value:
        h, w = like.torch.shape[2:]
        result = x.torch[:, :, offset : offset + h, offset : offset + w]
        data = {"axis": "2,3", "offset": f"{offset},{offset}", "dim": f"{h},{w}"}
        return self.layer("Crop", [x], result, attributes=data)

    def linear(self, x: Value, out: int) -> Value:
        w = self.weights(out, int(np.prod(x.torch.shape[1:])))
        b = self.weights(out)
        result = F.linear(x.torch.flatten(1), self.stored(w), self.stored(b))
        return self.layer(
            "FullyConnected",
            [x],
            result,
            attributes={"out-size": out},
            blobs={"weights": w, "biases": b},
        )

    def reshape(self, x: Value, *shape: int) -> Value:
        return self.layer(
            "Reshape", [x], x.torch.reshape(shape), attributes={"dim": ",".join(map(str, shape))}
        )

    def permute(self, x: Value, *order: int) -> Value:
        return self.layer(
            "Permute", [x], x.torch.permute(order), attributes={"order": ",".join(map(str, order))}
        )

    def softmax(self, x: Value, axis: int = 1) -> Value:
        return self.layer("SoftMax", [x], x.torch.softmax(axis), attributes={"axis": axis})

    def pixel_shuffle(self, x: Value, factor: int) -> Value:
        n, c, h, w = x.torch.shape
        x = self.reshape(x, n * c // factor**2, factor, factor, h, w)
        x = self.permute(x, 0, 3, 1, 4, 2)
        return self.reshape(x, n, c // factor**2, h * factor, w * factor)

    def slices(self, x: Value, *extents: int, axis: int = 1) -> list[Value]:
        """Split a tensor into parts."""
        parts = x.torch.split(extents, axis)
        made = self.ir.layer(
            "Split" if len(set(extents)) == 1 else "Slice",
            [x.old],
            *(tuple(part.shape) for part in parts),
            attributes={"axis": axis},
        )
        return [Value(old, part) for old, part in zip(made, parts, strict=True)]

    def mean(self, x: Value) -> Value:
        """Average over all positions, as global pooling was written."""
        h, w = x.torch.shape[2:]
        data = {"kernel-y": h, "kernel-x": w, "stride-y": 1, "stride-x": 1}
        if self.version > 2:
            data = {"kernel": f"{h},{w}", "strides": "1,1"}
        data |= {"pool-method": "avg", "exclude-pad": "true"}
        return self.layer("Pooling", [x], x.torch.mean((2, 3), True), attributes=data)

    def power(self, x: Value, scale: float, shift: float, power: float = 1) -> Value:
        data = {"power": power, "scale": scale, "shift": shift}
        return self.layer("Power", [x], (x.torch * scale + shift) ** power, attributes=data)

    def flatten(self, x: Value) -> Value:
        data = {"axis": 1, "end_axis": -1}
        return self.layer("Flatten", [x], x.torch.flatten(1), attributes=data)

    def const(self, array: np.ndarray) -> Value:
        known = torch.tensor(array)
        half = self.half and array.dtype == np.float32
        return Value(self.ir.const(array), known.half().float() if half else known)


def build(
    model: Callable[[Builder, str], list[Value]], version: int, precision: str, act: str
) -> OldNetwork:
    """Make a network."""
    b = Builder(version, precision, len(model.__name__) * 8 + version)
    results = model(b, act)
    names = {f"{v.old.layer}": v for v in results}
    assert len(names) == len(results)
    expected = {}
    for value in results:
        head = b.ir.layers[value.old.layer].partition('name="')[2]
        expected[head.partition('"')[0]] = value.torch.numpy()
    return OldNetwork(b.ir, b.given, expected)
