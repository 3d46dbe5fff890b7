"""deconv-run on one array per input: files of several arrays, shapes, times, and no output."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from deconv_cli.run.profiles import RunProfiles
from deconv_cli.run.tables import profile_rows
from deconv_cli.run.timing import latency, repeat_run
from support import IR, invoke

import deconv_ir
from deconv_ir import LayerTime
from deconv_ir.execute.machine_limits import MachineLimits

MODEL = "model.xml"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a model of two inputs, of a dynamic height, and two outputs."""
    ir = IR()
    a, b = ir.parameter("a", "?,3"), ir.parameter("b", "1,3", "f32")
    ir.result(ir.layer("Add", [a, b], name="sum", names="sum"))
    ir.result(ir.layer("Multiply", [a, b], name="product", names="product"))
    ir.save(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.array([[1, 10, 100]], np.float32)


def files() -> list[str]:
    """Names of the files beside the model."""
    return sorted(set(os.listdir()) - {"model.xml", "model.bin"})  # noqa: PTH208 - names


def test_npz_in_and_out(here: Path) -> None:
    np.savez("in.npz", b=B, a=A)
    done = invoke(MODEL, "--input", "in.npz", "--output", "out.npz")
    assert (done.exit_code, done.stdout) == (0, "out.npz\n"), done.stderr
    with np.load("out.npz") as out:
        assert list(out) == ["sum", "product"]
        assert np.array_equal(out["sum"], A + B)
        assert np.array_equal(out["product"], A * B)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_as_reference(here: Path, save: object) -> None:
    np.savez("in.npz", a=A, b=B)
    save("want.npz", product=A * B, sum=A + B)  # type: ignore[operator]
    assert invoke(MODEL, "--input", "in.npz", "--expect", "want.npz").exit_code == 0
    save("want.npz", sum=A + B + 1)  # type: ignore[operator]
    done = invoke(MODEL, "--input", "in.npz", "--expect", "want.npz")
    assert done.exit_code == 1
    assert "sum: DIFFERS: largest absolute error 1 at" in done.stderr
    assert files() == ["in.npz", "want.npz"]


def test_one_array_of_a_npz(here: Path) -> None:
    """The array is chosen by the input's name, or because the file has only one."""
    np.savez("many.npz", a=A, other=A)
    np.savez("one.npz", B)
    np.savez("want.npz", A + B)
    arguments = ["--input", "a=many.npz", "--input", "b=one.npz", "--expect", "sum=want.npz"]
    assert invoke(MODEL, *arguments).exit_code == 0
    arguments = ["--input", "a=many.npz", "--input", "one.npz", "--expect", "want.npz"]
    assert invoke(MODEL, *arguments).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--input", "in.npz"], "--input in.npz: the model has no 'c'; it has 'a', 'b'"),
        (["--input", "b=in.npz"], "in.npz: no array 'b' in the file; it has 'a', 'c'"),
        (["--input", "a=in.npz", "--input", "in.npz"], "--input 'a' is given twice"),
        (["--input", "none.npz"], "none.npz: cannot read the arrays: No such file"),
        (["--input", "a=text.npz"], "text.npz: not a valid .npz file: File is not a zip file"),
        (["--input", "a=cut.npz"], "cut.npz: not a valid .npz file"),
        (["--input", "a=objects.npz"], "Python objects"),
        (["--input", "a=flipped.npz"], "flipped.npz: not a valid .npz file: Bad CRC-32"),
        (["--input", "a=short.npz"], "short.npz, array 'a.npy': truncated"),
        (["--input", "a=lzma.npz"], "lzma.npz: not a valid .npz file: "),
    ],
)
def test_npz_files_that_do_not_fit(here: Path, arguments: list[str], words: str) -> None:
    np.savez("in.npz", a=A, c=A)
    Path("text.npz").write_text("no zip file")
    Path("cut.npz").write_bytes(Path("in.npz").read_bytes()[:200])
    np.savez("objects.npz", a=np.array([{}], object))
    flipped = bytearray(Path("in.npz").read_bytes())
    flipped[flipped.index(A.tobytes())] ^= 1
    Path("flipped.npz").write_bytes(flipped)
    np.save("a.npy", A)
    with zipfile.ZipFile("short.npz", "w") as archive:
        archive.writestr("a.npy", Path("a.npy").read_bytes()[:-4])
    with zipfile.ZipFile("lzma.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.npy", Path("a.npy").read_bytes())
    damaged = bytearray(Path("lzma.npz").read_bytes())
    begin = damaged.index(b"a.npy") + len("a.npy") + 9  # behind the properties of the stream
    damaged[begin : begin + 8] = b"\xff" * 8
    Path("lzma.npz").write_bytes(damaged)
    before = files()
    done = invoke(MODEL, *arguments, "--random-inputs", "0", "--shape", "a=2,3")
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert files() == before


def test_bf16_in_a_npz_is_stored_as_in_a_npy(here: Path) -> None:
    ir = IR()
    ir.result(ir.parameter("x", "3", "bf16"))
    ir.save(here)
    values = np.array([1, -0.5, 96], ml_dtypes.bfloat16)
    np.savez("x.npz", x=values.view("V2"))
    assert invoke(MODEL, "--input", "x.npz", "--output", "y.npz").exit_code == 0
    with np.load("y.npz") as out:
        (stored,) = out.values()
    assert stored.dtype == np.dtype("V2")
    assert stored.view(ml_dtypes.bfloat16).tolist() == values.tolist()


def test_the_same_arrays_make_the_same_npz(here: Path) -> None:
    for name in ("1.npz", "2.npz"):
        invoke(MODEL, "--random-inputs", "0", "--shape", "a=2,3", "--output", name)
    assert Path("1.npz").read_bytes() == Path("2.npz").read_bytes()


@pytest.mark.parametrize(("where", "stored"), [("in.npz", ["in.npz"]), ("in/", ["in"])])
def test_saved_inputs_give_the_same_outputs(here: Path, where: str, stored: list[str]) -> None:
    arguments = [MODEL, "--random-inputs", "3", "--shape", "a=2,3"]
    done = invoke(*arguments, "--save-inputs", where, "--output", "out.npz", "--json")
    assert done.exit_code == 0, done.stderr
    assert files() == [*stored, "out.npz"]
    if where == "in.npz":
        given = ["--input", "in.npz"]
        assert json.loads(done.stdout)["inputs"][0]["file"] == "in.npz"
    else:
        assert sorted(os.listdir("in")) == ["a.npy", "b.npy"]  # noqa: PTH208 - names
        given = ["--input", "in/a.npy", "--input", "in/b.npy"]
    assert invoke(MODEL, *given, "--expect", "out.npz", "--rtol", "0", "--atol", "0").exit_code == 0
    again = invoke(*arguments, "--save-inputs", where, "--no-output")
    assert again.exit_code == 2
    assert "already exists (use --force to overwrite)" in again.stderr
    assert invoke(*arguments, "--save-inputs", where, "--no-output", "--force").exit_code == 0


def test_inputs_and_outputs_cannot_be_one_file(here: Path) -> None:
    arguments = ["--random-inputs", "0", "--shape", "a=2,3", "--force"]
    done = invoke(MODEL, *arguments, "--save-inputs", "x.npz", "--output", "./x.npz")
    assert done.exit_code == 2
    assert "--save-inputs x.npz is also written by --output (choose another name)" in done.stderr
    assert files() == []


@pytest.mark.parametrize("option", [("--no-output",), ("--output", "/dev/null")])
def test_no_output(here: Path, option: tuple[str, ...]) -> None:
    done = invoke(MODEL, "--random-inputs", "0", "--shape", "a=2,3", *option)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "output sum  f32[2,3]  min " in done.stderr
    assert files() == []


@pytest.mark.parametrize("seed", [(), ("0",), ("7",)])
def test_random_inputs_without_a_seed_are_those_of_seed_0(
    here: Path, seed: tuple[str, ...]
) -> None:
    arrays = []
    for number in (("0",), seed):
        done = invoke(MODEL, "--random-inputs", *number, "--shape", "a=2,3",
                      "--save-inputs", "in.npz", "--force", "--no-output")  # fmt: skip
        assert done.exit_code == 0, done.stderr
        arrays.append(np.load("in.npz")["a"])
    assert np.array_equal(*arrays) == (seed != ("7",))


def test_shape_of_random_inputs(here: Path) -> None:
    done = invoke(MODEL, "--random-inputs", "0", "--shape", "a=4,3", "--no-output")
    assert done.exit_code == 0
    assert "input  a  f32[4,3]" in done.stderr
    assert "output sum  f32[4,3]" in done.stderr
    assert "warning" not in done.stderr


def test_dims_that_nobody_gives_are_reported(here: Path) -> None:
    done = invoke(MODEL, "--random-inputs", "0", "--no-output")
    assert done.exit_code == 0
    assert (
        "warning: input 'a' [?,3]: a random array of [1,3], which fits all layers "
        "(use --shape a=... to choose)\n" in done.stderr
    )
    assert done.stderr.count("warning") == 1


def test_shape_without_a_name_is_that_of_the_only_input(here: Path) -> None:
    ir = IR()
    ir.result(ir.layer("ReLU", [ir.parameter("x=y", "...")]))
    ir.save(here)
    done = invoke(MODEL, "--random-inputs", "0", "--no-output")
    assert done.exit_code == 2
    assert "input 'x=y' has a dynamic rank" in done.stderr
    for shape in ("2,0,5", "x=y=2,0,5", "[2, 0, 5]"):
        done = invoke(MODEL, "--random-inputs", "0", "--no-output", "--shape", shape)
        assert "input  x=y  f32[2,0,5]" in done.stderr


def test_shape_in_plans(here: Path) -> None:
    """2 x 3 elements of f32 are 24 bytes."""
    unknown = invoke(MODEL, "--explain-plan")
    assert "f32[?,3]" in unknown.stdout
    for given in (["--shape", "a=2,3"], ["--input", "a=a.npy"]):
        np.save("a.npy", A)
        known = invoke(MODEL, "--explain-plan", "--json", *given)
        steps = json.loads(known.stdout)["steps"]
        assert [step["bytes"] for step in steps] == [24, 24]
    drawn = invoke(MODEL, "--explain-plan", "--random-inputs", "0")
    assert "f32[1,3]" in drawn.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--shape", "a=2,4"], "shapes [2,4] and [1,3] do not fit"),
        (["--shape", "a=x"], "--shape a=x: invalid dim 'x'"),
        (["--shape", "q=2,3"], "--shape q=2,3: the model has no input 'q'; it has 'a', 'b'"),
        (["--shape", "2,3"], "--shape 2,3: which input? The model has 'a', 'b' (use NAME=SHAPE)"),
        (["--shape", "a=2,3", "--shape", "a=2,3"], "--shape 'a' is given twice"),
        (
            ["--shape", "a=5,3", "--input", "a=a.npy"],
            "a.npy: --shape gives input 'a' the shape [5,3], the array has [2,3]",
        ),
        (["--warmup", "2"], "--warmup requires --repeat N or --seconds S"),
        (["--seconds", "0"], "invalid value for '--seconds'"),
        (["--repeat", "0"], "invalid value for '--repeat'"),
        (["--output", "x.npz"], "--output and --no-output cannot be combined"),
        (["--save-inputs", "x.npy"], "--save-inputs x.npy is one array, there are 2"),
        (["--save-inputs", "-"], "--save-inputs - writes one array, there are 2"),
        (["--info", "--until", "sum"], "--until cannot be combined with --info"),
        (["--info", "--output-layer", "sum"], "--output-layer cannot be combined with --info"),
        (["--resume"], "--resume requires many input files"),
    ],
)
def test_options_that_contradict_each_other(here: Path, arguments: list[str], words: str) -> None:
    np.save("a.npy", A)
    done = invoke(MODEL, "--random-inputs", "0", "--no-output", *arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert files() == ["a.npy"]


def test_info(here: Path) -> None:
    done = invoke(MODEL, "--info")
    assert done.exit_code == 0
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows == [
        ["name", "type", "shape", "sizes"],
        ["input", "a", "f32", "[?,3]", "[N,3]"],
        ["input", "b", "f32", "[1,3]", "[1,3]"],
        ["output", "sum", "f32", "[?,3]", "[N,3]"],
        ["output", "product", "f32", "[?,3]", "[N,3]"],
        [],
        ["net:", "6", "layers"],
    ]
    found = json.loads(invoke(MODEL, "--info", "--json", "--shape", "a=5,3").stdout)
    assert found == {
        "model": "model.xml",
        "name": "net",
        "layers": 6,
        "inputs": [
            {"name": "a", "element_type": "f32", "shape": [5, 3], "sizes": [5, 3]},
            {"name": "b", "element_type": "f32", "shape": [1, 3], "sizes": [1, 3]},
        ],
        "outputs": [
            {"name": "sum", "element_type": "f32", "shape": [5, 3], "sizes": [5, 3]},
            {"name": "product", "element_type": "f32", "shape": [5, 3], "sizes": [5, 3]},
        ],
        "conditions": [],
    }
    unknown = json.loads(invoke(MODEL, "--info", "--json").stdout)
    assert unknown["inputs"][0]["shape"] == ["?", 3]
    assert unknown["outputs"][1]["sizes"] == ["N", 3]
    assert invoke(MODEL, "--info", "--shape", "a=5,3").stdout.split()[:3] == [
        "name",
        "type",
        "shape",
    ]


def test_info_of_a_layer_and_of_one_that_cannot_be_run(here: Path) -> None:
    rows = [row.split() for row in invoke(MODEL, "--layer", "sum", "--info").stdout.splitlines()]
    assert rows[1:4] == [
        [k, n, "f32", "[...]", "[...]"]
        for k, n in zip(("input", "input", "output"), ("a", "b", "sum"), strict=True)
    ]
    ir = IR()
    ir.result(ir.layer("Tahn", [ir.parameter("x", "2,..3", "f16")], outputs=("2,?",)))
    ir.save(here)
    done = invoke(MODEL, "--info")
    assert done.exit_code == 0, done.stderr
    hint = "operation Tahn (version opset1) is not implemented (did you mean 'Tanh'?)"
    assert done.stderr.startswith("warning: model.xml:")
    assert hint in done.stderr
    planned = invoke(MODEL, "--explain-plan")
    assert (planned.exit_code, hint in planned.stderr) == (2, True)
    assert done.stdout.splitlines()[1].split() == ["input", "x", "f16", "[2,0..3]", "[2,L]"]


def test_a_missing_input_is_described(here: Path) -> None:
    done = invoke(MODEL, "--input", "b=b.npy")
    assert done.stderr == (
        "error: model.xml: no array for input 'a' f32[?,3] "
        "(use --input NAME=FILE.npy, or --random-inputs SEED)\n"
    )


def test_latency_of_known_times() -> None:
    """Of 1 .. 10 ms: percentiles 5.5, 9.1 and 9.91 (as numpy.percentile), 10 runs in 55 ms."""
    seconds = [n / 1000 for n in (3, 1, 2, 10, 9, 8, 4, 5, 6, 7)]
    found = latency(seconds, 2, 0.5)
    assert found._asdict() == pytest.approx(
        {
            "warmup": 2,
            "repeat": 10,
            "cold": 0.5,
            "p50": 5.5e-3,
            "p90": 9.1e-3,
            "p99": 9.91e-3,
            "mean": 5.5e-3,
            "min": 1e-3,
            "max": 10e-3,
            "throughput": 10 / 0.055,
        }
    )
    assert [found.p50, found.p90, found.p99] == pytest.approx(np.percentile(seconds, [50, 90, 99]))
    assert str(found) == (
        "p50 5.500 ms, p90 9.100 ms, p99 9.910 ms, mean 5.500 ms, min 1.000 ms, max 10.000 ms, "
        "throughput 181.8 runs/s (10 runs; the first of all took 500.000 ms)"
    )
    assert "(1 run;" in str(latency([0.25], 0, 0.25))


@pytest.mark.parametrize(
    ("warmup", "repeat", "at_least", "counts", "cold"),
    [
        (2, 3, None, 3, 9.0),
        (0, 3, None, 3, 9.0),
        (2, None, 6.0, 3, 9.0),  # 1 + 2 + 3 seconds
        (2, None, 5.5, 3, 9.0),
        (2, 2, 6.0, 2, 9.0),
        (2, 9, 6.0, 3, 9.0),
        (0, None, 0.1, 1, 9.0),
        (1, None, 8.0, 1, 9.0),
    ],
)
def test_repeated_runs(
    warmup: int, repeat: int | None, at_least: float | None, counts: int, cold: float
) -> None:
    """By the clock, the first run takes 9 seconds, a second one 8, and the rest 1, 2, 3, ..."""
    durations = [9.0, 8.0, 1.0, 2.0, 3.0, 4.0] if warmup != 0 else [9.0, 1.0, 2.0, 3.0, 4.0]
    times = iter([0.0] + [t for d in durations for t in (d, 0.0)])
    done: list[bool] = []
    told: list[tuple[int, float]] = []

    def run(counted: bool) -> int:
        done.append(counted)
        return len(done)

    results, found, seconds = repeat_run(
        run, warmup, repeat, at_least, lambda: next(times), lambda *how: told.append(how)
    )
    assert done == [False] * warmup + [True] * counts
    assert results == warmup + counts
    assert seconds == durations[warmup : warmup + counts]
    assert (found.warmup, found.repeat, found.cold) == (warmup, counts, cold)
    assert [number for number, _ in told] == list(range(1, counts))
    assert [spent for _, spent in told] == [sum(seconds[:k]) for k in range(1, counts)]


def test_repeat(here: Path) -> None:
    arguments = [MODEL, "--random-inputs", "0", "--shape", "a=2,3"]
    done = invoke(*arguments, "--repeat", "7", "--warmup", "3", "--no-output", "--profile")
    assert done.exit_code == 0, done.stderr
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("runs"))
    for word in ("p50", "p90", "p99", "throughput", "(7 runs; the first of all took"):
        assert word in line
    # Of several runs, the profile has the median and the least time of each layer, and says so.
    assert "median ms" in done.stderr
    assert "least ms" in done.stderr
    assert (
        "median and least time of each layer in 7 runs; cold: its time in the first run of all, "
        "which is a warm-up run and not among them"
    ) in done.stderr
    header = next(line for line in done.stderr.splitlines() if "median ms" in line)
    rows = done.stderr.split(header)[1].splitlines()[1:4]
    at = header.index("cold ms") + len("cold ms")
    assert all(float(row[:at].split()[-1]) > 0 for row in rows)  # two layers, and all layers
    done = invoke(*arguments, "--repeat", "7", "--json", "--profile", "--output", "out.npz")
    report = json.loads(done.stdout)
    assert (report["latency"]["repeat"], report["latency"]["warmup"]) == (7, 1)
    # The warm-up is not in the profile either.
    assert [row["runs"] for row in report["profile"]] == [7, 7]
    for row in report["profile"]:
        assert 0 < row["least_seconds"] <= row["median_seconds"] <= row["seconds"]
        assert row["cold_seconds"] > 0
    once = invoke(*arguments, "--expect", "out.npz", "--rtol", "0", "--atol", "0", "--json")
    assert once.exit_code == 0
    assert json.loads(once.stdout)["latency"] is None
    once = invoke(*arguments, "--no-output", "--profile")
    assert "median" not in once.stderr
    seconds = invoke(*arguments, "--seconds", "0.001", "--no-output", "--json")
    assert json.loads(seconds.stdout)["latency"]["repeat"] >= 1


@pytest.mark.parametrize(
    ("warmup", "counts", "cold"),
    [([9.0], False, 9.0), ([9.0, 7.0], False, 9.0), ([], True, 3.0)],  # without a warm-up: run 0
)
def test_times_of_layers_in_several_runs(warmup: list[float], counts: bool, cold: float) -> None:
    """Two parts of a layer in each of three runs: sums 3, 4 and 8 seconds."""
    profiles = RunProfiles()

    def add(seconds: float, counted: bool) -> None:
        profile = profiles.of_run(counted)
        if profile is not None:
            row = LayerTime("a", "ReLU", "f32[1]", 0.0, seconds, 10, run=profile.start())
            profile._rows += [row._replace(seconds=seconds - 1.0), row._replace(seconds=1.0)]

    for seconds in warmup:
        add(seconds, counted=False)
    for seconds in (3.0, 4.0, 8.0):
        add(seconds, counted=True)
    (row,) = profile_rows(profiles, MachineLimits(1e9, 1e9))
    assert (row["median_seconds"], row["least_seconds"], row["seconds"]) == (4.0, 3.0, 15.0)
    assert (row["cold_seconds"], profiles.cold_counts) == (cold, counts)
    assert row["runs"] == 6


def test_layers_are_listed(here: Path) -> None:
    done = invoke(MODEL, "--info", "-v")
    assert done.exit_code == 0, done.stderr
    model = deconv_ir.load(MODEL, warn=False)
    lines = [line.split() for line in done.stdout.splitlines()]
    for layer in model.graph.layers:
        assert any(line[:3] == [str(layer.id), layer.name, layer.type] for line in lines)
    report = json.loads(invoke(MODEL, "--info", "-v", "--json", "--shape", "a=2,3").stdout)
    (found,) = (row for row in report["layers"] if row["name"] == "a")
    assert found["outputs"] == ["f32[2,3]"]


def test_arrays_are_not_written_to_a_terminal(here: Path) -> None:
    command = [sys.executable, "-m", "deconv_cli.run.command", MODEL, "--random-inputs", "0"]
    command += ["--shape", "a=2,3", "--until", "sum", "--output", "-"]
    terminal, end = pty.openpty()
    done = subprocess.run(command, stdout=end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(end)
    os.close(terminal)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --output - writes binary data")
    piped = subprocess.run(command, capture_output=True, check=True)
    assert piped.stdout.startswith(b"\x93NUMPY")


def test_a_model_on_standard_input(here: Path) -> None:
    xml = Path(MODEL).read_bytes()
    arguments = ["--random-inputs", "0", "--shape", "a=2,3"]
    invoke(MODEL, *arguments, "--output", "out.npz")
    done = invoke("-", *arguments, "--expect", "out.npz", "--json", stdin=xml)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["model"] == "<stdin>"
    assert "sum: agrees" in invoke("-", *arguments, "--expect", "out.npz", stdin=xml).stderr


def test_a_model_on_standard_input_has_weights_by_their_option(here: Path) -> None:
    """The result is 2 + 0.5."""
    ir = IR()
    ir.result(ir.layer("Add", [ir.parameter("x", "1"), ir.const(np.array([0.5], np.float32))]))
    xml = ir.save(here).read_bytes()
    np.save("x.npy", np.array([2], np.float32))
    done = invoke("-", "--input", "x.npy", "--output", "y.npy", stdin=xml)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: <stdin>:")
    assert "the model has 1 constants, but no weights (--weights FILE" in done.stderr
    done = invoke("-", "--weights", "model.bin", "--input", "x.npy", "--output", "y.npy", stdin=xml)
    assert done.exit_code == 0, done.stderr
    assert np.load("y.npy").tolist() == [2.5]


@pytest.mark.parametrize(
    ("xml", "arguments", "words"),
    [
        (b"", [], "error: <stdin>:1: "),
        (b"<net>\n<layers>\n</net>", [], "error: <stdin>:3: "),
        (b"<net" + b" " * 400, ["--limit", "xml_bytes=100"], "<stdin>:1: the file has 101 bytes"),
        (b"", ["--input", "a=-"], "the model and an --input cannot both be standard input"),
    ],
)
def test_standard_input_that_is_no_model(
    here: Path, xml: bytes, arguments: list[str], words: str
) -> None:
    done = invoke("-", "--random-inputs", "0", *arguments, stdin=xml)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert files() == []


def test_two_inputs_from_one_stream(here: Path) -> None:
    ir = IR()
    ir.result(ir.layer("Add", [ir.parameter("p", "2"), ir.parameter("q", "2")]))
    ir.save(here)
    done = invoke(MODEL, "--input", "p=-", "--input", "q=-", stdin=b"")
    assert done.exit_code == 2
    assert "only one --input can be standard input" in done.stderr
