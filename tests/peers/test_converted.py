"""Networks of torch and ONNX that OpenVINO converts and saves: static, dynamic, and as f16.

There is one for each operation that was added after those of the first image networks. Those that
no converter of torch or ONNX writes are built with OpenVINO's API, in the same three forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deconv_ir
from deconv_ir.ir.graph import walk_graphs

from .conversions import NETWORKS, Arrays, dims
from .operations.harness import Case, compare, core
from .runtimes import ov
from .test_operations import CASES

pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

FORMS = ("static", "dynamic", "f16")


def saved(path: Path, expected: set[str]) -> Any:
    """Load the model, and require the operations and no finding."""
    model = deconv_ir.load(path, semantics="openvino")
    findings = [*model.findings, *deconv_ir.lint(path)]
    assert not [f for f in findings if f.severity is deconv_ir.Severity.ERROR]
    layers = (layer for graph in walk_graphs(model.graph) for layer in graph.layers)
    assert expected <= {f"{layer.type}-{(layer.version or '')[5:]}" for layer in layers}
    return model


def agree(path: Path, model: Any, runs: Sequence[Arrays], tolerance: float) -> None:
    """Compare consecutive runs that share one state."""
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
def test_converted_networks_run_as_in_openvino(name: str, form: str, tmp_path: Path) -> None:
    """In the dynamic form the second run has larger inputs."""
    network = NETWORKS[name]
    path = tmp_path / "model.xml"
    ov.save_model(network.model(tmp_path, form), path, compress_to_fp16=form == "f16")
    sizes = (6, network.larger if form == "dynamic" else 6)
    runs = [network.inputs(np.random.default_rng(n), size) for n, size in enumerate(sizes)]
    runs = runs[: network.runs]
    agree(path, saved(path, set(network.operations.split())), runs, network.tolerance)


NEW = {
    "BinaryConvolution-1", "Bucketize-3", "CTCGreedyDecoder-1", "CTCGreedyDecoderSeqLen-6",
    "CTCLoss-4",
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

OLD = "the converters of torch and ONNX write a newer version"
TENSORFLOW = "of the converters, that of TensorFlow alone writes it"
PADDLE = "of the converters, that of PaddlePaddle alone writes it"
NONE = "no converter writes it: networks of OpenVINO's older tools have it"
BUILT = {
    "BinaryConvolution-1": NONE, "CTCGreedyDecoder-1": NONE, "CTCGreedyDecoderSeqLen-6": TENSORFLOW,
    "CTCLoss-4": TENSORFLOW,
    "DeformableConvolution-1": OLD, "ExtractImagePatches-3": TENSORFLOW, "GRN-1": NONE,
    "MatrixNms-8": PADDLE, "MulticlassNms-8": OLD, "MulticlassNms-9": PADDLE,
    "NonMaxSuppression-1": OLD, "NonMaxSuppression-3": OLD, "NonMaxSuppression-4": OLD,
    "NonMaxSuppression-5": OLD, "ROIAlign-3": OLD, "RegionYolo-1": NONE, "ReorgYolo-2": NONE,
    "SegmentMax-16": TENSORFLOW, "SliceScatter-15": "torch's becomes ScatterNDUpdate",
}  # fmt: skip
"""Reasons why no torch or ONNX network has an operation: OpenVINO's API builds all three forms."""


def test_each_operation_is_converted_or_built() -> None:
    converted = {name for network in NETWORKS.values() for name in network.operations.split()}
    assert converted & set(BUILT) == set()
    assert set(BUILT) < NEW <= converted | set(BUILT)


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
    """Return the case with 16-bit floats."""
    inputs = tuple(
        replace(i, element_type="f16") if i.element_type == "f32" else i for i in case.inputs
    )
    return replace(case, inputs=inputs)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", sorted(NEW))
def test_built(name: str, form: str, tmp_path: Path) -> None:
    """Cases are built with OpenVINO's API, for operations that no converter writes, too."""
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
    # The CPU plugin does not support binary convolutions of dynamic shapes.
    path = case.save(tmp_path, None if name.startswith("Binary") else shapes)
    arrays = [p.array(np.random.default_rng(0)) for p in case.parameters()]
    agree(path, model, [arrays], tolerance)
