"""A network with typical parts of a decoder, and changes that tests can plant in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from lxml import etree
from support import IR

SHAPES = {"x": (1, 4, 12, 12)}


def build(folder: Path) -> Path:
    """Two convolutions with a skip connection, normalisation, a deconvolution and a head."""
    rng = np.random.default_rng(7)

    def weights(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    ir = IR()
    window = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    x = ir.parameter("x", "1,4,12,12")
    enc = ir.layer("Convolution", [x, ir.const(weights(8, 4, 3, 3), "enc/w")], window, name="enc")
    enc_b = ir.layer("Add", [enc, ir.const(weights(1, 8, 1, 1), "enc/b")], name="enc/bias")
    act = ir.layer("ReLU", [enc_b], name="enc/relu")
    same = ir.layer(
        "Convolution", [act, ir.const(weights(8, 8, 3, 3), "mid/w")], window, name="mid"
    )
    bn = ir.layer(
        "BatchNormInference",
        [same, *(ir.const(np.abs(weights(8)) + 0.5, f"mid/bn/{n}") for n in "gbmv")],
        {"epsilon": "0.001"},
        name="mid/bn",
        version="opset5",
    )
    mid = ir.layer("Clamp", [bn], {"min": "0", "max": "6"}, name="mid/clamp")
    skip = ir.layer("Add", [mid, act], name="skip")
    up = ir.layer(
        "ConvolutionBackpropData",
        [skip, ir.const(weights(8, 8, 4, 4), "up/w")],
        window | {"strides": "2,2", "output_padding": "0,0"},
        outputs=["1,8,24,24"],
        name="up",
    )
    pool = ir.layer(
        "MaxPool",
        [up],
        {"strides": "2,2", "kernel": "2,2", "pads_begin": "0,0", "pads_end": "0,0"},
        name="pool",
    )
    elu = ir.layer("Elu", [pool], {"alpha": "1"}, name="elu")
    order = ir.layer("Transpose", [elu, ir.const(np.array([0, 1, 3, 2]), "order")], name="turn")
    scale = ir.layer(
        "Multiply", [order, ir.const(np.float32([[[[0.5]]]]), "scale/c")], name="scale"
    )
    join = ir.layer("Concat", [scale, act], {"axis": "1"}, name="join")
    soft = ir.layer("SoftMax", [join], {"axis": "1"}, name="soft")
    ir.result(soft, "y")
    return ir.save(folder)


class Edit:
    """The model as XML elements and bytes, which tests change and save."""

    def __init__(self, path: Path) -> None:
        self.root = etree.parse(path).getroot()
        self.weights = bytearray(path.with_suffix(".bin").read_bytes())

    def layer(self, name: str) -> etree._Element:
        (found,) = (x for x in self.root.iter("layer") if x.get("name") == name)
        return found

    def set(self, name: str, **attributes: str) -> None:
        self.layer(name).find("data").attrib.update(attributes)

    def array(self, name: str) -> np.ndarray:
        """Return the elements of a constant, which can be changed in place."""
        data = self.layer(name).find("data")
        dtype = {"f32": np.float32, "i64": np.int64}[data.get("element_type")]
        shape = [int(n) for n in data.get("shape").split(",")]
        count = int(data.get("size")) // np.dtype(dtype).itemsize
        offset = int(data.get("offset"))
        return np.frombuffer(self.weights, dtype, count, offset).reshape(shape)

    def replace(self, name: str, array: np.ndarray, element_type: str) -> None:
        """Replace the elements of a constant; the new ones go to the end of the weights file."""
        data = array.tobytes()
        self.set(
            name,
            element_type=element_type,
            shape=",".join(map(str, array.shape)),
            offset=str(len(self.weights)),
            size=str(len(data)),
        )
        self.weights = self.weights + data  # arrays may still refer to the old ones

    def into(self, name: str, port: int = 0) -> etree._Element:
        """Return the edge into an input of a layer."""
        own = self.layer(name).get("id")
        (edge,) = (
            e
            for e in self.root.iter("edge")
            if e.get("to-layer") == own and e.get("to-port") == str(port)
        )
        return edge

    def remove(self, name: str) -> None:
        """Remove a layer with one data input; its consumers take that input."""
        layer, source = self.layer(name), self.into(name)
        for edge in list(self.root.iter("edge")):
            if edge.get("from-layer") == layer.get("id"):
                edge.set("from-layer", source.get("from-layer"))
                edge.set("from-port", source.get("from-port"))
            elif edge.get("to-layer") == layer.get("id"):
                if edge is not source:
                    constant = edge.get("from-layer")
                    (unused,) = (x for x in self.root.iter("layer") if x.get("id") == constant)
                    unused.getparent().remove(unused)
                edge.getparent().remove(edge)
        layer.getparent().remove(layer)

    def insert(self, kind: str, name: str, after: str, **attributes: str) -> None:
        """Insert a layer between another layer and all of its consumers."""
        other = self.layer(after)
        port = other.find("output/port").get("id")
        own = str(1000 + len(self.root.findall("layers/layer")))
        layer = etree.SubElement(
            self.root.find("layers"), "layer", id=own, name=name, type=kind, version="opset1"
        )
        if attributes:
            etree.SubElement(layer, "data", attributes)
        etree.SubElement(etree.SubElement(layer, "input"), "port", id="0")
        etree.SubElement(etree.SubElement(layer, "output"), "port", id="1", precision="FP32")
        for edge in self.root.iter("edge"):
            if edge.get("from-layer") == other.get("id"):
                edge.set("from-layer", own)
                edge.set("from-port", "1")
        ends = {"from-layer": other.get("id"), "from-port": port, "to-layer": own, "to-port": "0"}
        etree.SubElement(self.root.find("edges"), "edge", ends)

    def save(self, path: Path) -> Path:
        etree.ElementTree(self.root).write(path)
        path.with_suffix(".bin").write_bytes(self.weights)
        return path
