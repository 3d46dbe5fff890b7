"""Plain runs of a part with one output in other runtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from deconv_ir.compare.openvino_side import OPENVINO_SETTINGS, as_array, as_tensor
from deconv_ir.compare.sides import import_runtime, last_line
from deconv_ir.errors import UnsupportedError
from deconv_ir.ir.dtypes import Array


def run_openvino(path: Path, inputs: Sequence[Array], settings: Mapping[str, str]) -> Array:
    """Run an IR in OpenVINO, and return its first output.

    Raises
    ------
    UnsupportedError
        OpenVINO is not installed, or cannot run the model.
    """
    core = import_runtime("openvino").Core()
    try:
        model = core.read_model(str(path))
        compiled = core.compile_model(model, "CPU", dict(OPENVINO_SETTINGS | dict(settings)))
        request = compiled.create_infer_request()
        request.infer(list(map(as_tensor, inputs, model.inputs)))
    except RuntimeError as error:
        raise UnsupportedError(
            f"OpenVINO cannot run the model: {last_line(error)}", file=str(path)
        ) from error
    return as_array(request.get_output_tensor(0))


def run_onnxruntime(path: Path, inputs: Sequence[Array]) -> Array:
    """Run an ONNX model in onnxruntime, and return its first output.

    Raises
    ------
    UnsupportedError
        onnxruntime is not installed, or cannot run the model.
    """
    runtime = import_runtime("onnxruntime")
    try:
        session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        names = [port.name for port in session.get_inputs()]
        found: Array = session.run(None, dict(zip(names, inputs, strict=True)))[0]
    except Exception as error:  # onnxruntime has no common root
        raise UnsupportedError(
            f"onnxruntime cannot run the model: {last_line(error)}", file=str(path)
        ) from error
    return found
