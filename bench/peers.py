"""One transposed convolution in each of the other engines, with its weights loaded.

An engine that cannot compute a layer, or computes something else, returns None for it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from cases import Case

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

    Runner = Callable[[Array], Any]

__all__ = ["PEERS", "onnx_model", "openvino_model", "versions"]


def openvino_model(case: Case, weights: Array, *, quantised: bool = False) -> Any:
    """Return the layer as an OpenVINO model.

    If it is `quantised`, the data pass a FakeQuantize with 256 levels from 0 to 3, and the weights
    are i8 with a scale for each output channel, as NNCF writes them.
    """
    import openvino as ov
    from openvino import opset13 as ops

    parameter = data = ops.parameter(case.data, np.float32)
    shape = case.filter
    if case.groups > 1:
        shape = (case.groups, case.filter[0] // case.groups, *case.filter[1:])
    filter_ = ops.constant(weights.reshape(shape))
    if quantised:
        ends = [np.float32(end) for end in (0, 3, 0, 3)]
        data = ops.fake_quantize(parameter, *ends, 256)
        others = tuple(a for a in range(len(shape)) if a != len(shape) - len(case.filter) + 1)
        if case.groups > 1:
            others = others[1:]
        scales = np.abs(weights.reshape(shape)).max(axis=others, keepdims=True) / np.float32(127)
        codes = np.rint(weights.reshape(shape) / scales).astype(np.int8)
        filter_ = ops.multiply(ops.convert(ops.constant(codes), "f32"), ops.constant(scales))
    make = (
        ops.convolution_backprop_data if case.groups == 1 else ops.group_convolution_backprop_data
    )
    node = make(
        data,
        filter_,
        strides=case.strides,
        pads_begin=case.pads,
        pads_end=case.pads,
        dilations=case.dilations,
        output_padding=case.output_padding,
    )
    return ov.Model([node], [parameter])


def openvino(case: Case, weights: Array, threads: int) -> Runner:
    """OpenVINO's CPU device; neither input nor output is copied."""
    import openvino as ov

    compiled = ov.Core().compile_model(
        openvino_model(case, weights),
        "CPU",
        {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": threads,
        },
    )
    request = compiled.create_infer_request()
    return lambda x: request.infer([x], share_inputs=True, share_outputs=True)[0]


def onnx_model(case: Case, weights: Array) -> bytes:
    """Return the layer as the bytes of an ONNX file."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    node = helper.make_node(
        "ConvTranspose",
        ["x", "w"],
        ["y"],
        strides=case.strides,
        pads=case.pads * 2,
        dilations=case.dilations,
        output_padding=case.output_padding,
        group=case.groups,
    )
    result = (case.data[0], case.out_channels, *case.output)
    graph = helper.make_graph(
        [node],
        "case",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, case.data)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    buffer = io.BytesIO()
    onnx.save(model, buffer)
    return buffer.getvalue()


def onnxruntime(case: Case, weights: Array, threads: int) -> Runner:
    """Onnxruntime's CPU provider."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(onnx_model(case, weights), options, ["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


def torch(case: Case, weights: Array, threads: int) -> Runner:
    """PyTorch's functional form, in inference mode."""
    import torch as pytorch

    pytorch.set_num_threads(threads)
    function = {
        1: pytorch.nn.functional.conv_transpose1d,
        2: pytorch.nn.functional.conv_transpose2d,
        3: pytorch.nn.functional.conv_transpose3d,
    }[len(case.strides)]
    packed = pytorch.from_numpy(weights)

    def run(x: Array) -> Any:
        with pytorch.inference_mode():
            return function(
                pytorch.from_numpy(x),
                packed,
                None,
                case.strides,
                case.pads,
                case.output_padding,
                case.groups,
                case.dilations,
            ).numpy()

    return run


def opencv(case: Case, weights: Array, threads: int) -> Runner | None:
    """OpenCV's DNN module, for the layers that it computes."""
    import cv2

    cv2.setNumThreads(threads)
    try:
        net = cv2.dnn.readNetFromONNX(np.frombuffer(onnx_model(case, weights), np.uint8))
        net.setInput(np.zeros(case.data, np.float32))
        net.forward()
    except cv2.error:
        return None

    def run(x: Array) -> Any:
        net.setInput(x)
        return net.forward()

    return run


PEERS: dict[str, Callable[[Case, Array, int], Runner | None]] = {
    "openvino": openvino,
    "onnxruntime": onnxruntime,
    "torch": torch,
    "opencv": opencv,
}


def versions() -> dict[str, str]:
    """Return the versions of the other engines, and the limits on their instruction sets."""
    import cv2
    import onnxruntime as ort
    import openvino as ov
    import torch as pytorch

    return {
        "openvino": ov.__version__,
        "onnxruntime": ort.__version__,
        "torch": pytorch.__version__,
        "opencv": cv2.__version__,
        "ONEDNN_MAX_CPU_ISA": os.environ.get("ONEDNN_MAX_CPU_ISA", ""),
    }
