"""Graphs of every oneDNN Graph kind load, pass the checks, run, and convert or are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onednn_kinds import EVERY_KIND, graph_of

import deconv_ir
from deconv_ir.errors import UnsupportedError
from deconv_ir.formats.onednn_json.kinds import KINDS, UNSUPPORTED, kinds_table
from deconv_ir.formats.onednn_json.to_openvino import lower
from deconv_ir.formats.reading import read_graph
from deconv_ir.limits import DEFAULT_LIMITS
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose

PAGE = Path(__file__).parents[3] / "docs" / "onednn.md"
EXCLUSIVE = {"group_shape", "mask", "scales"}
"""Attributes that exclude others, or that belong to one qtype; other tests cover them."""


def test_the_table_has_every_kind_with_every_attribute() -> None:
    assert EVERY_KIND.keys() == KINDS.keys()
    for row in kinds_table():
        stated = set(EVERY_KIND[row.kind].attributes)
        assert stated <= set(row.attributes)
        assert set(row.attributes) - stated <= EXCLUSIVE, row.kind


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_kind_runs(kind: str) -> None:
    """The declared shapes and types equal the inferred ones and those of the results."""
    data = json.dumps(graph_of(kind)).encode()
    assert not check_bytes(data, "g.json", choose()).findings
    model = deconv_ir.load(data, strict=True)
    given = {
        name: np.full(port.shape or (), bool(port.shape), port.element_type.numpy())
        for name, port in model.inputs.items()
        if port.element_type is not None
    }
    bound = model.bind(given)
    assert str(bound.plan)
    results = bound.run()
    assert len(results) == max(1, len(EVERY_KIND[kind].outputs))
    for name, port in model.outputs.items():
        assert results[name].shape == port.shape


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_the_page_says_what_can_be_an_ir(kind: str) -> None:
    graph = read_graph(json.dumps(graph_of(kind)).encode(), DEFAULT_LIMITS)
    (row,) = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| [{kind}]")]
    if row.endswith("| yes | yes |"):
        assert lower(graph).graph.layers
    else:
        assert row.endswith("| yes | no |")
        with pytest.raises(UnsupportedError, match=f"{kind} has no counterpart"):
            lower(graph)


@pytest.mark.parametrize("kind", [*UNSUPPORTED, "ReduceAMax"])
def test_other_kinds_are_refused_by_name(kind: str) -> None:
    parsed = graph_of("ReLU")
    parsed["graph"][0]["kind"] = kind
    model = deconv_ir.load(json.dumps(parsed).encode())
    with pytest.raises(UnsupportedError, match=f"operation {kind} is not implemented"):
        model.run(np.zeros((1, 4, 3, 3), np.float32))


@pytest.mark.parametrize(
    ("kind", "meant"),
    [
        ("MaxPoolBackprop", r"\(did you mean 'MaxPoolBackward'\?\)"),
        ("ConvolutionBackpropFilters", r"\(run\("),  # not OpenVINO's ConvolutionBackpropData
        ("HSwish", r"\(did you mean 'HardSwish'\?\)"),
    ],
)
def test_the_operation_that_may_be_meant_is_one_of_onednn(kind: str, meant: str) -> None:
    parsed = graph_of("ReLU")
    parsed["graph"][0]["kind"] = kind
    model = deconv_ir.load(json.dumps(parsed).encode())
    with pytest.raises(UnsupportedError, match=f"{kind} is not implemented {meant}"):
        model.run(np.zeros((1, 4, 3, 3), np.float32))


@pytest.mark.parametrize(
    ("kind", "name"), [("Round", "mode"), ("LayerNorm", "output_count"), ("ReLU", "alpha")]
)
def test_attributes_of_other_documents_are_unknown(kind: str, name: str) -> None:
    """Attributes of the opset's operation or of its class are not read."""
    data = json.dumps(graph_of(kind, **{name: "half_away_from_zero"})).encode()
    (found,) = check_bytes(data, "g.json", choose(severity="info")).findings
    assert repr(name) in str(found)
    deconv_ir.load(data, strict=True).infer_shapes()
