"""deconv-run: inner tensors, the plan, the profile, memory, the list of operations."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import IR, invoke

BLOCK = Path(__file__).parents[3] / "samples" / "block" / "block.xml"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def written() -> list[str]:
    return sorted(p.name for p in Path().iterdir())


def with_unknown(folder: Path) -> Path:
    """x -> tanh -> two layers of one unknown type."""
    ir = IR()
    t = ir.layer("Tanh", [ir.parameter("x", "2,3")], name="t")
    for i in range(2):
        t = ir.layer("Frobnicate", [t], name=f"f{i}", version="opset9", outputs=("2,3",))
    ir.result(t)
    return ir.save(folder)


def test_layers_without_an_implementation(here: Path) -> None:
    path = with_unknown(here)
    # The error comes before the arrays are looked for.
    done = invoke(path, "--input", "none.npy")
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "2 layers that are needed are not implemented" in done.stderr
    assert "Frobnicate (version opset9) x2: 'f0' in line" in done.stderr
    assert "--until" in done.stderr


@pytest.mark.parametrize("option", ["--until", "--output-layer"])
def test_the_part_that_can_run(here: Path, option: str) -> None:
    done = invoke(with_unknown(here), "--random-inputs", "0", option, "t")
    assert done.exit_code == 0, done.stderr
    assert written() == ["t.npy"]
    done = invoke(with_unknown(here), "--random-inputs", "0", option, "f1")
    assert done.exit_code == 2
    assert "'f0'" in done.stderr


def test_inner_tensors_beside_each_other() -> None:
    done = invoke(
        BLOCK, "--random-inputs", "0", "--until", "up/bias", "--output-layer", "x",
        "--output-layer", "up",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert written() == ["deconv-tensors.json", "up.npy", "up_bias.npy", "x.npy"]
    assert invoke(BLOCK, "--input", "x.npy").exit_code == 0
    np.testing.assert_allclose(
        np.load("y.npy"), np.maximum(np.load("up_bias.npy"), 0), rtol=1e-5, atol=1e-6
    )
    expected = invoke(BLOCK, "--input", "x.npy", "--output-layer", "up", "--expect", "up=up.npy")
    assert expected.exit_code == 0, expected.stderr


def test_a_name_that_is_not_there() -> None:
    done = invoke(BLOCK, "--random-inputs", "0", "--until", "upp")
    assert done.exit_code == 2
    assert "there is no tensor or layer 'upp' (did you mean 'up'?)" in done.stderr


def test_a_name_of_several_layers_is_refused(here: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "2,3")
    first = ir.layer("Tanh", [x], name="t")
    ir.result(ir.layer("Abs", [ir.layer("Exp", [first], name="t")], name="y"))
    path = ir.save(here)
    done = invoke(path, "--random-inputs", "0", "--until", "t")
    assert done.exit_code == 2
    assert "2 layers have the name 't' (a layer id names one of them: 1, 2)" in done.stderr
    for number in ("1", "2"):
        assert invoke(path, "--random-inputs", "0", "--until", number).exit_code == 0
    np.testing.assert_allclose(np.load("2.npy"), np.exp(np.load("1.npy")), rtol=1e-5)


def test_explain_plan_without_arrays() -> None:
    done = invoke("--explain-plan", BLOCK)
    assert done.exit_code == 0, done.stderr
    header, row, *_ = done.stdout.splitlines()
    columns = ["step", "layer", "type", "inputs", "outputs", "precision", "how", "size"]
    assert header.split() == columns
    assert "ConvolutionBackpropData" in row
    assert "with up/bias, up/relu" in row
    assert "scratchpad" in row
    assert row.endswith("16 KiB")
    assert "1 step; 2 layers folded into constants, 0 dropped" in done.stdout
    assert written() == []


def test_explain_plan_as_json() -> None:
    report = json.loads(invoke(BLOCK, "--explain-plan", "--json", "--until", "up/bias").stdout)
    (step,) = report["steps"]
    assert (step["layer"], step["fused"], step["bytes"]) == ("up", ["up/bias"], 4 * 4 * 32 * 32)
    assert "scratchpad" in step["algorithm"]
    memory = report["memory"]
    assert memory["lower_bound"] == 4 * 4 * 32 * 32 + memory["constants"]
    assert memory["peak"] == 4 * 4 * 32 * 32 + memory["weights"] + memory["scratch"]
    assert (report["folded"], report["dropped"]) == (2, 1)


@pytest.mark.parametrize(
    "arguments", [["--profile", BLOCK], [BLOCK, "--profile"], [BLOCK, "--profile="]]
)
def test_profile_prints_a_table(arguments: list[object]) -> None:
    done = invoke(*arguments, "--random-inputs", "0", "-q")
    assert done.exit_code == 0, done.stderr
    header, row, total, limits = done.stderr.splitlines()
    columns = ["precision", "ms", "GFLOP", "GFLOP/s", "GB/s", "of", "limit", "share"]
    assert header.split() == ["layer", "type", "output", *columns]
    assert row.split()[:4] == ["up", "ConvolutionBackpropData+Add+ReLU", "f32[1,4,32,32]", "f32"]
    assert row.endswith("100.0%")
    assert total.startswith("all layers")
    assert limits.startswith("limits: ")
    assert written() == ["y.npy"]


def test_profile_as_trace_and_json() -> None:
    arguments = [BLOCK, "--random-inputs", "0", "--profile", "t.json", "--json"]
    done = invoke(*arguments)
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    (row,) = document["profile"]
    assert (row["layer"], row["runs"], row["share"]) == ("up", 1, 1.0)
    assert (row["precision"], row["reason"]) == ("f32", None)
    taps = 2 * (8 * 16 * 16) * 4 * (4 * 4)
    assert row["gflop"] == pytest.approx((taps + 2 * 4 * 32 * 32) / 1e9)
    assert row["gflop_per_second"] == pytest.approx(row["gflop"] / row["seconds"])
    moved = 4 * (8 * 16 * 16 + 8 * 4 * 4 * 4 + 4 * 32 * 32)  # data, filter and output
    assert row["gigabytes_per_second"] == pytest.approx(moved / 1e9 / row["seconds"])
    rates = row["gflop_per_second"] * 1e9, row["gigabytes_per_second"] * 1e9
    limits = document["limits"]["operations"], document["limits"]["bytes"]
    assert row["share_of_limit"] == pytest.approx(
        max(r / x for r, x in zip(rates, limits, strict=True))
    )
    (event,) = json.loads(Path("t.json").read_text())["traceEvents"]
    assert event["dur"] == pytest.approx(row["seconds"] * 1e6)
    again = invoke(*arguments, "--output", "other.npy")
    assert again.exit_code == 2
    assert "t.json already exists (use --force to overwrite)" in again.stderr
    assert written() == ["t.json", "y.npy"]


@pytest.mark.parametrize(
    ("trace", "words"), [("none/t.json", "directory none does not exist"), ("t.txt", "")]
)
def test_traces_that_cannot_be_written(trace: str, words: str) -> None:
    done = invoke(BLOCK, "--random-inputs", "0", "--profile", trace)
    assert done.exit_code == 2
    assert words in done.stderr
    assert written() == []


def test_memory_is_told_and_limited() -> None:
    done = invoke(BLOCK, "--random-inputs", "0")
    assert re.search(
        r"memory peak \S+ .iB \(lower bound 17\.02 KiB, scratch \S+ .iB\), process ", done.stderr
    )
    report = json.loads(invoke(BLOCK, "--random-inputs", "0", "--json", "--force").stdout)
    memory = report["memory"]
    assert memory["lower_bound"] == 16384 + memory["constants"]
    assert memory["peak"] == 16384 + memory["weights"] + memory["scratch"]
    assert memory["scratch"] > 0
    assert memory["process"] > 1 << 20
    done = invoke(BLOCK, "--random-inputs", "0", "--memory-limit", "10KB", "--output", "z.npy")
    assert done.exit_code == 2
    assert "but the limit is" in done.stderr
    assert written() == ["y.npy"]
    wrong = invoke(BLOCK, "--random-inputs", "0", "--memory-limit", "much")
    assert wrong.exit_code == 2
    assert "invalid size 'much' (expected for example 512MiB)" in wrong.stderr


def test_random_inputs_of_a_tebibyte_are_not_made(here: Path) -> None:
    ir = IR()
    ir.result(ir.layer("ReLU", [ir.parameter("x", "1048576,1048576")]))
    done = invoke(ir.save(here), "--random-inputs", "0")
    assert done.exit_code == 2
    assert "the model needs 4 TiB of memory" in done.stderr


def test_list_operations() -> None:
    from deconv_ir.formats.onednn_json.kinds import KINDS
    from deconv_ir.ops import all_operations

    done = invoke("--list-operations")
    assert done.exit_code == 0
    table, _, kinds = done.stdout.partition("\n\n")
    header, *rows = table.splitlines()
    assert header.split() == ["operation", "versions", "element", "types", "attributes"]
    assert len(rows) == len(all_operations())
    (row,) = (r for r in rows if r.startswith("ConvolutionBackpropData"))
    assert "opset1" in row
    for name in ("strides", "dilations", "pads_begin", "pads_end", "auto_pad", "output_padding"):
        assert name in row
    header, *rows = kinds.splitlines()
    assert header.split()[:2] == ["oneDNN", "Graph"]
    assert len(rows) == len(KINDS)
    (row,) = (r for r in rows if r.startswith("ConvTransposeBackwardWeights"))
    assert "weights_format" in row


def test_what_is_not_used_is_not_loaded(here: Path) -> None:
    code = (
        f"import sys; sys.argv = ['deconv-run', '{BLOCK}', '--random-inputs', '1']\n"
        "from deconv_cli.shared.common import run_command\n"
        "from deconv_cli.run.command import command\n"
        "try: run_command(command)\n"
        "except SystemExit as done: assert not done.code\n"
        "unused = {'psutil', 'tabulate', 'json', 'deconv_cli.run.many', 'deconv_cli.run.tables',\n"
        "          'deconv_ir.execute.profile', 'deconv_ir.ir.shape_trace',\n"
        "          'deconv_ir.ops.table', 'deconv_cli.run.compare',\n"
        "          'deconv_cli.run.onednn', 'deconv_cli.run.patterns', 'deconv_cli.run.timing',\n"
        "          'deconv_cli.run.dump', 'deconv_ir.compare', 'deconv_ir.changes.exposed',\n"
        "          'glob', 'locale', 'numpy.typing', 'dataclasses', 'deconv_ir.ir.body',\n"
        "          'deconv_ir.ir.regions', 'deconv_ir.ir.quantization',\n"
        "          'deconv_ir.execute.coded', 'deconv_ir.execute.quantized',\n"
        "          'deconv_ir.execute.variables',\n"
        "          'deconv_ir.ops.opsets', 'deconv_ir.ops.conversions',\n"
        "          'deconv_ir.formats.openvino_xml.version10'}\n"
        "assert not unused & set(sys.modules), unused & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
