"""deconv-run on oneDNN Graph files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onednn_forms import deconvolution, op, save, tensor
from support import invoke

import deconv_ir

SAMPLES = Path(__file__).parents[3] / "samples" / "onednn"


@pytest.mark.parametrize("name", ["upsample", "int8"])
def test_samples_agree_with_their_arrays(name: str) -> None:
    done = invoke(
        SAMPLES / f"{name}.json",
        "--input",
        SAMPLES / f"{name}.npz",
        "--expect",
        SAMPLES / f"{name}_expected.npz",
    )
    assert done.exit_code == 0, done.stderr


def test_samples_are_what_loops_compute() -> None:
    """The arrays beside samples/onednn/upsample.json agree with loops over the definition."""
    given = np.load(SAMPLES / "upsample.npz")
    x, w = given["0"].astype(float), given["1"].astype(float)
    wanted = np.zeros((1, 2, 11, 11))
    for c, i, j, a, b in np.ndindex(3, 5, 5, 3, 3):
        wanted[0, :, 2 * i + a, 2 * j + b] += x[0, c, i, j] * w[c, :, a, b]
    np.testing.assert_allclose(np.load(SAMPLES / "upsample_expected.npz")["2"], wanted, 1e-6)
    given = np.load(SAMPLES / "int8.npz")
    q, v = given["0"].astype(int) - 8, given["2"].astype(int)
    total = np.zeros((1, 2, 8, 8))
    for c, i, j, a, b in np.ndindex(4, 4, 4, 2, 2):
        total[0, :, 2 * i + a, 2 * j + b] += q[0, c, i, j] * v[c, :, a, b]
    total *= 0.5 * np.array([0.25, 0.125]).reshape(2, 1, 1)
    levels = np.clip(np.rint(np.maximum(total, 0) / 2), 0, 255)
    assert np.array_equal(np.load(SAMPLES / "int8_expected.npz")["6"], levels)


def test_outputs_are_logical_and_physical_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The layout is channels last, with a gap behind each row: the bytes follow the strides."""
    monkeypatch.chdir(tmp_path)
    one = op(0, "ReLU", [tensor(0, [2, 3, 2, 2], tag="acdb")], [tensor(1, [2, 3, 2, 2])])
    one["outputs"][0]["stride"] = [20, 1, 7, 3]
    save(tmp_path / "g.json", one)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2)
    np.save("x.npy", x)  # dense, of the logical shape
    assert invoke("g.json", "--input", "x.npy", "--output", "y.npy").exit_code == 0
    assert np.array_equal(np.load("y.npy"), x)
    done = invoke("g.json", "--input", "x.npy", "--physical", "--output", "p.npy")
    assert done.exit_code == 0, done.stderr
    memory = np.load("p.npy")
    assert memory.shape == (20 + 2 + 7 + 3 + 1,)
    for n, c, h, w in np.ndindex(*x.shape):
        assert memory[20 * n + c + 7 * h + 3 * w] == x[n, c, h, w]
    assert memory[6] == 0  # the gap


@pytest.mark.parametrize("stride", [[0], [1, 1], [10**17]])
def test_strides_that_are_no_layout_are_refused(
    stride: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The strides overlap, have another rank, or span more than the memory."""
    monkeypatch.chdir(tmp_path)
    one = op(0, "ReLU", [tensor(0, [3])], [tensor(1, [3])])
    one["outputs"][0]["stride"] = stride
    save(tmp_path / "g.json", one)
    done = invoke("g.json", "--random-inputs", "0", "--physical")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert not list(tmp_path.glob("*.npy"))


def test_overrides_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "g.json", deconvolution([1, 2, 4, 4], [2, 3, 3, 3], [1, 3, 6, 6]))
    done = invoke(
        "g.json",
        "--info",
        "--json",
        "--in-shapes",
        "0:1x2x8x8",
        "--op-attrs",
        "0:strides:2x2*auto_pad:SAME_UPPER",
        "--mb",
        "3",
        "--dt",
        "bf16",
    )
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["outputs"][0]["shape"] == [3, 3, 16, 16]
    assert {port["element_type"] for port in found["inputs"]} == {"bf16"}


def test_alternatives_are_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All combinations are run, as benchdnn does; an empty alternative is the unchanged file."""
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "g.json", deconvolution([1, 2, 4, 4], [2, 3, 3, 3], [1, 3, 6, 6]))
    options = ("--dt", "f32,bf16", "--op-attrs", ",0:strides:2x2")
    done = invoke("g.json", "--info", *options)
    assert done.exit_code == 0, done.stderr
    outputs = [line.split()[2:] for line in done.stdout.splitlines() if line.startswith("output")]
    shapes = ["[1,3,6,6]", "[1,3,9,9]"]
    assert outputs == [*([kind, shape] for shape in shapes for kind in ("f32", "bf16"))]
    done = invoke("g.json", "--info", "--mb", "0,2")
    assert [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("output")] == [
        "[1,3,6,6]",
        "[2,3,6,6]",
    ]
    done = invoke("g.json", "--info", "--mb", "2,x")
    assert (done.exit_code, "mb: expected a batch size, found 'x'" in done.stderr) == (2, True)
    done = invoke("g.json", "--info", "--in-shapes", "0:1x2x5x5, 0:1x2x6x6, 0;1")
    assert (done.exit_code, done.stdout) == (2, ""), "all are read before the first runs"
    assert "expected ID:VALUE, found '0;1'" in done.stderr
    done = invoke("g.json", "--random-inputs", "0", "--no-output", *options)
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("output 2") == 4
    done = invoke("g.json", "--random-inputs", "0", *options)
    assert done.exit_code == 2
    assert "4 alternatives would write to the same files" in done.stderr


def test_conversion_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are converted in both directions, and not overwritten without --force."""
    monkeypatch.chdir(tmp_path)
    done = invoke(SAMPLES / "int8.json", "--save-xml", "m.xml")
    assert done.exit_code == 0, done.stderr
    assert "wrote m.xml and m.bin" in done.stderr
    again = invoke(SAMPLES / "int8.json", "--save-xml", "m.xml")
    assert again.exit_code == 2
    assert "already exists" in again.stderr
    done = invoke(
        "m.xml", "--input", SAMPLES / "int8.npz", "--expect", SAMPLES / "int8_expected.npz"
    )
    assert done.exit_code == 0, done.stderr
    done = invoke(SAMPLES.parent / "block" / "block.xml", "--save-onednn", "g.json")
    assert done.exit_code == 0, done.stderr
    assert deconv_ir.load("g.json").graph.of_type("ConvTranspose")
    done = invoke("m.xml", "--save-onednn", "g.json", "--save-xml", "n.xml")
    assert done.exit_code == 2


def test_a_graph_on_standard_input() -> None:
    done = invoke("-", "--info", stdin=(SAMPLES / "upsample.json").read_bytes())
    assert done.exit_code == 0, done.stderr
    assert "f32     [1,2,11,11]" in done.stdout


def test_an_error_names_file_line_and_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = deconvolution([1, 2, 4, 4], [2, 3, 3, 3], [1, 3, 6, 6], groups=0)
    path = save(tmp_path / "g.json", one)
    done = invoke("g.json", "--info")
    lines = path.read_text().splitlines()
    line = next(i for i, text in enumerate(lines, 1) if '"groups"' in text) + 2  # its value
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: g.json:{line}: layer 'CONVTRANSPOSE_0' (ConvTranspose")
    assert "positive whole number, found '0'" in done.stderr
