"""What people give to the commands: dynamic models, other kinds of files, mistaken options."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import deconv_ir
from deconv_ir.errors import SettingError
from deconv_ir.kernels import kernel_info
from tests.support import IR, Out, invoke, invoke_script

BLOCK = Path(__file__).parents[3] / "samples" / "block" / "block.xml"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def skip_network(shape: str) -> IR:
    """Two poolings of stride 2 and a skip connection: only multiples of 4 fit."""
    ir = IR()
    x = ir.parameter("x", shape)
    down = x
    window = {"strides": "2,2", "kernel": "2,2", "pads_begin": "0,0", "pads_end": "0,0"}
    for _ in range(2):
        down = ir.layer("MaxPool", [down], window | {"rounding_type": "floor"})
    filters = ir.const(np.ones((3, 3, 4, 4), np.float32), "filters")
    none = {"pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1"}
    up = ir.layer("ConvolutionBackpropData", [down, filters], {"strides": "4,4"} | none)
    ir.result(ir.layer("Add", [x, up], names="y"))
    return ir


@pytest.mark.parametrize(
    ("shape", "drawn"),
    [
        ("?,3,?,?", (1, 3, 64, 64)),  # total stride 4, at least 64
        ("?,?,?,?", (1, 3, 64, 64)),  # the filter takes 3 channels
        ("1,3,?,8", (1, 3, 64, 8)),
        ("2..8,3,1..30,?", (2, 3, 28, 28)),  # within the bounds of a dim
        ("1,3,12,?", (1, 3, 12, 64)),
    ],
)
def test_random_inputs_have_sizes_that_fit(shape: str, drawn: tuple[int, ...]) -> None:
    path = skip_network(shape).save(Path())
    if "1..30" in shape:  # 30, the bound, does not fit; smaller multiples of 4 do
        drawn = deconv_ir.load(path, warn=False).fitting_shapes()["x"]  # type: ignore[index]
        assert drawn[2] <= 30
        assert drawn[2] % 4 == drawn[3] % 4 == 0
    written = ",".join(map(str, drawn))
    for command in (
        ("run", path, "--output", "y.npy"),
        ("show", path, "--output", "page.html"),
        ("diff", path, path),
    ):
        done = invoke_script(*command, "--random-inputs", "0")
        assert done.exit_code == 0, done.stderr
        assert f"a random array of [{written}], which fits all layers" in done.stderr
    assert np.load("y.npy").shape == drawn
    done = invoke(path, "--random-inputs", "0", "--explain-plan", "--json")
    assert json.loads(done.stdout)["memory"]["known"]


def test_a_model_that_nothing_fits_gets_the_smallest_sizes() -> None:
    ir = IR()
    x = ir.parameter("x", "?,3,?")
    ir.result(ir.layer("Add", [x, ir.const(np.ones((1, 2, 1), np.float32), "two")]))
    done = invoke(ir.save(Path()), "--random-inputs", "0")
    assert done.exit_code == 2
    assert "fits all layers" not in done.stderr


def _recurrent(ir: IR) -> Out:
    """I of LSTMSequence-5 is that of W [1, 4 * H, I]: 12, for H = 2."""
    x = ir.parameter("x", "?,?,?")
    state = [ir.const(np.zeros((1, 1, 2), np.float32)) for _ in range(2)]
    lengths = ir.const(np.array([64], np.int64))
    w, r, b = (ir.const(np.zeros(shape, np.float32)) for shape in ((1, 8, 12), (1, 8, 2), (1, 8)))
    return ir.layer(
        "LSTMSequence",
        [x, *state, lengths, w, r, b],
        {"hidden_size": "2", "direction": "forward"},
        version="opset5",
        outputs=("", "", ""),
    )


def _linear(ir: IR) -> Out:
    return ir.layer("MatMul", [ir.parameter("x", "?,?"), ir.const(np.zeros((7, 3), np.float32))])


def _pixel_shuffle(ir: IR) -> Out:
    """DepthToSpace-1 needs a multiple of 4 channels."""
    options = {"mode": "depth_first", "block_size": "2"}
    return ir.layer("DepthToSpace", [ir.parameter("x", "?,?,?,?")], options)


@pytest.mark.parametrize(
    ("network", "axis", "fits"),
    [
        (_recurrent, 2, lambda extent: extent == 12),
        (_linear, 1, lambda extent: extent == 7),
        (_pixel_shuffle, 1, lambda extent: extent % 4 == 0),
    ],
)
def test_extents_that_weights_fix_are_found(
    network: Callable[[IR], Out], axis: int, fits: Callable[[int], bool]
) -> None:
    ir = IR()
    ir.result(network(ir))
    path = ir.save(Path())
    done = invoke(path, "--random-inputs", "0", "--no-output", "--save-inputs", "x.npy")
    assert done.exit_code == 0, done.stderr
    assert "which fits all layers" in done.stderr
    assert fits(np.load("x.npy").shape[axis])


@pytest.mark.parametrize(
    "name",
    ["y.png", "y.JPG", "y.csv", "y.txt", "y.json", "y.safetensors", "y.keras", "y.blob", "y.svg"],
)
@pytest.mark.parametrize("option", ["--output", "--save-inputs"])
def test_other_kinds_of_outputs_are_refused_before_the_run(name: str, option: str) -> None:
    done = invoke(BLOCK, "--random-inputs", "0", option, name)
    assert done.exit_code == 2
    assert f"{option} {name}: arrays are written as .npy" in done.stderr
    assert list(Path().iterdir()) == []


def test_a_model_without_its_suffix() -> None:
    Path("unet.xml").write_bytes(BLOCK.read_bytes())
    for name in ("unet", "unet.onnx"):
        done = invoke(name, "--info")
        assert done.exit_code == 2
        assert "did you mean 'unet.xml'?" in done.stderr
    assert "did you mean" not in invoke("other", "--info").stderr


def test_an_array_without_its_suffix() -> None:
    Path("frame.npy").touch()
    done = invoke(BLOCK, "--input", "frame")
    assert done.exit_code == 2
    assert "did you mean 'frame.npy'?" in done.stderr


def test_a_misspelt_file_name() -> None:
    for suffix in (".xml", ".bin"):
        Path("unet").with_suffix(suffix).write_bytes(BLOCK.with_suffix(suffix).read_bytes())
    for name in ("frame.npy", "notes.xml.txt"):
        Path(name).touch()
    lint = invoke_script("lint", "unte.xml")
    model, array = invoke("unte.xml", "--info"), invoke("unet.xml", "--input", "fram.npy")
    for name in ("photo.png", "arrays.npz", "spec.md"):
        Path(name).touch()
    image = invoke("unet.xml", "--input", "foto.png")
    archive = invoke("unet.xml", "--input", "array.npz")
    document = invoke_script("spec", "check", "sepc.md")
    for done, wanted in (
        (lint, "unet.xml"),
        (model, "unet.xml"),
        (array, "frame.npy"),
        (image, "photo.png"),
        (archive, "arrays.npz"),
        (document, "spec.md"),
    ):
        assert (done.exit_code, f"(did you mean '{wanted}'?)" in done.stderr) == (2, True)
    for name in ("other.xml", "no/folder/unet.xml", "notes.xml", "framenpy"):
        assert "did you mean" not in invoke(name, "--info").stderr


@pytest.mark.parametrize("option", ["--output", "--dump", "--save-inputs"])
@pytest.mark.parametrize("where", ["file/", "file/inner/"])
def test_a_file_in_the_place_of_a_folder(option: str, where: str) -> None:
    Path("file").write_text("mine")
    done = invoke(BLOCK, "--random-inputs", "0", option, where)
    assert done.exit_code == 2
    assert f"error: {option} {where}: file is a file, not a directory\n" == done.stderr
    assert Path("file").read_text() == "mine"


@pytest.mark.parametrize(
    ("option", "word", "hint"),
    [
        ("--profile", "trace.csv", "--profile takes a name that ends with .json"),
        ("--batch", "many", "--batch takes a number"),
        ("--cast", "wrap", "--cast takes its value as in --cast=wrap"),
    ],
)
def test_a_value_that_an_option_does_not_take(option: str, word: str, hint: str) -> None:
    done = invoke(BLOCK, "--random-inputs", "0", option, word)
    assert done.exit_code == 2
    assert f"got unexpected extra argument ({word}) ({hint}); " in done.stderr


def test_weights_without_their_model() -> None:
    Path("unet.bin").touch()
    done = invoke_script("lint", "unet.bin")
    assert done.exit_code == 2
    assert "(unet.bin is a weights file; there is no unet.xml next to it)" in done.stderr


@pytest.mark.parametrize("script", ["run", "diff", "show"])
def test_a_model_in_the_place_of_a_seed(script: str) -> None:
    """The value of --random-inputs is optional, so the next word is taken as the seed."""
    done = invoke_script(script, "--random-inputs", BLOCK)
    assert done.exit_code == 2
    assert done.stderr.startswith(
        f"error: invalid value for '--random-inputs': invalid seed '{BLOCK}' (expected an integer "
        f"of at least 0 before a file, as in --random-inputs 0 {BLOCK}); "
    )
    for other in ("many", "1.5"):
        done = invoke_script(script, BLOCK, f"--random-inputs={other}")
        assert f"invalid seed '{other}' (expected an integer of at least 0); " in done.stderr


@pytest.mark.parametrize("name", ["page.pdf", "page.npy", "page.xml"])
def test_other_kinds_of_pages_are_refused(name: str) -> None:
    done = invoke_script("show", BLOCK, "--output", name)
    assert done.exit_code == 2
    assert f"--output {name}: the name must end with .html, .svg or .png" in done.stderr
    assert list(Path().iterdir()) == []
    assert invoke_script("show", BLOCK, "--output", name, "--format", "html").exit_code == 0


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((1, 16, 12, 8), "np.moveaxis(x, -1, 1)"),
        ((8, 16, 12), "x[None]"),
        ((16, 12, 8), "np.moveaxis(x, -1, 0)[None]"),
        ((1, 9, 12, 12), None),
        ((5,), None),
    ],
)
def test_exchanged_axes(shape: tuple[int, ...], hint: str | None) -> None:
    model = deconv_ir.load(BLOCK).reshape((1, 8, 16, 12))
    x = np.zeros(shape, np.float32)
    with pytest.raises(deconv_ir.InputError) as caught:
        model.run(x)
    if hint is None:
        assert caught.value.hint is None
        return
    assert caught.value.hint is not None
    assert hint in caught.value.hint
    assert model.run(eval(hint, {"np": np, "x": x}))["y"].shape == (1, 4, 32, 24)


def test_channels_first_for_a_model_of_channels_last() -> None:
    ir = IR()
    ir.result(ir.layer("ReLU", [ir.parameter("x", "1,4,5,3")], names="y"))
    model = deconv_ir.load(ir.save(Path()), warn=False)
    for shape, hint in (((1, 3, 4, 5), "(x, 1, -1)"), ((3, 4, 5), "(x, 0, -1)[None]")):
        with pytest.raises(deconv_ir.InputError, match="look") as caught:
            model.run(np.zeros(shape, np.float32))
        assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-m", BLOCK], "did you mean MODEL?"),
        ([BLOCK, "-i", "x.npy"], "did you mean --input?"),
        ([BLOCK, "-d", "CPU"], "models run on the CPU"),
        ([BLOCK, "-niter", "5"], "no such option: -niter (did you mean --repeat?)"),
        ([BLOCK, "-shape", "1,8,16,16"], "no such option: -shape (did you mean --shape?)"),
        ([BLOCK, "-hint", "latency"], "no such option: -hint (there is one way to run a model"),
        ([BLOCK, "-ip", "u8"], "no such option: -ip (did you mean --cast?)"),
        ([BLOCK, "-report_folder", "x"], "(did you mean --profile --json?)"),
        ([BLOCK, "--batch", "4", "--random-inputs", "0"], "--shape with another batch reshapes"),
        ([BLOCK, "-nireq", "2"], "no such option: -nireq (there is one request: leave it out)"),
        ([BLOCK, "--random-inputs", "0", "--memory-limit", "1KB"], "--tile auto"),
        ([BLOCK, "--random-inputs", "0", "--all"], "--all requires --dump DIR"),
    ],
)
def test_hints(arguments: list[object], words: str) -> None:
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert words in done.stderr


@pytest.mark.parametrize(
    ("found", "hint"),
    [
        ((4, 8, 16, 16), "--shape x=4,8,16,16 gives the model this shape"),
        ((1, 8, 24, 32), "--shape x=1,8,24,32 gives the model this shape"),
        ((1, 3, 16, 16), None),  # the filter takes 8 channels
        ((8, 16), None),
    ],
)
def test_arrays_of_other_sizes(found: tuple[int, ...], hint: str | None) -> None:
    np.save("x.npy", np.zeros(found, np.float32))
    done = invoke(BLOCK, "--input", "x.npy", "--no-output")
    assert done.exit_code == 2
    assert ("--shape" in done.stderr) == (hint is not None)
    if hint is not None:
        assert f"({hint})" in done.stderr
        shape = hint.split()[1]
        assert invoke(BLOCK, "--input", "x.npy", "--shape", shape, "--no-output").exit_code == 0
        with pytest.raises(deconv_ir.InputError) as caught:
            deconv_ir.load(BLOCK).run(np.load("x.npy"))
        assert f"Model.reshape({{'x': {found}}}) gives" in str(caught.value)


@pytest.mark.parametrize("command", ["lint", "show", "run"])
def test_a_model_without_its_ending(command: str, tmp_path: Path) -> None:
    shutil.copy(BLOCK, tmp_path / "unet.xml")
    done = invoke_script(command, tmp_path / "unet")
    assert done.exit_code == 2
    assert "unet.xml'?)" in done.stderr


@pytest.mark.parametrize(
    ("limit", "fits"), [("1GiB", "fits within"), ("20KiB", "does not fit within")]
)
def test_explain_plan_says_whether_it_fits(limit: str, fits: str) -> None:
    options = (BLOCK, "--explain-plan", "--memory-limit", limit)
    assert f"{fits} the memory limit" in invoke(*options).stdout
    assert json.loads(invoke(*options, "--json").stdout)["memory"]["fits"] is (fits[0] == "f")
    assert "memory limit" not in invoke(BLOCK, "--explain-plan").stdout


@pytest.mark.skipif(not kernel_info().available, reason="NumPy's plans have no threads")
@pytest.mark.parametrize(
    ("threads", "said"),
    [("1", "on 1 thread;"), ("3", "on 3 threads;"), (str(1 << 64), " threads;")],
)
def test_explain_plan_plans_for_the_threads_of_the_run(threads: str, said: str) -> None:
    assert said in invoke(BLOCK, "--explain-plan", "--threads", threads).stdout


def test_what_two_passes_compute_is_said() -> None:
    """MVN needs the mean of an image, a statistic; LogSoftmax has none of that kind."""
    for kind, attributes, hint in (
        ("MVN", {"eps": "1e-5", "normalize_variance": "true", "across_channels": "false"}, True),
        ("LogSoftmax", {"axis": "3"}, False),
    ):
        ir = IR()
        x = ir.parameter("x", "1,2,64,64")
        version = "opset2" if kind == "MVN" else "opset5"
        ir.result(ir.layer(kind, [x], attributes, version=version, names="y"))
        path = ir.save(Path())
        np.save("x.npy", np.ones((1, 2, 64, 64), np.float32))
        options = ("--input", "x.npy", "--output", "y.npy", "--tile", "32,32", "--force")
        done = invoke(path, *options)
        assert done.exit_code == 2
        assert "cannot be tiled" in done.stderr
        assert ("--two-pass" in done.stderr) is hint
        assert (invoke(path, *options, "--two-pass").exit_code == 0) is hint


def test_a_truncated_bin_is_one_finding() -> None:
    Path("b.xml").write_bytes(BLOCK.read_bytes())
    Path("b.bin").write_bytes(BLOCK.with_suffix(".bin").read_bytes()[:100])
    (found,) = [f for f in deconv_ir.lint("b.xml") if f.code == "IR502"]
    assert "1 more constant too, the last ends at 1032" in found.message


def test_dump(here: Path) -> None:
    """All inner tensors, as --output-layer gives them one by one; deconv-diff reads the folder."""
    done = invoke(BLOCK, "--random-inputs", "0", "--dump", "all", "--output", "y.npy")
    assert done.exit_code == 0, done.stderr
    names = sorted(path.stem for path in Path("all").glob("*.npy"))
    model = deconv_ir.load(BLOCK)
    inner = [x for x in model.graph.layers if x.type in ("ConvolutionBackpropData", "Add", "ReLU")]
    assert len(names) == 1 + len(inner)  # x, too
    np.testing.assert_allclose(np.load("all/y.npy"), np.load("y.npy"), rtol=1e-5, atol=1e-6)
    done = invoke_script("diff", BLOCK, "--random-inputs", "0", "--against", "all")
    assert done.exit_code == 0, done.stdout + done.stderr
    again = invoke(BLOCK, "--random-inputs", "0", "--dump", "all", "--no-output")
    assert (again.exit_code, "already exists" in again.stderr) == (2, True)
    options = ("--no-output", "--dump", "more", "--all")
    assert invoke(BLOCK, "--random-inputs", "0", *options).exit_code == 0
    stored = {path.stem for path in Path("more").glob("*.npy")}
    assert len(stored) == len(names) + 4, "two constants, each as stored and as converted"


@pytest.mark.parametrize(
    "words",
    [
        "run --expect y.npy --rtol nan",
        "run --expect y.npy --atol NaN",
        "run --expect y.npy --rtol 1_0",
        "run --seconds nan",
        "run --repeat 1_0",
        "run --threads 1_0",
        "run --random-inputs 1_0",
        "run --mean 1_0",
        "run --scale 1,2_0",
        "diff --rtol nan",
        "diff --atol nan",
        "diff --weights-tolerance nan",
        "diff --levels 1_0",
    ],
)
def test_numbers_are_written_as_numbers(words: str) -> None:
    """NaN would let any difference agree; Python's 1_0 is 10."""
    command, *options = words.split()
    np.save("y.npy", np.zeros((1, 4, 32, 32), np.float32))
    second = [str(BLOCK)] if command == "diff" else []
    result = invoke_script(command, str(BLOCK), *second, "--random-inputs", "0", *options)
    assert result.exit_code == 2
    assert f"'{options[-1]}'" in result.stderr


@pytest.mark.parametrize("name", ["rtol", "atol", "weights_tolerance"])
@pytest.mark.parametrize("value", [float("nan"), -1.0])
def test_tolerances_of_the_library(name: str, value: float) -> None:
    with pytest.raises(SettingError, match=f"{name} must be a number from 0, found {value}"):
        deconv_ir.diff(BLOCK, BLOCK, **{name: value})
