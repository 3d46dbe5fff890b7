"""Random inputs of small damaged files do not cause hours of work; stated shapes are allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onednn_forms import ZEROS, graph, op, tensor, windows
from support import IR, invoke_script

from deconv_ir.execute import effort

HUGE = 1 << 28


def pool(pads: int = 0, extent: int = 3) -> dict[str, Any]:
    """An AvgPool-1 of two windows of oneDNN Graph, with a `pads_begin` and an extent."""
    x, y = tensor(0, [1, 4, extent, 3]), tensor(1, [1, 4, extent - 1 + pads, 2])
    window = {"strides": [1, 1], "kernel": [2, 2], "pads_begin": [pads, 0], "pads_end": [0, 0]}
    rest = {"exclude_pad": True, "data_format": "NCX", "rounding_type": "floor"}
    return graph(op(0, "AvgPool", [x], [y], **window, **rest))


def product(extent: int) -> dict[str, Any]:
    """A MatMul of two square matrices, which does extent^3 multiply-adds."""
    shape = [extent, extent]
    tensors = [tensor(0, shape), tensor(1, shape)]
    return graph(op(0, "MatMul", tensors, [tensor(2, shape)]))


def upsampling(stride: int) -> dict[str, Any]:
    """A ConvTranspose of oneDNN Graph: the number of its taps repeats with the stride."""
    x, w = tensor(0, [1, 4, 3, 3]), tensor(1, [4, 4, 2, 2])
    y = tensor(2, [1, 4, 2 * stride + 2, 4])
    window = windows([stride, 1], [0, 0], [0, 0], weights_format="IOX", output_padding=ZEROS)
    return graph(op(0, "ConvTranspose", [x, w], [y], **window))


CASES = [
    (pool(pads=HUGE), "layer 'AvgPool0' (AvgPool, id 0): a run would compute 2,147,483,"),
    (pool(extent=HUGE), "random inputs would have 3,221,225,472 elements"),
    (upsampling(stride=1 << 32), "a run would compute 137,438,953,"),
    (product(8000), "random inputs would have 128,000,000 elements, more than 67,108,864"),
    (product(5000), "a run would compute 250,000,000,000 arithmetic operations"),
]


@pytest.mark.parametrize(("document", "words"), CASES)
def test_damaged_graphs(document: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps(document))
    inputs = "--random-inputs", 0
    for more in (
        (path,),
        ("--against", "openvino"),
        ("--bisect", "--command", "{model}{inputs}{outputs}"),
    ):
        done = invoke_script("diff", path, *more, *inputs)
        assert done.exit_code == 2, more
        assert words.split(": ")[-1] in done.stderr
        assert "(--shape, which states the shapes of inputs, runs it anyway)" in done.stderr
        assert done.stderr.count("\n") == 1
    page = tmp_path / "page.html"
    for more in ((), ("--profile",)):
        done = invoke_script("show", path, *inputs, *more, "--output", page, "--force", "-q")
        assert done.exit_code == 0
        assert "warning: the page shows no run: " in done.stderr
        assert words.split(": ")[-1] in done.stderr
    assert '"pictures"' not in page.read_text().partition("</script>")[0]


def test_a_damaged_second_model(tmp_path: Path) -> None:
    for name, pads in (("a", 1), ("b", HUGE)):
        (tmp_path / f"{name}.json").write_text(json.dumps(pool(pads)))
    done = invoke_script("diff", tmp_path / "a.json", tmp_path / "b.json", "--random-inputs", 0)
    assert done.exit_code == 2
    assert f"error: {tmp_path / 'b.json'}:" in done.stderr
    assert "a run would compute" in done.stderr


@pytest.mark.parametrize("bound", ["MOST_DRAWN", "_ELEMENTS", "_OPERATIONS"])
def test_stated_shapes_and_given_arrays_are_not_bounded(
    bound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ir = IR()
    x = ir.parameter("x", "4,5")
    w = ir.const(np.ones((5, 6), np.float32))
    ir.result(ir.layer("MatMul", [x, w], name="product"), "y")
    path = ir.save(tmp_path)
    monkeypatch.setattr(effort, bound, 1 if bound == "MOST_DRAWN" else (1, 1))
    np.save(tmp_path / "x.npy", np.ones((4, 5), np.float32))
    page = tmp_path / "page.html"
    for inputs, runs in (
        (("--random-inputs", 0), False),
        (("--random-inputs", 0, "--shape", "4,5"), True),
        (("--input", tmp_path / "x.npy"), True),
    ):
        assert invoke_script("diff", path, path, *inputs).exit_code == (0 if runs else 2)
        done = invoke_script("show", path, *inputs, "--output", page, "--force", "-q")
        assert (done.exit_code, "shows no run" in done.stderr) == (0, not runs)
    # deconv-run is there for large runs.
    done = invoke_script("run", path, "--random-inputs", 0, "--no-output")
    assert done.exit_code == 0


def test_a_layer_with_too_few_inputs_is_drawn(tmp_path: Path) -> None:
    """Damaged graphs are shown, with their findings."""
    x = tensor(0, [1, 4, 3, 3])
    for kind in ("BiasAdd", "PReLU", "MatMul", "Convolution"):
        path = tmp_path / f"{kind}.json"
        path.write_text(json.dumps(graph(op(0, kind, [x], [tensor(1, [1, 4, 3, 3])]))))
        done = invoke_script(
            "show", path, "--random-inputs", 0, "--output", tmp_path / f"{kind}.html"
        )
        assert done.exit_code == 0, done.exception
