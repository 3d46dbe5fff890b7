"""deconv-run: arguments, terminal output, and files written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import IR, deconvolution_ir, invoke

from deconv_ir.arrays.model_inputs import ModelInputs

BLOCK = Path(__file__).parents[3] / "samples" / "block" / "block.xml"
X = np.random.default_rng(0).standard_normal((1, 2, 5, 5)).astype(np.float32)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory with a model and its input."""
    (tmp_path / "model").mkdir()
    deconvolution_ir().save(tmp_path / "model")
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


MODEL = "../model/model.xml"


def files() -> list[str]:
    """Return the names of the files in the working directory."""
    return sorted(os.listdir())  # noqa: PTH208 - names, hidden ones too


def test_default_output_is_a_file_named_after_the_output(here: Path) -> None:
    done = invoke(MODEL, "--input", "../x.npy")
    assert done.exit_code == 0
    assert files() == ["y.npy"]
    assert done.stdout == "y.npy\n"
    assert "input  x  f32[1,2,5,5]" in done.stderr
    assert "output y  f32[1,3,7,7]  min " in done.stderr
    assert np.load("y.npy").shape == (1, 3, 7, 7)


def test_arrays_are_bound_once(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings, runs and the plan in the summary use the same bound arrays."""
    bound = []
    match = ModelInputs.match

    def count(self: ModelInputs, inputs: Any, **options: Any) -> dict[int, Any]:
        bound.append(inputs)
        return match(self, inputs, **options)

    monkeypatch.setattr(ModelInputs, "match", count)
    done = invoke(MODEL, "--input", "../x.npy", "--repeat", "3", "--verbose")
    assert done.exit_code == 0, done.stderr
    assert len(bound) == 1
    assert invoke(MODEL, "--input", "../x.npy", "--force", "--explain-plan").exit_code == 0
    assert len(bound) == 2


def test_nothing_is_overwritten_without_force(here: Path) -> None:
    Path("y.npy").write_text("mine")
    done = invoke(MODEL, "--input", "../x.npy")
    assert done.exit_code == 2
    assert "y.npy already exists (use --force to overwrite)" in done.stderr
    assert Path("y.npy").read_text() == "mine"
    assert invoke(MODEL, "--input", "../x.npy", "--force").exit_code == 0
    assert np.load("y.npy").shape == (1, 3, 7, 7)


@pytest.mark.parametrize(
    ("output", "expected"),
    [("out.npy", "out.npy"), ("new/", "new/y.npy"), ("../work", "../work/y.npy")],
)
def test_output_file_or_directory(here: Path, output: str, expected: str) -> None:
    done = invoke(MODEL, "--input", "../x.npy", "--output", output)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.strip() == expected
    assert np.load(expected).shape == (1, 3, 7, 7)


def test_standard_input_and_output(here: Path) -> None:
    done = invoke(MODEL, "--input", "-", "--output", "-", stdin=Path("../x.npy").read_bytes())
    assert done.exit_code == 0, done.stderr
    invoke(MODEL, "--input", "../x.npy")
    assert done.stdout_bytes == Path("y.npy").read_bytes()


def test_same_bytes_through_a_real_process(here: Path) -> None:
    command = [sys.executable, "-m", "deconv_cli.run.command", MODEL, "--input", "x=../x.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "y.npy\n"), done.stderr
    first = Path("y.npy").read_bytes()
    invoke(MODEL, "--input", "../x.npy", "--force")
    assert Path("y.npy").read_bytes() == first
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_closed_pipe_is_no_traceback(here: Path) -> None:
    shell = f"{sys.executable} -m deconv_cli.run.command {MODEL} --input ../x.npy --output - | true"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.xml", "--random-inputs", "0"], "none.xml: cannot read the model: No such file"),
        ([MODEL], "model.xml: no array for input 'x' f32[1,2,5,5] (use --input NAME=FILE.npy"),
        ([MODEL, "--input", "none.npy"], "none.npy: cannot read the array: No such file"),
        ([MODEL, "--input", "z=../x.npy"], "the model has no 'z'; it has 'x'"),
        ([MODEL, "--input", "../x.npy", "--input", "../x.npy"], "has 1 ('x'), 2 are given"),
        ([MODEL, "--input", "x=../x.npy", "--input", "x=../x.npy"], "'x' is given twice"),
        ([MODEL, "--input", "../x.npy", "--output", "none/y.npy"], "directory none does not exist"),
        ([MODEL, "--input", "../x.npy", "--output", "-", "--json"], "standard output"),
        ([MODEL, "--input", "../x.npy", "--layer", "none"], "there is no layer 'none'"),
        ([MODEL, "--input", "../x.npy", "--weights", "none.bin"], "none.bin: cannot read the w"),
        ([MODEL, "--input", "../model/model.xml"], "model.xml: not a .npy file"),
        ([MODEL, "--input", "../x.npy", "--expect", "q=../x.npy"], "no 'q'; it has 'y'"),
        ([MODEL, "--semantics", "both"], "'both' is not one of 'spec', 'openvino'"),
        ([MODEL, "--threads", "0"], "invalid value for '--threads'"),
        ([], "missing argument 'MODEL'"),
        (["--nonsense"], "no such option"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_and_exit_code_2(
    here: Path, arguments: list[str], words: str
) -> None:
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert files() == []


def test_element_type_that_does_not_fit(here: Path) -> None:
    np.save("x64.npy", X.astype(np.float64))
    done = invoke(MODEL, "--input", "x64.npy")
    assert done.exit_code == 2
    assert "input 'x' takes f32, the array is f64 (--cast converts it)" in done.stderr
    assert invoke(MODEL, "--input", "x64.npy", "--cast").exit_code == 0


def test_wrong_shape_names_both(here: Path) -> None:
    np.save("x.npy", X[:, :, :4])
    done = invoke(MODEL, "--input", "x.npy")
    assert done.exit_code == 2
    assert "input 'x' takes shape [1,2,5,5], the array has [1,2,4,5]" in done.stderr


def test_wrong_declared_dims_warn_and_with_strict_fail(here: Path) -> None:
    deconvolution_ir(declared="1,3,7,8").save(here / "model")
    done = invoke(MODEL, "--input", "../x.npy")
    assert done.exit_code == 0
    assert done.stderr.count("warning: ") == 1
    assert "axis 3: declared 8, computed 7" in done.stderr
    assert "1*(5 - 1) + ((3 - 1)*1 + 1) - 0 - 0 + 0 = 7" in done.stderr
    strict = invoke(MODEL, "--input", "../x.npy", "--strict", "--output", "strict.npy")
    assert strict.exit_code == 2
    assert "declared 8, computed 7" in strict.stderr
    assert files() == ["y.npy"]
    assert invoke(MODEL, "--explain-plan").exit_code == 0
    explained = invoke(MODEL, "--explain-plan", "--strict")
    assert (explained.exit_code, explained.stdout) == (2, "")
    assert explained.stderr == strict.stderr


def test_expect(here: Path) -> None:
    invoke(MODEL, "--input", "../x.npy", "--output", "want.npy")
    same = invoke(MODEL, "--input", "../x.npy", "--expect", "want.npy")
    assert same.exit_code == 0
    assert "y: agrees: largest absolute error 0 at" in same.stderr
    assert files() == ["want.npy"]  # a comparison does not write outputs
    want = np.load("want.npy")
    want[0, 2, 3, 4] += 0.5
    np.save("want.npy", want)
    off = invoke(MODEL, "--input", "../x.npy", "--expect", "y=want.npy", "--output", "y.npy")
    assert off.exit_code == 1
    assert "y: DIFFERS: largest absolute error 0.5 at [0,2,3,4]" in off.stderr
    assert "1 of 147 elements out of tolerance" in off.stderr
    assert files() == ["want.npy", "y.npy"]
    loose = invoke(MODEL, "--input", "../x.npy", "--expect", "want.npy", "--atol", "0.6")
    assert loose.exit_code == 0


def test_json(here: Path) -> None:
    done = invoke(MODEL, "--random-inputs", "3", "--json")
    report = json.loads(done.stdout)
    assert report["inputs"] == [{"name": "x", "shape": [1, 2, 5, 5], "element_type": "f32"}]
    (output,) = report["outputs"]
    assert (output["name"], output["shape"], output["file"]) == ("y", [1, 3, 7, 7], "y.npy")
    y = np.load("y.npy")
    assert output["min"] == pytest.approx(float(y.min()))
    assert output["mean"] == pytest.approx(float(y.mean()), rel=1e-5)
    assert set(report["seconds"]) == {"load", "run"}


def test_random_inputs_are_the_same_each_time(here: Path) -> None:
    for name in ("a.npy", "b.npy"):
        assert invoke(MODEL, "--random-inputs", "3", "--output", name).exit_code == 0
    assert Path("a.npy").read_bytes() == Path("b.npy").read_bytes()
    invoke(MODEL, "--random-inputs", "4", "--output", "c.npy")
    assert Path("a.npy").read_bytes() != Path("c.npy").read_bytes()


def test_quiet_and_verbose(here: Path) -> None:
    quiet = invoke(MODEL, "--random-inputs", "3", "-q")
    assert (quiet.exit_code, quiet.stdout, quiet.stderr) == (0, "", "")
    verbose = invoke(MODEL, "--random-inputs", "3", "-v", "--force")
    assert "BLAS" in verbose.stderr


def test_one_layer_alone(here: Path) -> None:
    np.save("x.npy", np.random.default_rng(1).standard_normal((1, 8, 16, 16)).astype("f4"))
    for layer, given, output in (("up", "x", "u"), ("6", "u", "b"), ("up/relu", "b", "r")):
        done = invoke(
            BLOCK, "--input", f"{given}.npy", "--layer", layer, "--output", f"{output}.npy"
        )
        assert done.exit_code == 0, done.stderr
    done = invoke(BLOCK, "--input", "x.npy", "--expect", "r.npy")
    assert done.exit_code == 0, done.stderr


def test_names_that_are_no_file_names(here: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "3")
    for name in ("../../evil", "a/b", "a:b", "a b"):
        ir.result(ir.layer("ReLU", [x], name=name))
    ir.save(here / "model")
    assert invoke(MODEL, "--random-inputs", "0").exit_code == 0
    arrays = ["_.._evil.npy", "a_b.2.npy", "a_b.3.npy", "a_b.npy"]
    assert files() == [*arrays, "deconv-tensors.json"]


@pytest.mark.parametrize("name", ["bf16", "f8e4m3", "f8e5m2"])
def test_types_that_numpy_lacks_survive_the_file(here: Path, name: str) -> None:
    kinds = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
    dtype = np.dtype(getattr(ml_dtypes, kinds[name]))
    ir = IR()
    x = ir.parameter("x", "4", name)
    ir.result(x)
    ir.save(here / "model")
    values = np.array([1.0, -0.5, np.nan, 96.0]).astype(dtype)
    np.save("x.npy", values.view(f"V{dtype.itemsize}"))
    assert invoke(MODEL, "--input", "x.npy", "--output", "y.npy").exit_code == 0
    found = np.load("y.npy", allow_pickle=False)
    assert found.dtype == np.dtype(f"V{dtype.itemsize}")
    assert found.view(dtype).tobytes() == values.tobytes()


def test_version_and_help() -> None:
    from deconv_ir import __version__

    assert invoke("--version").stdout == f"deconv-run {__version__}\n"
    detailed = invoke("--version", "-v").stdout
    assert "BLAS" in detailed
    assert "kernel" in detailed
    shown = invoke("--help")
    assert shown.exit_code == 0
    for option in ("--input", "--output", "--weights", "--semantics", "--layer", "--strict",
                   "--random-inputs", "--expect", "--rtol", "--atol", "--threads", "--json",
                   "--cast", "--force", "Examples:", "Exit codes:", "bash_source"):  # fmt: skip
        assert option in shown.output


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_need_no_numpy(option: str) -> None:
    code = (
        f"import sys; sys.argv = ['deconv-run', '{option}']\n"
        "from deconv_cli.shared.common import run_command\n"
        "from deconv_cli.run.command import command\n"
        "try: run_command(command)\n"
        "except SystemExit: pass\n"
        "assert 'numpy' not in sys.modules and 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_run_needs_no_scipy(here: Path) -> None:
    code = (
        f"import sys; sys.argv = ['deconv-run', '{MODEL}', '--random-inputs', '1']\n"
        "from deconv_cli.shared.common import run_command\n"
        "from deconv_cli.run.command import command\n"
        "try: run_command(command)\n"
        "except SystemExit as done: assert not done.code\n"
        "assert not {'scipy', 'matplotlib', 'ml_dtypes', 'threadpoolctl'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("DECONV_IR_KERNEL", "nonsense", "DECONV_IR_KERNEL: unknown algorithm 'nonsense'"),
        ("DECONV_IR_ISA", "mmx", "DECONV_IR_ISA is 'mmx'; available here"),
    ],
)
def test_settings_that_are_not_there(
    here: Path, name: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.delenv("DECONV_IR_KERNEL" if name == "DECONV_IR_ISA" else "DECONV_IR_ISA", False)
    for arguments in ([MODEL, "--random-inputs", "0"], ["--version", "-v"]):
        done = invoke(*arguments)
        if "mmx" in value and done.exit_code == 0:
            assert "compiled kernel for none" in invoke("--version", "-v").stdout
            continue
        assert done.exit_code == 2
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_version_says_that_numpy_computes(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extension = here / "kernels" / f"_compiled{EXTENSION_SUFFIXES[-1]}"
    extension.parent.mkdir()
    monkeypatch.setattr("deconv_ir.__file__", str(here / "__init__.py"))
    version, note = invoke("--version").stdout.splitlines()
    assert version.startswith("deconv-run ")
    assert note.startswith(
        "no compiled kernel in this installation: layers are computed with NumPy"
    )
    extension.touch()
    assert len(invoke("--version").stdout.splitlines()) == 1


def test_cast_refuses_what_does_not_fit(here: Path) -> None:
    np.save("x64.npy", X.astype(np.float64))
    assert invoke(MODEL, "--cast", "--input", "x64.npy", "--output", "y.npy").exit_code == 0
    large = X.astype(np.float64)
    large[0, 1, 2, 3] = 1e39
    np.save("x64.npy", large)
    done = invoke("--cast", MODEL, "--input", "x64.npy", "--output", "z.npy")
    assert done.exit_code == 2
    assert done.stderr == (
        f"error: {MODEL}: input 'x': element [0,1,2,3] is 1e+39, which does not fit f32 "
        "(--cast=wrap converts it all the same)\n"
    )
    assert not Path("z.npy").exists()
    done = invoke(MODEL, "--cast=wrap", "--input", "x64.npy", "--output", "z.npy")
    assert done.exit_code == 0, done.stderr
    assert np.isinf(np.load("z.npy")).any()
    done = invoke(MODEL, "--cast=warp", "--input", "x64.npy")
    assert done.exit_code == 2
    assert "'warp' is not 'wrap'" in done.stderr
