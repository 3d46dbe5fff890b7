"""Values on a rounding boundary of a quantised network.

FakeQuantize-1 of [0, 3] with 4 levels rounds to whole numbers: 0.5 and 1.5 are boundaries.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onednn_forms import op, save, tensor
from support import IR, invoke_script

import deconv_ir

DATA = np.array([[0.0, 0.5, 1.2, 1.5]], np.float32)


def quantised(
    folder: Path, shift: float, factor: float = 10.0, last: float = 1.0, kind: str = "FakeQuantize"
) -> Path:
    """x + shift -> quantised -> * factor -> * last."""
    folder.mkdir()
    ir = IR()
    x = ir.parameter("x", "1,4")
    moved = ir.layer("Add", [x, ir.const(np.float32([shift]))], outputs=("1,4",), name="moved")
    ends = [ir.const(np.float32([[end]])) for end in (0, 3, 0, 3)]
    made = ir.layer(kind, [moved, *ends], {"levels": "4"}, outputs=("1,4",), name="fq")
    for name, value in (("ten", factor), ("last", last)):
        made = ir.layer(
            "Multiply", [made, ir.const(np.float32([value]))], outputs=("1,4",), name=name
        )
    ir.result(made, "y")
    return ir.save(folder)


def out(found: deconv_ir.ModelDifference) -> list[str]:
    return [tensor.name for tensor in found.tensors if not tensor.within]


@pytest.mark.parametrize(
    ("shift", "levels", "wrong"),
    [
        (1e-6, 0, ["fq", "ten", "last"]),  # 0.5 and 1.5 are rounded up, without the shift to even
        (1e-6, 1, []),
        (0.0, 0, []),
        (2.0, 1, ["moved", "fq", "ten", "last"]),  # up to two levels apart
        (2.0, 2, ["moved"]),
    ],
)
def test_elements_a_level_apart(
    shift: float, levels: int, wrong: list[str], tmp_path: Path
) -> None:
    a, b = quantised(tmp_path / "a", 0.0), quantised(tmp_path / "b", shift)
    found = deconv_ir.diff(a, b, DATA, levels=levels, ignore=["ids", "order", "weights"])
    assert out(found) == wrong
    if (shift, levels) == (1e-6, 1):
        (tensor,) = (tensor for tensor in found.tensors if tensor.name == "fq")
        assert tensor.note == "1 element one level apart"  # 1.5 is rounded to the even 2 anyway


def test_the_report_tells_levels_from_tolerance(tmp_path: Path) -> None:
    a, b = quantised(tmp_path / "a", 0.0), quantised(tmp_path / "b", 1e-6)
    np.save(tmp_path / "x.npy", DATA)
    done = invoke_script(
        "diff", a, b, "--input", tmp_path / "x.npy", "--levels", "1", "--ignore", "weights"
    )
    assert done.exit_code == 0, done.stdout
    assert "'fq' agrees by levels: 1 element one level apart." in done.stdout
    figure = done.stdout.partition("the largest error is ")[2].partition(" of it")[0]
    assert float(figure) < 1e-4, "of the tensors that agree within 0.0001 of the scale"


@pytest.mark.parametrize(
    ("factor", "last", "wrong"), [(10.0, 2.0, ["last"]), (11.0, 1.0, ["ten", "last"])]
)
def test_a_fault_after_such_a_tensor_is_found(
    factor: float, last: float, wrong: list[str], tmp_path: Path
) -> None:
    a, b = quantised(tmp_path / "a", 0.0), quantised(tmp_path / "b", 1e-6, factor, last)
    found = deconv_ir.diff(a, b, DATA, levels=1)
    assert out(found) == wrong
    assert found.culprit is not None
    assert found.culprit.tensor.name == wrong[0]


def graph_file(
    path: Path, dtype: str, dynamic: bool, most: float, zero: int = 0, sign: int = 1
) -> Path:
    """x -> between 0 and sign * `most`, or `most` if sign is 0 -> quantised -> back in f32."""
    x, low, high, y = (tensor(n, [1, 4], t) for n, t in enumerate(("f32", "f32", dtype, "f32")))
    scale, facts = tensor(4, [1]), {"qtype": "per_tensor", "axis": 1}
    fixed = {} if dynamic else {"scales": [1.0], "zps": [zero]}
    kind, inputs = ("DynamicQuantize", [low, scale]) if dynamic else ("Quantize", [low])
    ends = sorted((0.0 if sign else most, (sign or 1) * most))
    clamp = op(0, "Clamp", [x], [low], min=ends[0], max=ends[1])
    back = op(2, "Dequantize", [high], [y], **facts, scales=[1.0], zps=[0])
    return save(path, clamp, op(1, kind, inputs, [high], **facts, **fixed), back)


@pytest.mark.parametrize(
    ("dtype", "dynamic", "boundary", "two_above"),
    [
        ("u8", False, 0.5, 1.6),
        ("s8", True, 0.5, 1.6),
        ("s4", False, 0.5, 1.6),
        ("f8_e4m3", False, 1.0625, 1.2),  # 1, 1.125 and 1.25 follow each other
        ("f8_e5m2", True, 1.125, 1.4),  # 1, 1.25 and 1.5 do
    ],
)
def test_quantize_of_onednn_graph(
    dtype: str, dynamic: bool, boundary: float, two_above: float, tmp_path: Path
) -> None:
    """oneDNN Graph, Quantize: round(src / scale + zp), half to even, so the boundary goes down."""
    data = {"0": np.array([[0.0, 0.25, -1.0, 3.0]], np.float32)}
    data |= {"4": np.ones(1, np.float32)} if dynamic else {}
    a = graph_file(tmp_path / "a.json", dtype, dynamic, boundary)
    for most, levels, wrong in (
        (boundary + 1e-6, 0, ["2", "3"]),
        (boundary + 1e-6, 1, []),
        (two_above, 1, ["1", "2", "3"]),
        (two_above, 2, ["1"]),
    ):
        b = graph_file(tmp_path / "b.json", dtype, dynamic, most)
        assert out(deconv_ir.diff(a, b, data, levels=levels)) == wrong
        if dtype != "u8":
            pair = [
                graph_file(tmp_path / name, dtype, dynamic, end, sign=-1)
                for name, end in (("c.json", boundary), ("d.json", most))
            ]
            below = data | {"0": -data["0"]}
            assert out(deconv_ir.diff(*pair, below, levels=levels)) == wrong
    b = graph_file(tmp_path / "b.json", dtype, dynamic, boundary)
    assert out(deconv_ir.diff(a, b, data)) == []


@pytest.mark.parametrize(
    ("dtype", "least"), [("f8_e4m3", 2.0**-9), ("f8_e5m2", 2.0**-16), ("s8", 1)]
)
def test_levels_on_both_sides_of_zero(dtype: str, least: float, tmp_path: Path) -> None:
    """The smallest numbers below and above zero are two levels apart."""
    a, b = (
        graph_file(tmp_path / f"{end}.json", dtype, False, end, sign=0) for end in (-least, least)
    )
    for levels, wrong in ((1, ["1", "2", "3"]), (2, ["1"])):
        assert out(deconv_ir.diff(a, b, {"0": 0 * DATA}, levels=levels)) == wrong


def test_levels_of_a_command(tmp_path: Path) -> None:
    from support import invoke_script

    a, b = quantised(tmp_path / "a", 0.0), quantised(tmp_path / "b", 1e-6)
    np.save(tmp_path / "x.npy", DATA)
    arguments = ("diff", a, b, "--input", tmp_path / "x.npy", "--ignore", "ids,order,weights")
    assert invoke_script(*arguments).exit_code == 1
    done = invoke_script(*arguments, "--levels", 1)
    assert done.exit_code == 0, done.output
    assert (
        "--levels does not go"
        in invoke_script(
            "diff", a, "--bisect", "--against", "openvino", "--levels", 1, "--random-inputs", 0
        ).output
    )
