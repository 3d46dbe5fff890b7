"""Old files as Model Optimizer published them, abridged: their spellings, port numbers and offsets.

Each network has the kinds of layers of a public file, with its attributes, ids of ports, sections,
and offsets that no type divides, but fewer and narrower layers, and random weights.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

WIDTH = {"FP32": 4, "FP16": 2, "I32": 4, "I64": 8}
META = """<meta_data>
    <MO_version value="2019.3.0-227-g3a4f9de20"/>
    <cli_parameters>
        <blobs_as_inputs value="False"/>
        <mean_scale_values value="{'data': {'scale': array([58.8]), 'mean': array([104., 117.])}}"/>
        <unset unset_cli_parameters="batch, counts, finegrain_fusing"/>
    </cli_parameters>
</meta_data>"""


class Out(NamedTuple):
    """An output: ids of layer and port, and dims."""

    layer: int
    port: int
    dims: tuple[int, ...]


class Published:
    """A file in the making; version 7 names precisions at ports and blobs, others at layers."""

    def __init__(self, name: str, version: int, precision: str) -> None:
        self.name, self.version, self.precision = name, version, precision
        self.layers: list[str] = []
        self.edges: list[str] = []
        self.weights = bytearray()
        self.shared: dict[bytes, int] = {}
        self.random = random.Random(name)

    def blob(self, tag: str, shape: Sequence[int]) -> str:
        """Add random weights."""
        count = 1
        for extent in shape:
            count *= extent
        form = "f" if self.precision == "FP32" else "e"
        values = (self.random.gauss(0, (shape[0] / count) ** 0.5) for _ in range(count))
        place = self.place(struct.pack(f"<{count}{form}", *values))
        known = f'precision="{self.precision}" ' if self.version == 7 else ""
        return f"<{tag} {place[0]} {known}{place[1]}/>"

    def place(self, data: bytes) -> tuple[str, str]:
        """Add bytes behind the others, wherever they end; equal ones share a place."""
        if data not in self.shared:
            self.shared[data] = len(self.weights)
            self.weights += data
        return f'offset="{self.shared[data]}"', f'size="{len(data)}"'

    def layer(
        self,
        kind: str,
        inputs: Sequence[Out],
        *dims: Sequence[int],
        data: str | None = None,
        blobs: Mapping[str, Sequence[int]] | None = None,
        name: str = "",
        precision: str = "",
        custom: str = "",
    ) -> Out:
        """Add a layer; its outputs are numbered behind places of weights and biases."""
        number = len(self.layers)
        first = 3 if blobs and kind != "Deconvolution" else 2 if blobs else len(inputs)
        known = precision or self.precision
        at_port = f' precision="{known}"' if self.version == 7 else ""
        at_layer = "" if self.version == 7 else f' precision="{known}"'
        lines = [f'<layer id="{number}" name="{name or number}"{at_layer} type="{kind}">']
        if data is not None:
            lines.append(f"<data {data}/>")
        if inputs:
            ports = "".join(port(i, source.dims) for i, source in enumerate(inputs))
            lines.append(f"<input>{ports}</input>")
        if kind == "Const":
            first = 1
        ports = "".join(port(first + i, shape, at_port) for i, shape in enumerate(dims))
        lines.append(f"<output>{ports}</output>")
        found = "".join(self.blob(tag, shape) for tag, shape in (blobs or {}).items()) + custom
        if found:
            lines.append(f"<blobs>{found}</blobs>")
        self.layers.append("\n".join([*lines, "</layer>"]))
        for i, source in enumerate(inputs):
            self.edges.append(
                f'<edge from-layer="{source.layer}" from-port="{source.port}" '
                f'to-layer="{number}" to-port="{i}"/>'
            )
        return Out(number, first, tuple(dims[0]))

    def const(self, *values: float, precision: str = "I32", name: str = "") -> Out:
        """Add a list of numbers."""
        form = {"FP32": "f", "FP16": "e", "I32": "i", "I64": "q"}[precision]
        offset, size = self.place(struct.pack(f"<{len(values)}{form}", *values))
        known = f'precision="{precision}" ' if self.version == 7 else ""
        custom = f"<custom {offset} {known}{size}/>"
        return self.layer(
            "Const", (), (len(values),), custom=custom, precision=precision, name=name
        )

    def conv(
        self,
        x: Out,
        count: int,
        kernel: int = 3,
        group: int = 1,
        stride: int = 1,
        auto: str = "",
        name: str = "",
    ) -> Out:
        """Add a Convolution with explicit pads, or those of TensorFlow."""
        n, c, h, w = x.dims
        pad = kernel // 2
        data = (
            f'dilations="1,1" group="{group}" kernel="{kernel},{kernel}" output="{count}" '
            f'pads_begin="{pad},{pad}" pads_end="{pad},{pad}" strides="{stride},{stride}"'
        )
        data = f'auto_pad="{auto}" {data}' if auto else data
        dims = (n, count, -(-h // stride), -(-w // stride))
        blobs = {"weights": (count, c // group, kernel, kernel), "biases": (count,)}
        return self.layer("Convolution", [x], dims, data=data, blobs=blobs, name=name)

    def text(self) -> str:
        """Return the text of the file."""
        return "\n".join(
            [
                '<?xml version="1.0" ?>',
                f'<net batch="1" name="{self.name}" version="{self.version}">',
                "<layers>",
                *self.layers,
                "</layers>",
                "<edges>",
                *self.edges,
                "</edges>",
                META,
                "</net>",
            ]
        )

    def write(self, folder: Path) -> Path:
        """Write both files."""
        path = folder / f"{self.name}.xml"
        path.write_text(self.text())
        path.with_suffix(".bin").write_bytes(self.weights)
        return path


def port(number: int, dims: Sequence[int], precision: str = "") -> str:
    """Return a port."""
    return f'<port id="{number}"{precision}>' + "".join(f"<dim>{d}</dim>" for d in dims) + "</port>"


def _relu(f: Published, x: Out) -> Out:
    return f.layer("ReLU", [x], x.dims, data='negative_slope="0.0"')


def _detections(f: Published, loc: Out, conf: Out, prior: Out, classes: int, size: int) -> None:
    data = (
        'background_label_id="0" code_type="caffe.PriorBoxParameter.CENTER_SIZE" '
        f'confidence_threshold="0.009999999776482582" eta="1.0" input_height="{size}" '
        f'input_width="{size}" keep_top_k="20" nms_threshold="0.44999998807907104" normalized="1" '
        f'num_classes="{classes}" share_location="1" top_k="40" variance_encoded_in_target="0" '
        'visualize="False"'
    )
    f.layer("DetectionOutput", [loc, conf, prior], (1, 1, 20, 7), data=data, name="detection_out")


def _caffe_head(f: Published, x: Out, boxes: int, classes: int) -> tuple[Out, Out]:
    made = []
    for count in (4 * boxes, classes * boxes):
        n, c, h, w = f.conv(x, count).dims
        last = Out(len(f.layers) - 1, 3, (n, c, h, w))
        perm = f.layer("Permute", [last], (n, h, w, c), data='order="0,2,3,1"')
        made.append(f.layer("Flatten", [perm], (n, c * h * w), data='axis="1" end_axis="-1"'))
    return made[0], made[1]


def _caffe_softmax(f: Published, conf: Out, classes: int, data: str) -> Out:
    rows = conf.dims[1] // classes
    x = f.layer("Reshape", [conf], (1, rows, classes), data=data)
    x = f.layer("SoftMax", [x], x.dims, data='axis="2"')
    return f.layer("Flatten", [x], conf.dims, data='axis="1"')


def face_detection_retail_0004() -> Published:
    """Version 4 in f16: fire modules, and one head of clustered prior boxes."""
    f = Published("face-detection-retail-0004", 4, "FP16")
    data = f.layer("Input", (), (1, 3, 32, 32), name="data")
    x = f.layer("ScaleShift", [data], data.dims, blobs={"weights": (3,), "biases": (3,)})
    x = _relu(f, f.conv(x, 8, stride=2))
    pool = (
        'exclude-pad="true" kernel="3,3" pads_begin="0,0" pads_end="0,0" pool-method="max" '
        'rounding_type="ceil" strides="2,2"'
    )
    x = f.layer("Pooling", [x], (1, 8, 8, 8), data=pool)
    squeeze = _relu(f, f.conv(x, 4, 1))
    wide, narrow = _relu(f, f.conv(squeeze, 8, 3)), _relu(f, f.conv(squeeze, 8, 1))
    x = f.layer("Concat", [wide, narrow], (1, 16, 8, 8), data='axis="1"')
    loc, conf = _caffe_head(f, x, 2, 2)
    conf = _caffe_softmax(f, conf, 2, 'axis="0" dim="0,-1,2" num_axes="-1"')
    data_ = (
        'clip="0" flip="1" height="15.0,39.599998474121094" offset="0.5" step="4.0" '
        'variance="0.10000000149011612,0.10000000149011612,0.20000000298023224,'
        '0.20000000298023224" width="9.399999618530273,25.100000381469727"'
    )
    prior = f.layer("PriorBoxClustered", [x, data], (1, 2, 8 * 8 * 2 * 4), data=data_)
    _detections(f, loc, conf, prior, 2, -1)
    return f


def pedestrian_detection_adas_0002() -> Published:
    """Version 6 in f32: two heads with PriorBox, joined, and a section of meta data."""
    f = Published("pedestrian-detection-adas-0002", 6, "FP32")
    data = f.layer("Input", (), (1, 3, 32, 48), name="data")
    x = f.layer("ScaleShift", [data], data.dims, blobs={"weights": (3,), "biases": (3,)})
    fine = _relu(f, f.conv(_relu(f, f.conv(x, 8, stride=2)), 8, group=8, stride=2))
    coarse = _relu(f, f.conv(fine, 12, stride=2))
    heads = [_caffe_head(f, value, 4, 2) for value in (fine, coarse)]
    joined = []
    for part in zip(*heads, strict=True):
        total = sum(value.dims[1] for value in part)
        joined.append(f.layer("Concat", part, (1, total), data='axis="1"'))
    shape = f.const(0, -1, 2, name="mbox_conf_reshape/DimData_const")
    rows = joined[1].dims[1] // 2
    conf = f.layer("Reshape", [joined[1], shape], (1, rows, 2), data='axis="0" num_axes="-1"')
    conf = f.layer("SoftMax", [conf], conf.dims, data='axis="2"')
    conf = f.layer("Flatten", [conf], joined[1].dims, data='axis="1" end_axis="-1"')
    priors = []
    for value, step, small, large in ((fine, 4, 8, 14), (coarse, 8, 16, 28)):
        attributes = (
            'aspect_ratio="2.0" clip="0" density="" fixed_ratio="" fixed_size="" flip="1" '
            f'max_size="{large}.400001525878906" min_size="{small}.0" offset="0.5" '
            f'step="{step}.0" variance="0.10000000149011612,0.10000000149011612,'
            '0.20000000298023224,0.20000000298023224"'
        )
        count = value.dims[2] * value.dims[3] * 4 * 4
        priors.append(f.layer("PriorBox", [value, data], (1, 2, count), data=attributes))
    total = sum(value.dims[2] for value in priors)
    prior = f.layer("Concat", priors, (1, 2, total), data='axis="2"')
    _detections(f, joined[0], conf, prior, 2, 1)
    return f


def ssd_mobilenet_of_tensorflow() -> Published:
    """Version 5 in f16: shapes of I32 at odd offsets that several share, boxes without a step."""
    f = Published("frozen_inference_graph", 5, "FP16")
    image = f.layer("Input", (), (1, 3, 32, 32), name="image_tensor")
    x = f.layer("Power", [image], image.dims, data='power="1.0" scale="0.0078" shift="-1.0"')
    x = f.conv(x, 9, stride=2, auto="same_upper")
    x = f.layer("Clamp", [x], x.dims, data='max="6" min="0"')
    fine = f.conv(x, 9, group=9, stride=2, auto="same_upper")
    coarse = f.conv(fine, 7, stride=2, auto="same_upper")
    parts: list[list[Out]] = [[], []]
    for value, boxes in ((fine, 3), (coarse, 6)):
        for place, width in enumerate((4, 5)):
            raw = f.conv(value, boxes * width, auto="same_upper")
            n, c, h, w = raw.dims
            raw = f.layer("Permute", [raw], (n, h, w, c), data='order="0,2,3,1"')
            shape = f.const(0, -1, width)
            parts[place].append(f.layer("Reshape", [raw, shape], (1, h * w * boxes, width)))
    flat = []
    for place, values in enumerate(parts):
        total, width = sum(v.dims[1] for v in values), values[0].dims[2]
        x = f.layer("Concat", values, (1, total, width), data='axis="1"')
        if place:
            x = f.layer("Reshape", [x, f.const(0, 1, -1, 5)], (1, 1, total, width))
            x = f.layer("Activation", [x], x.dims, data='type="sigmoid"')
        flat.append(f.layer("Reshape", [x, f.const(0, -1)], (1, total * width)))
    priors = []
    for value, boxes in ((fine, 3), (coarse, 6)):
        sizes = ",".join(f"{8 + 4.2426407 * i}" for i in range(boxes))
        attributes = (
            f'clip="0" flip="0" height="{sizes}" offset="0.5" variance="0.1,0.1,0.2,0.2" '
            f'width="{sizes}"'
        )
        count = value.dims[2] * value.dims[3] * boxes * 4
        made = f.layer("PriorBoxClustered", [value, image], (1, 2, count), data=attributes)
        priors.append(made)
    total = sum(value.dims[2] for value in priors)
    prior = f.layer("Concat", priors, (1, 2, total), data='axis="2"')
    _detections(f, flat[0], flat[1], prior, 5, 1)
    return f


def license_plate_recognition_barrier_0001() -> Published:
    """Version 5 in f32: shapes as floats, a tile of a fully connected layer, and a decoder."""
    f = Published("license-plate-recognition-barrier-0001", 5, "FP32")
    x = f.layer("Input", (), (1, 3, 8, 30), name="data")
    x = _relu(f, f.conv(x, 6))
    pool = (
        'exclude-pad="true" kernel="3,3" pads_begin="0,0" pads_end="0,0" pool-method="max" '
        'rounding_type="ceil" strides="2,1"'
    )
    x = f.layer("Pooling", [x], (1, 6, 4, 28), data=pool)
    data = (
        'dilations="1,1" group="1" kernel="4,1" output="5" pads_begin="0,0" pads_end="0,0" '
        'strides="1,1"'
    )
    blobs = {"weights": (5, 6, 4, 1), "biases": (5,)}
    x = _relu(f, f.layer("Convolution", [x], (1, 5, 1, 28), data=data, blobs=blobs))
    pattern = f.layer(
        "FullyConnected",
        [x],
        (1, 4),
        data='alpha="0" beta="0" out-size="4"',
        blobs={"weights": (4, 140), "biases": (4,)},
        name="pattern",
    )
    shape = f.const(-1, 4, 1, 1, precision="FP32", name="reshape/DimData_const")
    wide = f.layer("Reshape", [pattern, shape], (1, 4, 1, 1), data='axis="0" num_axes="-1"')
    wide = f.layer("Tile", [wide], (1, 4, 1, 28), data='axis="3" tiles="28"')
    x = f.layer("Concat", [x, wide], (1, 9, 1, 28), data='axis="1"')
    x = f.layer("Permute", [f.conv(x, 7, 1)], (28, 1, 7, 1), data='order="3,0,1,2"')
    shape = f.const(28, 1, -1, precision="FP32", name="reshape2/DimData_const")
    x = f.layer("Reshape", [x, shape], (28, 1, 7), data='axis="0" num_axes="-1"')
    marks = f.layer("Input", (), (28, 1), name="seq_ind")
    merged = 'ctc_merge_repeated="1"'
    f.layer("CTCGreedyDecoder", [x, marks], (1, 28, 1, 1), data=merged, name="decode")
    return f


def text_detection_0004() -> Published:
    """Version 7 in f32: precisions at ports and blobs, bilinear upsampling by a factor."""
    f = Published("text-detection-0004", 7, "FP32")
    x = f.layer("Input", (), (1, 3, 24, 40), name="Placeholder")
    fine = f.layer("Clamp", [c := f.conv(x, 8, stride=2, auto="same_upper")], c.dims, data=_SIX)
    x = f.conv(fine, 16, stride=2, auto="same_upper")
    x = f.conv(f.layer("Clamp", [x], x.dims, data=_SIX), 16, group=16, auto="same_upper")
    for count in (16, 2):
        coarse, own = f.conv(x, count, 1, auto="valid"), f.conv(fine, count, 1, auto="valid")
        data = 'align_corners="0" factor="2.0" height="0" pad_beg="0" pad_end="0" width="0"'
        up = f.layer("Interp", [coarse], own.dims, data=data)
        up = f.layer("Eltwise", [up, own], own.dims, data='operation="sum"')
        n, c, h, w = up.dims
        f.layer("Permute", [up], (n, h, w, c), data='order="0,2,3,1"', name=f"logits_{count}")
    return f


_SIX = 'max="6" min="0"'


def action_recognition_0003() -> Published:
    """Version 6 in f32: a CReLU of Power and Concat, sums with factors, depthwise upsampling."""
    f = Published("person-detection-action-recognition-0003", 6, "FP32")
    x = f.layer("Input", (), (1, 3, 16, 24), name="data")
    x = f.conv(x, 4, 7, stride=2)
    neg = f.layer("Power", [x], x.dims, data='power="1.0" scale="-1.0" shift="0.0"')
    x = _relu(f, f.layer("Concat", [x, neg], (1, 8, 8, 12), data='axis="1"'))
    x = f.layer("Eltwise", [f.conv(x, 8), x], x.dims, data='coeff="1.0,1.0" operation="sum"')
    deep = f.conv(x, 6, stride=2)
    deep = f.layer("Eltwise", [f.conv(deep, 6), deep], deep.dims, data='coeff="" operation="sum"')
    data = (
        'dilations="1,1" group="6" kernel="4,4" output="6" pads_begin="1,1" pads_end="1,1" '
        'strides="2,2"'
    )
    up = f.layer("Deconvolution", [deep], (1, 6, 8, 12), data=data, blobs={"weights": (6, 1, 4, 4)})
    f.layer("Concat", [x, up], (1, 14, 8, 12), data='axis="1"', name="joined")
    return f


def yolo_v3() -> Published:
    """Version 6 in f16: leaky activations, nearest upsampling with fx and fy, and two regions."""
    f = Published("frozen_darknet_yolov3_model", 6, "FP16")
    x = f.layer("Input", (), (1, 3, 16, 16), name="inputs")
    fine = f.conv(x, 6, stride=2, auto="same_upper")
    fine = f.layer("ReLU", [fine], fine.dims, data='negative_slope="0.10000000149011612"')
    deep = f.conv(fine, 8, stride=2, auto="same_upper")
    data = 'antialias="0" factor="2.0" fx="0.5" fy="0.5" type="caffe.ResampleParameter.NEAREST"'
    up = f.layer("Resample", [deep], (1, 8, 8, 8), data=data)
    joined = f.layer("Concat", [up, fine], (1, 14, 8, 8), data='axis="1"')
    for value, mask in ((deep, "3,4,5"), (joined, "0,1,2")):
        data = (
            'anchors="10,14,23,27,37,58,81,82,135,169,344,319" axis="1" classes="3" coords="4" '
            f'do_softmax="0" end_axis="3" mask="{mask}" num="6"'
        )
        raw = f.conv(value, 24, 1, auto="same_upper")
        f.layer("RegionYolo", [raw], raw.dims, data=data, name=f"region_{mask[0]}")
    return f


def mobilenet_ssd() -> Published:
    """Version 5 in f16: a shape in f16, PriorBox without a step, an empty list of sizes."""
    f = Published("mobilenet-ssd", 5, "FP16")
    data = f.layer("Input", (), (1, 3, 30, 30), name="data")
    fine = _relu(f, f.conv(data, 8, stride=2))
    coarse = _relu(f, f.conv(fine, 8, stride=2))
    locs, confs, priors = [], [], []
    sizes = ((fine, 3, "2.0", "", "6.0"), (coarse, 6, "2.0,3.0", "15.0", "10.5"))
    for value, boxes, ratios, large, small in sizes:
        loc, conf = _caffe_head(f, value, boxes, 21)
        locs.append(loc)
        confs.append(conf)
        data_ = (
            f'aspect_ratio="{ratios}" clip="0" flip="1" max_size="{large}" min_size="{small}" '
            'offset="0.5" variance="0.10000000149011612,0.10000000149011612,'
            '0.20000000298023224,0.20000000298023224"'
        )
        count = value.dims[2] * value.dims[3] * boxes * 4
        priors.append(f.layer("PriorBox", [value, data], (1, 2, count), data=data_))
    loc, conf = (
        f.layer("Concat", part, (1, sum(v.dims[1] for v in part)), data='axis="1"')
        for part in (locs, confs)
    )
    rows = conf.dims[1] // 21
    shape = f.const(0, -1, 21, precision="FP16", name="mbox_conf_reshape/DimData_const")
    x = f.layer("Reshape", [conf, shape], (1, rows, 21), data='axis="0" num_axes="-1"')
    x = f.layer("SoftMax", [x], x.dims, data='axis="2"')
    flat = f.layer("Flatten", [x], conf.dims, data='axis="1" end_axis="-1"')
    total = sum(value.dims[2] for value in priors)
    prior = f.layer("Concat", priors, (1, 2, total), data='axis="2"')
    _detections(f, loc, flat, prior, 21, 1)
    return f


def alexnet() -> Published:
    """Version 5 in f32: normalization across channels, groups, and fully connected layers."""
    f = Published("alexnet", 5, "FP32")
    x = _relu(f, f.conv(f.layer("Input", (), (1, 3, 15, 15), name="data"), 8, 5))
    norm = 'alpha="9.999999747378752e-05" beta="0.75" local-size="5" region="across"'
    pool = (
        'exclude-pad="true" kernel="3,3" pads_begin="0,0" pads_end="0,0" pool-method="max" '
        'rounding_type="ceil" strides="2,2"'
    )
    x = f.layer("Pooling", [f.layer("Norm", [x], x.dims, data=norm)], (1, 8, 7, 7), data=pool)
    x = f.layer("Pooling", [_relu(f, f.conv(x, 12, 5, group=2))], (1, 12, 3, 3), data=pool)
    for count in (10, 6):
        size = 1
        for extent in x.dims[1:]:
            size *= extent
        blobs = {"weights": (count, size), "biases": (count,)}
        data = f'out-size="{count}"'
        x = _relu(f, f.layer("FullyConnected", [x], (1, count), data=data, blobs=blobs))
    f.layer("SoftMax", [x], x.dims, data='axis="1"', name="prob")
    return f


FILES: tuple[Callable[[], Published], ...] = (
    face_detection_retail_0004,
    pedestrian_detection_adas_0002,
    ssd_mobilenet_of_tensorflow,
    license_plate_recognition_barrier_0001,
    text_detection_0004,
    action_recognition_0003,
    yolo_v3,
    mobilenet_ssd,
    alexnet,
)
