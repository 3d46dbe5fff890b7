"""Scripts of a report that run its part in other runtimes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_COMPARED = """\
exact = np.load(next(Path("outputs/exact").glob("*.npy")))
print(found.reshape(-1)[:8])
if found.shape != exact.shape:
    print("shape:", found.shape, "exact:", exact.shape)
else:
    with np.errstate(all="ignore"):
        error = np.abs(np.subtract(found, exact, dtype=np.float64))
    error[(found == exact) | (np.isnan(found) & np.isnan(exact))] = 0
    print("largest error:", np.nan_to_num(error, nan=np.inf).max(initial=0))
np.save("b.npy", found)
"""

_OPENVINO = '''\
"""Runs {MODEL} in OpenVINO, and prints its largest error."""

from pathlib import Path

import numpy as np
import openvino

core = openvino.Core()
model = core.read_model("{MODEL}")
settings = {"INFERENCE_PRECISION_HINT": "f32"} | {SETTINGS}
compiled = core.compile_model(model, "CPU", settings)
tensors = []
for port, file in zip(model.inputs, {FILES}):
    array = np.load(file)
    if array.dtype.kind == "V":  # a type that NumPy lacks
        array = array.view(f"u{array.dtype.itemsize}")
    array = np.ascontiguousarray(array)
    tensors.append(openvino.Tensor(array, array.shape, port.get_element_type()))
request = compiled.create_infer_request()
request.infer(tensors)
tensor = request.get_output_tensor(0)
found = tensor.data
if tensor.element_type == openvino.Type.bf16:
    found = (found.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
'''

_ONNXRUNTIME = '''\
"""Runs {MODEL} in onnxruntime, and prints its largest error."""

from pathlib import Path

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession("{MODEL}", providers=["CPUExecutionProvider"])
names = [port.name for port in session.get_inputs()]
(found,) = session.run(None, dict(zip(names, map(np.load, {FILES}))))
'''

SCRIPTS: Final[Mapping[str, str]] = {
    "openvino": _OPENVINO + _COMPARED,
    "onnxruntime": _ONNXRUNTIME + _COMPARED,
}
"""Runtime -> the script; {MODEL}, {FILES} and {SETTINGS} are replaced."""
