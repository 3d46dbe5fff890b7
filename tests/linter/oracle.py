"""Check the consistency of an IR without the code under test, by lxml and NumPy alone.

A network is run on sample shapes, and its results are compared with the declarations.  The oracle
supports the operations of the IRs in tests/fixtures/ir; of transposed convolution it only knows the
documents' formula.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree


class Inconsistent(Exception):  # noqa: N818 - a verdict, not an error
    """The reason why a file is inconsistent."""


class OfSizes(Inconsistent):
    """The file is inconsistent for some sizes of the inputs."""


PRECISIONS = {"f32": "FP32", "f16": "FP16", "i32": "I32", "i64": "I64", "u8": "U8"}
DTYPES = {"f32": "<f4", "f16": "<f2", "i32": "<i4", "i64": "<i8", "u8": "u1"}
SPATIAL = ("strides", "dilations", "pads_begin", "pads_end", "output_padding")
ATTRIBUTES = {
    "Parameter": {"shape", "element_type"},
    "Const": {"element_type", "shape", "offset", "size"},
    "Convert": {"destination_type"},
    "ConvolutionBackpropData": {*SPATIAL, "auto_pad"},
    "GroupConvolutionBackpropData": {*SPATIAL, "auto_pad"},
    "Add": {"auto_broadcast"},
    "Subtract": {"auto_broadcast"},
    "Multiply": {"auto_broadcast"},
    "ReLU": set(),
    "Reshape": {"special_zero"},
    "ShapeOf": {"output_type"},
    "Gather": {"batch_dims"},
    "Slice": set(),
    "Concat": {"axis"},
    "StridedSlice": {
        "begin_mask",
        "end_mask",
        "new_axis_mask",
        "shrink_axis_mask",
        "ellipsis_mask",
    },
    "Result": set(),
}
OPTIONAL = {"auto_pad", "output_padding", "auto_broadcast", "output_type", "batch_dims"} | {
    "new_axis_mask",
    "shrink_axis_mask",
    "ellipsis_mask",
}
INPUTS = {
    "Parameter": (0, 0),
    "Const": (0, 0),
    "Convert": (1, 1),
    "ConvolutionBackpropData": (2, 3),
    "GroupConvolutionBackpropData": (2, 3),
    "Add": (2, 2),
    "Subtract": (2, 2),
    "Multiply": (2, 2),
    "ReLU": (1, 1),
    "Reshape": (2, 2),
    "ShapeOf": (1, 1),
    "Gather": (3, 3),
    "Slice": (4, 5),
    "StridedSlice": (3, 4),
    "Concat": (1, 99),
    "Result": (1, 1),
}


def need(condition: Any, why: str, verdict: type[Inconsistent] = Inconsistent) -> None:
    if not condition:
        raise verdict(why)


SAMPLES = 4


def judge(xml: bytes, weights: bytes) -> str | None:
    """Return the reason why an IR is inconsistent, or None if it is consistent."""
    try:
        net = _Net(etree.fromstring(xml), weights)
        net.check_weights()
        refused = [why for why in map(net.refuses, range(SAMPLES)) if why]
    except Inconsistent as verdict:
        return str(verdict)
    # An error at some sizes of the inputs is not one if the network accepts other sizes.
    return refused[0] if len(refused) == SAMPLES else None


def blank(shape: Any, dtype: Any) -> np.ndarray:
    """Return an array of zeros that takes no memory, whatever its shape."""
    return np.broadcast_to(np.zeros((), dtype), tuple(shape))


def ints(text: str) -> list[int]:
    """Read a list of whole numbers."""
    parts = [p.strip() for p in text.split(",")] if text.strip() else []
    need(all(re.fullmatch(r"-?\d{1,18}", p) for p in parts), f"no list of integers: {text!r}")
    return [int(p) for p in parts]


def sample_shape(text: str, sample: int, rank: list[int]) -> list[int]:
    """Choose static dims for a Parameter; `rank` replaces a dynamic rank."""
    if text.strip() == "...":
        return rank
    dims = []
    for i, part in enumerate(p.strip() for p in text.split(",") if text.strip()):
        match = re.fullmatch(r"(\d{0,18})(\.\.)?(\d{0,18})", part)
        if part in ("?", "-1"):
            dims.append(1 if sample == 3 else (4, 5, 8)[(sample + i) % 3])
        elif match and match[2] and (match[1] or match[3]):
            low = int(match[1] or 0)
            high = int(match[3]) if match[3] else low + 9
            need(low <= high, "an empty range")
            dims.append(
                (low, (low + high) // 2, high, low)[sample] if low else max(1, high - sample)
            )
        else:
            need(match and not match[2] and match[1], f"no dim: {part!r}")
            dims.append(int(part))
    return dims


class Port:
    def __init__(self, element: Any) -> None:
        self.id = element.get("id")
        need(self.id is not None and self.id.isdigit(), "a port without id")
        self.precision = element.get("precision")
        need(self.precision in PRECISIONS.values(), "an unknown precision")
        self.dims = tuple((d.text or "").strip() for d in element.findall("dim"))
        need(all(re.fullmatch(r"-1|\d{1,18}", d) for d in self.dims), "no dim")
        need(set(element.attrib) <= {"id", "precision", "names"}, "an unknown attribute")
        need({c.tag for c in element} <= {"dim", "rt_info"}, "an unknown element")


class Layer:
    def __init__(self, element: Any) -> None:
        self.id = element.get("id")
        self.type = element.get("type")
        need(self.id is not None and self.type in ATTRIBUTES, "an unknown type")
        version = element.get("version")
        need(re.fullmatch(r"opset([1-9]|1[0-7])", version or ""), "an unknown version")
        needed = {"Gather": 1, "Slice": 8, "ShapeOf": 1}.get(self.type, 1)
        need(int(version[5:]) >= needed, "a version that has no such operation")
        self.version = int(version[5:])
        data = element.find("data")
        self.data = dict(data.attrib) if data is not None else {}
        known = ATTRIBUTES[self.type]
        need(set(self.data) <= known, "an unknown attribute")
        need(known - OPTIONAL <= set(self.data) or self.type == "ShapeOf", "a missing attribute")
        self.inputs = [Port(p) for p in element.iterfind("input/port")]
        self.outputs = [Port(p) for p in element.iterfind("output/port")]
        low, high = INPUTS[self.type]
        need(low <= len(self.inputs) <= high, "a wrong number of inputs")
        need(len(self.outputs) == (self.type != "Result"), "a wrong number of outputs")
        for ports in (self.inputs, self.outputs):
            need(len({p.id for p in ports}) == len(ports), "a port id twice")


class _Net:
    def __init__(self, root: Any, weights: bytes) -> None:
        self.weights = weights
        self.layers: dict[str, Layer] = {}
        for element in root.iterfind("layers/layer"):
            layer = Layer(element)
            need(layer.id not in self.layers, "a layer id twice")
            self.layers[layer.id] = layer
        self.sources: dict[tuple[str, int], tuple[str, Port]] = {}
        for edge in root.iterfind("edges/edge"):
            self._edge(edge)
        for layer in self.layers.values():
            for i in range(len(layer.inputs)):
                need((layer.id, i) in self.sources, "an input without an edge")

    def _edge(self, edge: Any) -> None:
        start, end = (self.layers.get(edge.get(f"{side}-layer")) for side in ("from", "to"))
        need(start is not None and end is not None, "an edge to no layer")
        assert start is not None
        assert end is not None
        outputs = [p for p in start.outputs if p.id == edge.get("from-port")]
        inputs = [i for i, p in enumerate(end.inputs) if p.id == edge.get("to-port")]
        need(outputs and inputs, "an edge to no port")
        need((end.id, inputs[0]) not in self.sources, "two edges into a port")
        need(outputs[0].dims == end.inputs[inputs[0]].dims, "the ends of an edge differ in dims")
        need(outputs[0].precision == end.inputs[inputs[0]].precision, "... and in precision")
        self.sources[end.id, inputs[0]] = (start.id, outputs[0])

    def refuses(self, sample: int) -> str:
        """Return why one choice of sizes is refused; empty if it is accepted."""
        try:
            self.run(sample)
        except OfSizes as verdict:
            return str(verdict)
        return ""

    def run(self, sample: int) -> None:
        """Compute all layers on one sample, and compare with the declarations."""
        done: dict[str, tuple[np.ndarray, str]] = {}
        waiting = list(self.layers.values())
        while waiting:
            ready = [
                layer
                for layer in waiting
                if all(self.sources[layer.id, i][0] in done for i in range(len(layer.inputs)))
            ]
            need(ready, "a cycle")
            for layer in ready:
                inputs = [done[self.sources[layer.id, i][0]] for i in range(len(layer.inputs))]
                value, kind = self._compute(layer, inputs, sample)
                done[layer.id] = value, kind
                for port in layer.outputs:
                    need(port.precision == PRECISIONS[kind], f"precision of {layer.type}")
                    self._compare(port, value.shape, layer)
            waiting = [layer for layer in waiting if layer.id not in done]

    def _compare(self, port: Port, shape: tuple[int, ...], layer: Layer) -> None:
        if not port.dims:  # a scalar, or a dynamic rank
            dynamic = layer.data.get("shape", "").strip() == "..."
            need(dynamic or not shape, "no dims are declared")
            return
        need(len(port.dims) == len(shape), f"rank of {layer.type}")
        for stated, dim in zip(port.dims, shape, strict=True):
            need(stated in ("-1", str(dim)), f"{layer.type} declares {stated}, computed {dim}")

    def _compute(
        self, layer: Layer, inputs: list[tuple[np.ndarray, str]], sample: int
    ) -> tuple[np.ndarray, str]:
        compute = getattr(self, "_" + re.sub(r"^Group|Data$", "", layer.type).lower())
        try:
            result: tuple[np.ndarray, str] = compute(
                layer, [v for v, _ in inputs], [k for _, k in inputs], sample
            )
        except (ValueError, IndexError, np.exceptions.AxisError) as error:
            raise Inconsistent(f"{layer.type}: {error}") from error
        return result

    def _type(self, layer: Layer, name: str) -> str:
        kind = layer.data.get(name, "i64" if name == "output_type" else "")
        need(kind in PRECISIONS, f"an unknown element type {kind!r}")
        return kind

    def _parameter(self, layer: Layer, v: Any, k: Any, sample: int) -> tuple[np.ndarray, str]:
        kind = self._type(layer, "element_type")
        shape = sample_shape(
            layer.data["shape"], sample, [1, 4, 1, 1] if sample == 3 else [2, 4, 3 + sample, 5]
        )
        if kind.startswith("i"):  # the tensor may be a shape
            return np.full(shape, 1 if sample == 3 else 6 + sample, DTYPES[kind]), kind
        return blank(shape, DTYPES[kind]), kind

    def _const(self, layer: Layer, v: Any, k: Any, sample: int) -> tuple[np.ndarray, str]:
        kind = self._type(layer, "element_type")
        shape = ints(layer.data["shape"])
        need(all(d >= 0 for d in shape), "a constant that is not static")
        (offset,), (size,) = ints(layer.data["offset"]), ints(layer.data["size"])
        count = int(np.prod(shape, dtype=object))
        need(size == count * np.dtype(DTYPES[kind]).itemsize, "size is not shape x type")
        need(offset >= 0 and offset + size <= len(self.weights), "past the end")
        return np.frombuffer(self.weights, DTYPES[kind], count, offset).reshape(shape), kind

    def _convert(self, layer: Layer, v: Any, k: Any, sample: int) -> tuple[np.ndarray, str]:
        kind = self._type(layer, "destination_type")
        if k[0].startswith("f"):  # values only matter if they are shapes
            return blank(v[0].shape, DTYPES[kind]), kind
        return v[0].astype(DTYPES[kind]), kind

    def _convolutionbackprop(
        self, layer: Layer, v: Any, k: Any, sample: int
    ) -> tuple[np.ndarray, str]:
        data, filter_ = v[0], v[1]
        need(k[0] == k[1], "element types differ")
        grouped = layer.type.startswith("Group")
        need(data.ndim >= 3 and filter_.ndim == data.ndim + grouped, "ranks do not fit")
        groups = filter_.shape[0] if grouped else 1
        inner = filter_.shape[grouped:]
        need(data.shape[1] == groups * inner[0], "channels differ")
        axes = data.ndim - 2
        lists = {name: ints(layer.data.get(name, "")) for name in SPATIAL}
        need(all(lists[name] for name in SPATIAL[:4]), "a missing attribute")
        lists["output_padding"] = lists["output_padding"] or [0] * axes
        need(all(len(x) == axes for x in lists.values()), "a list of the wrong length")
        need(min(lists["strides"] + lists["dilations"]) >= 1, "not positive")
        need(min(lists["pads_begin"] + lists["pads_end"] + lists["output_padding"]) >= 0, "< 0")
        mode = layer.data.get("auto_pad", "explicit").lower()
        need(mode in ("explicit", "same_upper", "same_lower", "valid"), "an unknown auto_pad")
        if len(v) > 2:
            need(k[2].startswith(("i", "u")), "output_shape of a float type")
            need(v[2].shape == (axes,), "output_shape of a wrong length")
            extents = [int(y) for y in v[2]]
        else:
            keep = mode == "explicit"
            extents = [
                s * (x - 1) + (kernel - 1) * d + 1 - (b + e if keep else 0) + o
                for x, kernel, s, d, b, e, o in zip(
                    data.shape[2:], inner[2:], *lists.values(), strict=True
                )
            ]
        need(min(extents) >= 0, "a negative extent", OfSizes)
        return blank((data.shape[0], groups * inner[1], *extents), data.dtype), k[0]

    _convolutionbackpropdata = _convolutionbackprop

    def _binary(self, layer: Layer, v: Any, k: Any, sample: int) -> tuple[np.ndarray, str]:
        need(k[0] == k[1], "element types differ")
        rule = layer.data.get("auto_broadcast", "numpy").lower()
        need(rule in ("numpy", "none"), "a broadcast rule that no fixture has")
        need(rule == "numpy" or v[0].shape == v[1].shape, "shapes differ", OfSizes)
        if k[0].startswith("f"):
            return blank(np.broadcast_shapes(v[0].shape, v[1].shape), v[0].dtype), k[0]
        function = {"Add": np.add, "Subtract": np.subtract, "Multiply": np.multiply}[layer.type]
        return function(*v), k[0]

    _add = _subtract = _multiply = _binary

    def _relu(self, layer: Layer, v: Any, k: Any, sample: int) -> tuple[np.ndarray, str]:
        return v[0], k[0]

    _result = _relu

    def _reshape(self, layer: Layer, v: Any, k: Any, sample: int) -> tuple[np.ndarray, str]:
        need(k[1].startswith(("i", "u")), "a shape of a float type")
        need(v[1].ndim <= 1, "a shape that is no list")
        word = layer.data["special_zero"].lower()
        need(word in ("true", "false", "0", "1"), "no boolean")
        target = [int(d) for d in v[1].ravel()]
        if word in ("true", "1"):
            need(all(d or i < v[0].ndim for i, d in enumerate(target)), "0 without an axis")
            target = [v[0].shape[i] if d == 0 else d for i, d in enumerate(target)]
        need(min(target, default=0) >= -1, "a negative dim")
        return v[0].reshape(target), k[0]

    def _shapeof(self, layer: Layer, v: Any, k: Any, sample: int) -> tuple[np.ndarray, str]:
        kind = self._type(layer, "output_type")
        need(kind in ("i32", "i64"), "a shape that is no i32 or i64")
        need(layer.version >= 3 or "output_type" not in layer.data, "opset1 has no output_type")
        return np.array(v[0].shape, DTYPES[kind]), kind

    def _gather(self, layer: Layer, v: Any, k: Any, sample: int) -> tuple[np.ndarray, str]:
        (batch,) = ints(layer.data.get("batch_dims", "0"))
        need(batch == 0 or layer.version >= 7, "opset1 has no batch_dims")
        need(batch in (0, -v[1].ndim), "batch dims that no fixture has")
        need(k[1].startswith("i") and k[2].startswith("i"), "indices of a float type")
        return np.take(v[0], v[1], int(v[2].reshape(()))), k[0]

    def _slice(self, layer: Layer, v: Any, k: Any, sample: int) -> tuple[np.ndarray, str]:
        need(all(kind.startswith("i") for kind in k[1:]), "bounds of a float type")
        axes = v[4] if len(v) > 4 else range(len(v[1]))
        index = [slice(None)] * v[0].ndim
        for a, start, stop, step in zip(axes, v[1], v[2], v[3], strict=True):
            need(step != 0, "a step of 0")
            index[int(a)] = slice(int(start), int(stop), int(step))
        return v[0][tuple(index)], k[0]

    def _stridedslice(self, layer: Layer, v: Any, k: Any, sample: int) -> tuple[np.ndarray, str]:
        need(all(kind.startswith("i") for kind in k[1:]), "bounds of a float type")
        masks = {name: ints(text) for name, text in layer.data.items()}
        need(all(bit in (0, 1) for bits in masks.values() for bit in bits), "a mask of bits")
        extra = [
            n
            for n in ("new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
            if any(masks.get(n, ()))
        ]
        need(not extra, "masks that no fixture has")
        need(len(v[1]) <= v[0].ndim and len(v[1]) == len(v[2]), "too many bounds")
        index = []
        for i, (start, stop) in enumerate(zip(v[1], v[2], strict=True)):
            step = int(v[3][i]) if len(v) > 3 else 1
            need(step != 0, "a step of 0")
            free = [(masks[n] + [0] * 9)[i] for n in ("begin_mask", "end_mask")]
            index.append(
                slice(None if free[0] else int(start), None if free[1] else int(stop), step)
            )
        return v[0][tuple(index)], k[0]

    def _concat(self, layer: Layer, v: Any, k: Any, sample: int) -> tuple[np.ndarray, str]:
        need(len(set(k)) == 1, "element types differ")
        (axis,) = ints(layer.data["axis"])
        return np.concatenate(v, axis), k[0]

    def check_weights(self) -> None:
        """Require that the ranges of constants are equal or disjoint, without gaps between them."""
        spans = sorted(
            {
                (int(c.data["offset"]), int(c.data["offset"]) + int(c.data["size"]))
                for c in self.layers.values()
                if c.type == "Const"
            }
        )
        at = 0
        for start, end in spans:
            need(start == at, "bytes that overlap, or that nothing uses")
            at = end
        need(at == len(self.weights), "bytes that nothing uses")


def judge_file(path: Path) -> str | None:
    """Judge an IR and the .bin beside it."""
    return judge(path.read_bytes(), path.with_suffix(".bin").read_bytes())
