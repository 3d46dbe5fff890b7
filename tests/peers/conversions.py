"""Networks of torch and ONNX for OpenVINO to convert: at least one for each newer operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .runtimes import onnx, ov, torch

Arrays = list[np.ndarray]
Give = Callable[[np.random.Generator, int], Arrays]
"""Makes the inputs of a run from a size."""


@dataclass(frozen=True)
class Network:
    """A network to convert; `operations` must result from its conversion."""

    operations: str
    convert: Callable[[Path], Any]
    inputs: Give
    larger: int = 9
    """The size of the second run of a dynamic network."""
    runs: int = 2
    tolerance: float = 1e-4

    def model(self, folder: Path, form: str) -> Any:
        model = self.convert(folder)
        arrays = self.inputs(np.random.default_rng(0), 6)
        dynamic = form == "dynamic" and self.larger != 6
        shapes = [dims(a.shape, self.operations) if dynamic else list(a.shape) for a in arrays]
        model.reshape({i: ov.PartialShape(shape) for i, shape in enumerate(shapes)})
        return model


ENDS = ("Nms", "NMS", "NonMax", "ROIAlign")
"""The CPU plugin asks for the last extent of boxes."""


def dims(shape: Sequence[int], operations: str) -> list[int]:
    """Return the dims of a dynamic input."""
    known = any(word in operations for word in ENDS) and shape[-1:] in [(1,), (4,), (5,)]
    return [-1] * (len(shape) - known) + list(shape[len(shape) - known :])


def images(rng: np.random.Generator, size: int) -> Arrays:
    return [rng.standard_normal((2, 3, size + 3, size)).astype(np.float32)]


def exact_images(rng: np.random.Generator, size: int) -> Arrays:
    """Return images in steps of f16, to which OpenVINO rounds before it rounds to 8 bits."""
    return [images(rng, size)[0].astype(np.float16).astype(np.float32)]


class Body(torch.nn.Module):  # type: ignore[misc]
    """Apply a convolution to the first input, then a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.function = function

    def forward(self, x: Any, *others: Any) -> Any:
        return self.function(self.conv(x), *others)


def of_torch(function: Callable[..., Any]) -> Callable[[Path], Any]:
    def convert(folder: Path) -> Any:
        (example,) = images(np.random.default_rng(1), 6)
        return ov.convert_model(Body(function).eval(), example_input=torch.from_numpy(example))

    return convert


class Repeated(torch.nn.Module):  # type: ignore[misc]
    """A loop with a branch in it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
        for _ in range(int(count)):
            x = torch.relu(self.conv(x))
            x = x * 0.5 if bool(x.mean() > 0.2) else x + 0.25
        return x


def stateful(folder: Path) -> Any:
    """Return a recurrent step whose state becomes a variable, as in streaming networks."""
    from openvino._offline_transformations import apply_make_stateful_transformation

    def step(y: Any, state: Any) -> Any:
        following = torch.tanh(y + state)
        return following * 2, following

    (x,) = images(np.random.default_rng(1), 6)
    model = ov.convert_model(
        Body(step).eval(), example_input=(torch.from_numpy(x), torch.zeros(2, 4, 9, 6))
    )
    model.inputs[1].set_names({"state"})
    model.outputs[1].set_names({"following"})
    model.reshape({model.inputs[0]: ov.PartialShape([2, 3, 9, 6]), "state": [2, 4, 9, 6]})
    apply_make_stateful_transformation(model, {"state": "following"})
    return model


def of_onnx(kind: str, outputs: int, given: Give, **attributes: Any) -> Callable[[Path], Any]:
    """Return one ONNX operation behind a ReLU; arrays among the attributes are constant inputs."""
    arrays = {name: a for name, a in attributes.items() if isinstance(a, np.ndarray)}
    rest = {name: a for name, a in attributes.items() if name not in arrays}
    count = len(given(np.random.default_rng(1), 6))
    names = ["data", *(f"in{i}" for i in range(1, count)), *arrays]
    found = [f"out{i}" for i in range(outputs)]
    constants = [onnx.numpy_helper.from_array(a, name) for name, a in arrays.items()]
    return of_nodes(given, constants, onnx.helper.make_node(kind, names, found, **rest))


def of_nodes(given: Give, constants: Sequence[Any], *nodes: Any) -> Callable[[Path], Any]:
    """Return ONNX nodes that take `in1`... and, as `data`, `in0` behind a ReLU."""
    helper = onnx.helper

    def convert(folder: Path) -> Any:
        examples = given(np.random.default_rng(1), 6)
        inputs = [
            helper.make_tensor_value_info(
                f"in{i}",
                helper.np_dtype_to_tensor_dtype(a.dtype),
                [f"d{i}_{axis}" for axis in range(a.ndim)],
            )
            for i, a in enumerate(examples)
        ]
        graph = helper.make_graph(
            [helper.make_node("LeakyRelu", ["in0"], ["data"], alpha=0.5), *nodes],
            "network",
            inputs,
            [helper.make_empty_tensor_value_info(name) for name in nodes[-1].output],
            constants,
        )
        domains = {"": 20, "mmdeploy": 1, "org.openvinotoolkit": 1}
        opsets = [helper.make_opsetid(*domain) for domain in domains.items()]
        path = folder / "network.onnx"
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
        return ov.convert_model(path)

    return convert


def in_eight_bits(kind: str) -> Callable[[Path], Any]:
    """Return a network with ONNX QuantizeLinear and DequantizeLinear."""
    node = onnx.helper.make_node
    point = onnx.helper.make_tensor("point", getattr(onnx.TensorProto, kind), [], [0.0])
    scale = onnx.numpy_helper.from_array(np.array(0.5, np.float32), "scale")
    return of_nodes(
        exact_images,
        [scale, point],
        node("QuantizeLinear", ["data", "scale", "point"], ["eight"]),
        node("DequantizeLinear", ["eight", "scale", "point"], ["out"]),
    )


class Promoted(torch.nn.Module):  # type: ignore[misc]
    """Convert both inputs to the type to which torch promotes them."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
        return torch.cat([x, y])


def promoted(folder: Path) -> Any:
    """Return a network whose types are unknown when it is converted."""
    model = ov.convert_model(torch.jit.script(Promoted()))
    for parameter, kind in zip(model.get_parameters(), (ov.Type.i32, ov.Type.f16), strict=True):
        parameter.set_element_type(kind)
    model.validate_nodes_and_infer_types()
    return model


def of_two_types(rng: np.random.Generator, size: int) -> Arrays:
    """Return arrays of i32 and f16."""
    return [rng.integers(-9, 9, (size, 3), np.int32), rng.normal(size=(2, 3)).astype(np.float16)]


def moved(rng: np.random.Generator, size: int) -> Arrays:
    """Return images, and the offsets of the elements of a 3 by 3 window."""
    offsets = rng.uniform(-1.5, 1.5, (2, 18, size + 3, size))
    return [*images(rng, size), offsets.astype(np.float32)]


def tilted(rng: np.random.Generator, size: int) -> Arrays:
    """Return rotated boxes and their scores."""
    low, high = [0, 0, 1, 1, -3], [3, 3, 2, 2, 3]
    found = rng.uniform(low, high, (2, size, 5)).astype(np.float32)
    return [found, rng.uniform(0, 1, (2, 3, size)).astype(np.float32)]


def boxes(rng: np.random.Generator, size: int) -> Arrays:
    low = rng.uniform(0, 1, (2, size, 2))
    corners = np.concatenate([low, low + rng.uniform(0.1, 0.8, (2, size, 2))], -1)
    return [corners.astype(np.float32), rng.uniform(0, 1, (2, 3, size)).astype(np.float32)]


def regions(rng: np.random.Generator, size: int) -> Arrays:
    rois = np.concatenate([rng.uniform(0, 4, (size, 2)), rng.uniform(5, 14, (size, 2))], 1)
    return [*images(rng, size), rois.astype(np.float32), rng.integers(0, 2, size)]


def turned(rng: np.random.Generator, size: int) -> Arrays:
    """Return the image of a region, its center, extents and angle."""
    low, high = [0, 3, 3, 4, 4, -3], [1, 9, 9, 9, 9, 3]
    rois = rng.uniform(low, high, (size, 6))
    rois[:, 0] = rng.integers(0, 2, size)
    return [*images(rng, size), rois.astype(np.float32)]


def rows(rng: np.random.Generator, size: int) -> Arrays:
    return [rng.standard_normal((2, size)).astype(np.float32)]


def columns(rng: np.random.Generator, size: int) -> Arrays:
    """Return windows of 2 by 3 of an image of 5 by 6: 4 by 4 of them."""
    return [rng.standard_normal((2, 3 * 6, 16)).astype(np.float32)]


def certain(rng: np.random.Generator, size: int) -> Arrays:
    """Return logits with one almost certain class, since peers draw other random numbers."""
    return [(np.eye(size)[[1, size - 1]] * 80).astype(np.float32)]


def scanned(rng: np.random.Generator, size: int) -> Arrays:
    return [rng.standard_normal(s).astype(np.float32) for s in ((3,), (size, 3))]


def scan_body() -> Any:
    helper = onnx.helper

    def value(name: str) -> Any:
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3])

    nodes = [
        helper.make_node("Add", ["state", "item"], ["next"]),
        helper.make_node("Mul", ["next", "item"], ["seen"]),
    ]
    return helper.make_graph(
        nodes, "body", [value("state"), value("item")], [value("next"), value("seen")]
    )


def with_color(name: str) -> Callable[[Path], Any]:
    """Put OpenVINO's conversion of video frames before a torch network of colors."""
    source, target = name.split("to")
    formats = {"NV12": "NV12_SINGLE_PLANE", "I420": "I420_SINGLE_PLANE"}

    def convert(folder: Path) -> Any:
        model = of_torch(torch.relu)(folder)
        model.reshape(ov.PartialShape([-1, 3, -1, -1]))
        steps = ov.preprocess.PrePostProcessor(model)
        frame = steps.input().tensor()
        frame.set_element_type(ov.Type.u8)
        frame.set_color_format(getattr(ov.preprocess.ColorFormat, formats[source]))
        preprocess = steps.input().preprocess()
        preprocess.convert_color(getattr(ov.preprocess.ColorFormat, target))
        preprocess.convert_element_type(ov.Type.f32)
        steps.input().model().set_layout(ov.Layout("NCHW"))
        return steps.build()

    return convert


def frames(rng: np.random.Generator, size: int) -> Arrays:
    return [rng.integers(0, 256, (1, 3 * size, 2 * size, 1), dtype=np.uint8)]


def _spectra(y: Any) -> Any:
    window = torch.hann_window(16)
    found = torch.stft(y.flatten(1), 16, 4, 16, window, center=False, return_complex=True)
    return torch.view_as_real(found)


def _signal(y: Any) -> Any:
    values = torch.view_as_complex(
        y[:, :, :9].permute(0, 2, 3, 1).reshape(2, 9, -1, 2).contiguous()
    )
    return torch.istft(values, 16, 4, 16, torch.ones(16), center=False)


def _inverse(y: Any) -> Any:
    return torch.linalg.inv(torch.matmul(y, y.transpose(2, 3)) + 2 * torch.eye(y.shape[2]))


def _unique(y: Any) -> Any:
    return torch.unique(torch.round(y.flatten()), return_inverse=True, return_counts=True)


EDGES = (-0.5, 0.0, 0.3, 0.8)
NETWORKS = {
    "torch-bucketize": Network(
        "Bucketize-3", of_torch(lambda y: torch.bucketize(y, torch.tensor(EDGES))), images
    ),
    "torch-searchsorted": Network(
        "SearchSorted-15",
        of_torch(lambda y: torch.searchsorted(torch.tensor(EDGES), y, right=True)),
        images,
    ),
    "torch-fold": Network(
        "Col2Im-15",
        of_torch(lambda y: torch.nn.functional.fold(y.flatten(2), (10, 7), (2, 2))),
        images,
        larger=6,
    ),
    "torch-inverse": Network("Inverse-14", of_torch(_inverse), images),
    "torch-unique": Network("Unique-10", of_torch(_unique), images),
    "torch-stft": Network("STFT-15", of_torch(_spectra), images),
    "torch-istft": Network("ISTFT-16", of_torch(_signal), images),
    "torch-loop-and-branch": Network(
        "Loop-5 If-8",
        lambda folder: ov.convert_model(
            torch.jit.script(Repeated().eval()), input=[ov.Type.f32, ov.Type.i64]
        ),
        lambda rng, size: [*images(rng, size), np.array(size - 5, np.int64)],
    ),
    "torch-state": Network("ReadValue-6 Assign-6", stateful, images, larger=6),
    "onnx-nms": Network(
        "NonMaxSuppression-9",
        of_onnx(
            "NonMaxSuppression",
            1,
            boxes,
            count=np.array(4),
            overlap=np.array(0.4, np.float32),
            score=np.array(0.25, np.float32),
        ),
        boxes,
    ),
    "onnx-roialign": Network(
        "ROIAlign-9",
        of_onnx("RoiAlign", 1, regions, output_height=2, output_width=3, spatial_scale=0.5),
        regions,
    ),
    "onnx-rotated": Network(
        "ROIAlignRotated-15",
        of_onnx(
            "MMCVRoIAlignRotated",
            1,
            turned,
            domain="mmdeploy",
            output_height=2,
            output_width=3,
            sampling_ratio=2,
            spatial_scale=0.5,
        ),
        turned,
    ),
    "onnx-deformable": Network(
        "DeformableConvolution-8",
        of_onnx(
            "DeformableConv2D",
            1,
            moved,
            domain="org.openvinotoolkit",
            filters=np.random.default_rng(2).standard_normal((4, 3, 3, 3)).astype(np.float32),
            strides=[1, 1],
            dilations=[1, 1],
            pads=[1, 1, 1, 1],
            deformable_groups=1,
        ),
        moved,
    ),
    "onnx-nms-rotated": Network(
        "NMSRotated-13",
        of_onnx("NMSRotated", 1, tilted, domain="mmdeploy", iou_threshold=0.3, score_threshold=0.2),
        tilted,
    ),
    "onnx-f8e4m3": Network("FakeConvert-13", in_eight_bits("FLOAT8E4M3FN"), exact_images),
    "onnx-f8e5m2": Network("FakeConvert-13", in_eight_bits("FLOAT8E5M2"), exact_images),
    "torch-promoted": Network("ConvertPromoteTypes-14", promoted, of_two_types),
    "onnx-col2im": Network(
        "Col2Im-15",
        of_onnx("Col2Im", 1, columns, extents=np.array([5, 6]), window=np.array([2, 3])),
        columns,
        larger=6,
    ),
    "onnx-unique": Network("Unique-10", of_onnx("Unique", 4, rows), rows),
    "onnx-random": Network(
        "RandomUniform-8",
        of_onnx("RandomUniformLike", 1, rows, seed=5.0, low=-1.0),
        rows,
        runs=1,  # OpenVINO's second run continues with other random numbers
    ),
    "onnx-multinomial": Network(
        "Multinomial-13", of_onnx("Multinomial", 1, certain, sample_size=2, seed=5.0), certain
    ),
    "onnx-scan": Network(
        "TensorIterator-1",
        of_onnx("Scan", 2, scanned, body=scan_body(), num_scan_inputs=1),
        scanned,
    ),
} | {
    f"frames-{name}": Network(
        # A color that OpenVINO rounds to the other neighbour differs by 1 / 255.
        f"{name}-8",
        with_color(name),
        frames,
        tolerance=5e-3,
    )
    for name in ("NV12toRGB", "NV12toBGR", "I420toRGB", "I420toBGR")
}
