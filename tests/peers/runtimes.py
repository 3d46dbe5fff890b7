"""The other runtimes, imported once, and workarounds for their faults."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    ov = pytest.importorskip(
        "openvino", reason="OpenVINO cannot be imported: install the `peers` extra"
    )
    import onnx
    import onnxruntime
    import openvino.opset13 as ops
    import torch

from .problems import Problem

__all__ = [
    "assert_close",
    "bfloat16",
    "bounds",
    "infer",
    "onnxruntime_conv_transpose",
    "openvino_bounds",
    "ops",
    "ov",
    "run",
    "torch",
    "torch_conv_transpose",
]

bfloat16 = np.dtype(ml_dtypes.bfloat16)

F32 = 1e-5
F16 = 1e-2

_core = ov.Core()


def run(model: Path | Any, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Run a model (an object or an .xml file) with OpenVINO on the CPU, in full precision.

    Dynamic dims of the model are first fixed to those of the inputs: the CPU
    plugin refuses, or crashes on, many a dynamic deconvolution with
    `output_shape` ("paddings for dummy shapes can't be computed").
    """
    if isinstance(model, Path):
        model = _core.read_model(model)
    arrays = dict(inputs)
    for parameter in model.get_parameters():
        name = parameter.output(0).get_any_name()
        if name == "output_shape":
            constant = ops.constant(arrays.pop(name))
            for target in parameter.output(0).get_target_inputs():
                target.replace_source_output(constant.output(0))
            model.remove_parameter(parameter)
    model.reshape({name: list(value.shape) for name, value in arrays.items()})
    config = {"INFERENCE_PRECISION_HINT": "f32"}
    results = _core.compile_model(model, "CPU", config)(
        {name: _tensor(value) for name, value in arrays.items()}
    )
    # OpenVINO's Python arrays show bf16 as another type of two bytes.
    return [
        np.array(results[i]).view(bfloat16)
        if output.get_element_type() == ov.Type.bf16
        else np.array(results[i])
        for i, output in enumerate(model.outputs)
    ]


def _tensor(value: np.ndarray) -> Any:
    if value.dtype != bfloat16:
        return value
    return ov.Tensor(value.view(np.uint16), value.shape, ov.Type.bf16)


def read(path: Path) -> Any:
    """Read an IR with OpenVINO."""
    return _core.read_model(path)


def infer(model: Path | Any, output: int = 0) -> list[tuple[int, int | None]] | None:
    """Return OpenVINO's shape of an output, as (min, max) pairs; None for a dynamic rank."""
    if isinstance(model, Path):
        model = _core.read_model(model)
    return openvino_bounds(model.outputs[output].partial_shape)


def infer_with(path: Path, shapes: Mapping[str, Sequence[int]]) -> Any:
    """Return OpenVINO's shape of the first output for given input shapes."""
    model = _core.read_model(path)
    model.reshape({name: list(shape) for name, shape in shapes.items()})
    return openvino_bounds(model.outputs[0].partial_shape)


def openvino_error(action: Callable[[], object]) -> str:
    """Return OpenVINO's message if it refuses to do something, else an empty string."""
    try:
        action()
    except RuntimeError as error:
        return str(error)
    return ""


def openvino_bounds(shape: Any) -> list[tuple[int, int | None]] | None:
    """(min, max) pairs of an OpenVINO shape; max None: no bound.

    OpenVINO sometimes represents an unbounded dim by its largest integer, divided or multiplied.
    """
    if shape.rank.is_dynamic:
        return None
    highest = [d.get_max_length() for d in shape]
    return [
        (d.get_min_length(), high if 0 <= high < 2**60 else None)
        for d, high in zip(shape, highest, strict=True)
    ]


def bounds(shape: Any) -> list[tuple[int, int | None]] | None:
    """Return (min, max) pairs of a shape as `Model.infer_shapes` returns it."""
    if shape is None:
        return None
    return [(d, d) if isinstance(d, int) else (d.min, d.max) for d in shape]


def assert_close(
    actual: np.ndarray, expected: np.ndarray, tolerance: float = F32, what: str = ""
) -> None:
    """Compare shapes, then values, with `tolerance` relative to the expected array's scale."""
    assert actual.shape == expected.shape, what
    wide, reference = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    scale = max(float(np.abs(reference).max(initial=0.0)), 1e-30)
    worst = float(np.abs(wide - reference).max(initial=0.0)) / scale
    assert worst <= tolerance, f"{what}: off by {worst:.3g} of the scale {scale:.3g}"


def torch_conv_transpose(
    problem: Problem, data: np.ndarray, filters: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    """Run torch's conv_transposeNd in float64, and round the result once."""
    call = getattr(torch.nn.functional, f"conv_transpose{len(problem.extents)}d")
    result = call(
        *(torch.from_numpy(np.asarray(a, np.float64)) for a in (data, filters, bias)),
        stride=problem.strides,
        padding=problem.pads_begin,
        output_padding=problem.output_padding,
        groups=problem.groups,
        dilation=problem.dilations,
    )
    return result.numpy().astype(data.dtype)


def onnxruntime_conv_transpose(
    problem: Problem,
    attributes: Mapping[str, Any],
    data: np.ndarray,
    filters: np.ndarray,
    *bias: np.ndarray,
) -> np.ndarray:
    """Run one ONNX ConvTranspose node."""
    arrays: Sequence[np.ndarray] = (data, filters, *bias)
    names = ["X", "W", "B"][: len(arrays)]
    node = onnx.helper.make_node(
        "ConvTranspose",
        names,
        ["Y"],
        strides=list(problem.strides),
        dilations=list(problem.dilations),
        output_padding=list(problem.output_padding),
        group=problem.groups,
        **attributes,
    )
    inputs = [
        onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, a.shape)
        for n, a in zip(names, arrays, strict=True)
    ]
    output = onnx.helper.make_tensor_value_info("Y", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph([node], "g", inputs, [output])
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 11)], ir_version=8
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, dict(zip(names, arrays, strict=True)))[0]
