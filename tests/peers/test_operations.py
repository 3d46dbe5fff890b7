"""Every operation against OpenVINO: outputs, and shapes inferred of dynamic inputs."""

from __future__ import annotations

import importlib
import itertools
import re
from pathlib import Path

import pytest

from deconv_ir.ops import all_operations

from .operations.harness import Case, compare_outputs, compare_shapes

pytestmark = pytest.mark.peers

TABLES = (
    *("detection", "elementwise", "movement", "networks", "indexing", "others", "tables"),
    "vision",
)
CASES = list(
    itertools.chain.from_iterable(
        importlib.import_module(f"{__package__}.operations.{table}").cases() for table in TABLES
    )
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_outputs(case: Case, tmp_path: Path) -> None:
    compare_outputs(case, tmp_path)


@pytest.mark.parametrize("case", [c for c in CASES if c.dynamic], ids=str)
def test_shapes(case: Case, tmp_path: Path) -> None:
    different = [d for seed in range(6) if (d := compare_shapes(case, tmp_path, seed))]
    assert not different, "\n".join(different)


# OpenVINO's name and version of operations that are written differently, or that other tests
# compare.
OTHERWISE = {
    ("LogicalXor", "opset1"): ("LogicalXor", "opset2"),
    ("PReLU", "opset1"): ("PRelu", "opset1"),
    ("ReLU", "opset1"): ("Relu", "opset1"),
    ("ROIPooling", "opset1"): ("ROIPooling", "opset2"),
    ("ScatterNDUpdate", "opset3"): ("ScatterNDUpdate", "opset4"),
    ("SoftMax", "opset1"): ("Softmax", "opset1"),
    ("SoftMax", "opset8"): ("Softmax", "opset8"),
    ("Const", "opset1"): ("Constant", "opset1"),
}
ELSEWHERE = {
    ("If", "opset8"): "test_control_flow.py",
    ("Loop", "opset5"): "test_control_flow.py",
    ("TensorIterator", "opset1"): "test_control_flow.py",
    ("ReadValue", "opset3"): "test_control_flow.py",
    ("ReadValue", "opset6"): "test_control_flow.py",
    ("Assign", "opset3"): "test_control_flow.py",
    ("Assign", "opset6"): "test_control_flow.py",
    ("ConvolutionBackpropData", "opset1"): "test_bare_layers.py",
    ("GroupConvolutionBackpropData", "opset1"): "test_bare_layers.py",
    ("RMSNorm", "opset14"): "OpenVINO cannot read it: tests/ops/gather_scatter/test_tables.py",
    ("StringTensorPack", "opset15"): "test_strings.py",
    ("StringTensorUnpack", "opset15"): "test_strings.py",
    ("LSTMSequence", "opset1"): "OpenVINO no longer has it: tests/ops/recurrent/test_lstm.py",
}


def test_every_version_of_every_operation_is_compared() -> None:
    compared = set()
    for case in CASES:
        for node in case.model().get_ops():
            kind = node.get_type_info()
            compared.add((kind.name, kind.version_id))
    registered = {(op.type, version) for op in all_operations() for version in op.versions}
    wanted = {OTHERWISE.get(key, key) for key in registered - set(ELSEWHERE)}
    assert wanted <= compared, sorted(wanted - compared)


# OpenVINO's functions for operations with other names.
NAMED = {"absolute": "abs", "ceil": "ceiling", "constant": "const", "if_op": "if"}


def test_every_version_of_openvino_is_implemented_or_listed() -> None:
    """Names and versions are those of the functions in `openvino.opset1` to `openvino.opset16`."""
    documented = Path(__file__).parents[2] / "docs" / "operations.md"
    section = documented.read_text().partition("operations that are not implemented")[2]
    listed = section.partition("\n## ")[0].replace(",", " ").lower().split()
    versions: dict[str, set[str]] = {}
    for operation in all_operations():
        versions.setdefault(operation.type.lower(), set()).update(operation.versions)
    checked = 0
    for number in range(1, 17):
        module = importlib.import_module(f"openvino.opset{number}")
        for name, function in vars(module).items():
            if name.startswith("_") or not callable(function):
                continue
            kind = NAMED.get(name, name.replace("_", ""))
            assert kind in versions or kind in listed, name
            found = re.fullmatch(r"openvino\.opset(\d+)\.ops", function.__module__)
            if kind in listed or found is None or name in SAME:
                continue
            assert f"opset{found[1]}" in versions[kind], (name, function.__module__)
            checked += 1
    assert checked > 1000


SAME = {
    "constant": "Constant-1 since the first opset",
    "fake_quantize": "FakeQuantize-1, with another function for it",
    "interpolate": "Interpolate-4, with another function for it in opset10",
    "result": "Result-1, with another function for it",
    "rnn_cell": "RNNCell-1: opset3 was its first one here",
    "scatter_nd_update": "ScatterNDUpdate-3, which opset4 took up",
    "shuffle_channels": "ShuffleChannels-1, which opset3 took up",
}
"""Functions of newer opsets that make an operation of an older version."""
