"""Each exceeded limit of a file is reported as IR111, at the line that exceeds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import IR

from deconv_ir.ir import infer
from deconv_ir.limits import Limits
from deconv_ir.linter import probing
from deconv_ir.linter.engine import check_bytes, check_file
from deconv_ir.linter.options import choose

from .drawn import declared

NET = (
    b'<net name="n" version="11">\n<layers>\n'
    b'<layer id="0" name="x" type="Parameter" version="opset1">\n'
    b'<data shape="1,2,3" element_type="f32"/>\n'
    b'<output><port id="0" precision="FP32"><dim>1</dim><dim>2</dim><dim>3</dim></port></output>\n'
    b"</layer>\n"
    b'<layer id="1" name="y" type="Result" version="opset1">\n'
    b'<input><port id="0" precision="FP32"><dim>1</dim><dim>2</dim><dim>3</dim></port></input>\n'
    b"</layer>\n"
    b'</layers>\n<edges>\n<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>\n'
    b"</edges>\n</net>\n"
)
BROKEN = NET.replace(b'<edge from-layer="0"', b'<edge from-layer="zero"')
OPTIONS = choose()


@pytest.mark.parametrize(
    ("net", "enough", "too_few", "line", "message"),
    [
        (
            NET,
            {"xml_bytes": len(NET)},
            {"xml_bytes": len(NET) - 1},
            1,
            f"the file has {len(NET)} bytes, more than the limit of {len(NET) - 1}",
        ),
        (
            NET,
            {"tags": NET.count(b"<")},
            {"tags": 10},
            1,
            f"the file has {NET.count(b'<')} tags, more than the limit of 10",
        ),
        (NET, {"layers": 2}, {"layers": 1}, 7, "the network has more layers than the limit of 1"),
        (NET, {"rank": 3}, {"rank": 2}, 5, "the port has 3 dims, more than the limit of 2"),
        (
            BROKEN,
            {"problems": 2},
            {"problems": 1},
            12,
            "there are 1 mistakes up to here; the rest is not read",
        ),
    ],
    ids=["xml_bytes", "tags", "layers", "rank", "problems"],
)
def test_limit(
    net: bytes,
    enough: dict[str, int],
    too_few: dict[str, int],
    line: int,
    message: str,
    tmp_path: Path,
) -> None:
    within = check_bytes(net, "m.xml", OPTIONS, limits=Limits(**enough)).findings
    assert [f.code for f in within if f.code == "IR111"] == []
    found = check_bytes(net, "m.xml", OPTIONS, limits=Limits(**too_few)).findings
    assert next((f.line, f.message) for f in found if f.code == "IR111") == (line, message)
    path = tmp_path / "m.xml"
    path.write_bytes(net)
    of_file = check_file(path, OPTIONS, limits=Limits(**too_few)).findings
    assert [(f.code, f.line, f.message) for f in of_file] == [
        (f.code, f.line, f.message) for f in found
    ]


@pytest.mark.parametrize(("activations", "found"), [(30, ["IR417"]), (150, [])])
def test_few_sizes_are_tried_where_bodies_are_large(
    activations: int, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An Add in both branches fits at no size: extents 2x and 1, without broadcasting."""
    tried = 0

    def infer_layer(*arguments: Any) -> Any:
        nonlocal tried
        tried += 1
        return infer.infer_layer(*arguments)

    monkeypatch.setattr(probing, "infer_layer", infer_layer)
    ir = IR()
    x = ir.parameter("x", "1,2,?,8")
    condition = ir.parameter("condition", "", "boolean")
    maps, bodies = "", ""
    for name in ("then", "else"):
        inner = ir.body()
        begin = at = inner.parameter("x", "1,2,?,8")
        for _ in range(activations):
            at = inner.layer("ReLU", [at])
        at = inner.layer("Concat", [at, at], {"axis": "2"})
        one = inner.const(np.ones((1, 2, 1, 8), np.float32))
        end = inner.result(inner.layer("Add", [at, one], {"auto_broadcast": "none"}))
        maps += (
            f'<{name}_port_map><input external_port_id="1" internal_layer_id="{begin[0]}"/>'
            f'<output external_port_id="2" internal_layer_id="{end[0]}"/></{name}_port_map>\n'
        )
        bodies += f"<{name}_body>\n{inner.sections()}</{name}_body>\n"
    ir.result(ir.layer("If", [condition, x], version="opset8", bodies=maps + bodies))
    (tmp_path / "m.bin").write_bytes(bytes(ir.weights))
    result = check_bytes(declared(ir).encode(), "m.xml", choose(), tmp_path / "m.bin")
    assert [finding.code for finding in result.findings] == found
    assert tried <= 3 * len(probing.PLAUSIBLE) * len(found)


@pytest.mark.parametrize(("layers", "found"), [(1, 1), (40, 40), (1000, 0)])
def test_the_sizes_of_all_layers_are_bounded(
    layers: int, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An Add fits at no size: extents 2x and 1, without broadcasting."""
    tried = 0

    def infer_layer(*arguments: Any) -> Any:
        nonlocal tried
        tried += 1
        return infer.infer_layer(*arguments)

    monkeypatch.setattr(probing, "infer_layer", infer_layer)
    ir = IR()
    x = ir.parameter("x", "1,2,?,8")
    one = ir.parameter("one", "1,2,1,8")
    twice = ir.layer("Concat", [x, x], {"axis": "2"})
    for _ in range(layers):
        ir.result(ir.layer("Add", [twice, one], {"auto_broadcast": "none"}))
    result = check_bytes(declared(ir).encode(), "m.xml", choose())
    assert [finding.code for finding in result.findings].count("IR417") == found
    assert tried <= len(probing.PATTERNS) * probing.MAX_WORK
