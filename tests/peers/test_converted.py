"""Networks of torch and ONNX that OpenVINO converts and saves: static, dynamic, and as f16.

One for each operation that came after the image networks' first ones. Those that no converter of
torch or ONNX writes are built with OpenVINO's API, in the same three forms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deconv_ir
from deconv_ir.ir.body import walk_graphs

from .operations.harness import Case, compare, core
from .runtimes import onnx, ov, torch
from .test_operations import CASES

pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

FORMS = ("static", "dynamic", "f16")
Arrays = list[np.ndarray]
Give = Callable[[np.random.Generator, int], Arrays]
"""Makes the inputs of a run from a size."""


@dataclass(frozen=True)
class Network:
    """A network to convert; `operations` are those that its conversion must give."""

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


class Body(torch.nn.Module):  # type: ignore[misc]
    """A convolution of the first input, then a function."""

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
    """A loop and, in it, a branch."""

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
    """A recurrent step whose state becomes a variable, as streaming networks have it."""
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
    """One operation of ONNX behind a ReLU; arrays among the attributes are constant inputs."""
    helper = onnx.helper
    arrays = {name: a for name, a in attributes.items() if isinstance(a, np.ndarray)}
    rest = {name: a for name, a in attributes.items() if name not in arrays}

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
        names = ["data", *(f"in{i}" for i in range(1, len(inputs))), *arrays]
        found = [f"out{i}" for i in range(outputs)]
        graph = helper.make_graph(
            [
                helper.make_node("LeakyRelu", ["in0"], ["data"], alpha=0.5),
                helper.make_node(kind, names, found, **rest),
            ],
            "network",
            inputs,
            [helper.make_empty_tensor_value_info(name) for name in found],
            [onnx.numpy_helper.from_array(a, name) for name, a in arrays.items()],
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("mmdeploy", 1)]
        path = folder / "network.onnx"
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
        return ov.convert_model(path)

    return convert


def boxes(rng: np.random.Generator, size: int) -> Arrays:
    low = rng.uniform(0, 1, (2, size, 2))
    corners = np.concatenate([low, low + rng.uniform(0.1, 0.8, (2, size, 2))], -1)
    return [corners.astype(np.float32), rng.uniform(0, 1, (2, 3, size)).astype(np.float32)]


def regions(rng: np.random.Generator, size: int) -> Arrays:
    rois = np.concatenate([rng.uniform(0, 4, (size, 2)), rng.uniform(5, 14, (size, 2))], 1)
    return [*images(rng, size), rois.astype(np.float32), rng.integers(0, 2, size)]


def turned(rng: np.random.Generator, size: int) -> Arrays:
    """The image of a region, its center, extents and angle."""
    low, high = [0, 3, 3, 4, 4, -3], [1, 9, 9, 9, 9, 3]
    rois = rng.uniform(low, high, (size, 6))
    rois[:, 0] = rng.integers(0, 2, size)
    return [*images(rng, size), rois.astype(np.float32)]


def rows(rng: np.random.Generator, size: int) -> Arrays:
    return [rng.standard_normal((2, size)).astype(np.float32)]


def certain(rng: np.random.Generator, size: int) -> Arrays:
    """Logits of which one is all but certain: peers draw other numbers."""
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
    """A torch network of colors behind OpenVINO's conversion of video frames."""
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
    "onnx-unique": Network("Unique-10", of_onnx("Unique", 4, rows), rows),
    "onnx-random": Network(
        "RandomUniform-8",
        of_onnx("RandomUniformLike", 1, rows, seed=5.0, low=-1.0),
        rows,
        runs=1,  # OpenVINO's second run goes on with other numbers
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
        # Where OpenVINO rounds a color to its other neighbour, it is one of 255 away.
        f"{name}-8",
        with_color(name),
        frames,
        tolerance=5e-3,
    )
    for name in ("NV12toRGB", "NV12toBGR", "I420toRGB", "I420toBGR")
}


def saved(path: Path, expected: set[str]) -> Any:
    """Load, and see that it has the operations and no finding."""
    model = deconv_ir.load(path, semantics="openvino")
    findings = [*model.findings, *deconv_ir.lint(path)]
    assert not [f for f in findings if f.severity is deconv_ir.Severity.ERROR]
    layers = (layer for graph in walk_graphs(model.graph) for layer in graph.layers)
    assert expected <= {f"{layer.type}-{(layer.version or '')[5:]}" for layer in layers}
    return model


def agree(path: Path, model: Any, runs: Sequence[Arrays], tolerance: float) -> None:
    """Compare runs that follow each other, in one state."""
    state = deconv_ir.State()
    request = core.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    request = request.create_infer_request()
    for arrays in runs:
        found = list(model.run(arrays, state=state).values())
        theirs = [np.array(a) for a in request.infer(list(arrays)).values()]
        assert [a.shape for a in found] == [a.shape for a in theirs]
        for mine, other in zip(found, theirs, strict=True):
            compare(mine, other.astype(mine.dtype), tolerance)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NETWORKS)
def test_converted(name: str, form: str, tmp_path: Path) -> None:
    """Dynamic: the second run has larger inputs."""
    network = NETWORKS[name]
    path = tmp_path / "model.xml"
    ov.save_model(network.model(tmp_path, form), path, compress_to_fp16=form == "f16")
    sizes = (6, network.larger if form == "dynamic" else 6)
    runs = [network.inputs(np.random.default_rng(n), size) for n, size in enumerate(sizes)]
    runs = runs[: network.runs]
    agree(path, saved(path, set(network.operations.split())), runs, network.tolerance)


NEW = {
    "BinaryConvolution-1", "Bucketize-3", "CTCGreedyDecoder-1", "CTCGreedyDecoderSeqLen-6",
    "Col2Im-15", "ConvertPromoteTypes-14", "DeformableConvolution-1", "DeformableConvolution-8",
    "ExtractImagePatches-3", "FakeConvert-13", "GRN-1", "ISTFT-16", "Inverse-14", "MatrixNms-8",
    "MulticlassNms-8", "MulticlassNms-9", "Multinomial-13", "NMSRotated-13",
    "NonMaxSuppression-1", "NonMaxSuppression-3", "NonMaxSuppression-4", "NonMaxSuppression-5",
    "NonMaxSuppression-9", "NV12toRGB-8", "NV12toBGR-8", "I420toRGB-8", "I420toBGR-8",
    "RandomUniform-8", "RegionYolo-1", "ReorgYolo-2", "ROIAlign-3", "ROIAlign-9",
    "ROIAlignRotated-15", "STFT-15", "SearchSorted-15", "SegmentMax-16", "SliceScatter-15",
    "Unique-10",
}  # fmt: skip
"""Operations and versions without bodies and variables, which test_control_flow.py compares."""


def first_cases() -> dict[str, Case]:
    """Return the first case of each operation of `NEW`, and the first of f16 if there is one."""
    found: dict[str, Case] = {}
    for case in CASES:
        for node in case.model().get_ops():
            kind = node.get_type_info()
            key = f"{kind.name}-{kind.version_id.removeprefix('opset')}"
            if key in NEW:
                found.setdefault(key, case)
                if "f16" in case.name and "bf16" not in case.name:
                    found.setdefault(f"{key} f16", case)
    return found


FIRST = first_cases()


def as_half(case: Case) -> Case:
    """Return the case with floats of 16 bits."""
    inputs = tuple(
        replace(i, element_type="f16") if i.element_type == "f32" else i for i in case.inputs
    )
    return replace(case, inputs=inputs)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", sorted(NEW))
def test_built(name: str, form: str, tmp_path: Path) -> None:
    """With OpenVINO's API: also operations that no converter of torch or ONNX writes."""
    case = FIRST[name]
    shapes, tolerance = None, case.tolerance or 2e-5
    if form == "f16":
        case, tolerance = FIRST.get(f"{name} f16", as_half(case)), 2e-2
    elif form == "dynamic":
        shapes = [
            ",".join(map(str, p.shape if p.fixed else dims(p.shape, name))).replace("-1", "?")
            for p in case.parameters()
        ]
    model = saved(case.save(tmp_path, shapes), {name})
    # The CPU plugin has no binary convolution of dynamic shapes.
    path = case.save(tmp_path, None if name.startswith("Binary") else shapes)
    arrays = [p.array(np.random.default_rng(0)) for p in case.parameters()]
    agree(path, model, [arrays], tolerance)
