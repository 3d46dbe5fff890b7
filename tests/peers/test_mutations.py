"""Mutations of saved IRs, judged by OpenVINO.

OpenVINO loads every network that the linter accepts, with the same shapes. OpenVINO ignores
declared dims: if one is changed, its shapes are those that the linter reports as computed.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from linter.mutations import mutate

from deconv_ir.findings import GraphLocation, Severity
from deconv_ir.formats.openvino_xml.weights import Weights
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import Context
from deconv_ir.ir.shapes import parse_dim
from deconv_ir.linter.engine import FileResult, check_bytes
from deconv_ir.linter.options import choose

from .runtimes import bounds, openvino_bounds, openvino_error, read

pytestmark = pytest.mark.peers

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures/ir").glob("*.xml"))
DECLARED = ("dim", "rank")
"""Kinds of mutations that change declared dims."""
NO_DIM = "IR109"
"""An invalid dim, such as -2: OpenVINO refuses the file."""
KINDS = ("consistent", *DECLARED)
CHUNKS = 4
WANTED = 100

Bounds = list[tuple[int, int | None]] | None
Shapes = dict[str, list[Bounds]]


def computed(result: FileResult, weights: Path) -> Shapes:
    """Return the inferred shapes by name of the layer, without those of Results."""
    assert result.parsed is not None
    graph = result.parsed.graph
    assert graph is not None
    inference = infer(graph, Context(weights=Weights(weights)), collect=True)
    return {
        layer.name: [bounds(info.shape) for info in outputs]
        for layer, outputs in zip(graph.layers, inference.outputs, strict=True)
        if layer.type != "Result"
    }


def computed_by_openvino(model: Any) -> Shapes:
    return {
        node.get_friendly_name(): [openvino_bounds(o.get_partial_shape()) for o in node.outputs()]
        for node in model.get_ops()
        if node.get_type_name() != "Result"
    }


def agree(ours: Bounds, theirs: Bounds) -> bool:
    """Return whether shapes are the same.

    OpenVINO forgets the lower bound when it adds to a dim without an upper bound, where ours may be
    narrower.
    """
    if ours is None or theirs is None:
        return ours == theirs
    return len(ours) == len(theirs) and all(
        a == b or (a[1] is None and b == (0, None)) for a, b in zip(ours, theirs, strict=True)
    )


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_openvino_agrees(chunk: int, tmp_path: Path) -> None:
    choices = random.Random(30_000 + chunk)
    path = tmp_path / "m.xml"
    asked: Counter[str] = Counter()
    for _ in range(10 * WANTED):
        if sum(asked[kind] for kind in KINDS) == WANTED:
            break
        original = choices.choice(FIXTURES)
        mutation = mutate(choices, original.read_text())
        weights = original.with_suffix(".bin")
        result = check_bytes(mutation.text.encode(), original.name, choose(), weights)
        consistent = all(f.severity is not Severity.ERROR for f in result.findings)
        if not consistent and mutation.kind not in DECLARED:
            continue
        asked["consistent" if consistent else mutation.kind] += 1
        told = f"{original.name}:{mutation.line} {mutation.was!r} -> {mutation.now!r}"
        path.write_text(mutation.text)
        path.with_suffix(".bin").write_bytes(weights.read_bytes())
        if any(f.code == NO_DIM for f in result.findings):
            assert openvino_error(lambda: read(path)), told
            continue
        theirs = computed_by_openvino(read(path))
        ours = computed(result, weights)
        assert ours.keys() == theirs.keys(), told
        for name, shapes in ours.items():
            assert all(map(agree, shapes, theirs[name])), (told, name, shapes, theirs[name])
        for layer, port, axis, dim in said_to_be_computed(result):
            asked["named in a finding"] += 1
            shape = theirs[layer][port]
            assert shape is not None, told
            assert agree(bounds((dim,)), [shape[axis]]), (told, layer, shape, axis, dim)
    assert all(asked[kind] > 10 for kind in (*KINDS, "named in a finding")), asked


def said_to_be_computed(result: FileResult) -> list[tuple[str, int, int, Any]]:
    """Return name of the layer, output, axis and computed dim of the findings that name one."""
    assert result.parsed is not None
    graph = result.parsed.graph
    assert graph is not None
    return [
        (
            graph.layers[f.location.layer].name,
            f.location.port,
            f.location.axis,
            parse_dim(str(f.expected)),
        )
        for f in result.findings
        if f.code == "IR401"
        and isinstance(f.location, GraphLocation)
        and f.location.layer is not None
        and f.location.port is not None
        and f.location.axis is not None
    ]
