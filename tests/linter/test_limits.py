"""Each exceeded limit of a file is reported as IR111, at the line that exceeds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from deconv_ir.limits import Limits
from deconv_ir.linter.engine import check_bytes, check_file
from deconv_ir.linter.options import choose

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
